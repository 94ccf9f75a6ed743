//! The form for Linux.

mod cgroup;
mod format;
mod landlock;
mod namespaces;
mod processes;

pub use self::cgroup::ControlGroup;
pub(crate) use self::format::is_executable;
pub(crate) use self::landlock::{SANDBOX_DEVICES, SANDBOX_LINKS, SANDBOX_SYSTEM, restrict, sandbox_version};
pub(crate) use self::namespaces::{enter_namespaces, obstacle, protect};
pub use self::processes::become_subreaper;
pub(crate) use self::processes::{
    adopted, carries, descendants, group_keeps_number, group_lives, hides_environment, keeps_descendants, lost_sight,
    newest_pid, processes, read_process, send,
};

use rustix::fs::{OFlags, fcntl_setfl, ioctl_ficlone};
use rustix::io::{ReadWriteFlags, preadv2};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_dumpable_behavior,
};
use rustix::rand::{GetRandomFlags, getrandom};
use signal_hook::consts::SIGIO;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IoSliceMut, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, SystemTime};

pub(crate) const SHORTFALL: Option<&str> = None;

pub(crate) const DEFAULT_PATH: &str = "/usr/bin:/bin";

pub(crate) const PIPE_BUF: usize = 4096;

/// The link to the file that this process runs. It works even if the file was replaced or removed, but only in a child
/// of ours: in any other process, it names that process's own file.
pub(crate) const OWN_FILE: Option<&str> = Some("/proc/self/exe");

/// The signals that end a process by default on this system and not on every other.
pub(crate) const FATAL_SIGNALS: [i32; 3] = [SIGIO, Signal::POWER.as_raw(), Signal::STKFLT.as_raw()];

pub(crate) fn random(bytes: &mut [u8]) -> bool {
    let length = bytes.len();
    getrandom(bytes, GetRandomFlags::empty()) == Ok(length)
}

/// Never waits, even if another process reads the same source. Error: the system's; `AGAIN` if there is nothing.
pub(crate) fn read_now(source: impl AsFd, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    preadv2(source, &mut [IoSliceMut::new(buffer)], u64::MAX, ReadWriteFlags::NOWAIT)
}

/// Error: the file system copies no blocks by reference.
pub(crate) fn share_blocks(target: &File, source: &File) -> rustix::io::Result<()> {
    ioctl_ficlone(target, source)
}

/// Writes to this file do not wait: whoever else has the pipe keeps their mode. `None`: the system forbids it.
pub(crate) fn reopen_stdout() -> Option<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    File::options().write(true).custom_flags(flags).open("/proc/self/fd/1").ok()
}

/// Whether the parent has the same open file: a flag changed here then shows there too. `flags`: the file's.
pub(crate) fn parent_holds(file: impl AsFd, flags: OFlags) -> bool {
    let before = flags_of_parent();
    let _ = fcntl_setfl(&file, flags ^ OFlags::APPEND);
    let after = flags_of_parent();
    let _ = fcntl_setfl(&file, flags);
    // The parent may open and close other files meanwhile.
    let changed =
        |(name, flags): (&OsString, &u32)| after.get(name).map(|now| now ^ flags) == Some(OFlags::APPEND.bits());
    before.iter().any(changed)
}

fn flags_of_parent() -> BTreeMap<OsString, u32> {
    let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    let entries = fs::read_dir(format!("/proc/{parent}/fdinfo")).into_iter().flatten().flatten();
    let flags = entries.filter_map(|entry| {
        let info = fs::read_to_string(entry.path()).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        Some((entry.file_name(), u32::from_str_radix(flags.trim(), 8).ok()?))
    });
    flags.collect()
}

/// A bit mask (bit N-1 for signal N) of the signals ignored before this process registered any, as by nohup and `&`.
pub(crate) fn ignored_signals() -> u64 {
    // One read is enough, because the line is near the beginning.
    let mut status = [0; 4096];
    let count = File::open("/proc/self/status").and_then(|mut file| file.read(&mut status)).unwrap_or(0);
    let status = String::from_utf8_lossy(&status[..count]);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Keeps other processes of the user from reading this process's memory and environment.
pub(crate) fn hide_memory() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// The means to kill a process that another thread may already have waited for. Empty on a kernel without them.
#[derive(Debug)]
pub(crate) struct Killer(Option<OwnedFd>);

impl Killer {
    /// Nobody may have waited for the child yet.
    pub(crate) fn of(child: &Child) -> Killer {
        Killer(pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok())
    }

    pub(crate) fn kill(&self) {
        if let Some(process) = &self.0 {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
}

/// Waits until the coarse clock by which the kernel stamps files passes the present time, which takes a tick: 4 to 10 ms.
/// Returns its time: each earlier change of a file has an earlier time, and no later change has.
pub(crate) fn file_tick() -> SystemTime {
    let now = SystemTime::now();
    // A new pipe has the time of that clock. rustix could ask for it, but not under valgrind.
    let stamp = || File::from(OwnedFd::from(io::pipe().ok()?.0)).metadata().and_then(|pipe| pipe.modified()).ok();
    // A clock that is set back does not prolong the wait.
    let mut stamps = (0..100).map(|_| {
        std::thread::sleep(Duration::from_micros(200));
        stamp()
    });
    stamps.find_map(|stamp| stamp.filter(|stamp| *stamp > now)).unwrap_or(now)
}

pub(crate) fn is_same_user(stream: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

/// A name that the system gives to one process at a time, until the process ends.
pub(crate) type Reservation = UnixDatagram;

/// `None`: the system has no such names. Error: another process has reserved it.
pub(crate) fn reserve(name: &str) -> io::Result<Option<Reservation>> {
    match SocketAddr::from_abstract_name(name).and_then(|address| UnixDatagram::bind_addr(&address)) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(error),
        bound => Ok(bound.ok()),
    }
}

pub(crate) fn controlling_terminal() -> PathBuf {
    "/dev/tty".into()
}
