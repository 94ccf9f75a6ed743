//! Work in a thread of its own, for a loop that must not wait for it.

use super::query::Until;
use crate::io::spawn_thread;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// Work in a thread of its own, with one result. The work stops soon after it is given up or dropped.
#[derive(Debug)]
pub struct Errand<T> {
    result: Receiver<T>,
    /// Disconnected once the thread is over.
    over: Receiver<Infallible>,
    /// Dropping it gives the work up. `None`: given up.
    wanted: Option<Sender<Infallible>>,
}

impl<T: Send + 'static> Errand<T> {
    /// Starts the work. `limit`: the time that it may take.
    pub fn start(name: &str, limit: Duration, work: impl FnOnce(&Until) -> T + Send + 'static) -> Errand<T> {
        let (result_in, result) = bounded(1);
        let (over_in, over) = bounded(0);
        let (until, wanted) = Until::wanted(Instant::now() + limit);
        let work = move || {
            let _ = result_in.send(work(&until));
            drop(over_in);
        };
        // If no thread starts, both senders are dropped, which ends the errand without a result.
        let _ = spawn_thread(name, work);
        Errand { result, over, wanted: Some(wanted) }
    }

    /// Ready with the result; a receive error means that there will be none.
    pub fn result(&self) -> Receiver<T> {
        self.result.clone()
    }

    /// Disconnected once the thread is over.
    pub fn over(&self) -> Receiver<Infallible> {
        self.over.clone()
    }

    /// Whether the work was given up.
    pub fn is_given_up(&self) -> bool {
        self.wanted.is_none()
    }

    /// Gives the work up: it ends its processes, and its result no longer counts.
    pub fn give_up(&mut self) {
        self.wanted = None;
    }

    /// Waits for the result, for at most `limit`. `None`: there is none.
    pub fn settle(&self, limit: Duration) -> Option<T> {
        self.result.recv_timeout(limit).ok()
    }
}
