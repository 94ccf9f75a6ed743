//! This program as a child of itself: a run whose orchestrator is this process.

use super::own_executable;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The arguments of such a run. It cancels itself at the end of its stdin, so that it cannot outlive this process.
const ARGUMENTS: [&str; 5] = ["adhoc", "--output", "json", "--on-eof", "cancel"];

/// A run in a process of its own. It writes diagnostics to our stderr.
pub(crate) struct OwnRun {
    /// For the messages.
    pub(crate) stdin: ChildStdin,
    /// The frames.
    pub(crate) stdout: ChildStdout,
    /// The process, which somebody must wait for.
    pub(crate) child: Child,
    /// The means to kill the process.
    pub(crate) killer: Killer,
}

/// The means to kill a process that another thread may already have waited for. Empty on a kernel without them.
#[derive(Debug)]
pub(crate) struct Killer(Option<OwnedFd>);

impl Killer {
    /// Kills the process, if it has not ended.
    pub(crate) fn kill(&self) {
        if let Some(process) = &self.0 {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
}

/// Starts a run with this working directory. Error: the system's.
pub(crate) fn start(cwd: &Path) -> io::Result<OwnRun> {
    let program = own_executable::program().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(ARGUMENTS).current_dir(cwd).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let killer = Killer(pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok());
    match (child.stdin.take(), child.stdout.take()) {
        (Some(stdin), Some(stdout)) => Ok(OwnRun { stdin, stdout, child, killer }),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}
