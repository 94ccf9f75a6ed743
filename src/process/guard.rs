//! The guard: a second process of this program that ends the agent's tree if we are killed.
//!
//! It sleeps in a read of its stdin, a pipe that only we hold, and the kernel closes that pipe however
//! we end. It cannot go by descent, since what we leave behind has new parents then: it goes by the
//! nonce in the environment, by the agent's process group, and by descent from what it found so.
//! A process that cleared its environment, and whose parents are all gone before the first look, is lost.

use std::collections::HashSet;
use std::env;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::info::{Id, proc_is_ours, start_time};
use super::myself;
use super::scratch;
use super::tree::{Signal, Tree};
use crate::protocol::variables::{GUARD, GUARD_FOLDER};

/// The hidden first argument with which this program becomes the guard.
pub const GUARD_ARGUMENT: &str = "__guard";

/// From SIGTERM to SIGKILL. All must be gone a second after we are.
const TERM_WAIT: Duration = Duration::from_millis(200);
const TERM_POLL: Duration = Duration::from_millis(10);
/// How long the guard goes on killing.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// Bytes of one line to the guard.
const LINE_BYTES_MAX: usize = 80;

/// The running guard. Dropped without [`Guard::dismiss`] (a panic), it ends the agent's tree.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    stdin: ChildStdin,
}

impl Guard {
    /// Starts the guard for the tree with this nonce, and for this folder of a socket; call it before the agent is spawned. The error
    /// is a text for a diagnostic: the run can go on without a guard.
    pub fn start(nonce: &str, folder: Option<&Path>) -> Result<Guard, String> {
        if !proc_is_ours() {
            return Err("no guard: /proc is not mounted or not that of this PID namespace".into());
        }
        let program = myself::program().ok_or("no guard: this program's file was not found")?;
        spawn(&program, nonce, folder).map_err(|error| format!("no guard: {error}"))
    }

    /// The guard's own pid, to be spared by the sweep.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells the agent's pid, whose process group is ended as well. Call it right after the spawn,
    /// before the agent is reaped.
    pub fn leader(&mut self, pid: u32) {
        if let Some(start) = start_time(pid) {
            // A guard that is gone cannot be told; `is_alive` says so.
            let _ = self.stdin.write_all(format!("leader {pid} {start}\n").as_bytes());
        }
    }

    /// Ends the guard, which then leaves the tree alone, and reaps it. Call it when the tree is gone.
    pub fn dismiss(mut self) {
        let _ = self.stdin.write_all(b"done\n");
        // Not waited for: a guard that somebody stopped would never answer. The pipe is closed after it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &Path, nonce: &str, folder: Option<&Path>) -> io::Result<Guard> {
    let mut child = Command::new(program)
        .arg(GUARD_ARGUMENT)
        .env(GUARD, nonce)
        .env_remove(GUARD_FOLDER)
        .envs(folder.map(|folder| (GUARD_FOLDER, folder)))
        .current_dir("/")
        // Away from Ctrl-C and from the group that a shell ends.
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

/// The guard's main: reads `leader PID STARTTIME` and `done` from `stdin`. At the end of `stdin`
/// without `done`: SIGTERM to the whole tree, 200 ms, then SIGKILL until none is left, at most 5 s.
/// Returns the exit code: 0 done or all gone, 1 something is left, 2 no nonce in `SPEKTACULAR_GUARD`.
pub fn run_guard(stdin: impl Read) -> i32 {
    let nonce = env::var(GUARD).unwrap_or_default();
    if nonce.is_empty() {
        return 2;
    }
    match listen(stdin) {
        Farewell::Done => 0,
        Farewell::End { leader } => {
            let code = end_tree(nonce, leader);
            if let Some(folder) = env::var_os(GUARD_FOLDER) {
                scratch::remove_socket(Path::new(&folder));
            }
            code
        }
    }
}

/// How the host took leave.
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
            // A pipe that cannot be read tells as little about a living host as one that ended.
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

fn end_tree(nonce: String, leader: Option<Id>) -> i32 {
    let tree = Tree::of_the_dead(nonce, leader);
    let leader = leader.map(|(pid, _)| pid);
    // Kept from look to look: what loses its parent or its marker stays found.
    let mut known = HashSet::new();
    tree.signal_known(leader, Signal::TERM, &mut known);
    let start = Instant::now();
    while start.elapsed() < TERM_WAIT && tree.any_left(leader, &mut known) {
        thread::sleep(TERM_POLL);
    }
    i32::from(tree.sweep_known(leader, KILL_LIMIT, &mut known).left > 0)
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
