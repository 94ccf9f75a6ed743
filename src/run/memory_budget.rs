//! The budget for everything that is kept for an agent: its unfinished messages, tools and questions.

use super::active_run::ActiveRun;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::limits::KEPT_BYTES;
use crate::protocol::outbound::Outcome;

impl ActiveRun {
    fn held_bytes(&self) -> usize {
        self.messages.held_bytes() + self.tools.held_bytes() + self.questions.kept.bytes
    }

    /// The number of bytes that may still be kept.
    pub(super) fn room(&self) -> usize {
        KEPT_BYTES.saturating_sub(self.held_bytes())
    }

    /// Fails the run if more is kept than the budget allows.
    pub(super) fn check_kept(&mut self) {
        let by_driver = self.agent.driver.held_bytes();
        if self.held_bytes() <= KEPT_BYTES && by_driver <= KEPT_BYTES {
            return;
        }
        self.questions.kept.forget(&self.questions.book);
        if self.held_bytes() > KEPT_BYTES || by_driver > KEPT_BYTES {
            let message = "The agent has more than 32 MiB of unfinished messages, tools and questions: split the task.";
            self.stop(Outcome::Failed(Failure::new(Code::ResourceExhausted, message)), None);
        }
    }
}
