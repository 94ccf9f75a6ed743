//! The limits of a run's end: the waits for the readers of the agent's output and for an orchestrator that does not read,
//! and the backstop behind both.

use super::{RunLoop, Wake};
use crate::engine::local_host::LocalHost;
use crate::io::backstop::Backstop;
use crate::io::output::{Order, Written, write_here};
use crate::protocol::failure::Failure;
use crate::protocol::words::Warning;
use crate::run::{Event, Origin};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The waits after a stop for an orchestrator that does not read: until the end, and until progress is dropped.
pub(super) const UNREAD_LIMIT: Duration = Duration::from_secs(1);
pub(super) const UNREAD_DROP: Duration = Duration::from_millis(500);

/// The time that the loop has waited while the writer made no progress. The time in which the loop handles events does
/// not count.
#[derive(Default)]
pub(super) struct UnreadOutput {
    pub(super) waited: Duration,
    progress: usize,
}

impl UnreadOutput {
    /// Adds a wait, unless the writer made progress meanwhile or this process was suspended. Returns whether it did.
    fn count(&mut self, wait: Option<Duration>, progress: usize, suspended: bool) -> bool {
        if std::mem::replace(&mut self.progress, progress) != progress {
            self.waited = Duration::ZERO;
            return false;
        }
        let Some(wait) = wait.filter(|_| !suspended) else { return false };
        self.waited += wait;
        true
    }
}

impl RunLoop<'_, '_> {
    /// Starts the backstop of a stop or of the run's deadline.
    pub(super) fn secure_end(&mut self) {
        let run = self.conductor.run();
        let due = run.stopping().or(run.deadline()).map(|due| self.conductor.host().at(due));
        if due != self.backstop.as_ref().map(|backstop| backstop.due) {
            let signals = self.engine.signals.as_ref();
            self.backstop = due.zip(signals).map(|(due, signals)| {
                Backstop::start(due, Arc::clone(&self.engine.output.progress), signals.last_resort.clone())
            });
        }
    }

    pub(super) fn tire_of_readers(&mut self) {
        if self.readers_due().is_some_and(|due| due <= Instant::now()) {
            let text = "The agent's output may be incomplete: it was not read in time";
            self.conductor.step(Event::Warn(Origin::default(), Warning::OutputIncomplete, text.into()));
            self.tree_gone(LocalHost::give_up_readers);
        }
    }

    /// The time at which the wait for the readers of the agent ends. `None`: they need not end now, or they wait for an
    /// orchestrator that does not read.
    pub(super) fn readers_due(&self) -> Option<Instant> {
        let (is_full, stopping) = (self.conductor.waiting().is_full(), self.conductor.run().is_stopping());
        self.conductor.host().readers_due(stopping).filter(|_| !is_full)
    }

    /// The remaining time to wait, after a stop and the agent's end, for an orchestrator that does not read.
    pub(super) fn unread_left(&self, limit: Duration) -> Option<Duration> {
        let host = self.conductor.host();
        let stopped = self.conductor.run().stopping().is_some();
        let agent_gone = host.agent.is_none() || host.tree_gone_at.is_some();
        let undelivered = self.conductor.is_finished() || !self.conductor.waiting().is_empty();
        (stopped && agent_gone && undelivered).then(|| limit.saturating_sub(self.unread.waited))
    }

    pub(super) fn count_unread(&mut self, began: Option<Instant>) {
        let progress = self.engine.output.progress.load(Ordering::Relaxed);
        let grew = self.unread.count(began.map(|began| began.elapsed()), progress, self.was_suspended);
        if grew && self.unread.waited >= UNREAD_DROP && !self.conductor.is_finished() {
            self.conductor.drop_progress();
        }
    }

    /// Ends the run after an internal fault, or after the writer thread failed to start. The loop itself may be at
    /// fault, so this writes the last frames without it.
    pub(super) fn give_up(&mut self) {
        let failure = if self.engine.output.has_thread { Failure::of_our_own() } else { Failure::no_thread() };
        let _ = catch_unwind(AssertUnwindSafe(|| self.conductor.crash(failure)));
        if self.conductor.run().is_between() {
            // The workflow closes its run.
            return;
        }
        self.conductor.frame_out.finished = true;
        self.delivered = self.deliver();
    }

    /// Writes the waiting bytes, unless nobody reads any of them for a while. Returns whether all were written.
    fn deliver(&mut self) -> bool {
        while self.engine.output.has_rest() || !self.conductor.waiting().is_empty() {
            match self.write() {
                Some(Wake::Written(_)) => return false,
                Some(_) => continue,
                None => {}
            }
            let output = &mut self.engine.output;
            output.watch(true);
            let order = output.order(|| Order::Write(self.conductor.outbox().pop()));
            let taken = match order {
                Order::Write(chunk) if !output.has_thread => write_here(&chunk),
                order @ (Order::Write(_) | Order::Flush) => output.orders.send_timeout(order, UNREAD_LIMIT).is_ok(),
            };
            if !taken {
                return false;
            }
        }
        let output = &mut self.engine.output;
        if self.conductor.is_lost() {
            return false;
        }
        if output.is_direct() || !output.has_thread {
            return true;
        }
        output.watch(true);
        let flush = output.order(|| Order::Flush);
        if output.orders.send_timeout(flush, UNREAD_LIMIT).is_err() {
            return false;
        }
        loop {
            match output.written.recv_timeout(UNREAD_LIMIT) {
                Ok(Written::Flushed) => return true,
                Ok(Written::Closed) => {}
                Ok(Written::Lost) | Err(_) => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::UnreadOutput;
    use std::time::Duration;

    #[test]
    fn only_time_that_a_reader_lets_pass_counts_as_unread() {
        let second = Some(Duration::from_secs(1));
        let mut unread = UnreadOutput::default();
        let mut waited = |wait, progress, suspended| {
            unread.count(wait, progress, suspended);
            unread.waited.as_secs()
        };
        assert_eq!((waited(second, 0, false), waited(second, 0, false)), (1, 2));
        assert_eq!(waited(second, 0, true), 2, "the time of a suspension counts");
        assert_eq!(waited(None, 0, false), 2);
        assert_eq!(waited(second, 1, false), 0, "the reader took something");
    }
}
