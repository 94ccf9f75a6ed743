//! The budget for everything that is kept for an agent: its unfinished messages, tools and questions.

use super::live::Live;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::limits::KEPT_BYTES;
use crate::protocol::outbound::Outcome;

impl Live {
    fn kept(&self) -> usize {
        self.work.messages.kept() + self.work.tools.kept() + self.questions.kept.bytes
    }

    /// The number of bytes that may still be kept.
    pub(super) fn room(&self) -> usize {
        KEPT_BYTES.saturating_sub(self.kept())
    }

    /// Fails the run if more is kept than the budget allows.
    pub(super) fn check_kept(&mut self) {
        let by_driver = self.agent.driver.kept();
        if self.kept() <= KEPT_BYTES && by_driver <= KEPT_BYTES {
            return;
        }
        self.questions.kept.forget(&self.questions.book);
        if self.kept() > KEPT_BYTES || by_driver > KEPT_BYTES {
            let message = "The agent has more than 32 MiB of unfinished messages, tools and questions: split the task.";
            self.stop(Outcome::Failed(Failure::new(Code::ResourceExhausted, message)), None);
        }
    }
}
