//! `adhoc`: one task through one agent.

use super::complain;
use crate::cli::{Adhoc, Output};
use crate::config::{self, Loaded};
use crate::failure::{Code, Failure};
use crate::protocol::inbound::{Inbound, Message};
use crate::protocol::limits;
use crate::protocol::request::{Options, Seconds};
use crate::protocol::words::{Level, Source as CancelSource};
use crate::run::OnEof;
use crate::session::{self, DebugLog, Ended, Front, JsonFront, Keyboard, Setup, Source};
use crate::terminal::{Detail, Look, TerminalFront};
use std::io::{IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The longest prompt that is read from a file or a pipe, in bytes: as long as the longest inbound line.
const PROMPT_BYTES: u64 = limits::INBOUND_LINE_BYTES as u64;

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
    let setup = setup(adhoc, loaded, Box::new(JsonFront));
    session::run(Setup { refused: Some(failure), source: Source::Nothing, ..setup }).code
}

fn undelivered() -> u8 {
    session::diagnose(session::UNDELIVERED);
    crate::failure::EXIT_UNDELIVERED
}

fn setup(adhoc: Adhoc, loaded: Loaded, front: Box<dyn Front>) -> Setup {
    let Loaded { config, mut warnings, .. } = loaded;
    let (agents, wrong) = config.agents();
    warnings.extend(wrong);
    Setup {
        front,
        source: Source::JsonLines,
        first: None,
        refused: None,
        agents,
        defaults: adhoc.options.over(config.above()),
        base: config.below(),
        warnings,
        on_eof: if adhoc.cancel_on_eof { OnEof::Cancel } else { OnEof::Continue },
        record: adhoc.record,
        debug_log: config.debug_dir().map(|dir| DebugLog { dir, command: "adhoc" }),
        mirror_stderr: adhoc.mirror_stderr,
        signal_source: CancelSource::Signal,
    }
}

fn json(adhoc: Adhoc, loaded: Loaded) -> u8 {
    if session::stdout_is_closed() {
        return undelivered();
    }
    let given = match prompt(&adhoc) {
        Ok(given) => given,
        Err(message) => return refuse_with(adhoc, loaded, Failure::new(Code::Usage, message)),
    };
    let read_messages = adhoc.read_messages;
    let mut setup = setup(adhoc, loaded, Box::new(JsonFront));
    if let Some(prompt) = given {
        setup.source = if read_messages { Source::JsonLines } else { Source::Nothing };
        // Nobody was promised an answer: without messages there is nobody to ask.
        let interactive = (!read_messages).then_some(false);
        setup.first = Some(start(Options { prompt: Some(prompt), interactive, ..Options::default() }));
    }
    session::run(setup).code
}

fn start(options: Options) -> Inbound {
    Inbound { id: None, run_id: None, message: Message::Start(Box::new((options, None))) }
}

fn cli(adhoc: Adhoc, loaded: Loaded) -> u8 {
    let given = prompt(&adhoc).and_then(|given| match given {
        Some(prompt) => Ok(prompt),
        None if std::io::stdin().is_terminal() => {
            Err("Give a prompt: spektacular adhoc \"what is to be done\".".to_owned())
        }
        None => read(std::io::stdin()),
    });
    let prompt = match given {
        Ok(prompt) => prompt,
        Err(message) => return complain(&Failure::new(Code::Usage, message)),
    };
    let look = look(&adhoc);
    let keyboard = keyboard(&adhoc).filter(|_| look.person);
    let typed = keyboard.as_ref().and_then(Keyboard::again);
    let front = TerminalFront::new(look, keyboard, std::env::var("HOME").ok());
    let mut setup = setup(adhoc, loaded, Box::new(front));
    let defaults = setup.defaults.clone().over(setup.base.clone());
    let typed = typed.filter(|_| defaults.interactive.unwrap_or(true));
    let interactive = typed.is_some();
    setup.source = typed.map_or(Source::Nothing, Source::Terminal);
    setup.signal_source = CancelSource::Terminal;
    let options = Options {
        prompt: Some(prompt),
        interactive: Some(interactive),
        // A person may be away, and reads along.
        question_timeout_s: defaults.question_timeout_s.or(Some(Seconds(limits::SECONDS))),
        progress: defaults.progress.or(Some(Level::Full)),
        ..Options::default()
    };
    setup.first = Some(start(options));
    let Ended { code, signal } = session::run(setup);
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

/// Where a person answers: stdin, or, if the prompt came by it, the terminal that the process belongs to.
fn keyboard(adhoc: &Adhoc) -> Option<Keyboard> {
    let given = adhoc.prompt.is_some() || adhoc.prompt_file.as_ref().is_some_and(|file| !is_stdin(file));
    let by_stdin = !given && !adhoc.words.iter().any(|word| word != "-");
    Keyboard::at_stdin().or_else(|| Keyboard::controlling().filter(|_| by_stdin))
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// The prompt that was given on the command line, if one was.
fn prompt(adhoc: &Adhoc) -> Result<Option<String>, String> {
    let text = match (&adhoc.prompt, &adhoc.prompt_file, adhoc.words.as_slice()) {
        (Some(text), ..) => text.clone(),
        (None, Some(file), _) if is_stdin(file) => read(std::io::stdin())?,
        (None, Some(file), _) => {
            read(std::fs::File::open(file).map_err(|_| "--prompt-file: the file cannot be read.".to_owned())?)?
        }
        (None, None, []) => return Ok(None),
        (None, None, [dash]) if dash == "-" => read(std::io::stdin())?,
        (None, None, words) => words.join(" "),
    };
    if text.trim().is_empty() {
        return Err("The prompt is empty: say what is to be done.".into());
    }
    Ok(Some(text))
}

fn read(from: impl Read) -> Result<String, String> {
    let mut text = String::new();
    from.take(PROMPT_BYTES + 1).read_to_string(&mut text).map_err(|_| "The prompt must be UTF-8 text.".to_owned())?;
    if text.len() as u64 > PROMPT_BYTES {
        return Err("The prompt is longer than 16 MiB: put it into a file that the agent reads.".into());
    }
    let text = text.trim_end_matches(['\n', '\r']).to_owned();
    if text.trim().is_empty() { Err("The prompt is empty: say what is to be done.".into()) } else { Ok(text) }
}
