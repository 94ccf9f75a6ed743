//! Who sees the frames: the orchestrator as JSON Lines, or a person at a terminal.

use super::writer::Chunk;
use crate::protocol::frame::{Frame, stderr_line};
use crate::protocol::inbound::Inbound;
use std::time::Instant;

/// A reader of frames, and a source of what a person types.
pub trait Front {
    /// What a frame looks like. `max_bytes` is the frame limit.
    fn show(&mut self, frame: &mut Frame, max_bytes: usize) -> Chunk;

    /// What a line from the terminal means, that was read at this time.
    fn typed(&mut self, line: String, read: Instant) -> Vec<Inbound>;
}

/// JSON Lines on stdout, and one line on stderr for a failed run.
#[derive(Debug, Default)]
pub struct JsonFront;

impl Front for JsonFront {
    fn show(&mut self, frame: &mut Frame, max_bytes: usize) -> Chunk {
        let out = frame.to_line(max_bytes);
        let err = stderr_line(&frame.body).map(|line| format!("{line}\n").into_bytes()).unwrap_or_default();
        Chunk { out, err, ..Chunk::default() }
    }

    fn typed(&mut self, _line: String, _read: Instant) -> Vec<Inbound> {
        Vec::new()
    }
}
