//! `adhoc`: one task through one agent.

use super::last::Last;
use super::texts::{self, Prompt};
use crate::agent::registry::Agents;
use crate::cli::{Adhoc, Output};
use crate::failure::{Code, Failure};
use crate::protocol::inbound::{Inbound, Message};
use crate::protocol::limits;
use crate::protocol::request::{Options, Seconds};
use crate::protocol::words::{Level, Source as CancelSource};
use crate::run::OnEof;
use crate::session::{self, Ended, First, Front, JsonFront, Script, Setup, Source};
use crate::terminal::TerminalFront;
use std::io::IsTerminal;

/// Runs it; gives the exit code.
pub fn run(adhoc: Adhoc) -> u8 {
    match adhoc.output {
        Output::Json => json(adhoc),
        Output::Cli => cli(adhoc),
    }
}

/// A run that cannot begin, for an orchestrator: it too gets its terminal frame.
pub fn refuse(failure: Failure) -> u8 {
    refuse_with(Adhoc { output: Output::Json, ..Adhoc::default() }, failure)
}

fn refuse_with(adhoc: Adhoc, failure: Failure) -> u8 {
    if session::stdout_is_closed() {
        return undelivered();
    }
    let setup = setup(adhoc, Box::new(JsonFront), Script::default());
    session::run(Setup { refused: Some(failure), source: Source::Nothing, ..setup }).code
}

fn undelivered() -> u8 {
    session::diagnose(session::UNDELIVERED);
    crate::failure::EXIT_UNDELIVERED
}

fn setup(adhoc: Adhoc, front: Box<dyn Front>, script: Script) -> Setup {
    Setup {
        front,
        source: Source::JsonLines,
        first: First::OnSource,
        script,
        refused: None,
        agents: Agents::built_in(),
        defaults: adhoc.options,
        on_eof: if adhoc.cancel_on_eof { OnEof::Cancel } else { OnEof::Continue },
        record: adhoc.record,
        mirror_stderr: adhoc.mirror_stderr,
        signal_source: CancelSource::Signal,
    }
}

fn json(mut adhoc: Adhoc) -> u8 {
    if session::stdout_is_closed() {
        return undelivered();
    }
    let script = match look_up(&mut adhoc) {
        Ok(script) => script,
        Err(message) => return refuse_with(adhoc, Failure::new(Code::Usage, message)),
    };
    let (prompt, read_messages) = (Prompt::of(&adhoc), adhoc.read_messages);
    let mut setup = setup(adhoc, Box::new(JsonFront), script);
    let Some(prompt) = prompt else { return session::run(setup).code };
    setup.source = if read_messages { Source::JsonLines } else { Source::Nothing };
    // Nobody was promised an answer: without messages there is nobody to ask.
    let nobody = !read_messages && setup.script.is_empty();
    let interactive = setup.defaults.interactive.or(nobody.then_some(false));
    let make = move || match prompt.read() {
        Ok(text) => Ok(start(Options { prompt: Some(text), interactive, ..Options::default() })),
        Err(message) => Err(Failure::new(Code::Usage, message)),
    };
    setup.first = First::Awaited(Box::new(make));
    let last = Last::of(&setup.defaults, &setup.agents).filter(Last::has_folder);
    let ended = session::run(setup);
    keep(last, &ended);
    ended.code
}

fn start(options: Options) -> Inbound {
    Inbound { id: None, run_id: None, message: Message::Start(Box::new((options, None))) }
}

fn cli(mut adhoc: Adhoc) -> u8 {
    let prompt = Prompt::of(&adhoc).or_else(|| (!std::io::stdin().is_terminal()).then_some(Prompt::Stdin));
    let prompt = prompt.ok_or_else(|| "Give a prompt: spektacular adhoc \"what is to be done\".".to_owned());
    let ready = look_up(&mut adhoc).and_then(|script| Ok((script, prompt?.read()?)));
    let (script, prompt) = match ready {
        Ok(ready) => ready,
        Err(message) => {
            session::diagnose(&format!("spektacular: usage: {message}"));
            return Code::Usage.exit_code();
        }
    };
    let present = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let mut setup = setup(adhoc, Box::new(TerminalFront::new(std::io::stderr().is_terminal())), script);
    let answered = present || !setup.script.is_empty();
    let interactive = setup.defaults.interactive.unwrap_or(answered) && answered;
    setup.source = if present && interactive { Source::Terminal } else { Source::Nothing };
    setup.signal_source = CancelSource::Terminal;
    let defaults = &setup.defaults;
    let options = Options {
        prompt: Some(prompt),
        interactive: Some(interactive),
        // A person may be away, and reads along.
        question_timeout_s: defaults.question_timeout_s.or(Some(Seconds(limits::SECONDS))),
        progress: defaults.progress.or(Some(Level::Full)),
        ..Options::default()
    };
    setup.first = First::Ready(Box::new(start(options)));
    let last = Last::of(&setup.defaults, &setup.agents);
    let ended = session::run(setup);
    if !keep(last, &ended) {
        session::diagnose("spektacular: warning: the session could not be kept for --continue");
    }
    let Ended { code, signal, .. } = ended;
    // As shells expect of a program that a signal ended.
    signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(code)
}

/// What flags name and do not hold: texts in files, and the last session. Gives the answers.
fn look_up(adhoc: &mut Adhoc) -> Result<Script, String> {
    if let Some(path) = &adhoc.system_prompt_file {
        adhoc.options.system_prompt = Some(texts::file("--system-prompt-file", path)?);
    }
    if adhoc.go_on {
        let id = Last::of(&adhoc.options, &Agents::built_in()).and_then(|last| last.id());
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
