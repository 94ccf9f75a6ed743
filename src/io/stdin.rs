//! stdin: one thread, as long as the process lives, that pushes raw lines. It knows no message.

use super::lines::{Framed, LineReader};
use super::spawn_thread;
use super::tty::Keyboard;
use crate::protocol::limits::INBOUND_LINE_BYTES;
use crossbeam_channel::{Receiver, Sender, bounded, never};
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

/// Lines that wait to be heard, at most.
const LINES_WAITING: usize = 64;

/// Where input comes from.
#[derive(Debug)]
pub enum Source {
    /// Lines on stdin.
    Stdin,
    /// A person who types at a terminal.
    Terminal(Keyboard),
    /// Nowhere: stdin is not read.
    Nothing,
}

/// One piece of input as it was read, not interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawLine {
    /// A line, without its LF.
    Whole(Vec<u8>),
    /// The bytes after the last LF.
    Unended(Vec<u8>),
    /// A line longer than [`INBOUND_LINE_BYTES`]; the reader skipped it.
    TooLong,
    /// Ctrl-D at a terminal. More may follow.
    CtrlD,
}

/// What the thread that reads stdin pushes.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A line, and when it was read.
    Line(RawLine, Instant),
    /// Nothing more will come.
    Closed,
}

/// The process's input. Lines that no run has taken yet wait here for the next one.
#[derive(Debug)]
pub(crate) struct Inbox {
    state: State,
    /// Whether the end was heard. It holds for every later run too.
    pub(crate) closed: bool,
}

#[derive(Debug)]
enum State {
    /// The thread starts when a run is ready to listen: before that somebody may read a prompt from stdin.
    Unread(Source),
    Open(Receiver<Heard>),
}

impl Inbox {
    pub(crate) fn new(source: Source) -> Inbox {
        Inbox { closed: matches!(source, Source::Nothing), state: State::Unread(source) }
    }

    /// Starts the reading thread, unless it runs. The thread is never joined: nothing can wake it from a read.
    ///
    /// # Errors
    /// The system's, where no thread can be started.
    pub(crate) fn open(&mut self) -> io::Result<()> {
        let State::Unread(source) = &mut self.state else { return Ok(()) };
        let (heard_in, heard) = bounded(LINES_WAITING);
        match std::mem::replace(source, Source::Nothing) {
            Source::Nothing => {}
            Source::Stdin => spawn_thread("stdin", move || read_stdin(&heard_in))?,
            Source::Terminal(keyboard) => spawn_thread("stdin", move || read_terminal(keyboard, &heard_in))?,
        }
        self.state = State::Open(heard);
        Ok(())
    }

    /// Ready when there is input. Never, before [`Inbox::open`] and after the end.
    pub(crate) fn heard(&self) -> Receiver<Heard> {
        match &self.state {
            State::Open(heard) if !self.closed => heard.clone(),
            State::Open(_) | State::Unread(_) => never(),
        }
    }
}

fn read_stdin(heard: &Sender<Heard>) {
    let stdin = Typing { stdin: io::stdin(), terminal: io::stdin().is_terminal(), ended: false };
    let mut lines = LineReader::new(stdin, INBOUND_LINE_BYTES);
    while let Some(framed) = lines.next() {
        if heard.send(Heard::Line(raw(framed), Instant::now())).is_err() {
            return;
        }
    }
    let _ = heard.send(Heard::Closed);
}

fn raw(framed: Framed) -> RawLine {
    match framed {
        Framed::Line(line) => RawLine::Whole(line),
        Framed::Rest(rest) => RawLine::Unended(rest),
        Framed::TooLong => RawLine::TooLong,
    }
}

/// stdin. On a terminal without line mode Ctrl-D is a byte like any other, and still means the end.
struct Typing {
    stdin: io::Stdin,
    terminal: bool,
    ended: bool,
}

impl Read for Typing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const CTRL_D: u8 = 4;
        if self.ended {
            return Ok(0);
        }
        let count = self.stdin.read(buffer)?;
        let end = buffer[..count].iter().position(|byte| *byte == CTRL_D).filter(|_| self.terminal);
        self.ended = end.is_some();
        Ok(end.unwrap_or(count))
    }
}

impl AsFd for Typing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stdin.as_fd()
    }
}

fn read_terminal(keyboard: Keyboard, heard: &Sender<Heard>) {
    let mut lines = LineReader::new(Watched { keyboard, failed: false }, INBOUND_LINE_BYTES);
    loop {
        let line = match lines.next() {
            Some(framed) => raw(framed),
            None if lines.source().failed || lines.source().keyboard.is_gone() => break,
            None => RawLine::CtrlD,
        };
        if heard.send(Heard::Line(line, Instant::now())).is_err() {
            return;
        }
    }
    let _ = heard.send(Heard::Closed);
}

/// A keyboard that tells an error from Ctrl-D: after an error nothing more can be read.
struct Watched {
    keyboard: Keyboard,
    failed: bool,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.keyboard.read(buffer);
        let passing = |error: &io::Error| matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock);
        self.failed |= read.as_ref().is_err_and(|error| !passing(error));
        read
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.keyboard.as_fd()
    }
}
