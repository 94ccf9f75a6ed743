//! The size of the requests that wait for answers.

use super::open_questions::{Asker, OpenQuestions};
use crate::agent::AskKey;
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
    pub(super) fn forget_answered_requests(&mut self) {
        let mut sizes = std::mem::take(&mut self.requests.sizes);
        sizes.retain(|key, _| self.waits(&Asker::Agent(key.clone())));
        self.requests.bytes = sizes.values().sum();
        self.requests.sizes = sizes;
    }
}
