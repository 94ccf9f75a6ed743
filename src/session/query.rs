//! A short query to a program: it is started, its output is read, and it is over in time. git is asked so, and so are
//! agents that nobody runs a task with.

use super::child::{environment_over, resolve};
use super::myself;
use super::process::to_pid;
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
pub struct Answer {
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// Its stdout.
    pub output: Vec<u8>,
    /// Its stderr, where it is read by itself.
    pub errors: Vec<u8>,
}

/// Runs a command to its end, with nothing on its stdin, in a process group of its own. `None`: it did not start, was
/// not over in time, or said more than `bytes`. `end`: what is done to its processes before it is reaped, with whether
/// it was over in time.
pub(super) fn run(
    command: &mut Command,
    errors: Errors,
    bytes: u64,
    until: &Until,
    end: impl FnOnce(u32, bool),
) -> Option<Answer> {
    let (out, out_end) = io::pipe().ok()?;
    let mut apart = None;
    let stderr = match errors {
        Errors::Dropped => Stdio::null(),
        Errors::Mixed => out_end.try_clone().ok()?.into(),
        Errors::Apart => {
            let (err, err_end) = io::pipe().ok()?;
            apart = Some(err);
            err_end.into()
        }
    };
    command.stdin(Stdio::null()).stdout(out_end).stderr(stderr).process_group(0);
    let child = command.spawn();
    // The command holds our ends of the pipes.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.ok()?;
    let pid = child.id();
    let said = [Some(out), apart].map(|pipe| pipe.map(|pipe| read(pipe, bytes, pid)));
    let said = said.map(|said| said.map_or(Some(Some(Vec::new())), |said| until.wait_for(&said)));
    // Not reaped yet, so its number is still its own.
    end(pid, said.iter().all(Option::is_some));
    let code = child.wait().ok()?.code();
    let [output, errors] = said.map(Option::flatten);
    Some(Answer { code, output: output?, errors: errors? })
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

/// Asks an agent. Its whole process tree is gone when this returns. `None`: see [`run`].
pub fn ask(asked: &Asked<'_>) -> Option<Answer> {
    let until = Until::deadline(Instant::now() + asked.limit);
    let program = find(asked.base)?;
    let nonce = tree::nonce();
    // Several agents may be asked at once: each is known by its own marker, not by its descent from us.
    let tree = Tree::by_marker(nonce.clone());
    let mut command = Command::new(program);
    if let Some(cwd) = asked.cwd {
        command.current_dir(cwd);
    }
    command.args(&asked.args).env_clear().envs(environment_of(asked.base));
    command.envs(asked.env.iter().map(|(name, value)| (name, value))).env(MARKER, marker_value(&nonce));
    run(&mut command, Errors::Apart, asked.bytes, &until, |pid, _| {
        tree.sweep(Some(pid), SWEEP_LIMIT);
    })
}

/// An empty folder for a query, gone with its content when it is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one in the folder for temporary files. `None`: none could be made.
    pub fn new() -> Option<Scratch> {
        use std::os::unix::fs::DirBuilderExt;
        let path = std::env::temp_dir().join(format!("spektacular-{}", tree::nonce()));
        std::fs::DirBuilder::new().mode(0o700).create(&path).ok()?;
        Some(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Kills a group at once: for a program that starts nothing which leaves it.
pub(super) fn kill_late(pid: u32, in_time: bool) {
    if !in_time {
        super::process::signal_group(to_pid(pid), Signal::KILL);
    }
}
