//! Differences between systems, behind one interface: the processes that exist, signals to exactly one of them, reads and
//! writes that never wait, random bytes, and some names and constants.
//!
//! Two forms have the same items. `linux` uses what Linux alone has, such as `/proc`, subreapers, pidfds and control
//! groups. `posix` serves all other systems: there, a process is known by its number and its process group alone. No
//! other module names an interface of one system. The feature `linux`, on by default, chooses the first form on Linux.
//! Without the feature, the second form runs there too, so that tests reach it. The reference lists the differences
//! that a user can notice under "Systems".

mod process;
mod sandbox;

#[cfg(all(target_os = "linux", feature = "linux"))]
mod linux;
#[cfg(all(target_os = "linux", feature = "linux"))]
use linux as form;
#[cfg(not(all(target_os = "linux", feature = "linux")))]
mod posix;
#[cfg(not(all(target_os = "linux", feature = "linux")))]
use posix as form;

pub use form::{ControlGroup, become_subreaper};
pub(crate) use form::{
    DEFAULT_PATH, FATAL_SIGNALS, Killer, OWN_FILE, PIPE_BUF, Reservation, SANDBOX_DEVICES, SANDBOX_LINKS,
    SANDBOX_SYSTEM, SHORTFALL, adopted, carries, controlling_terminal, descendants, enter_namespaces, file_tick,
    group_keeps_number, group_lives, hide_memory, hides_environment, ignored_signals, is_executable, is_same_user,
    keeps_descendants, lost_sight, newest_pid, obstacle, parent_holds, processes, protect, random, read_now,
    read_process, reopen_stdout, reserve, restrict, sandbox_version, send, share_blocks,
};
pub(crate) use process::{Id, ProcessInfo, from_pid, signal_group, to_pid};
pub(crate) use sandbox::{Access, Grants};

/// The start time of [`Id`], even of a zombie. `None`: the process does not exist.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    read_process(pid).map(|process| process.id.1)
}
