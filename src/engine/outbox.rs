//! The queue of chunks that wait for the writer.

use crate::io::output::Chunk;
use std::collections::VecDeque;

/// Queued frames, and their bytes, at which the engine stops reading the agent.
const FULL: (usize, usize) = (32, 1 << 20);
/// Queued frames, and their bytes, at which a message that would only cause a warning is counted instead.
const OVERFULL: (usize, usize) = (256, 8 << 20);

/// Chunks in order.
#[derive(Default)]
pub struct Outbox {
    chunks: VecDeque<Chunk>,
    bytes: usize,
}

impl Outbox {
    /// Adds a chunk at the end.
    pub fn push(&mut self, chunk: Chunk) {
        self.bytes += chunk.size();
        self.chunks.push_back(chunk);
    }

    /// The first chunk; an empty one where there is none.
    pub fn pop(&mut self) -> Chunk {
        let chunk = self.chunks.pop_front().unwrap_or_default();
        self.bytes -= chunk.size();
        chunk
    }

    /// Throws all chunks away.
    pub fn clear(&mut self) {
        *self = Outbox::default();
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether so much waits that the agent is no longer read.
    pub fn is_full(&self) -> bool {
        self.chunks.len() >= FULL.0 || self.bytes >= FULL.1
    }

    /// Whether so much waits that a message which only a warning answers is counted instead.
    pub fn is_overfull(&self) -> bool {
        self.chunks.len() >= OVERFULL.0 || self.bytes >= OVERFULL.1
    }
}
