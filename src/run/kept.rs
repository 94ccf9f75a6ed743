//! The budget for everything that is kept for an agent: its unfinished messages, tools and questions.

use super::book::{Asker, Book};
use super::live::Live;
use crate::agent::AskKey;
use crate::failure::{Code, Failure};
use crate::protocol::limits::KEPT_BYTES;
use crate::protocol::outbound::Outcome;
use std::collections::HashMap;

/// The size of the requests that wait for answers. The driver and the run keep at most the line that contained a
/// request.
#[derive(Default)]
pub(super) struct Kept {
    /// The size of the agent's current line in bytes, or 0 once it is counted for a request.
    pub(super) line: usize,
    requests: HashMap<AskKey, usize>,
    bytes: usize,
}

impl Kept {
    /// Counts the current line for a request in it.
    pub(super) fn add(&mut self, key: &AskKey) {
        let bytes = std::mem::take(&mut self.line);
        self.bytes += bytes;
        *self.requests.entry(key.clone()).or_default() += bytes;
    }

    /// Forgets the requests that are answered or withdrawn.
    fn forget(&mut self, book: &Book) {
        self.requests.retain(|key, _| book.waits(&Asker::Agent(key.clone())));
        self.bytes = self.requests.values().sum();
    }
}

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
