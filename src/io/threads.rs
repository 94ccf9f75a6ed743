//! The threads of this process, and the memory that they need.

use super::failpoint;
use rustix::process::{Resource, getrlimit};
use std::io::{ErrorKind, Result};
use std::thread::Builder;

/// The stack of each thread, in bytes, whatever the environment or a limit of this process says.
const STACK: usize = 2 << 20;

/// The minimum address space for a run, in bytes.
const ADDRESS_SPACE: u64 = if cfg!(target_env = "gnu") { 2 << 30 } else { 64 << 20 };

/// The address space that the threads of a run reserve, in bytes. The allocator of glibc reserves 64 MiB for each thread,
/// and a run with a busy ask server has about 25 of them. With musl only their stacks count.
const RESERVED: u64 = ADDRESS_SPACE - (32 << 20);

/// Debuggers and `ps` show the name. Unlike [`std::thread::spawn`] this does not panic if the machine has no thread
/// left. Error: the system's, or `OutOfMemory` if the address space is too small for a run: a thread that finds no
/// memory at its start aborts the process.
pub(crate) fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    if low_limit().is_some() {
        return Err(ErrorKind::OutOfMemory.into());
    }
    let point = name.to_owned();
    let work = move || {
        failpoint::point(&point);
        work();
    };
    Builder::new().name(name.into()).stack_size(STACK).spawn(work).map(drop)
}

/// Runs on a thread of its own if the main thread's stack is too small. `None`: that thread cannot be started.
pub fn with_room<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if getrlimit(Resource::Stack).current.is_none_or(|now| now >= STACK as u64) {
        return Some(run());
    }
    Builder::new().name("main".into()).stack_size(STACK).spawn(run).ok()?.join().ok()
}

/// The limit of this process that leaves no room for a run, as a sentence. `None`: there is room.
pub(crate) fn low_limit() -> Option<String> {
    getrlimit(Resource::As).current.filter(|now| *now < ADDRESS_SPACE)?;
    let least = ADDRESS_SPACE >> 20;
    Some(format!("The address space limit of this process is below {least} MiB: raise it with `ulimit -v`."))
}

/// The memory that the threads leave, in bytes. `None`: it has no limit.
pub(crate) fn room() -> Option<u64> {
    getrlimit(Resource::As).current.map(|limit| limit.saturating_sub(RESERVED))
}
