//! `adhoc`: one task through one agent.

use super::complain;
use super::last::Last;
use super::texts::{self, Prompt};
use crate::cli::{Adhoc, Output};
use crate::config::{self, Config, Loaded};
use crate::failure::{Code, Failure};
use crate::protocol::inbound::{Inbound, Message};
use crate::protocol::limits;
use crate::protocol::request::{Options, Seconds};
use crate::protocol::words::{Level, Source as CancelSource};
use crate::run::OnEof;
use crate::session::{self, DebugLog, Ended, First, Front, JsonFront, Keyboard, Script, Setup, Source, stdin};
use crate::terminal::{Detail, Look, TerminalFront};
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

/// What a person is told who is to type the prompt: in the foreground, and in the background.
const TYPE: &str = "spektacular: type the prompt, and end it with Ctrl-D";
const FETCH: &str = "spektacular: the prompt is to be typed: bring the run to the foreground with fg";

/// Runs it; gives the exit code.
pub fn run(adhoc: Adhoc) -> u8 {
    let mut loaded = config::load();
    let failure = loaded.failure.take();
    match (adhoc.output.unwrap_or_else(|| loaded.config.output()), failure) {
        (Output::Json, Some(failure)) => refuse_with(adhoc, loaded, failure),
        (Output::Json, None) => json(adhoc, loaded),
        (Output::Cli, Some(failure)) => complain(&failure),
        (Output::Cli, None) => cli(adhoc, loaded),
    }
}

/// A run that cannot begin. An orchestrator gets its terminal frame here too. `output`: what the command line says.
pub fn refuse(output: Option<Output>, failure: Failure) -> u8 {
    let loaded = config::load();
    match output.unwrap_or_else(|| loaded.config.output()) {
        Output::Json => refuse_with(Adhoc::default(), loaded, failure),
        Output::Cli => complain(&failure),
    }
}

fn refuse_with(adhoc: Adhoc, loaded: Loaded, failure: Failure) -> u8 {
    if session::stdout_is_closed() {
        return undelivered();
    }
    let setup = setup(adhoc, loaded, Box::new(JsonFront), Script::default());
    session::run(Setup { refused: Some(failure), source: Source::Nothing, ..setup }).code
}

fn undelivered() -> u8 {
    session::diagnose(session::UNDELIVERED);
    crate::failure::EXIT_UNDELIVERED
}

fn setup(adhoc: Adhoc, loaded: Loaded, front: Box<dyn Front>, script: Script) -> Setup {
    let Loaded { config, mut warnings, .. } = loaded;
    let (mut layers, wrong) = config.layers();
    layers.above = adhoc.options.over(layers.above);
    warnings.extend(wrong);
    Setup {
        front,
        source: Source::JsonLines,
        first: First::OnSource,
        script,
        refused: None,
        layers,
        warnings,
        on_eof: if adhoc.cancel_on_eof { OnEof::Cancel } else { OnEof::Continue },
        record: adhoc.record,
        debug_log: config.debug_dir().map(|dir| DebugLog { dir, command: "adhoc" }),
        mirror_stderr: adhoc.mirror_stderr,
        signal_source: CancelSource::Signal,
    }
}

fn json(mut adhoc: Adhoc, loaded: Loaded) -> u8 {
    if session::stdout_is_closed() {
        return undelivered();
    }
    let script = match look_up(&mut adhoc, &loaded.config) {
        Ok(script) => script,
        Err(message) => return refuse_with(adhoc, loaded, Failure::new(Code::Usage, message)),
    };
    let (prompt, read_messages, dry_run) = (Prompt::of(&adhoc), adhoc.read_messages, adhoc.dry_run);
    let mut setup = setup(adhoc, loaded, Box::new(JsonFront), script);
    // Nobody was promised an answer: without messages there is nobody to ask.
    let nobody = prompt.is_some() && !read_messages && setup.script.is_empty();
    let interactive = nobody.then_some(false);
    let make = move |prompt: Prompt| match prompt.read() {
        Ok(text) => Ok(Options { prompt: Some(text), interactive, ..Options::default() }),
        Err(message) => Err(Failure::new(Code::Usage, message)),
    };
    if dry_run {
        return plan(make(prompt.unwrap_or_else(Prompt::stand_in)), setup, Output::Json);
    }
    let Some(prompt) = prompt else { return session::run(setup).code };
    setup.source = if read_messages { Source::JsonLines } else { Source::Nothing };
    setup.first = First::Awaited(Box::new(move || make(prompt).map(start)));
    let last = Last::of(&setup.layers, Options::default()).filter(Last::has_folder);
    let ended = session::run(setup);
    keep(last, &ended);
    ended.code
}

/// `--dry-run`: shows what this run would start. One that would be refused is refused here too.
fn plan(options: Result<Options, Failure>, setup: Setup, output: Output) -> u8 {
    match options.and_then(|options| session::plan::plan(options, &setup)) {
        Ok(plan) => super::plan::show(&plan, output),
        Err(failure) => {
            let (first, source) = (First::OnSource, Source::Nothing);
            session::run(Setup { refused: Some(failure), first, source, record: None, debug_log: None, ..setup }).code
        }
    }
}

fn start(options: Options) -> Inbound {
    Inbound { id: None, run_id: None, message: Message::Start(Box::new((options, None))) }
}

fn cli(mut adhoc: Adhoc, loaded: Loaded) -> u8 {
    let dry_run = adhoc.dry_run;
    let prompt = match dry_run {
        true => Some(Prompt::of(&adhoc).unwrap_or_else(Prompt::stand_in)),
        false => Prompt::with_piped(Prompt::of(&adhoc), stdin::kind()),
    };
    let prompt = prompt.ok_or_else(|| "Give a prompt: spektacular adhoc \"what is to be done\".".to_owned());
    let ready = look_up(&mut adhoc, &loaded.config).and_then(|script| Ok((script, prompt?)));
    let (script, prompt) = match ready {
        Ok(ready) => ready,
        Err(message) => return complain(&Failure::new(Code::Usage, message)),
    };
    let look = look(&adhoc);
    let mut keyboard = keyboard(prompt.reads_stdin()).filter(|_| look.person);
    let typed = keyboard.as_mut().and_then(Keyboard::keys);
    let front = TerminalFront::new(look, keyboard, std::env::var("HOME").ok());
    let mut setup = setup(adhoc, loaded, Box::new(front), script);
    let (defaults, _) = setup.layers.under(Options::default());
    let answered = typed.is_some() || !setup.script.is_empty();
    let interactive = defaults.interactive.unwrap_or(true) && answered;
    setup.source = typed.filter(|_| interactive).map_or(Source::Nothing, Source::Terminal);
    setup.signal_source = CancelSource::Terminal;
    let options = Options {
        interactive: Some(interactive),
        // A person may be away, and reads along.
        question_timeout_s: defaults.question_timeout_s.or(Some(Seconds(limits::SECONDS))),
        progress: defaults.progress.or(Some(Level::Full)),
        ..Options::default()
    };
    if prompt.reads_stdin() && stdin::kind() == stdin::Kind::Terminal {
        session::diagnose(if stdin::is_in_background() { FETCH } else { TYPE });
    }
    let make = move || match prompt.read() {
        Ok(text) => Ok(Options { prompt: Some(text), ..options }),
        Err(message) => Err(Failure::new(Code::Usage, message)),
    };
    if dry_run {
        return plan(make(), setup, Output::Cli);
    }
    // Whoever writes it may take long, and signals are served meanwhile.
    setup.first = First::Awaited(Box::new(move || make().map(start)));
    let last = Last::of(&setup.layers, Options::default());
    let ended = session::run(setup);
    if !keep(last, &ended) {
        session::diagnose("spektacular: warning: the session could not be kept for --continue");
    }
    if ended.unused_answers > 0 {
        session::diagnose(&format!(
            "spektacular: warning: keys of --answer or --answers that fitted no question: {}: a key is a question's header, text, kind or purpose",
            ended.unused_answers
        ));
    }
    let Ended { code, signal, .. } = ended;
    // As shells expect of a program that a signal ended.
    signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(code)
}

/// What the terminal is like, if there is one.
fn look(adhoc: &Adhoc) -> Look {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let person = std::io::stderr().is_terminal();
    let live = person && set("TERM").is_some_and(|term| term != "dumb");
    let detail = match (adhoc.quiet, adhoc.verbose) {
        (true, _) => Detail::Quiet,
        (false, true) => Detail::Verbose,
        (false, false) => Detail::Normal,
    };
    let escapes = live && set("NO_COLOR").is_none();
    Look { detail, person, live, escapes, shared: person && may_be_seen(&std::io::stdout()) }
}

/// Whether what goes there may end up on a terminal: that of a pipe does where `tee` or `head` is behind it.
fn may_be_seen(stdout: &std::io::Stdout) -> bool {
    let file = stdout.as_fd().try_clone_to_owned().map(std::fs::File::from);
    let kind = file.and_then(|file| file.metadata()).map(|meta| meta.file_type());
    stdout.is_terminal() || kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

/// Where a person answers: stdin, or, if that is read for the prompt, the terminal that the process belongs to.
fn keyboard(reads_stdin: bool) -> Option<Keyboard> {
    Keyboard::at_stdin().or_else(|| Keyboard::controlling().filter(|_| reads_stdin))
}

/// What flags name and do not hold: texts in files, and the last session. Gives the answers.
fn look_up(adhoc: &mut Adhoc, config: &Config) -> Result<Script, String> {
    if let Some(path) = &adhoc.system_prompt_file {
        adhoc.options.system_prompt = Some(texts::file("--system-prompt-file", path)?);
    }
    if adhoc.go_on {
        let id = Last::of(&config.layers().0, adhoc.options.clone()).and_then(|last| last.id());
        let none = "--continue: no session of this agent is known in this directory: begin one without it.";
        adhoc.options.session_id = Some(id.ok_or(none)?);
    }
    let mut script = match &adhoc.answers_file {
        Some(path) => Script::read(&texts::file("--answers", path)?).map_err(|why| format!("--answers: {why}"))?,
        None => Script::default(),
    };
    script.add_typed(std::mem::take(&mut adhoc.answers));
    Ok(script)
}

/// Keeps the session of a run for `--continue`. `false`: it could not be kept.
fn keep(last: Option<Last>, ended: &Ended) -> bool {
    last.zip(ended.session_id.as_ref()).is_none_or(|(last, id)| last.keep(id).is_ok())
}
