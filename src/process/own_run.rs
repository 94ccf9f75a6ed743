//! This program as a child of itself: a run whose orchestrator is this process.

use super::own_executable;
use crate::system::Killer;
use std::io;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The arguments of such a run. It cancels itself at the end of its stdin, so that it cannot outlive this process.
const ARGUMENTS: [&str; 5] = ["adhoc", "--output", "json", "--on-eof", "cancel"];

/// A run in a process of its own. It writes diagnostics to our stderr.
pub(crate) struct OwnRun {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    /// The process, which somebody must wait for.
    pub(crate) child: Child,
    /// The means to kill the process.
    pub(crate) killer: Killer,
}

/// Starts a run with this working directory. Error: the system's.
pub(crate) fn start(cwd: &Path) -> io::Result<OwnRun> {
    let program = own_executable::program().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(ARGUMENTS).current_dir(cwd).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let killer = Killer::of(&child);
    match (child.stdin.take(), child.stdout.take()) {
        (Some(stdin), Some(stdout)) => Ok(OwnRun { stdin, stdout, child, killer }),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}
