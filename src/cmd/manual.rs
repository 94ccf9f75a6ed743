//! The commands that explain the program: help, the reference of the protocol, completions, the manual page.

use super::{COMMANDS, complain, configured};
use crate::cli::command::Wrong;
use crate::cli::{self, Help};
use crate::failure::{Code, EXIT_UNDELIVERED};
use crate::help::complete::{Shell, script};
use crate::help::{man, overview};
use crate::io::output::deliver;
use crate::suggest::{either, hint};
use std::ffi::OsString;

/// The reference of the protocol, for its users.
const REFERENCE: &str = include_str!("../protocol/reference.md");

/// Prints the version; returns the exit code.
pub fn version() -> u8 {
    deliver(&format!("spektacular {}\n", env!("CARGO_PKG_VERSION")))
}

/// The help that the words after `help` ask for.
pub fn explained(words: &[OsString]) -> Result<Help, Wrong> {
    cli::explained(COMMANDS, words)
}

/// Prints help; returns the exit code.
pub fn help(help: Help) -> u8 {
    deliver(&match help {
        Help::Overview => overview(COMMANDS),
        Help::Short(command) => command.short_help(),
        Help::Long(command) => command.help(),
    })
}

/// Prints the reference of the protocol; returns the exit code.
pub fn protocol() -> u8 {
    deliver(REFERENCE)
}

/// The shell that the word after `completions` names.
pub fn shell(words: &[OsString]) -> Result<Shell, Wrong> {
    let shells = either(Shell::NAMES);
    match words {
        [] => Err(format!("Missing shell: {shells}.")),
        [name] => {
            let name = name.to_string_lossy();
            let hint = hint(&name, Shell::NAMES.iter().copied());
            Shell::from_name(&name).ok_or_else(|| format!("The shell must be {shells}.{hint}"))
        }
        _ => Err(format!("Too many words: completions takes one shell: {shells}.")),
    }
}

/// Prints the script for a shell; returns the exit code.
pub fn completions(shell: Shell) -> u8 {
    let agents: Vec<String> = match configured() {
        Ok(layers) => layers.agents.iter().map(|agent| agent.name.clone()).collect(),
        Err(failure) => return complain(&failure),
    };
    deliver(&script(shell, COMMANDS, &agents))
}

/// Prints the manual page; returns the exit code.
pub fn man() -> u8 {
    deliver(&man::page(COMMANDS, env!("CARGO_PKG_VERSION"), &exits()))
}

/// The meaning of each exit code.
fn exits() -> Vec<(u8, String)> {
    let mut exits = vec![(0, "The run is completed, or was cancelled.".to_owned())];
    for code in Code::ALL {
        match exits.iter_mut().find(|(exit, _)| *exit == code.exit_code()) {
            Some((_, names)) => *names = format!("{names}, {}", code.name()),
            None => exits.push((code.exit_code(), code.name().to_owned())),
        }
    }
    exits.push((EXIT_UNDELIVERED, "stdout is closed, or is not read after a stop.".to_owned()));
    exits.push((128, "and a signal's number: a signal ended the run, with --output cli.".to_owned()));
    exits
}
