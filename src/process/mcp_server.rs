//! The process of an MCP server that our launcher starts for an agent.

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, Stdio};

pub(crate) fn start(command: &OsString, args: &[OsString]) -> io::Result<Child> {
    let mut server = Command::new(command);
    server.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}
