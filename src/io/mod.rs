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
pub mod threads;
pub(crate) mod tty;

pub(crate) use threads::spawn_thread;
