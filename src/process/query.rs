//! A short query to a program: it is started, its output is read, and it is over in time. git is asked so, and so are
//! agents that nobody runs a task with.

use super::child::{environment_over, resolve};
use super::guard::Guard;
use super::info::to_pid;
use super::myself;
use super::tree::{self, MARKER, Signal, Tree, marker_value, wait_without_reaping};
use crate::agent::{Base, Program};
use crossbeam_channel::{Receiver, Sender, TryRecvError, at, bounded, never, select_biased};
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long what an agent leaves behind may take to be gone.
const SWEEP_LIMIT: Duration = Duration::from_millis(500);

/// What becomes of the program's stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errors {
    /// Nobody reads it.
    Dropped,
    /// It is part of the output.
    Mixed,
    /// It is read by itself.
    Apart,
}

/// What a program said.
#[derive(Debug)]
pub struct QueryOutput {
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// Its stdout.
    pub output: Vec<u8>,
    /// Its stderr, where it is read by itself.
    pub errors: Vec<u8>,
}

/// Why a program has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// There is no such program.
    Missing,
    /// It could not be started.
    NotStarted,
    /// It was not over at the deadline.
    Late,
    /// It said too much.
    TooLong,
}

/// Runs a command to its end, with nothing on its stdin, in a process group of its own. `bytes`: the most that it may
/// say. `end`: what is done to its processes before it is reaped, with whether it was over in time.
pub(super) fn run(
    command: &mut Command,
    errors: Errors,
    bytes: u64,
    until: &Until,
    end: impl FnOnce(u32, bool),
) -> Result<QueryOutput, NoAnswer> {
    let not_started = |_| NoAnswer::NotStarted;
    let (out, out_end) = io::pipe().map_err(not_started)?;
    let mut apart = None;
    let stderr = match errors {
        Errors::Dropped => Stdio::null(),
        Errors::Mixed => out_end.try_clone().map_err(not_started)?.into(),
        Errors::Apart => {
            let (err, err_end) = io::pipe().map_err(not_started)?;
            apart = Some(err);
            err_end.into()
        }
    };
    command.stdin(Stdio::null()).stdout(out_end).stderr(stderr).process_group(0);
    let child = command.spawn();
    // The command holds our ends of the pipes.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.map_err(not_started)?;
    let pid = child.id();
    let said = [Some(out), apart].map(|pipe| pipe.map(|pipe| read(pipe, bytes, pid)));
    let said = said.map(|said| said.map_or(Some(Some(Vec::new())), |said| until.wait_for(&said)));
    // Not reaped yet, so its number is still its own.
    end(pid, said.iter().all(Option::is_some));
    let code = child.wait().map_err(|_| NoAnswer::Late)?.code();
    let [output, errors] = said.map(|said| said.ok_or(NoAnswer::Late)?.ok_or(NoAnswer::TooLong));
    Ok(QueryOutput { code, output: output?, errors: errors? })
}

/// How long something is waited for.
#[derive(Clone, Debug)]
pub(super) struct Until {
    deadline: Instant,
    /// Disconnected where it is not wanted any more.
    wanted: Receiver<Infallible>,
}

impl Until {
    pub(super) fn deadline(deadline: Instant) -> Until {
        Until { deadline, wanted: never() }
    }

    /// Also ended by dropping the sender.
    pub(super) fn wanted(deadline: Instant) -> (Until, Sender<Infallible>) {
        let (sender, wanted) = bounded(0);
        (Until { deadline, wanted }, sender)
    }

    pub(super) fn is_over(&self) -> bool {
        self.deadline <= Instant::now() || self.wanted.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// `None`: it did not come in time, or never will.
    fn wait_for<T>(&self, what: &Receiver<T>) -> Option<T> {
        select_biased! {
            recv(what) -> what => what.ok(),
            recv(self.wanted) -> _ => None,
            recv(at(self.deadline)) -> _ => None,
        }
    }
}

/// Reads a pipe to its end, and then waits for the end of the process, in a thread that is not waited for.
fn read(pipe: PipeReader, bytes: u64, pid: u32) -> Receiver<Option<Vec<u8>>> {
    let (sender, receiver) = bounded(1);
    let work = move || {
        let mut output = Vec::new();
        let whole = pipe.take(bytes + 1).read_to_end(&mut output).is_ok();
        wait_without_reaping(pid);
        let _ = sender.send((whole && output.len() as u64 <= bytes).then_some(output));
    };
    let _ = thread::Builder::new().name("output".into()).spawn(work);
    receiver
}

/// An agent that is asked something without a run.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// Its working directory, if not ours.
    pub cwd: Option<&'a Path>,
    /// How it is started.
    pub base: &'a Base,
    /// Its arguments.
    pub args: Vec<String>,
    /// Added to its environment, over what its entry adds.
    pub env: Vec<(String, OsString)>,
    /// The longest that it may take.
    pub limit: Duration,
    /// The most that it may say, in bytes.
    pub bytes: u64,
}

/// Where an agent's program is: as an absolute path, found as a run would find it from here.
pub fn find(base: &Base) -> Option<PathBuf> {
    let cwd = std::env::current_dir().ok()?;
    match &base.program {
        Program::Myself => myself::file(),
        program => resolve(program, &environment_of(base), &cwd).filter(|path| path.is_file()),
    }
}

/// A variable of the environment that an agent has without a run.
pub fn variable(base: &Base, name: &str) -> Option<OsString> {
    base.env.get(name).map(OsString::from).or_else(|| std::env::var_os(name))
}

fn environment_of(base: &Base) -> std::collections::BTreeMap<OsString, OsString> {
    environment_over(base.env.iter().map(|(name, value)| (name.into(), value.into())))
}

/// Several agents that are asked at once. Nothing of theirs is left when this is dropped, nor if this process is killed.
#[derive(Debug)]
pub struct Asking {
    nonce: String,
    tree: Tree,
    guard: Option<Guard>,
}

impl Asking {
    /// Begins. The calling process must have no children of its own that are still to be reaped.
    pub fn begin() -> Asking {
        tree::become_subreaper();
        let nonce = tree::nonce();
        let mut tree = Tree::before_spawn(nonce.clone());
        // Without a guard it only matters if this process is killed.
        let guard = Guard::start(&nonce, None).ok();
        guard.iter().for_each(|guard| tree.spare(guard.pid()));
        Asking { nonce, tree, guard }
    }

    /// Asks an agent. What carries its marker is gone when this returns.
    ///
    /// # Errors
    /// It gave no answer.
    pub fn ask(&self, asked: &Asked<'_>) -> Result<QueryOutput, NoAnswer> {
        let until = Until::deadline(Instant::now() + asked.limit);
        let program = find(asked.base).ok_or(NoAnswer::Missing)?;
        let own = tree::nonce();
        // Others are asked at the same time: each is known by its own marker, not by its descent from us.
        let tree = Tree::by_marker(own.clone());
        let mut command = Command::new(program);
        if let Some(cwd) = asked.cwd {
            command.current_dir(cwd);
        }
        command.args(&asked.args).env_clear().envs(environment_of(asked.base));
        command.envs(asked.env.iter().map(|(name, value)| (name, value)));
        command.env(MARKER, marker_value(&format!("{}:{own}", self.nonce)));
        run(&mut command, Errors::Apart, asked.bytes, &until, |pid, _| {
            tree.sweep(Some(pid), SWEEP_LIMIT);
        })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        // Everything that still descends from us cleared its environment.
        self.tree.sweep(None, SWEEP_LIMIT);
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
    }
}

/// Kills a group at once: for a program that starts nothing which leaves it.
pub(super) fn kill_late(pid: u32, in_time: bool) {
    if !in_time {
        super::info::signal_group(to_pid(pid), Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::{Tree, tree, wait_without_reaping};
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn what_sweeps_for_one_leaves_the_exit_code_of_another() {
        let mut other = Command::new("/bin/sh").args(["-c", "exit 3"]).spawn().unwrap();
        wait_without_reaping(other.id());
        Tree::by_marker(tree::nonce()).sweep(None, Duration::ZERO);
        assert_eq!(other.wait().unwrap().code(), Some(3));
    }
}
