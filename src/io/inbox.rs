//! stdin: one thread, which runs as long as the process, pushes raw lines into a channel. The thread does not
//! interpret them.

use super::faults::point;
use super::keys::{Keys, KeysReady};
use super::lines::{Framed, LineReader};
use super::{spawn_thread, tty};
use crate::protocol::limits::INBOUND_LINE_BYTES;
use crossbeam_channel::{Receiver, Sender, bounded, never};
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// The maximum number of lines that wait to be taken.
const LINES_WAITING: usize = 64;
/// The maximum wait for the first line before the threads start. Signals wait this long too.
const FIRST_WAIT: Duration = Duration::from_millis(10);

/// The source of input.
#[derive(Debug)]
pub enum Source {
    /// Lines on stdin.
    Stdin,
    /// A person who types at a terminal.
    Terminal(Keys),
    /// Nowhere: stdin is not read.
    Nothing,
}

/// A piece of input as it was read, before anything interprets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawLine {
    /// A line that ended with LF, without the LF.
    Whole(Vec<u8>),
    /// The bytes after the last LF.
    Unended(Vec<u8>),
    /// A line longer than [`INBOUND_LINE_BYTES`]. Its end may not have come yet; the reader skips it.
    TooLong,
    /// Ctrl-D at a terminal. More input may follow.
    CtrlD,
}

/// A report of the thread that reads stdin.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A line, and the time at which it was read.
    Line(RawLine, Instant),
    /// Somebody pressed Enter at a terminal that is not being read.
    Pressed,
    /// The terminal that we want to read is ours again: a shell's `fg` gave it back.
    Foreground,
    /// Nothing more will come.
    Closed,
}

/// The process's input. Lines that no run has taken yet wait here for the next one.
#[derive(Debug)]
pub(crate) struct Inbox {
    state: State,
    /// Whether the input has ended, for every later run too.
    pub(crate) closed: bool,
}

#[derive(Debug)]
enum State {
    /// The reading thread starts only when a run is ready to listen: until then somebody may read a prompt from
    /// stdin.
    Unread(Source),
    /// The first part of stdin was read.
    Begun(Box<LineReader<Stdin>>),
    Open(Receiver<Arrival>),
}

impl Inbox {
    pub(crate) fn new(source: Source) -> Inbox {
        Inbox { closed: matches!(source, Source::Nothing), state: State::Unread(source) }
    }

    /// The first line of stdin, if it is there within [`FIRST_WAIT`]. Reads it on this thread, and starts none: most
    /// orchestrators write run.start at once. `None` too if reading has begun, and for a terminal.
    pub(crate) fn first(&mut self) -> Option<Arrival> {
        if !matches!(self.state, State::Unread(Source::Stdin)) || io::stdin().is_terminal() {
            return None;
        }
        let mut lines = Box::new(LineReader::small(Stdin::piped(), INBOUND_LINE_BYTES));
        lines.fill_within(FIRST_WAIT);
        let first = if lines.has_line() { lines.next().map(arrived) } else { None };
        self.state = State::Begun(lines);
        first
    }

    /// Starts the reading thread, unless it already runs. The thread is never joined: nothing can wake it from a read.
    /// Error: the system's, if no thread can be started.
    pub(crate) fn open(&mut self) -> io::Result<()> {
        if matches!(self.state, State::Open(_)) {
            return Ok(());
        }
        let (heard_in, heard) = bounded(LINES_WAITING);
        match std::mem::replace(&mut self.state, State::Open(heard)) {
            State::Unread(Source::Nothing) | State::Open(_) => Ok(()),
            State::Unread(Source::Stdin) => spawn_thread("stdin", move || {
                let terminal = tty::stdin().map(|terminal| Watched::new(Keys::always(terminal), heard_in.clone()));
                let stdin = Stdin { terminal, ..Stdin::piped() };
                read_stdin(LineReader::small(stdin, INBOUND_LINE_BYTES), &heard_in);
            }),
            State::Begun(lines) => spawn_thread("stdin", move || read_stdin(*lines, &heard_in)),
            State::Unread(Source::Terminal(keys)) => spawn_thread("stdin", move || read_terminal(keys, &heard_in)),
        }
    }

    /// The channel of input. It is never ready before [`Inbox::open`] nor after the end of input.
    pub(crate) fn heard(&self) -> Receiver<Arrival> {
        match &self.state {
            State::Open(heard) if !self.closed => heard.clone(),
            State::Open(_) | State::Begun(_) | State::Unread(_) => never(),
        }
    }
}

fn read_stdin(mut lines: LineReader<Stdin>, heard: &Sender<Arrival>) {
    while let Some(framed) = lines.next() {
        if heard.send(arrived(framed)).is_err() {
            return;
        }
    }
    let _ = heard.send(Arrival::Closed);
}

fn arrived(framed: Framed<'_>) -> Arrival {
    point("stdin line");
    Arrival::Line(raw(framed), Instant::now())
}

fn raw(framed: Framed<'_>) -> RawLine {
    match framed {
        Framed::Line(line) => RawLine::Whole(line.into_owned()),
        Framed::Rest(rest) => RawLine::Unended(rest),
        Framed::TooLong => RawLine::TooLong,
    }
}

/// stdin as a byte stream. On a terminal without line mode Ctrl-D arrives as a byte like any other; here it still
/// ends the input.
#[derive(Debug)]
struct Stdin {
    terminal: Option<Watched>,
    stdin: io::Stdin,
    ended: bool,
}

impl Stdin {
    /// stdin that is not a terminal.
    fn piped() -> Stdin {
        Stdin { terminal: None, stdin: io::stdin(), ended: false }
    }
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const CTRL_D: u8 = 4;
        let Some(terminal) = &mut self.terminal else { return self.stdin.read(buffer) };
        if self.ended {
            return Ok(0);
        }
        let count = terminal.read(buffer)?;
        let end = buffer[..count].iter().position(|byte| *byte == CTRL_D);
        self.ended = end.is_some();
        Ok(end.unwrap_or(count))
    }
}

impl AsFd for Stdin {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.terminal.as_ref().map_or_else(|| self.stdin.as_fd(), AsFd::as_fd)
    }
}

fn read_terminal(keys: Keys, heard: &Sender<Arrival>) {
    let mut lines = LineReader::small(Watched::new(keys, heard.clone()), INBOUND_LINE_BYTES);
    loop {
        let line = match lines.next().map(raw) {
            Some(line) => line,
            None if lines.source().failed || lines.source().keys.is_gone() => break,
            None => RawLine::CtrlD,
        };
        if heard.send(Arrival::Line(line, lines.source().read_at)).is_err() {
            return;
        }
    }
    let _ = heard.send(Arrival::Closed);
}

/// Reads keys only while that is allowed, and reports what happens at the terminal meanwhile. Distinguishes an error
/// from Ctrl-D: after an error nothing more can be read.
#[derive(Debug)]
struct Watched {
    keys: Keys,
    heard: Sender<Arrival>,
    /// The time just before the last read: whatever that read returned was typed before anything newer.
    read_at: Instant,
    failed: bool,
}

impl Watched {
    fn new(keys: Keys, heard: Sender<Arrival>) -> Watched {
        Watched { keys, heard, read_at: Instant::now(), failed: false }
    }

    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let passing = |error: &io::Error| matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock);
        loop {
            let news = match self.keys.wait()? {
                KeysReady::Pressed => Arrival::Pressed,
                KeysReady::Foreground => Arrival::Foreground,
                KeysReady::Input => {
                    self.read_at = Instant::now();
                    match self.keys.read(buffer) {
                        Err(error) if passing(&error) => continue,
                        read => return read,
                    }
                }
            };
            self.heard.send(news).map_err(|_| ErrorKind::BrokenPipe)?;
        }
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.take(buffer);
        self.failed |= read.is_err();
        read
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.keys.as_fd()
    }
}
