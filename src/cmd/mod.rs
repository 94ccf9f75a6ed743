//! The commands. Each takes what was typed, already checked, and gives the exit code.

pub mod adhoc;
pub mod ask_server;
pub mod config;
mod last;
pub mod manual;
pub mod replay;
mod texts;

use crate::failure::Failure;
use crate::session;

/// Says on stderr what went wrong; gives the exit code.
pub fn complain(failure: &Failure) -> u8 {
    session::diagnose(&format!("spektacular: {}: {}", failure.code.name(), failure.message));
    failure.code.exit_code()
}
