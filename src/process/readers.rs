//! The readers of the agent's stdout and stderr. Lines of stdout pass to the loop in batches, and their reader waits
//! while too many are not handled.

use super::batch::{BATCH_LINES, Gathered, Lines};
use super::own_executable;
use crate::io::failpoint::point;
use crate::io::lines::{Framed, LineReader};
use crate::protocol::limits::STDERR_TAIL_BYTES;
use crossbeam_channel::{Receiver, Sender};
use std::borrow::Cow;
use std::io::PipeReader;

/// The maximum number of lines that are read but not yet handled. With an empty line that precedes a batch, a notice of
/// a line that is too long and two texts of stderr, at most 32 events of the agent wait for the loop.
const LINES_WAITING: usize = 2 * BATCH_LINES;
/// The maximum size of these lines, in bytes. A single line may exceed it.
const BYTES_WAITING: usize = 256 << 10;

/// A piece of the agent's output.
#[derive(Debug)]
pub(crate) enum AgentOutput {
    /// Lines of the agent's stdout.
    Lines(Lines),
    /// A line of stdout longer than [`own_executable::agent_line_bytes`]; the reader skipped it.
    TooLong,
    /// The end of stdout.
    End,
    /// Text of stderr, sent only if stderr is mirrored: a line with its LF, or a part of a long line.
    Stderr(String),
    /// The end of stderr, with the last part of its text.
    StderrEnd(String),
}

/// Reads stdout up to the sentinel `end`. `returned`: the batches that the loop has handled.
pub(super) fn read_stdout(pipe: PipeReader, end: &[u8], data: &Sender<AgentOutput>, returned: &Receiver<Lines>) {
    // However this thread ends, the engine learns that no more output follows.
    let _end = SendEnd(data);
    let mut source =
        StdoutReader { lines: LineReader::new(pipe, own_executable::agent_line_bytes()), end, empty: false };
    let (mut lines, mut bytes) = (0, 0);
    let mut spare = Gathered::default();
    loop {
        // Back-pressure: the next line is not even read before there is room for it.
        while lines + BATCH_LINES > LINES_WAITING || bytes >= BYTES_WAITING || !returned.is_empty() {
            let Ok(handled) = returned.recv() else { return };
            lines -= handled.count();
            bytes -= handled.size();
            spare = handled.reuse();
        }
        let mut gathered = std::mem::take(&mut spare);
        let stopped = source.gather(&mut gathered);
        point("agent-stdout line");
        let batch = gathered.into_lines();
        lines += batch.count();
        bytes += batch.size();
        if !batch.is_empty() && data.send(AgentOutput::Lines(batch)).is_err() {
            return;
        }
        match stopped {
            Stopped::NoLine => {}
            Stopped::TooLong if data.send(AgentOutput::TooLong).is_ok() => {}
            Stopped::TooLong | Stopped::End => return,
        }
    }
}

/// The agent's stdout up to the sentinel.
struct StdoutReader<'a> {
    lines: LineReader<PipeReader>,
    end: &'a [u8],
    /// Whether the last line was empty. The sentinel begins with an LF, so an empty line counts only if another line
    /// follows it.
    empty: bool,
}

/// The reason why a batch accepts no further line.
enum Stopped {
    /// The batch is full, or the next line needs another read.
    NoLine,
    /// The next line was too long.
    TooLong,
    /// The output has ended.
    End,
}

impl StdoutReader<'_> {
    /// Waits for a line, then adds the lines that were read with it.
    fn gather(&mut self, batch: &mut Gathered) -> Stopped {
        while batch.is_empty() || (!batch.is_full() && self.lines.has_line()) {
            let line = match self.lines.next() {
                None => return Stopped::End,
                Some(Framed::Line(line)) if *line == *self.end => return Stopped::End,
                Some(Framed::Line(line)) if line.is_empty() && !std::mem::replace(&mut self.empty, true) => continue,
                Some(Framed::Line(line)) => line,
                Some(Framed::Rest(line)) => line.into(),
                Some(Framed::TooLong) => {
                    if std::mem::take(&mut self.empty) {
                        batch.push(Cow::default());
                    }
                    return Stopped::TooLong;
                }
            };
            if !line.is_empty() && std::mem::take(&mut self.empty) {
                batch.push(Cow::default());
            }
            batch.push(line);
        }
        Stopped::NoLine
    }
}

struct SendEnd<'a>(&'a Sender<AgentOutput>);

impl Drop for SendEnd<'_> {
    fn drop(&mut self) {
        let _ = self.0.send(AgentOutput::End);
    }
}

/// The minimum size of kept stderr, in bytes: more than is ever shown, so that secrets are redacted before the text is
/// cut.
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

/// A line of stderr while it is read.
#[derive(Default)]
struct PartialLine {
    /// The bytes that were not passed on yet.
    bytes: Vec<u8>,
    /// Whether a part of the line was passed on.
    begun: bool,
}

impl PartialLine {
    /// The text to pass on: the line with its LF, or a part of it once that is long. `None`: more must be read first, or
    /// the line is blank. `ended`: the line has ended.
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

#[cfg(test)]
mod tests {
    use super::{AgentOutput, BATCH_LINES, BYTES_WAITING, LINES_WAITING, read_stdout};
    use crossbeam_channel::unbounded;
    use std::io::{Write, pipe};
    use std::thread;

    /// The events that pass while the loop handles none: the number and size of lines, and the number of other events.
    fn passed(output: Vec<u8>) -> (usize, usize, usize) {
        let (reader, mut writer) = pipe().unwrap();
        // Nobody reads the rest, so this write fails once the reader is gone.
        let agent = thread::spawn(move || drop(writer.write_all(&output)));
        let (data, passed) = unbounded();
        // Where the reader would wait for a handled batch, it ends.
        let (_, returned) = unbounded();
        read_stdout(reader, b"end", &data, &returned);
        agent.join().unwrap();
        let (mut lines, mut bytes, mut others) = (0, 0, 0);
        for event in passed.try_iter() {
            match event {
                AgentOutput::Lines(batch) => (lines, bytes) = (lines + batch.count(), bytes + batch.size()),
                AgentOutput::TooLong | AgentOutput::Stderr(_) | AgentOutput::StderrEnd(_) => others += 1,
                AgentOutput::End => {}
            }
        }
        (lines, bytes, others)
    }

    #[test]
    fn at_most_32_events_wait_for_the_loop_whatever_their_size() {
        for size in [1, 10, 100, 1000, 10_000, 30_000, 60_000] {
            let line = [vec![b'x'; size], vec![b'\n']].concat();
            let (lines, bytes, _) = passed(line.repeat(1000));
            assert!(lines > LINES_WAITING - BATCH_LINES || bytes >= BYTES_WAITING, "{size}: only {lines} lines");
            assert!(lines <= 32 - 3, "{size}: {lines} lines");
            assert!(bytes < BYTES_WAITING + 128 * 1024, "{size}: {bytes} bytes");
        }
        // An empty line is held back until the next line shows that it is not the beginning of the sentinel.
        let (lines, ..) = passed([b"a\n".as_slice(), &b"\nx\n".repeat(1000)].concat());
        assert!(lines <= 32 - 3, "{lines} lines");
    }

    #[test]
    fn batches_are_small_enough_that_two_fit() {
        assert_eq!(LINES_WAITING, 2 * BATCH_LINES);
        let (lines, _, others) = passed(b"x\n".repeat(LINES_WAITING));
        assert_eq!((lines, others), (LINES_WAITING, 0));
    }
}
