//! Processes: the agent's process with its pipes and its whole tree; the guard, which kills that tree if this program
//! is killed; short queries to other programs; and handing the terminal over to an agent's own interface.
//!
//! `std::process::Command` is used in this folder and nowhere else.

pub use crate::system::ControlGroup;

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, Stdio};

pub(crate) mod agent_lines;
pub(crate) mod background_task;
pub(crate) mod child;
pub(crate) mod client;
pub(crate) mod environment;
pub mod git;
pub(crate) mod guard;
pub(crate) mod handover;
mod namespaces;
mod new_session;
pub mod own_executable;
pub(crate) mod own_rules;
pub(crate) mod own_run;
pub(crate) mod program;
pub(crate) mod query;
pub(crate) mod readers;
pub(crate) mod sandbox;
pub(crate) mod scratch;
pub(crate) mod session_files;

pub mod tree;
pub(crate) mod variables;

/// Runs this program as one of its own helpers if the first argument names one, and returns the exit code. A program
/// that starts runs must call this first.
pub fn run_helper(args: &[OsString]) -> Option<i32> {
    let (first, rest) = args.split_first()?;
    match first.to_str()? {
        guard::GUARD_ARGUMENT => Some(guard::run_guard(io::stdin())),
        namespaces::ARGUMENT => Some(namespaces::attempt(rest)),
        new_session::LAUNCH_ARGUMENT => Some(new_session::run(rest.iter().cloned())),
        _ => None,
    }
}

/// Starts an MCP server, for a launcher that an agent started in its place.
pub(crate) fn start_mcp_server(command: &OsString, args: &[OsString]) -> io::Result<Child> {
    let mut server = Command::new(command);
    server.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}
