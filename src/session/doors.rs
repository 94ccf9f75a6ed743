//! Who sees the frames: the orchestrator as JSON Lines, or a person at a terminal.

use super::writer::Chunk;
use crate::protocol::frame::{Frame, stderr_line};
use crate::protocol::inbound::Inbound;
use std::time::Instant;

/// What a person does at a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// A line, without its LF.
    Line(String),
    /// Ctrl-D.
    End,
}

/// A reader of frames, and a source of what a person types. What only a terminal needs has a default that does
/// nothing.
pub trait Front {
    /// What a frame looks like. `max_bytes` is the frame limit.
    fn show(&mut self, frame: &mut Frame, max_bytes: usize) -> Chunk;

    /// A whole line for stderr that is no frame, without its LF.
    fn note(&mut self, line: &str) -> Chunk {
        Chunk { err: format!("{line}\n").into_bytes(), ..Chunk::default() }
    }

    /// What was typed and read at this time: what is shown of it, and what it means.
    fn typed(&mut self, _typed: Typed, _read: Instant) -> (Chunk, Vec<Inbound>) {
        (Chunk::default(), Vec::new())
    }

    /// Somebody pressed Enter while nothing was asked: where the cursor is now is not where it was.
    fn pressed(&mut self) -> Chunk {
        Chunk::default()
    }

    /// When it has something new to show although nothing happens.
    fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// What is new, once that time has come, or the terminal has another size.
    fn woken(&mut self) -> Chunk {
        Chunk::default()
    }

    /// Takes back what may not stay on a terminal, since this process stops now or nothing more can be shown: bytes for
    /// stderr.
    fn leave(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Shows it again: the process was stopped, by Ctrl-Z or otherwise, and goes on.
    fn back(&mut self) -> Chunk {
        Chunk::default()
    }

    /// A shell brought the process to the foreground, perhaps without a stop before: shows what waited for that.
    fn fetched(&mut self) -> Chunk {
        Chunk::default()
    }
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
}
