//! The budget for everything that is kept for an agent: its unfinished messages, tools and questions.

use super::active_run::ActiveRun;
use super::open_questions::{Asker, OpenQuestions};
use crate::agent::AskKey;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::limits::KEPT_BYTES;
use crate::protocol::outbound::Outcome;
use std::collections::HashMap;

/// The size of the requests that wait for answers. The driver and the run keep at most the line that contained a
/// request.
#[derive(Debug, Default)]
pub(super) struct RequestBytes {
    /// The size of the agent's current line in bytes, or 0 once it is counted for a request.
    pub(super) line: usize,
    sizes: HashMap<AskKey, usize>,
    pub(super) bytes: usize,
}

impl RequestBytes {
    /// Counts the current line for a request in it.
    pub(super) fn add(&mut self, key: &AskKey) {
        let bytes = std::mem::take(&mut self.line);
        self.bytes += bytes;
        *self.sizes.entry(key.clone()).or_default() += bytes;
    }
}

impl OpenQuestions {
    /// Forgets the size of the requests that are answered or withdrawn.
    fn forget_answered_requests(&mut self) {
        let mut sizes = std::mem::take(&mut self.requests.sizes);
        sizes.retain(|key, _| self.waits(&Asker::Agent(key.clone())));
        self.requests.bytes = sizes.values().sum();
        self.requests.sizes = sizes;
    }
}

impl ActiveRun {
    fn held_bytes(&self) -> usize {
        self.messages.held_bytes() + self.tools.held_bytes() + self.questions.requests.bytes
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
        self.questions.forget_answered_requests();
        if self.held_bytes() > KEPT_BYTES || by_driver > KEPT_BYTES {
            let message = "The agent has more than 32 MiB of unfinished messages, tools and questions: split the task.";
            self.stop(Outcome::Failed(Failure::new(Code::ResourceExhausted, message)), None);
        }
    }
}
