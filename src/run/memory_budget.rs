//! The budget for everything that is kept for an agent: its unfinished messages, tools and questions.

use super::active_run::ActiveRun;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::limits::KEPT_BYTES;
use crate::protocol::outbound::Outcome;

impl ActiveRun {
    fn held_bytes(&self) -> usize {
        self.work.messages.held_bytes() + self.work.tools.held_bytes() + self.questions.kept.bytes
    }

    /// The number of bytes that may still be kept.
    pub(super) fn room(&self) -> usize {
        KEPT_BYTES.saturating_sub(self.held_bytes())
    }

    /// Fails the run if more is kept than the budget allows.
    pub(super) fn check_kept(&mut self) {
        if self.held_bytes() > KEPT_BYTES || self.agent.driver.held_bytes() > KEPT_BYTES {
            let message = "The agent has more than 32 MiB of unfinished messages, tools and questions: split the task.";
            self.stop(Outcome::Failed(Failure::new(Code::ResourceExhausted, message)), None);
        }
    }
}
