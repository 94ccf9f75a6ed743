//! Where events come from: stdin, signals, and the far end of stdout.

use super::doors::Typed;
use super::keys::{Keys, Ready};
use super::lines::{Framed, Lines, wait};
use super::tty;
use super::writer::Written;
use crate::failure::Failure;
use crate::protocol::inbound::{Inbound, Message, parse};
use crate::protocol::limits::INBOUND_LINE_BYTES;
use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::event::PollFlags;
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

/// Where messages come from.
#[derive(Debug)]
pub enum Source {
    /// JSON Lines on stdin.
    JsonLines,
    /// A person who types lines.
    Terminal(Keys),
    /// Nothing: stdin is not read.
    Nothing,
}

/// Where run.start comes from.
pub enum First {
    /// From the source, like all other messages.
    OnSource,
    /// It is made in the thread that reads the source, before that reads anything: making it may take long, as with a
    /// prompt that comes by a pipe.
    Awaited(Awaited),
}

/// Makes a run.start.
pub type Awaited = Box<dyn FnOnce() -> Result<Inbound, Failure> + Send>;

/// What the thread that reads stdin says.
#[derive(Debug)]
pub enum Control {
    /// A message.
    Inbound(Inbound),
    /// The awaited run.start cannot be made.
    Refused(Failure),
    /// What a person typed, and when it was read: it was typed before that.
    Typed(Typed, Instant),
    /// Somebody pressed Enter at a terminal that is not read now.
    Pressed,
    /// The terminal that is to be read is ours again: a shell's `fg` gave it back.
    Foreground,
    /// Nothing more will come.
    Ended,
}

/// Starts the thread that reads stdin. It is never joined: nothing can wake it.
pub(crate) fn start(source: Source, awaited: Option<Awaited>, control: Sender<Control>) -> io::Result<()> {
    let work = move || {
        let first = awaited.map(|make| make().map_or_else(Control::Refused, Control::Inbound));
        if first.is_some_and(|first| control.send(first).is_err()) {
            return;
        }
        match source {
            Source::Nothing => _ = control.send(Control::Ended),
            Source::JsonLines => read_messages(&control),
            Source::Terminal(keys) => read_typed(keys, &control),
        }
    };
    thread::Builder::new().name("stdin".into()).spawn(work).map(|_| ())
}

fn read_messages(control: &Sender<Control>) {
    let terminal = tty::stdin().map(|terminal| Watched::new(Keys::always(terminal), control.clone()));
    let stdin = Stdin { terminal, stdin: io::stdin(), ended: false };
    let mut lines = Lines::new(stdin, INBOUND_LINE_BYTES);
    let mut first = true;
    while let Some(framed) = lines.next() {
        let inbound = match framed {
            Framed::Line(line) => {
                let line = line.strip_prefix("\u{feff}".as_bytes()).filter(|_| first).unwrap_or(&line);
                parse(line)
            }
            Framed::TooLong => Some(Inbound { id: None, run_id: None, message: Message::Malformed }),
            // A last line without LF was not delivered.
            Framed::Rest(_) => None,
        };
        first = false;
        if inbound.is_some_and(|inbound| control.send(Control::Inbound(inbound)).is_err()) {
            return;
        }
    }
    let _ = control.send(Control::Ended);
}

/// stdin. Where it is a terminal whose line mode is off, Ctrl-D is a byte like any other, and still means the end.
struct Stdin {
    terminal: Option<Watched>,
    stdin: io::Stdin,
    ended: bool,
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

fn read_typed(keys: Keys, control: &Sender<Control>) {
    let mut lines = Lines::new(Watched::new(keys, control.clone()), INBOUND_LINE_BYTES);
    loop {
        let typed = match lines.next() {
            Some(Framed::Line(line) | Framed::Rest(line)) => Typed::Line(String::from_utf8_lossy(&line).into_owned()),
            Some(Framed::TooLong) => continue,
            None if lines.source().failed || lines.source().keys.is_gone() => break,
            None => Typed::End,
        };
        if control.send(Control::Typed(typed, lines.source().read_at)).is_err() {
            return;
        }
    }
    let _ = control.send(Control::Ended);
}

/// Keys that are read when they may be, and that know an error from Ctrl-D: after the one there is nothing more to read.
struct Watched {
    keys: Keys,
    control: Sender<Control>,
    /// Before the last read: what it gave was typed before anything that is newer.
    read_at: Instant,
    failed: bool,
}

impl Watched {
    fn new(keys: Keys, control: Sender<Control>) -> Watched {
        Watched { keys, control, read_at: Instant::now(), failed: false }
    }

    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let news = match self.keys.wait()? {
                Ready::Pressed => Control::Pressed,
                Ready::Foreground => Control::Foreground,
                Ready::Input => {
                    self.read_at = Instant::now();
                    match self.keys.read(buffer) {
                        Err(error) if is_passing(&error) => continue,
                        read => return read,
                    }
                }
            };
            self.control.send(news).map_err(|_| ErrorKind::BrokenPipe)?;
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
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

/// The signals that ask for an end, each unless it was ignored when the process started; Ctrl-Z, and what goes on after
/// it; another size of the terminal; and the end of a child. From here on nothing that happens at a terminal stops this
/// process but Ctrl-Z.
pub(crate) fn signals() -> io::Result<Receiver<i32>> {
    let ignored = ignored_signals();
    let is_free = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
    let wanted = [SIGINT, SIGTERM, SIGHUP, SIGTSTP].into_iter().filter(is_free);
    let mut signals = Signals::new(wanted.chain([SIGCHLD, SIGCONT, SIGWINCH]))?;
    // They go to the whole group, also when somebody else in a pipeline reads the terminal from the background. A handler
    // is all that is needed, and unlike an ignored signal it is not inherited.
    for signal in [SIGTTIN, SIGTTOU].into_iter().filter(is_free) {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let (signal_in, signal) = bounded(16);
    let work = move || {
        for signal in signals.forever() {
            if signal_in.send(signal).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(work).map(|_| signal)
}

/// Whether a signal is the end of a child.
pub(crate) fn is_child(signal: i32) -> bool {
    signal == SIGCHLD
}

/// The bits of the signals that were ignored before this process registered any: what nohup and `&` set.
pub(crate) fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Whether a signal is Ctrl-Z.
pub(crate) fn is_suspend(signal: i32) -> bool {
    signal == SIGTSTP
}

/// Whether a signal says that this process goes on after a stop.
pub(crate) fn is_continued(signal: i32) -> bool {
    signal == SIGCONT
}

/// Whether a signal says that the terminal has another size.
pub(crate) fn is_resized(signal: i32) -> bool {
    signal == SIGWINCH
}

/// Stops this process as Ctrl-Z would have; returns when it goes on.
pub(crate) fn stop_ourselves() {
    let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
}

/// Ends this process as this signal ends one. One that a host sends is waited for; gives the shell's code for it
/// where that cannot be.
pub fn end_by(signal: i32) -> u8 {
    if matches!(signal, SIGTERM | SIGKILL) {
        loop {
            thread::park();
        }
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    u8::try_from(128 + signal).unwrap_or(1)
}

/// Watches the far end of stdout, which also closes while there is nothing to write.
pub(crate) fn watch_stdout(closed: Sender<Written>) {
    let work = move || {
        let stdout = io::stdout();
        // Asked for nothing, poll reports only errors and hang-ups.
        if wait(&stdout.as_fd(), PollFlags::empty()).is_ok() {
            let _ = closed.send(Written::Closed);
        }
    };
    let _ = thread::Builder::new().name("stdout-watch".into()).spawn(work);
}

/// Whether stdout was closed when the process started. std puts /dev/null there, open for reading and writing, before
/// `main`, and every write then succeeds.
pub fn stdout_is_closed() -> bool {
    let null = std::fs::read_link("/proc/self/fd/1").is_ok_and(|target| target.as_os_str() == "/dev/null");
    let info = std::fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).map(str::trim);
    null && flags.is_some_and(|flags| flags.ends_with('2'))
}
