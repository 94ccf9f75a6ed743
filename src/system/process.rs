//! The facts about a process, and the types of its numbers.

use rustix::process::{Pid, Signal};

/// Identifies a process even if its pid is reused: the pid, and the start time in clock ticks since boot. The time is 0
/// where the system does not report it.
pub(crate) type Id = (u32, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessInfo {
    pub(crate) id: Id,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) zombie: bool,
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
