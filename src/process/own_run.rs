//! This program started again: as a child, whose orchestrator is this process, or in place of this process.

use super::own_executable;
use super::tree::{self, MARKER, Tree, marker_value};
use crate::system::Killer;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The arguments of such a run. It cancels itself at the end of its stdin, so that it cannot outlive this process.
const ARGUMENTS: [&str; 5] = ["adhoc", "--output", "json", "--on-eof", "cancel"];

/// It writes diagnostics to our stderr.
pub(crate) struct OwnRun {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    /// Somebody must wait for it.
    pub(crate) child: Child,
    pub(crate) killer: Killer,
}

pub(crate) fn start(cwd: &Path) -> io::Result<OwnRun> {
    let mut child = command(cwd)?.spawn()?;
    let killer = Killer::of(&child);
    match (child.stdin.take(), child.stdout.take()) {
        (Some(stdin), Some(stdout)) => Ok(OwnRun { stdin, stdout, child, killer }),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

fn command(cwd: &Path) -> io::Result<Command> {
    let program = own_executable::program().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(ARGUMENTS).current_dir(cwd).stdin(Stdio::piped()).stdout(Stdio::piped());
    Ok(command)
}

/// Stays the same process. Returns only the system's error.
pub(crate) fn replace_process(arguments: &[OsString]) -> io::Error {
    match own_executable::program() {
        Some(program) => Command::new(program).args(arguments).exec(),
        None => io::ErrorKind::NotFound.into(),
    }
}

/// The time that the processes of a run have to be gone after it, and the pause between two looks.
const GONE_LIMIT: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// It has an environment of its own. Dropping it kills everything that it started.
pub(crate) struct AloneRun {
    child: Child,
    tree: Tree,
}

/// `env`: all its variables. It writes no diagnostics.
pub(crate) fn start_alone(cwd: &Path, env: &[(String, OsString)]) -> io::Result<AloneRun> {
    let nonce = tree::nonce();
    let mut command = command(cwd)?;
    command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    let child = command.env(MARKER, marker_value(&nonce)).stderr(Stdio::null()).spawn()?;
    Ok(AloneRun { child, tree: Tree::by_marker(nonce) })
}

impl AloneRun {
    /// `None` once [`AloneRun::wait`] has closed it.
    pub(crate) fn stdin(&mut self) -> Option<&mut ChildStdin> {
        self.child.stdin.as_mut()
    }

    /// Error: somebody took it.
    pub(crate) fn take_stdout(&mut self) -> io::Result<ChildStdout> {
        self.child.stdout.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Returns the number of its processes that are left.
    pub(crate) fn wait(&mut self) -> usize {
        let _ = self.child.wait();
        let until = Instant::now() + GONE_LIMIT;
        loop {
            let left = self.tree.members().len();
            if left == 0 || Instant::now() >= until {
                return left;
            }
            thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for AloneRun {
    fn drop(&mut self) {
        self.tree.sweep(None, GONE_LIMIT);
        let _ = self.child.wait();
    }
}
