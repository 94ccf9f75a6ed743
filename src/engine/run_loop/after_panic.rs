//! The end of a run whose loop cannot continue.

use super::{RunLoop, UNREAD_LIMIT, Wake};
use crate::io::output::{Order, Written, write_here};
use crate::protocol::failure::Failure;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl RunLoop<'_, '_> {
    /// Ends the run after an internal fault, or after the writer thread failed to start. The loop itself may be at
    /// fault, so this writes the last frames without it.
    pub(super) fn give_up(&mut self) {
        let failure = if self.engine.output.has_thread { Failure::of_our_own() } else { Failure::no_thread() };
        let _ = catch_unwind(AssertUnwindSafe(|| self.conductor.crash(failure)));
        if self.conductor.run().is_between() {
            // The workflow closes its run.
            return;
        }
        self.conductor.finish();
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
