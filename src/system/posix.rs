//! The form for systems other than Linux, with what POSIX and macOS have in common.
//!
//! A process is found only by its group, because POSIX has no call that lists processes or names the parent of another
//! process. So a process that leaves the agent's group is not found.

use super::process::{Id, ProcessInfo, to_pid};
use super::sandbox::Grants;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, test_kill_process, test_kill_process_group, waitid,
};
use rustix::termios::{tcgetpgrp, ttyname};
use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, SystemTime};

/// One line about what this form promises less than Linux, for a person.
pub(crate) const SHORTFALL: Option<&str> = Some(
    "On this system, a process that leaves the agent's process group outlives the run: `spektacular protocol systems` lists the differences to Linux.",
);

pub(crate) const DEFAULT_PATH: &str = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin";

/// A writable pipe accepts at least so many bytes at once: the least that POSIX permits, and the value of macOS.
pub(crate) const PIPE_BUF: usize = 512;

pub(crate) const OWN_FILE: Option<&str> = None;

pub(crate) const FATAL_SIGNALS: [i32; 0] = [];

/// The longest time by which the time of a changed file lags behind the clock. macOS stamps files with the clock itself,
/// other systems once in a tick.
const STAMP_LAG: Duration = Duration::from_millis(10);

/// Returns false: the orphans of the agent's tree pass to the first process.
pub fn become_subreaper() -> bool {
    false
}

pub(crate) fn keeps_descendants() -> bool {
    false
}

pub(crate) fn processes() -> Vec<ProcessInfo> {
    Vec::new()
}

pub(crate) fn descendants() -> Option<Vec<ProcessInfo>> {
    None
}

pub(crate) fn adopted() -> Option<Vec<u32>> {
    None
}

pub(crate) fn newest_pid() -> Option<u32> {
    None
}

/// `None`: this process sees as much as this form permits.
pub(crate) fn lost_sight() -> Option<&'static str> {
    None
}

pub(crate) fn read_process(pid: u32) -> Option<ProcessInfo> {
    test_kill_process(to_pid(pid)?).ok()?;
    Some(ProcessInfo { id: (pid, 0), parent: 0, group: 0, zombie: false })
}

pub(crate) fn carries(_pid: u32, _marker: &str, _nonces: &str) -> bool {
    false
}

pub(crate) fn hides_environment(_pid: u32) -> bool {
    false
}

/// Returns false: without a start time, the number may belong to another process by now.
pub(crate) fn send(_process: Id, _signal: Signal) -> bool {
    false
}

/// Whether the number of this process's group still means that group. No process gets the number of a group that has a
/// member. Systems assign the numbers in turn, so an unused one stays unused for far longer than the guard needs.
pub(crate) fn group_keeps_number((leader, _): Id) -> bool {
    group_lives(to_pid(leader))
}

/// Whether a group has a process that [`processes`] does not show. On some systems, a zombie counts.
pub(crate) fn group_lives(group: Option<Pid>) -> bool {
    group.is_some_and(|group| test_kill_process_group(group).is_ok())
}

/// Whether the system can run a program file. A file without a format of its own begins with text, and `exec` would pass
/// it to a shell. Says yes if the file cannot be read: the system then decides.
pub(crate) fn is_executable(program: File) -> bool {
    let mut start = Vec::new();
    match program.take(2).read_to_end(&mut start) {
        Ok(_) => start == b"#!" || (start.len() > 1 && !start.iter().all(|byte| matches!(byte, b'\t'..=b'~'))),
        Err(_) => true,
    }
}

pub(crate) fn random(bytes: &mut [u8]) -> bool {
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(bytes)).is_ok()
}

/// Waits only if another process reads the same source just then. Error: the system's; `AGAIN` if there is nothing.
pub(crate) fn read_now(source: impl AsFd, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    match poll(&mut [PollFd::new(&source, PollFlags::IN)], Some(&Timespec::default()))? {
        0 => Err(Errno::AGAIN),
        _ => rustix::io::read(source, buffer),
    }
}

/// Fails: only whole files by their paths can share blocks here.
pub(crate) fn share_blocks(_target: &File, _source: &File) -> rustix::io::Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// `None`: an open pipe cannot be opened anew.
pub(crate) fn reopen_stdout() -> Option<File> {
    None
}

/// Returns true: nothing shows the open files of the parent, and a file that it opened on purpose must not be refused.
pub(crate) fn parent_holds(_file: impl AsFd, _flags: OFlags) -> bool {
    true
}

/// Returns 0: without unsafe code, nothing tells which signals are ignored.
pub(crate) fn ignored_signals() -> u64 {
    0
}

/// Does nothing: the system decides who may read the memory of a process.
pub(crate) fn hide_memory() {}

#[derive(Debug)]
pub(crate) struct Killer(Pid);

impl Killer {
    pub(crate) fn of(child: &Child) -> Killer {
        Killer(Pid::from_child(child))
    }

    /// Kills the process, if it is still our child: its number is not reused before somebody has waited for it.
    pub(crate) fn kill(&self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if waitid(WaitId::Pid(self.0), options).is_ok() {
            let _ = kill_process(self.0, Signal::KILL);
        }
    }
}

#[derive(Clone, Debug)]
pub enum ControlGroup {}

impl ControlGroup {
    pub fn create(_nonce: &str) -> Option<ControlGroup> {
        None
    }

    pub(crate) fn at(_folder: PathBuf) -> Option<ControlGroup> {
        None
    }

    pub fn folder(&self) -> &Path {
        match *self {}
    }

    pub(crate) fn join(&self) {
        match *self {}
    }

    pub(crate) fn members(&self) -> Vec<u32> {
        match *self {}
    }

    pub(crate) fn kill(&self, _limit: Duration) -> usize {
        match *self {}
    }

    pub fn remove(&self) {
        match *self {}
    }
}

/// Returns a time that no earlier change of a file exceeds and every later change reaches.
pub(crate) fn file_tick() -> SystemTime {
    let now = SystemTime::now();
    std::thread::sleep(STAMP_LAG);
    now
}

/// Returns true: only the mode of the socket's folder keeps other users out.
pub(crate) fn is_same_user(_stream: &UnixStream) -> bool {
    true
}

pub(crate) type Reservation = Infallible;

pub(crate) fn reserve(_name: &str) -> io::Result<Option<Reservation>> {
    Ok(None)
}

pub(crate) const SANDBOX_SYSTEM: &[&str] = &[];
pub(crate) const SANDBOX_LINKS: &[&str] = &[];
pub(crate) const SANDBOX_DEVICES: &[&str] = &[];

/// The sandboxes of agents need no namespaces here.
pub(crate) fn enter_namespaces() -> io::Result<()> {
    Ok(())
}

pub(crate) fn obstacle() -> &'static str {
    "for git's hooks, Linux is needed"
}

pub(crate) fn protect(_grants: &Grants) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn sandbox_version() -> Result<u32, String> {
    Err("only Linux can keep a sandbox".into())
}

pub(crate) fn restrict(_grants: &Grants) -> Result<(), String> {
    sandbox_version().map(drop)
}

/// Its own name, because macOS cannot poll `/dev/tty`.
pub(crate) fn controlling_terminal() -> PathBuf {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let streams = [stdin.as_fd(), stderr.as_fd(), stdout.as_fd()];
    let controlling = streams.into_iter().filter(|stream| tcgetpgrp(stream).is_ok());
    let mut names = controlling.filter_map(|stream| ttyname(stream, Vec::new()).ok());
    names.next().map_or_else(|| "/dev/tty".into(), |name| OsStr::from_bytes(name.to_bytes()).into())
}
