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
use crate::session::{self, DebugLog, Ended, Front, JsonFront, Setup, Source};
use crate::terminal::TerminalFront;
use std::io::{IsTerminal, Read};
use std::path::Path;

/// The longest prompt that is read from a file or a pipe, in bytes: as long as the longest inbound line.
const PROMPT_BYTES: u64 = limits::INBOUND_LINE_BYTES as u64;
/// What a dry run takes for a prompt when none is given.
const STAND_IN: &str = "{prompt}";

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
    let (read_messages, dry_run) = (adhoc.read_messages, adhoc.dry_run);
    let mut setup = setup(adhoc, loaded, Box::new(JsonFront));
    if let Some(prompt) = given {
        setup.source = if read_messages { Source::JsonLines } else { Source::Nothing };
        // Nobody was promised an answer: without messages there is nobody to ask.
        let interactive = (!read_messages).then_some(false);
        setup.first = Some(start(Options { prompt: Some(prompt), interactive, ..Options::default() }));
    }
    if dry_run {
        return plan(setup, Output::Json);
    }
    session::run(setup).code
}

/// `--dry-run`: shows what this run would start. One that would be refused is refused here too.
fn plan(setup: Setup, output: Output) -> u8 {
    let given = setup.first.as_ref().and_then(|first| match &first.message {
        Message::Start(start) => Some(start.0.clone()),
        _ => None,
    });
    let prompt = Some(STAND_IN.to_owned());
    let options = given.unwrap_or(Options { prompt, ..Options::default() });
    match session::plan::plan(options, &setup) {
        Ok(plan) => super::plan::show(&plan, output),
        Err(failure) => {
            session::run(Setup {
                refused: Some(failure),
                first: None,
                source: Source::Nothing,
                record: None,
                debug_log: None,
                ..setup
            })
            .code
        }
    }
}

fn start(options: Options) -> Inbound {
    Inbound { id: None, run_id: None, message: Message::Start(Box::new((options, None))) }
}

fn cli(adhoc: Adhoc, loaded: Loaded) -> u8 {
    let dry_run = adhoc.dry_run;
    let given = prompt(&adhoc).and_then(|given| match given {
        Some(prompt) => Ok(prompt),
        None if dry_run => Ok(STAND_IN.to_owned()),
        None if std::io::stdin().is_terminal() => {
            Err("Give a prompt: spektacular adhoc \"what is to be done\".".to_owned())
        }
        None => read(std::io::stdin()),
    });
    let prompt = match given {
        Ok(prompt) => prompt,
        Err(message) => return complain(&Failure::new(Code::Usage, message)),
    };
    let present = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let mut setup = setup(adhoc, loaded, Box::new(TerminalFront::new(std::io::stderr().is_terminal())));
    let defaults = setup.defaults.clone().over(setup.base.clone());
    let interactive = defaults.interactive.unwrap_or(present);
    setup.source = if present && interactive { Source::Terminal } else { Source::Nothing };
    setup.signal_source = CancelSource::Terminal;
    let options = Options {
        prompt: Some(prompt),
        interactive: Some(interactive && present),
        // A person may be away, and reads along.
        question_timeout_s: defaults.question_timeout_s.or(Some(Seconds(limits::SECONDS))),
        progress: defaults.progress.or(Some(Level::Full)),
        ..Options::default()
    };
    setup.first = Some(start(options));
    if dry_run {
        return plan(setup, Output::Cli);
    }
    let Ended { code, signal } = session::run(setup);
    // As shells expect of a program that a signal ended.
    signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(code)
}

/// The prompt that was given on the command line, if one was.
fn prompt(adhoc: &Adhoc) -> Result<Option<String>, String> {
    let text = match (&adhoc.prompt, &adhoc.prompt_file, adhoc.words.as_slice()) {
        (Some(text), ..) => text.clone(),
        (None, Some(file), _) if file == Path::new("-") => read(std::io::stdin())?,
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
