//! What waits for the writer.

use super::writer::Chunk;
use std::collections::VecDeque;

/// Frames, and bytes of them, that may wait before the agent is no longer read.
const FULL: (usize, usize) = (32, 1 << 20);
/// Frames, and bytes of them, that may wait before messages that only a warning answers are counted instead.
const OVERFULL: (usize, usize) = (256, 8 << 20);

/// Chunks in order.
#[derive(Default)]
pub(crate) struct Outbox {
    chunks: VecDeque<Chunk>,
    bytes: usize,
}

impl Outbox {
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.bytes += chunk.size();
        self.chunks.push_back(chunk);
    }

    /// The next one. Only to be called when there is one; else it is empty.
    pub(crate) fn pop(&mut self) -> Chunk {
        let chunk = self.chunks.pop_front().unwrap_or_default();
        self.bytes -= chunk.size();
        chunk
    }

    pub(crate) fn clear(&mut self) {
        *self = Outbox::default();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.chunks.len() >= FULL.0 || self.bytes >= FULL.1
    }

    pub(crate) fn is_overfull(&self) -> bool {
        self.chunks.len() >= OVERFULL.0 || self.bytes >= OVERFULL.1
    }
}
