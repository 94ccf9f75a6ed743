//! The readers of the agent's stdout and stderr. The reader of stdout waits while the loop handles what was read.

use super::agent_lines::AgentLines;
use crate::io::failpoint::point;
use crate::io::lines::LineReader;
use crate::protocol::limits::STDERR_TAIL_BYTES;
use crossbeam_channel::{Receiver, Sender};
use std::io::PipeReader;

#[derive(Debug)]
pub(crate) enum AgentOutput {
    /// The agent's stdout, of which a line can be taken.
    Lines(AgentLines),
    End,
    /// Text of stderr, sent only if stderr is mirrored: a line with its LF, or a part of a long line.
    Stderr(String),
    /// The end of stderr, with the last part of its text.
    StderrEnd(String),
}

/// Reads stdout up to the sentinel. `returned`: the lines once the loop has taken those that were read.
pub(super) fn read_stdout(mut lines: AgentLines, data: &Sender<AgentOutput>, returned: &Receiver<AgentLines>) {
    // However this thread ends, the engine learns that no more output follows.
    let _end = SendEnd(data);
    while lines.wait() {
        point("agent-stdout line");
        if data.send(AgentOutput::Lines(lines)).is_err() {
            return;
        }
        // Back-pressure: nothing is read while the loop has the lines.
        let Ok(handled) = returned.recv() else { return };
        lines = handled;
    }
}

struct SendEnd<'a>(&'a Sender<AgentOutput>);

impl Drop for SendEnd<'_> {
    fn drop(&mut self) {
        let _ = self.0.send(AgentOutput::End);
    }
}

/// In bytes: more than is ever shown, so that secrets are redacted before the text is cut.
const TAIL_BYTES: usize = 8 * STDERR_TAIL_BYTES;

/// Reads stderr as fast as it arrives and keeps its last part. A line of any length is passed on, in parts.
pub(super) fn read_stderr(pipe: PipeReader, end: &str, mirror: bool, data: &Sender<AgentOutput>) {
    let mut source = LineReader::new(pipe, TAIL_BYTES);
    let (mut line, mut tail) = (PartialLine::default(), String::new());
    loop {
        let read = source.next_part();
        let at_end = read.is_none();
        let (part, ended) = read.unwrap_or((b"", true));
        line.bytes.extend_from_slice(part);
        if ended && line.bytes == end.as_bytes() {
            break;
        }
        if let Some(text) = line.take_ready(ended) {
            tail.push_str(&text);
            if tail.len() > 2 * TAIL_BYTES {
                tail.drain(..tail.ceil_char_boundary(tail.len() - TAIL_BYTES));
            }
            if mirror && data.send(AgentOutput::Stderr(text)).is_err() {
                return;
            }
        }
        if at_end {
            break;
        }
    }
    let _ = data.send(AgentOutput::StderrEnd(tail));
}

#[derive(Default)]
struct PartialLine {
    /// The bytes that were not passed on yet.
    bytes: Vec<u8>,
    begun: bool,
}

impl PartialLine {
    /// The line with its LF, or a part once that is long. `None`: more must be read first, or the line is blank.
    fn take_ready(&mut self, ended: bool) -> Option<String> {
        let is_blank = self.bytes.is_empty() && !self.begun;
        if (ended && is_blank) || (!ended && self.bytes.len() < TAIL_BYTES) {
            return None;
        }
        let rest = self.bytes.split_off(self.bytes.len() - if ended { 0 } else { unfinished_char(&self.bytes) });
        if ended {
            self.bytes.push(b'\n');
        }
        let bytes = std::mem::replace(&mut self.bytes, rest);
        self.begun = !ended;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The length of the character at the end of `bytes` that needs further bytes. 0: there is none.
fn unfinished_char(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let needs_more = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if needs_more { last.len() } else { 0 }
}
