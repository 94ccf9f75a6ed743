//! The queue of bytes that wait for the writer.

use super::output::Chunk;
use crate::protocol::outbound::Body;
use std::collections::VecDeque;

/// The number and size of queued frames at which the engine stops reading the agent.
const FULL: (usize, usize) = (128, 256 << 10);
/// The number and size of queued frames at which a message whose only reply is a warning is counted instead.
const OVERFULL: (usize, usize) = (256, 8 << 20);
/// The initial capacity of a chunk: enough for the small frames of lines taken in a row.
const CHUNK_BYTES: usize = 8 << 10;
/// The capacity of a written chunk that is kept for the next one: enough for as many small frames as are queued.
const SPARE_BYTES: usize = 64 << 10;

/// Waiting frames share a chunk, and therefore a write, as long as stdout and stderr stay in order.
#[derive(Default)]
pub struct Outbox {
    waiting: VecDeque<Waiting>,
    frames: usize,
    bytes: usize,
    closed: bool,
    /// Whether nobody can see in which order stdout and stderr are written.
    apart: bool,
    /// Whether frames other than the terminal one are dropped.
    terminal_only: bool,
    spare: Vec<u8>,
}

struct Waiting {
    chunk: Chunk,
    frames: usize,
    /// The number of frames added by [`Outbox::line`].
    lines: u64,
}

impl Outbox {
    pub(crate) fn set_apart(&mut self, apart: bool) {
        self.apart = apart;
    }

    pub fn line(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.closed {
            return;
        }
        if self.waiting.back().is_none_or(|last| !last.chunk.err.is_empty()) {
            let mut out = std::mem::take(&mut self.spare);
            out.reserve(CHUNK_BYTES);
            let chunk = Chunk { out, ..Chunk::default() };
            self.waiting.push_back(Waiting { chunk, frames: 0, lines: 0 });
        }
        if let Some(last) = self.waiting.back_mut() {
            let before = last.chunk.out.len();
            write(&mut last.chunk.out);
            last.frames += 1;
            last.lines += 1;
            self.frames += 1;
            self.bytes += last.chunk.out.len() - before;
        }
    }

    pub fn push(&mut self, chunk: Chunk) {
        if self.closed || chunk.size() == 0 {
            return;
        }
        self.frames += 1;
        self.bytes += chunk.size();
        match self.waiting.back_mut() {
            Some(last)
                if self.apart || chunk.before.is_empty() && (chunk.out.is_empty() || last.chunk.err.is_empty()) =>
            {
                last.chunk.out.extend_from_slice(&chunk.out);
                last.chunk.err.extend_from_slice(&chunk.before);
                last.chunk.err.extend_from_slice(&chunk.err);
                last.frames += 1;
            }
            _ => self.waiting.push_back(Waiting { chunk, frames: 1, lines: 0 }),
        }
    }

    /// Empty if nothing waits.
    pub fn pop(&mut self) -> Chunk {
        let Some(Waiting { chunk, frames, .. }) = self.waiting.pop_front() else { return Chunk::default() };
        self.bytes -= chunk.size();
        self.frames -= frames;
        chunk
    }

    pub(crate) fn reuse(&mut self, mut memory: Vec<u8>) {
        memory.clear();
        memory.shrink_to(SPARE_BYTES);
        self.spare = memory;
    }

    /// Drops later frames too, except the terminal one. Returns the number of dropped lines for stdout.
    pub fn drop_progress(&mut self) -> u64 {
        let lines = self.waiting.iter().map(|waiting| waiting.lines).sum();
        *self = Outbox { terminal_only: true, apart: self.apart, ..Outbox::default() };
        lines
    }

    pub fn drops(&self, body: &Body) -> bool {
        self.terminal_only && !body.is_terminal()
    }

    /// Drops all chunks, now and later, except `last`.
    pub fn close(&mut self, last: Chunk) {
        *self = Outbox::default();
        self.push(last);
        self.closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_full(&self) -> bool {
        self.frames >= FULL.0 || self.bytes >= FULL.1
    }

    pub fn is_overfull(&self) -> bool {
        self.frames >= OVERFULL.0 || self.bytes >= OVERFULL.1
    }
}

#[cfg(test)]
mod tests {
    use super::{Chunk, FULL, OVERFULL, Outbox};

    #[test]
    fn stdout_and_stderr_keep_their_order_unless_they_are_apart() {
        let said = || Chunk { out: b"o".to_vec(), ..Chunk::default() };
        let told = || Chunk { before: b"b".to_vec(), err: b"e".to_vec(), ..Chunk::default() };
        for (apart, chunks) in [(false, vec![("o", ""), ("", "e"), ("o", "")]), (true, vec![("oo", "be")])] {
            let mut outbox = Outbox::default();
            outbox.set_apart(apart);
            [said(), told(), said()].into_iter().for_each(|chunk| outbox.push(chunk));
            for (out, err) in chunks {
                let chunk = outbox.pop();
                assert_eq!((chunk.out.as_slice(), chunk.err.as_slice()), (out.as_bytes(), err.as_bytes()));
            }
            assert!(outbox.is_empty());
        }
    }

    #[test]
    fn either_limit_alone_makes_the_queue_full_and_overfull() {
        for (is_over, (frames, bytes)) in
            [(Outbox::is_full as fn(&Outbox) -> bool, FULL), (Outbox::is_overfull, OVERFULL)]
        {
            for (frames, size) in [(frames, 1), (1, bytes)] {
                let mut outbox = Outbox::default();
                for _ in 0..frames {
                    assert!(!is_over(&outbox), "{frames} frames of {size} bytes");
                    outbox.line(|out| out.resize(out.len() + size, b'x'));
                }
                assert!(is_over(&outbox), "{frames} frames of {size} bytes");
            }
        }
    }
}
