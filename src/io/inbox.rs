//! stdin: one thread, which runs as long as the process, pushes messages or keys into a channel. It also parses the
//! messages, because a signal must not wait while a long one is read.

use super::failpoint::point;
use super::keys::{Keys, KeysReady};
use super::lines::{Framed, LineReader};
use super::{spawn_thread, tty};
use crate::protocol::inbound::{Flaw, Inbound, Message, parse};
use crate::protocol::limits::INBOUND_LINE_BYTES;
use crossbeam_channel::{Receiver, Sender, bounded, never};
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

const LINES_WAITING: usize = 64;
/// The maximum wait for the first line before the threads start. Signals wait this long too.
const FIRST_WAIT: Duration = Duration::from_millis(10);

const BURST_BYTES: usize = 16 << 10;
const BURST_WAIT: Duration = Duration::from_millis(10);
const CTRL_D: u8 = 4;
const ESCAPE: u8 = 27;

#[derive(Debug)]
pub enum Source {
    Stdin,
    Terminal(Keys),
    Nothing,
}

#[derive(Debug)]
pub(crate) enum Arrival {
    /// A line with a message, or with what was meant as one.
    Message(Box<Inbound>),
    /// The end of stdin inside a line, which does not count.
    Cut,
    /// Typed or pasted at a terminal in one burst, and the time at which they were read. More may follow.
    Keys(Vec<u8>, Instant),
    /// Somebody pressed Enter at a terminal that is not being read.
    Pressed,
    /// The terminal that we want to read is ours again: a shell's `fg` gave it back.
    Foreground,
    Closed,
}

/// Lines that no run has taken yet wait here for the next one.
#[derive(Debug)]
pub(crate) struct Inbox {
    state: State,
    /// Whether the input has ended, for every later run too.
    pub(crate) closed: bool,
}

#[derive(Debug)]
enum State {
    /// The thread starts only when a run is ready to listen: until then somebody may read a prompt from stdin.
    Unread(Source),
    Begun(Box<Messages>),
    Open(Receiver<Arrival>),
}

impl Inbox {
    pub(crate) fn new(source: Source) -> Inbox {
        Inbox { closed: matches!(source, Source::Nothing), state: State::Unread(source) }
    }

    /// The first line of stdin, if it is there within [`FIRST_WAIT`]. Reads it on this thread, because most
    /// orchestrators write run.start at once. `None` too if reading has begun, and for a terminal.
    pub(crate) fn first(&mut self) -> Option<Arrival> {
        if !matches!(self.state, State::Unread(Source::Stdin)) || io::stdin().is_terminal() {
            return None;
        }
        let mut messages = Box::new(Messages::of(Stdin::piped()));
        messages.lines.fill_within(FIRST_WAIT);
        let first = if messages.lines.has_line() { messages.next() } else { None };
        self.state = State::Begun(messages);
        first
    }

    /// The reading thread is never joined: nothing can wake it from a read. Error: no thread can be started.
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
                read_stdin(Messages::of(stdin), &heard_in);
            }),
            State::Begun(messages) => spawn_thread("stdin", move || read_stdin(*messages, &heard_in)),
            State::Unread(Source::Terminal(keys)) => spawn_thread("stdin", move || read_terminal(keys, &heard_in)),
        }
    }

    /// Never ready before [`Inbox::open`], nor after the end of input.
    pub(crate) fn heard(&self) -> Receiver<Arrival> {
        match &self.state {
            State::Open(heard) if !self.closed => heard.clone(),
            State::Open(_) | State::Begun(_) | State::Unread(_) => never(),
        }
    }
}

fn read_stdin(mut messages: Messages, heard: &Sender<Arrival>) {
    while let Some(message) = messages.next() {
        if heard.send(message).is_err() {
            return;
        }
    }
    let _ = heard.send(Arrival::Closed);
}

/// The byte order mark that some systems put before the first line.
const BOM: &[u8] = "\u{feff}".as_bytes();

#[derive(Debug)]
struct Messages {
    lines: LineReader<Stdin>,
    begun: bool,
}

impl Messages {
    fn of(stdin: Stdin) -> Messages {
        Messages { lines: LineReader::small(stdin, INBOUND_LINE_BYTES), begun: false }
    }

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let framed = self.lines.next()?;
            let is_first = !std::mem::replace(&mut self.begun, true);
            point("stdin message");
            let message = match framed {
                Framed::Line(line) => parse(line.strip_prefix(BOM).filter(|_| is_first).unwrap_or(&line)),
                Framed::TooLong(_) => Some(Inbound::bare(Message::Malformed(Flaw::Length))),
                Framed::Rest(_) => return Some(Arrival::Cut),
            };
            if let Some(message) = message {
                return Some(Arrival::Message(Box::new(message)));
            }
        }
    }
}

/// On a terminal without line mode, Ctrl-D arrives as a byte like any other. Here it still ends the input.
#[derive(Debug)]
struct Stdin {
    terminal: Option<Watched>,
    stdin: io::Stdin,
    ended: bool,
}

impl Stdin {
    fn piped() -> Stdin {
        Stdin { terminal: None, stdin: io::stdin(), ended: false }
    }
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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
    let mut keys = Watched::new(keys, heard.clone());
    while let Ok(burst) = keys.burst() {
        // In line mode, an end of input is Ctrl-D, unless the terminal hung up.
        let burst = match burst.is_empty() {
            true if keys.keys.is_gone() => break,
            true => vec![CTRL_D],
            false => burst,
        };
        if heard.send(Arrival::Keys(burst, keys.read_at)).is_err() {
            return;
        }
    }
    let _ = heard.send(Arrival::Closed);
}

/// Reads keys only while that is allowed, and reports what happens at the terminal meanwhile.
#[derive(Debug)]
struct Watched {
    keys: Keys,
    heard: Sender<Arrival>,
    /// The time just before the last read: whatever that read returned was typed before anything newer.
    read_at: Instant,
}

impl Watched {
    fn new(keys: Keys, heard: Sender<Arrival>) -> Watched {
        Watched { keys, heard, read_at: Instant::now() }
    }

    /// A paste comes in several reads, and the last byte of one may mean something else alone: Enter is a line break if
    /// more follows, and Escape is the beginning of another key. So more is awaited after those.
    fn burst(&mut self) -> io::Result<Vec<u8>> {
        let mut burst = vec![0; BURST_BYTES];
        let mut count = self.read(&mut burst)?;
        while matches!(burst[..count].last(), Some(&(b'\n' | b'\r' | ESCAPE))) && count < INBOUND_LINE_BYTES {
            burst.resize(count + BURST_BYTES, 0);
            let more = self.keys.soon(&mut burst[count..], BURST_WAIT);
            if more == 0 {
                break;
            }
            count += more;
        }
        burst.truncate(count);
        Ok(burst)
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.keys.as_fd()
    }
}
