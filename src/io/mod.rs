//! Input and output of this process: the two output doors, bounded lines, stdin, terminal modes, signals, panics and
//! failpoints.
//!
//! Nothing here depends on a run. Reader threads only move bytes into channels; the loop owns all state.

pub(crate) mod backstop;
pub(crate) mod failpoint;
pub(crate) mod files;
pub(crate) mod foreground;
pub mod inbox;
pub(crate) mod keys;
pub(crate) mod lines;
pub mod outbox;
pub mod output;
pub(crate) mod panic_channel;
pub(crate) mod signals;
pub(crate) mod stdin;
pub(crate) mod tty;

use std::io::Result;
use std::thread::Builder;

/// The stack of each thread, in bytes, whatever the environment or a limit of this process says.
pub(crate) const STACK: usize = 2 << 20;

/// Starts a named thread; debuggers and `ps` show the name. Unlike [`std::thread::spawn`] this does not panic if the
/// machine has no thread left. Error: the system's, if no thread can be started.
pub(crate) fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let point = name.to_owned();
    let work = move || {
        failpoint::point(&point);
        work();
    };
    Builder::new().name(name.into()).stack_size(STACK).spawn(work).map(drop)
}
