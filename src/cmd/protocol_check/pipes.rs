//! The pipes of the played program: frames out, lines in, and the log of both.

use super::log::{Fact, Log};
use crate::io::lines::{Framed, LineReader};
use crate::io::output::print_bytes;
use crate::io::spawn_thread;
use crate::protocol::frame::Stamper;
use crate::protocol::ids::RunId;
use crate::protocol::limits::INBOUND_LINE_BYTES;
use crate::protocol::outbound::Body;
use crate::protocol::redacted::Redacted;
use crate::redact::Redactor;
use crossbeam_channel::{Receiver, bounded, never};
use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;
use std::io::{stdin, stdout};
use std::time::{Duration, Instant, SystemTime};

/// The pause between two looks at the pipe.
const LOOK: Duration = Duration::from_millis(20);
/// The time after which the client counts as having read a frame, where the pipe does not tell.
const READ_BY_THEN: Duration = Duration::from_secs(1);

/// The client closed stdout.
#[derive(Debug)]
pub(super) struct Closed;

/// The input of the played program.
#[derive(Debug)]
pub(super) enum Heard {
    /// A line without its LF.
    Line(Vec<u8>),
    TooLong,
    /// The end of the input. It comes once.
    Ended {
        /// Whether the last line had no LF.
        cut: bool,
    },
    /// Nothing came in time.
    Silence,
}

pub(super) struct Pipes {
    log: Log,
    lines: Receiver<Heard>,
    stamper: Stamper,
    run_id: RunId,
    /// The greatest length of a frame, in bytes.
    pub(super) max_bytes: usize,
    /// Whether the input has ended.
    pub(super) ended: bool,
    /// The time of the frame whose reading matters. `None`: it was read, or there is none.
    unread: Option<Instant>,
}

impl Pipes {
    /// `reads`: whether to read stdin.
    pub(super) fn new(log: Log, run_id: RunId, reads: bool) -> Pipes {
        let lines = if reads { read_lines() } else { never() };
        Pipes { log, lines, stamper: Stamper::default(), run_id, max_bytes: 256 << 10, ended: !reads, unread: None }
    }

    pub(super) fn note(&mut self, fact: Fact) {
        self.log.note(fact);
    }

    pub(super) fn set_run(&mut self, run_id: RunId) {
        self.run_id = run_id;
    }

    /// The run's id.
    pub(super) fn run(&self) -> &RunId {
        &self.run_id
    }

    /// A frame with this body, as bytes.
    pub(super) fn frame(&mut self, reply_to: Option<&str>, body: Body) -> Vec<u8> {
        let mut body = Redacted::new(body, &Redactor::new());
        let mut bytes = Vec::new();
        if let Some(mut frame) = self.stamper.stamp(SystemTime::now(), &self.run_id, reply_to, &mut body) {
            frame.write(self.max_bytes, &mut bytes);
        }
        bytes
    }

    /// Writes bytes, and waits until the client takes them.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.note(Fact::Sending);
        if print_bytes(bytes) {
            self.note(Fact::Sent);
            return Ok(());
        }
        self.note(Fact::Undelivered);
        Err(Closed)
    }

    /// Has the log tell when the client has read all frames so far.
    pub(super) fn watch_reading(&mut self) {
        self.unread = Some(Instant::now());
    }

    /// Waits for input, without a limit if there is no `until`.
    pub(super) fn hear(&mut self, until: Option<Instant>) -> Heard {
        loop {
            if self.unread.is_some_and(is_read) {
                self.unread = None;
                self.note(Fact::AllRead);
            }
            let look = self.unread.map(|_| Instant::now() + LOOK);
            let first = [until, look].into_iter().flatten().min();
            let heard = match first {
                Some(first) => self.lines.recv_deadline(first).map_err(|error| error.is_timeout()),
                None => self.lines.recv().map_err(|_| false),
            };
            match heard {
                Ok(heard) => {
                    self.ended |= matches!(heard, Heard::Ended { .. });
                    return heard;
                }
                Err(true) if until.is_none_or(|until| Instant::now() < until) => {}
                Err(true) => return Heard::Silence,
                // Silence, because the end came before.
                Err(false) => self.lines = never(),
            }
        }
    }
}

/// Whether the client has read what was written until `since`.
fn is_read(since: Instant) -> bool {
    let is_pipe = fstat(stdout()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    match ioctl_fionread(stdout()) {
        Ok(count) if is_pipe => count == 0,
        Ok(_) | Err(_) => since.elapsed() >= READ_BY_THEN,
    }
}

fn read_lines() -> Receiver<Heard> {
    let (sender, lines) = bounded(64);
    let read = move || {
        let mut reader = LineReader::new(stdin(), INBOUND_LINE_BYTES);
        let mut cut = false;
        while let Some(framed) = reader.next() {
            let heard = match framed {
                Framed::Line(line) => Heard::Line(line.into_owned()),
                Framed::TooLong => Heard::TooLong,
                Framed::Rest(rest) => {
                    cut = !rest.is_empty();
                    continue;
                }
            };
            if sender.send(heard).is_err() {
                return;
            }
        }
        let _ = sender.send(Heard::Ended { cut });
    };
    // Without the thread, the input seems to have ended.
    let _ = spawn_thread("stdin", read);
    lines
}
