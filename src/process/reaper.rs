//! Reaps the orphans that this process adopts while an agent runs, in a separate thread: checking thousands of children
//! takes more time than the loop has.

use super::tree::Tree;
use crate::io::spawn_thread;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The pause after a look. Orphans that end meanwhile are reaped together.
const PAUSE: Duration = Duration::from_millis(20);

/// The longest wait for the end of the thread. A look takes a few milliseconds.
const FINISH_LIMIT: Duration = Duration::from_millis(300);

/// The running thread. Dropping this ends the thread without waiting for it.
pub(super) struct Reaper {
    requests: Sender<()>,
    /// Disconnected once the thread has ended.
    ended: Receiver<Infallible>,
    _stop: Sender<Infallible>,
}

impl Reaper {
    /// Starts the thread. It never reaps `leader`, the agent itself. Error: the system's, if no thread can be started.
    pub(super) fn start(tree: Arc<Tree>, leader: u32) -> io::Result<Reaper> {
        let (requests, requested) = bounded(1);
        let (stop, stopped) = bounded::<Infallible>(0);
        let (running, ended) = bounded::<Infallible>(0);
        spawn_thread("reaper", move || {
            let _running = running;
            for () in requested {
                tree.reap_orphans(Some(leader));
                if stopped.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Reaper { requests, ended, _stop: stop })
    }

    /// Requests a look, unless one is pending. Never blocks.
    pub(super) fn request(&self) {
        let _ = self.requests.try_send(());
    }

    /// Ends the thread and waits for it, so that it cannot take a child that is started later for an orphan. Does not
    /// wait for ever.
    pub(super) fn finish(self) {
        let Reaper { requests, ended, _stop } = self;
        drop((requests, _stop));
        let _ = ended.recv_timeout(FINISH_LIMIT);
    }
}
