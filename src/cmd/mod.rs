//! The commands, one row each in [`COMMANDS`], and their main functions. A main function gets a command line that is
//! already checked and returns the exit code.

pub mod adhoc;
pub mod agents;
pub mod ask_server;
mod check;
pub mod config;
pub mod export;
mod last;
pub mod manual;
pub mod open;
mod plan;
pub mod replay;
mod table;
mod texts;

pub use table::COMMANDS;

use crate::agent::registry::{Agent, Layers};
use crate::cli::command::{Command, Refuse, Wrong};
use crate::cli::{self, Request};
use crate::config::load;
use crate::engine::secrets_here;
use crate::failure::{Code, Failure};
use crate::io::output::diagnose;
use std::ffi::OsString;

/// Runs a command line, without the program's name; returns the exit code.
pub fn run(args: Vec<OsString>) -> u8 {
    let refuse = cli::named(COMMANDS, &args).map_or(complain_usage as Refuse, |command| command.refuse);
    match cli::parse(COMMANDS, args.iter().cloned()) {
        Ok(Request::Version) => manual::version(),
        Ok(Request::Help(help)) => manual::help(help),
        Ok(Request::Start(start)) => start.run(),
        Err(wrong) => refuse(&args, wrong),
    }
}

/// Reports an error in a command line on stderr; returns the exit code.
fn complain_usage(_: &[OsString], wrong: Wrong) -> u8 {
    complain(&Failure::new(Code::Usage, wrong))
}

/// The command with this name.
pub fn command(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Reports a failure on stderr; returns the exit code. Redacts the message: a name in it can be a misplaced secret.
pub fn complain(failure: &Failure) -> u8 {
    let message = secrets_here().redact(&failure.message).into_owned();
    diagnose(&format!("spektacular: {}: {message}", failure.code.name()));
    failure.code.exit_code()
}

/// The same for what was ignored and ends nothing.
fn warn<'a>(texts: impl Iterator<Item = &'a String>) {
    let mut texts = texts.peekable();
    let redactor = texts.peek().map(|_| secrets_here());
    for text in texts {
        let text = redactor.as_ref().map_or(text.into(), |redactor| redactor.redact(text));
        diagnose(&format!("spektacular: warning: {text}"));
    }
}

/// What the configuration says to the commands that need no run; its warnings go to stderr. Error: it cannot be used.
fn configured() -> Result<Layers, Failure> {
    let loaded = load();
    let (layers, wrong) = loaded.config.layers();
    if let Some(failure) = loaded.failure {
        return Err(failure);
    }
    warn(loaded.warnings.iter().map(|(_, text)| text).chain(&wrong));
    Ok(layers)
}

/// The agent with this name; without one that of the configuration. `from`: the flag that names it, with a blank
/// before it. Error: the agents that there are.
fn named<'a>(layers: &'a Layers, name: Option<&str>, from: &str) -> Result<&'a Agent, Failure> {
    let from = if name.is_some() { from.into() } else { layers.origins.remark("agent").unwrap_or_default() };
    let name = name.unwrap_or(layers.default_agent());
    layers.agents.find(name).ok_or_else(|| Failure::new(Code::Usage, layers.agents.unknown(name, &from)))
}
