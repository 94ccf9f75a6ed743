//! A short query to a program: starts it, reads its output, and ends it by a deadline. For git, and for agents outside
//! a run.

use super::environment::environment_over;
use super::guard::Guard;
use super::new_session;
use super::own_executable;
use super::program::resolve;
use super::scratch::Scratch;
use super::tree::{self, Inherited, MARKER, Signal, Tree, marker_value, wait_without_reaping};
use crate::agent::{Base, Program};
use crate::io::signals;
use crate::io::spawn_thread;
use crate::system::{signal_group, to_pid};
use crossbeam_channel::{Receiver, Sender, TryRecvError, at, bounded, never, select_biased};
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const SWEEP_LIMIT: Duration = Duration::from_millis(500);

const ERRORS_BYTES: u64 = 64 << 10;

#[derive(Debug)]
pub(crate) struct QueryOutput {
    /// `None` if a signal ended the program.
    pub code: Option<i32>,
    pub output: Vec<u8>,
    /// The start of the program's stderr, if it is collected separately.
    pub errors: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    Missing,
    NotStarted,
    Late,
    TooLong,
}

/// With an empty stdin, in its own process group. `with_errors`: whether stderr is merged into the output, or dropped.
/// `bytes`: the maximum output. Nothing that git started is left at the return, except what cleared its environment.
pub(super) fn run_git(
    command: &mut Command,
    with_errors: bool,
    bytes: u64,
    until: &Until,
) -> Result<QueryOutput, NoAnswer> {
    let own = tree::nonce();
    command.env(MARKER, marker_value(&format!("{}:{own}", tree::nonce_of_git())));
    let (out, out_end) = io::pipe().map_err(not_started)?;
    let stderr = if with_errors { out_end.try_clone().map_err(not_started)?.into() } else { Stdio::null() };
    command.stdin(Stdio::null()).stdout(out_end).stderr(stderr).process_group(0);
    let child = command.spawn();
    // `command` still holds the write ends of the pipe.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    collect(child.map_err(not_started)?, out, None, bytes, until, |pid, in_time| {
        // Most calls leave nothing outside git's group, so they do without a look at all processes.
        signal_group(to_pid(pid), Signal::KILL);
        if !in_time || tree::has_orphan_of(&own) {
            Tree::by_marker(own).sweep(Some(pid), SWEEP_LIMIT);
        }
    })
}

fn not_started(_: io::Error) -> NoAnswer {
    NoAnswer::NotStarted
}

/// Reads a program's pipes until it exits, and reaps it.
fn collect(
    mut child: Child,
    out: PipeReader,
    err: Option<PipeReader>,
    bytes: u64,
    until: &Until,
    end: impl FnOnce(u32, bool),
) -> Result<QueryOutput, NoAnswer> {
    let pid = child.id();
    let said = [Some(read(out, bytes, pid)), err.map(|err| read_start(err, pid))];
    let said = said.map(|said| said.map_or(Some(Some(Vec::new())), |said| until.wait_for(&said)));
    // The child is not reaped yet, so its pid cannot be reused.
    end(pid, said.iter().all(Option::is_some));
    let code = child.wait().map_err(|_| NoAnswer::Late)?.code();
    let [output, errors] = said.map(|said| said.ok_or(NoAnswer::Late)?.ok_or(NoAnswer::TooLong));
    Ok(QueryOutput { code, output: output?, errors: errors? })
}

/// The limit of a wait: it ends at a deadline, or once the caller drops its interest in the result.
#[derive(Clone, Debug)]
pub struct Until {
    deadline: Instant,
    wanted: Receiver<Infallible>,
}

impl Until {
    pub fn deadline(deadline: Instant) -> Until {
        Until { deadline, wanted: never() }
    }

    /// Dropping the returned sender also ends the wait.
    pub(crate) fn wanted(deadline: Instant) -> (Until, Sender<Infallible>) {
        let (sender, wanted) = bounded(0);
        (Until { deadline, wanted }, sender)
    }

    pub(crate) fn at_most(&self, limit: Duration) -> Until {
        Until { deadline: self.deadline.min(Instant::now() + limit), wanted: self.wanted.clone() }
    }

    pub fn is_over(&self) -> bool {
        self.deadline <= Instant::now() || self.wanted.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// `None`: nothing arrived in time, or nothing can arrive any more.
    fn wait_for<T>(&self, what: &Receiver<T>) -> Option<T> {
        select_biased! {
            recv(what) -> what => what.ok(),
            recv(self.wanted) -> _ => None,
            recv(at(self.deadline)) -> _ => None,
        }
    }
}

/// Also waits for the process to exit. `None` after a read error or more than `bytes` bytes.
fn read(pipe: PipeReader, bytes: u64, pid: u32) -> Receiver<Option<Vec<u8>>> {
    gather(pid, move || {
        let mut output = Vec::new();
        let whole = pipe.take(bytes + 1).read_to_end(&mut output).is_ok();
        (whole && output.len() as u64 <= bytes).then_some(output)
    })
}

/// Like [`read`], but keeps only the first [`ERRORS_BYTES`] bytes, and discards the rest.
fn read_start(mut pipe: PipeReader, pid: u32) -> Receiver<Option<Vec<u8>>> {
    gather(pid, move || {
        let mut start = Vec::new();
        pipe.by_ref().take(ERRORS_BYTES).read_to_end(&mut start).ok()?;
        io::copy(&mut pipe, &mut io::sink()).ok()?;
        Some(start)
    })
}

fn gather(pid: u32, work: impl FnOnce() -> Option<Vec<u8>> + Send + 'static) -> Receiver<Option<Vec<u8>>> {
    let (sender, receiver) = bounded(1);
    let _ = spawn_thread("output", move || {
        let output = work();
        wait_without_reaping(pid);
        let _ = sender.send(output);
    });
    receiver
}

/// A query to an agent without a run.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    /// `None`: our own.
    pub cwd: Option<&'a Path>,
    pub base: &'a Base,
    pub args: Vec<String>,
    /// They override those of the agent's entry.
    pub env: Vec<(String, OsString)>,
    pub limit: Duration,
    /// The maximum that the agent may write to stdout.
    pub bytes: u64,
}

/// Searches as a run in our working directory would. Returns an absolute path.
pub(crate) fn find(base: &Base) -> Option<PathBuf> {
    let cwd = std::env::current_dir().ok()?;
    match &base.program {
        Program::Myself => own_executable::file(),
        program @ Program::Command(_) => resolve(program, &environment_of(base), &cwd).filter(|path| path.is_file()),
    }
}

/// The value of a variable in the environment that an agent gets without a run.
pub(crate) fn variable(base: &Base, name: &str) -> Option<OsString> {
    base.env.get(name).map(OsString::from).or_else(|| std::env::var_os(name))
}

fn environment_of(base: &Base) -> std::collections::BTreeMap<OsString, OsString> {
    environment_over(base.env.iter().map(|(name, value)| (name.into(), value.into())))
}

/// The queries run in parallel. Dropping this ends all their processes. A signal that ends this process ends them
/// first, and the guard does the same if this process is killed.
#[derive(Debug)]
pub(crate) struct Queries {
    nonce: String,
    tree: Arc<Tree>,
    guard: Option<Guard>,
    folder: Option<Scratch>,
}

impl Queries {
    /// The calling process must have no unreaped children.
    pub(crate) fn begin() -> Queries {
        let inherited = Inherited::find();
        tree::become_subreaper();
        let nonce = tree::nonce();
        let mut tree = Tree::before_spawn(nonce.clone()).beside(&inherited);
        // A missing guard matters only if this process is killed.
        let guard = Guard::start(&nonce, None, None).ok();
        guard.iter().for_each(|guard| tree.spare(guard.pid()));
        let tree = Arc::new(tree);
        let swept = Arc::clone(&tree);
        // Without the handlers, a signal ends this process at once, and only the guard ends the others.
        let _ = signals::before_the_end(move || {
            swept.sweep(None, SWEEP_LIMIT);
        });
        let folder = Scratch::of(&nonce).ok();
        Queries { nonce, tree, guard, folder }
    }

    /// An empty folder, which does not outlive the queries. `None`: it could not be created.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(Scratch::path)
    }

    pub(super) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Runs the agent in a session of its own. No process with this query's marker is left at the return.
    pub(crate) fn ask(&self, asked: &Asked<'_>) -> Result<QueryOutput, NoAnswer> {
        let until = Until::deadline(Instant::now() + asked.limit);
        let program = find(asked.base).ok_or(NoAnswer::Missing)?;
        let own = tree::nonce();
        // Other queries run in parallel. The marker distinguishes their processes, and descent from us would not.
        let tree = Tree::by_marker(own.clone());
        let (out, out_end) = io::pipe().map_err(not_started)?;
        let (err, err_end) = io::pipe().map_err(not_started)?;
        let prepare = |command: &mut Command| {
            command.args(&asked.args).env_clear().envs(environment_of(asked.base));
            command.envs(asked.env.iter().map(|(name, value)| (name, value)));
            command.env(MARKER, marker_value(&format!("{}:{own}", self.nonce)));
            command.stdin(Stdio::null()).stdout(out_end.try_clone()?);
            asked.cwd.into_iter().for_each(|cwd| _ = command.current_dir(cwd));
            Ok(())
        };
        let child = new_session::spawn(&program, None, None, &err_end, prepare).map_err(not_started)?;
        drop((out_end, err_end));
        collect(child, out, Some(err), asked.bytes, &until, |pid, _| {
            tree.sweep(Some(pid), SWEEP_LIMIT);
        })
    }
}

impl Drop for Queries {
    fn drop(&mut self) {
        // A query's sweep misses a process that cleared its environment. Such a process still descends from us.
        self.tree.sweep(None, SWEEP_LIMIT);
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Tree, tree, wait_without_reaping};
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_sweep_keeps_the_exit_codes_of_other_processes() {
        let mut other = Command::new("/bin/sh").args(["-c", "exit 3"]).spawn().unwrap();
        wait_without_reaping(other.id());
        Tree::by_marker(tree::nonce()).sweep(None, Duration::ZERO);
        assert_eq!(other.wait().unwrap().code(), Some(3));
    }
}
