//! Work in a separate thread, for a loop that must not wait for it.

use super::query::Until;
use crate::io::spawn_thread;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// The work stops soon after it is cancelled or dropped.
#[derive(Debug)]
pub(crate) struct BackgroundTask<T> {
    result: Receiver<T>,
    over: Receiver<Infallible>,
    /// Dropping the sender cancels the work. `None`: the work was cancelled.
    wanted: Option<Sender<Infallible>>,
}

impl<T: Send + 'static> BackgroundTask<T> {
    pub(crate) fn start(
        name: &str,
        limit: Duration,
        work: impl FnOnce(&Until) -> T + Send + 'static,
    ) -> BackgroundTask<T> {
        let (result_in, result) = bounded(1);
        let (over_in, over) = bounded(0);
        let (until, wanted) = Until::wanted(Instant::now() + limit);
        let work = move || {
            let _ = result_in.send(work(&until));
            drop(over_in);
        };
        // If the thread cannot be started, both senders are dropped, so the task ends without a result.
        let _ = spawn_thread(name, work);
        BackgroundTask { result, over, wanted: Some(wanted) }
    }

    /// A receive error: there will be no result.
    pub(crate) fn result(&self) -> Receiver<T> {
        self.result.clone()
    }

    /// Disconnected once the thread is over.
    pub(crate) fn over(&self) -> Receiver<Infallible> {
        self.over.clone()
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.wanted.is_none()
    }

    /// Cancels the work: it ends its processes, and its result no longer counts.
    pub(crate) fn give_up(&mut self) {
        self.wanted = None;
    }

    pub(crate) fn wait_for_result(&self, limit: Duration) -> Option<T> {
        self.result.recv_timeout(limit).ok()
    }
}
