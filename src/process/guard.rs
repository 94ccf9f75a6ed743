//! The guard: a second process of this program that ends the agent's tree and our git if the host is killed.
//!
//! The guard blocks in a read of its stdin, a pipe whose other end only the host holds. The kernel closes that pipe
//! however the host ends. The guard cannot find the tree by descent from the host, because the orphans have new parents
//! by then. It uses the nonce in the environment, the agent's process group, and descent from the processes found that
//! way, and it kills the run's control group. Without a control group, it misses a process that cleared its environment
//! and whose ancestors were all gone before the first look.

use std::collections::HashSet;
use std::env;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::kill_process;

use super::own_executable;
use super::scratch::{self, Scratch};
use super::tree::{self, Signal, Tree};
use crate::io::failpoint;
use crate::io::signals::outlive_hangups;
use crate::process::variables::{GUARD, GUARD_CGROUP, GUARD_FOLDER, RUN};
use crate::system::{ControlGroup, Id, lost_sight, start_time, to_pid};

pub(crate) const GUARD_ARGUMENT: &str = "__guard";

/// The time from SIGTERM to SIGKILL. The whole tree must be gone one second after the host.
const TERM_WAIT: Duration = Duration::from_millis(200);
const TERM_POLL: Duration = Duration::from_millis(10);
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// The guard ignores the rest of a longer line.
const LINE_BYTES_MAX: usize = 80;

/// Dropping it without [`Guard::dismiss`], as in a panic, makes it end the processes.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    stdin: ChildStdin,
}

impl Guard {
    /// `folder`: the folder of a socket, which the guard removes if the host is killed. Call it before the agent is
    /// spawned. Error: a text for a diagnostic. The run can continue without a guard.
    pub(crate) fn start(nonce: &str, cgroup: Option<&ControlGroup>, folder: Option<&Path>) -> Result<Guard, String> {
        if let Some(reason) = lost_sight() {
            return Err(format!("no guard: {reason}"));
        }
        let program = own_executable::program().ok_or("no guard: cannot find this program's own file")?;
        let nonces = format!("{nonce}:{}", tree::nonce_of_git());
        spawn(&program, &nonces, cgroup, folder).map_err(|error| format!("no guard: {error}"))
    }

    /// For a process that has no agent yet, or no longer. A missing guard matters only if this process is killed.
    pub(crate) fn of_git() -> Option<Guard> {
        Guard::start("", None, None).ok()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Continues a guard that somebody stopped.
    pub(crate) fn wake(&self) {
        if let Some(pid) = to_pid(self.pid()) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// The sweep must spare it.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the guard also end the agent's process group. Call it right after the spawn, before the agent is reaped.
    pub(crate) fn leader(&mut self, pid: u32) {
        if let Some(start) = start_time(pid) {
            // The guard may have exited.
            let _ = self.stdin.write_all(format!("leader {pid} {start}\n").as_bytes());
        }
    }

    /// If git still runs, the guard ends it first.
    pub(crate) fn leave_git(self) {
        if tree::has_git() { drop(self) } else { self.dismiss() }
    }

    /// Does not end the tree. Call it once the tree is gone.
    pub(crate) fn dismiss(mut self) {
        let _ = self.stdin.write_all(b"done\n");
        // Kills the guard instead of waiting for it, because a stopped guard would never exit. Its pipe closes only
        // afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &Path, nonces: &str, cgroup: Option<&ControlGroup>, folder: Option<&Path>) -> io::Result<Guard> {
    let mut child = Command::new(program)
        .arg(GUARD_ARGUMENT)
        // The agent could read the environment of a process that has not hidden it yet. The guard needs the marker of an
        // outer run, and the places of the folders that it removes.
        .env_clear()
        .envs([RUN, "XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(|name| Some((name, env::var_os(name)?))))
        .envs(failpoint::variables())
        .env(GUARD, nonces)
        .envs(folder.map(|folder| (GUARD_FOLDER, folder)))
        .envs(cgroup.map(|cgroup| (GUARD_CGROUP, cgroup.folder())))
        .current_dir("/")
        // A separate group keeps Ctrl-C, and a shell that ends our group, from reaching the guard.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    match child.stdin.take() {
        Some(stdin) => Ok(Guard { child, stdin }),
        None => Err(ErrorKind::BrokenPipe.into()),
    }
}

/// A folder of a process that has no other guard.
#[derive(Debug)]
pub(crate) struct GuardedScratch {
    folder: Scratch,
    /// A missing guard matters only if this process is killed.
    guard: Option<Guard>,
}

impl GuardedScratch {
    pub(crate) fn new() -> io::Result<GuardedScratch> {
        let nonce = tree::nonce();
        let guard = Guard::start(&nonce, None, None).ok();
        Ok(GuardedScratch { folder: Scratch::of(&nonce)?, guard })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for GuardedScratch {
    fn drop(&mut self) {
        self.guard.take().into_iter().for_each(Guard::dismiss);
    }
}

/// `stdin` holds the lines `leader PID STARTTIME` and `done`. If it ends without `done`, the guard ends the whole tree, and
/// removes the control group, the folders of the nonces and the socket's folder. Returns the exit code: 0 after `done` or
/// if all processes are gone, 1 if a process is left, 2 without a nonce in `SPEKTACULAR_GUARD`.
pub(crate) fn run_guard(stdin: impl Read) -> i32 {
    let nonces = env::var(GUARD).unwrap_or_default();
    if nonces.is_empty() {
        return 2;
    }
    // When the host's death orphans the group of a stopped guard, the kernel sends it SIGHUP and then SIGCONT.
    let _ = outlive_hangups();
    match listen(stdin) {
        Farewell::Done => 0,
        Farewell::End { leader } => {
            let code = end_tree(nonces.clone(), leader);
            nonces.split(':').filter(|nonce| !nonce.is_empty()).for_each(scratch::remove_left);
            if let Some(folder) = env::var_os(GUARD_FOLDER) {
                scratch::remove_sockets(Path::new(&folder));
            }
            code
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Farewell {
    Done,
    End { leader: Option<Id> },
}

fn listen(mut stdin: impl Read) -> Farewell {
    let mut leader = None;
    let mut line = Vec::new();
    let mut bytes = [0; LINE_BYTES_MAX];
    loop {
        let count = match stdin.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // An unreadable pipe counts like one that has ended.
            Err(_) | Ok(0) => return Farewell::End { leader },
            Ok(count) => count,
        };
        for &byte in &bytes[..count] {
            if byte != b'\n' {
                if line.len() < LINE_BYTES_MAX {
                    line.push(byte);
                }
                continue;
            }
            if line == b"done" {
                return Farewell::Done;
            }
            leader = parse_leader(&line).or(leader);
            line.clear();
        }
    }
}

fn parse_leader(line: &[u8]) -> Option<Id> {
    let (pid, start) = std::str::from_utf8(line).ok()?.strip_prefix("leader ")?.split_once(' ')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

fn end_tree(nonces: String, leader: Option<Id>) -> i32 {
    let cgroup = env::var_os(GUARD_CGROUP).and_then(|folder| ControlGroup::at(folder.into()));
    let tree = Tree::of_the_dead(nonces, leader).within(cgroup);
    let leader = leader.map(|(pid, _)| pid);
    // Kept across the looks, so that a process that loses its parent or its marker stays in the tree.
    let mut known = HashSet::new();
    tree.signal_known(leader, Signal::TERM, &mut known);
    let start = Instant::now();
    while start.elapsed() < TERM_WAIT && tree.any_left(leader, &mut known) {
        thread::sleep(TERM_POLL);
    }
    let left = tree.sweep_known(leader, KILL_LIMIT, &mut known).left;
    tree.cgroup().into_iter().for_each(ControlGroup::remove);
    i32::from(left > 0)
}

#[cfg(test)]
mod tests {
    use super::{Farewell, listen};

    #[test]
    fn only_a_whole_done_line_dismisses() {
        assert_eq!(
            listen(
                &b"leader 7 99
done
"[..]
            ),
            Farewell::Done
        );
        let end = |leader| Farewell::End { leader };
        assert_eq!(listen(&b""[..]), end(None));
        assert_eq!(
            listen(
                &b"leader 7 99
done"[..]
            ),
            end(Some((7, 99)))
        );
        assert_eq!(
            listen(
                &b"leader 7 99
leader x
undone
"[..]
            ),
            end(Some((7, 99)))
        );
        let long = [b"x".repeat(10_000), b"\nleader 8 1\n".to_vec()].concat();
        assert_eq!(listen(&long[..]), end(Some((8, 1))));
    }
}
