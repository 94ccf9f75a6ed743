//! Completions and the manual page.

use super::{complain, configured};
use crate::failure::{Code, EXIT_UNDELIVERED};
use crate::help::complete::{Shell, script};
use crate::help::man;
use crate::io::output::deliver;

/// Prints the script for a shell; returns the exit code.
pub fn completions(shell: Shell) -> u8 {
    let agents: Vec<String> = match configured() {
        Ok(layers) => layers.agents.iter().map(|agent| agent.name.clone()).collect(),
        Err(failure) => return complain(&failure),
    };
    deliver(&script(shell, &agents))
}

/// Prints the manual page; returns the exit code.
pub fn man() -> u8 {
    deliver(&man::page(env!("CARGO_PKG_VERSION"), &exits()))
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
