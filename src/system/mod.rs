//! What systems do differently, behind one interface: the processes that exist, signals to exactly one of them, reads and
//! writes that never wait, random bytes, and some names and constants.
//!
//! Two forms have the same items. `linux` uses what Linux alone has, such as `/proc`, subreapers, pidfds and control
//! groups. `posix` serves all other systems: there, a process is known by its number and its process group alone. No
//! other module names an interface of one system. The feature `linux`, on by default, chooses the first form on Linux.
//! Without the feature, the second form runs there too, so that tests reach it. The reference lists the differences
//! that a user can notice under "What each system promises".

use rustix::process::{Pid, Signal};

#[cfg(all(target_os = "linux", feature = "linux"))]
mod linux;
#[cfg(all(target_os = "linux", feature = "linux"))]
use linux as form;
#[cfg(not(all(target_os = "linux", feature = "linux")))]
mod posix;
#[cfg(not(all(target_os = "linux", feature = "linux")))]
use posix as form;

pub use form::ControlGroup;
pub(crate) use form::{
    DEFAULT_PATH, FATAL_SIGNALS, Killer, OWN_FILE, Reservation, SHORTFALL, adopted, become_subreaper, carries,
    controlling_terminal, descendants, file_tick, group_keeps_number, group_lives, hide_memory, ignored_signals,
    is_executable, is_same_user, keeps_descendants, lost_sight, newest_pid, parent_holds, processes, random, read_now,
    read_process, reopen_stdout, reserve, send,
};

/// Identifies a process even if its pid is reused: the pid, and the start time in clock ticks since boot. The time is 0
/// where the system does not report it.
pub(crate) type Id = (u32, u64);

/// A process, as the system describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessInfo {
    pub(crate) id: Id,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    /// The process exited, but is not reaped.
    pub(crate) zombie: bool,
}

/// The start time of a process, even of a zombie. `None` if it does not exist.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    read_process(pid).map(|process| process.id.1)
}

pub(crate) fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

pub(crate) fn from_pid(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

pub(crate) fn signal_group(group: Option<Pid>, signal: Signal) -> bool {
    group.is_some_and(|group| rustix::process::kill_process_group(group, signal).is_ok())
}
