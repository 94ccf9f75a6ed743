//! The commands. A file holds all of one: its row with its texts and flags, the reader of its words, and its main function,
//! which takes a checked command line and returns the exit code. [`COMMANDS`] lists them.

mod acp;
mod adhoc;
mod agent_check;
mod agent_verify;
mod agents;
mod ask_server;
mod chat_again;
mod complete;
mod config;
mod demo;
mod diff;
mod export;
mod format_check;
mod init;
mod integrate;
mod look;
mod manual;
mod open;
mod prompt_line;
mod prompts;
mod protocol;
mod protocol_check;
mod replay;
mod report;
mod reported;
mod runs;
mod server_launcher;
mod sessions;
mod status;
mod task;
mod texts;
mod worktree;
mod worktrees;

use crate::agent::registry::Agent;
use crate::agent::{Program, npx};
use crate::cli::command::{Command, Runnable, Runs};
use crate::cli::{self, Output, Request};
use crate::config::Layers;
use crate::config::load;
use crate::engine::{LAUNCH, secrets_here};
use crate::help::complete::ARGUMENT;
use crate::help::overview;
use crate::io::failpoint::point;
use crate::io::output::{deliver, diagnose, explain};
use crate::io::signals::{self, SignalChannels};
use crate::json::to_line;
use crate::process::query::find;
use crate::protocol::failure::{Code, Failure, OUR_BUG};
use crate::protocol::request::Options;
use serde_json::Value;
use std::borrow::Cow;
use std::ffi::OsString;
use std::panic::catch_unwind;

/// All commands, in the order of the help.
pub static COMMANDS: &[Command] = &[
    runs::ADHOC,
    runs::CHAT,
    init::COMMAND,
    runs::SPEC,
    runs::PLAN,
    runs::IMPLEMENT,
    status::COMMAND,
    diff::COMMAND,
    prompts::COMMAND,
    config::COMMAND,
    agents::COMMAND,
    sessions::COMMAND,
    worktrees::COMMAND,
    export::COMMAND,
    open::COMMAND,
    acp::COMMAND,
    integrate::COMMAND,
    protocol::COMMAND,
    ask_server::COMMAND,
    demo::COMMAND,
    replay::COMMAND,
    report::COMMAND,
    manual::COMPLETIONS,
    manual::MAN,
    manual::HELP,
];

/// `args`: without the program's name. Returns the exit code.
pub fn run(args: Vec<OsString>) -> u8 {
    match args.split_first() {
        Some((first, rest)) if first == ARGUMENT => return complete::run(rest),
        Some((first, rest)) if first == LAUNCH => return server_launcher::run(rest),
        Some(_) | None => {}
    }
    let runs = cli::named(COMMANDS, &args).map_or(Runs::Nothing, |command| command.runs);
    if runs != Runs::Nothing
        && let Some(assigned) = protocol_check::Assigned::here()
    {
        return play(assigned, &args);
    }
    let (workflow, output) = match runs {
        Runs::Nothing => return without_run(&args),
        Runs::Adhoc => (None, cli::asked_output(&args)),
        Runs::Chat => (None, Some(Output::Cli)),
        Runs::Workflow(kind) => (Some(kind), cli::asked_output(&args)),
    };
    // From here on a signal ends the run in order. Reading the command line takes longer than all that precedes it. A
    // dry run leaves the signals as they are: it ends git itself before it acts on one.
    let signals = if args.iter().any(|arg| arg == "--dry-run") {
        let _ = signals::outlive_file_limits();
        None
    } else {
        signals::listen().ok()
    };
    let parse = || {
        point("command line");
        cli::parse(COMMANDS, args.iter().cloned())
    };
    let failure = match catch_unwind(parse) {
        Ok(Ok(Request::Start(Runnable::Run(adhoc)))) => return adhoc::run(*adhoc, signals),
        Ok(Ok(request)) => {
            signals.into_iter().for_each(SignalChannels::give_back);
            return start(request);
        }
        Ok(Err(wrong)) => Failure::usage(wrong),
        Err(_) => Failure::of_our_own(),
    };
    adhoc::refuse(workflow, output, failure, signals)
}

fn play(assigned: protocol_check::Assigned, args: &[OsString]) -> u8 {
    match cli::parse(COMMANDS, args.iter().cloned()) {
        Ok(Request::Start(Runnable::Run(run))) => assigned.play(*run),
        Ok(request) => start(request),
        Err(wrong) => assigned.refuse(wrong, cli::asked_output(args)),
    }
}

fn without_run(args: &[OsString]) -> u8 {
    let _ = signals::outlive_file_limits();
    match cli::parse(COMMANDS, args.iter().cloned()) {
        Ok(request) => start(request),
        Err(wrong) => {
            let code = complain(&Failure::usage(wrong));
            if args.is_empty() {
                explain(&overview(COMMANDS));
            }
            code
        }
    }
}

fn start(request: Request) -> u8 {
    match request {
        Request::Version => manual::version(),
        Request::Help(help) => manual::help(help),
        Request::Start(Runnable::Run(adhoc)) => adhoc::run(*adhoc, signals::listen().ok()),
        Request::Start(Runnable::Other(parsed)) => parsed.run(),
    }
}

pub fn crashed() -> u8 {
    let code = Code::InternalError;
    diagnose(&format!("spektacular: {}: {OUR_BUG}", code.name()));
    code.exit_code()
}

pub fn no_room() -> u8 {
    complain(&Failure::no_thread())
}

pub fn command(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.is_named(name))
}

fn json_line(value: &Value) -> String {
    to_line(value) + "\n"
}

/// Returns the exit code. Redacts the message: a name in it can be a misplaced secret.
pub fn complain(failure: &Failure) -> u8 {
    let message = failure.message.for_person().redacted(&secrets_here()).into_owned();
    diagnose(&format!("spektacular: {}: {message}", failure.code.name()));
    failure.code.exit_code()
}

fn finish(text: Result<String, Failure>) -> u8 {
    text.map_or_else(|failure| complain(&failure), |text| deliver(&text))
}

fn warn<'a>(texts: impl Iterator<Item = &'a String>) {
    let mut texts = texts.peekable();
    let redactor = texts.peek().map(|_| secrets_here());
    for text in texts {
        let text = redactor.as_ref().map_or(text.into(), |redactor| redactor.redact(text));
        diagnose(&format!("spektacular: warning: {text}"));
    }
}

/// Prints the warnings on stderr. Error: the configuration cannot be used.
fn configured() -> Result<Layers, Failure> {
    let loaded = load();
    let (layers, wrong) = loaded.config.layers();
    if let Some(failure) = loaded.failure {
        return Err(failure);
    }
    warn(loaded.warnings.iter().map(|(_, text)| text).chain(&wrong));
    Ok(layers)
}

/// The failure of a run without a named agent on a machine without the default agent.
fn default_is_missing(layers: &Layers, options: &Options) -> Option<Failure> {
    let (options, agent) = layers.under(options.clone());
    let agent = agent.filter(|_| options.agent.is_none())?;
    // A run that sets PATH searches that PATH.
    let elsewhere = options.env.is_some_and(|env| env.contains_key("PATH"));
    if elsewhere || find(&agent.base).is_some() {
        return None;
    }
    // An agent that npx starts may not be downloaded yet, one that is a part of another program may be missing in it, and
    // the demo does no work.
    let is_part = |agent: &Agent| agent.version.is_some_and(|version| version.contains(' '));
    let is_here = |agent: &&Agent| match agent.base.program {
        Program::Myself => false,
        Program::Command(_) => !is_part(agent) && npx::command(&agent.base).is_none() && find(&agent.base).is_some(),
    };
    let here: Vec<&str> = layers.agents.iter().filter(is_here).map(|agent| agent.name.as_str()).collect();
    let help = match (here.as_slice(), &agent.base.install) {
        ([first, ..], _) => format!("Installed here: {}. Use --agent {first}.", here.join(", ")),
        ([], Some(install)) => format!("To install it: {install}. To try spektacular without it: --agent demo."),
        ([], None) => "To try spektacular without it: --agent demo.".to_owned(),
    };
    Some(Failure::new(Code::AgentNotFound, format!("{} (the default) is not installed. {help}", agent.name)))
}

/// `from`: the flag that names the agent, after a space. Error: lists the known agents.
fn named<'a>(layers: &'a Layers, name: Option<&str>, from: &str) -> Result<Cow<'a, Agent>, Failure> {
    let from = if name.is_some() { from.into() } else { layers.origins.remark("agent").unwrap_or_default() };
    let name = name.unwrap_or(layers.default_agent());
    layers.agents.find(name).ok_or_else(|| Failure::usage(layers.agents.unknown(name, &from)))
}

#[cfg(test)]
mod tests {
    use super::COMMANDS;
    use crate::cli::command::Command;
    use crate::cli::row::GivenFlag;
    use std::collections::BTreeSet;

    /// `None`: the command refuses the arguments.
    fn read(command: &Command, flags: &[(usize, &str)], words: &[&str]) -> Option<String> {
        let given = flags.iter().map(|(at, value)| GivenFlag { at: *at, value: value.into() }).collect();
        let words = words.iter().map(Into::into).collect();
        (command.read)(given, words).ok().map(|runnable| format!("{runnable:?}"))
    }

    /// Whether the arguments depend on the flag, beside another flag that it may need.
    fn is_stored(command: &Command, at: usize, words: &[&str]) -> bool {
        let samples = [
            "json",
            "cancel",
            "NAME=a",
            "20000",
            "{}",
            "jsonl",
            "allow",
            "full",
            "true",
            "[]",
            "model=a",
            "workspace",
            "2",
        ];
        let beside = [("sandbox", "workspace"), ("out", "folder")];
        let beside = beside.iter().filter_map(|(name, value)| {
            Some((command.flags.iter().position(|flag| flag.long == *name).filter(|other| *other != at)?, *value))
        });
        beside.map(Some).chain([None]).any(|beside| {
            let with = |value: Option<&str>| {
                let flags: Vec<(usize, &str)> = beside.into_iter().chain(value.map(|value| (at, value))).collect();
                read(command, &flags, words)
            };
            let values = samples.iter().chain(command.flags[at].values).map(|value| with(Some(value)));
            values.chain([with(None)]).flatten().collect::<BTreeSet<String>>().len() > 1
        })
    }

    #[test]
    fn every_flag_of_every_command_is_stored() {
        let words: [&[&str]; 7] = [&[], &["list"], &["check"], &["path"], &["name"], &["openclaw"], &["rm", "name"]];
        let mut flags = 0;
        for command in COMMANDS.iter().chain(COMMANDS.iter().flat_map(|command| command.below)) {
            for (at, flag) in command.flags.iter().enumerate() {
                assert!(words.iter().any(|words| is_stored(command, at, words)), "{} --{}", command.name, flag.long);
                flags += 1;
            }
        }
        assert!(flags > 300, "{flags} flags");
    }
}
