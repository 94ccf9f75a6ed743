//! Bytes in and out of this process: the two output doors, bounded lines, stdin, terminal modes, signals.
//!
//! Nothing here knows a run. Reader threads only move bytes into channels; all state is the loop's.

pub mod inbox;
pub mod keys;
pub mod lines;
pub mod output;
pub mod signals;
pub mod stdin;
pub mod tty;

use std::io::Result;
use std::thread::Builder;

/// Starts a thread with a name, for a debugger and for `ps`. Unlike [`std::thread::spawn`] it does not panic where the
/// machine has no thread left.
///
/// # Errors
/// The system's, where no thread can be started.
pub(crate) fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    Builder::new().name(name.into()).spawn(work).map(drop)
}
