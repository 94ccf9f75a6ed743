//! The threads at the program's pipes, and waiting.

use std::io::{BufRead, PipeReader, PipeWriter, Read, Write};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

#[derive(Clone, Copy, PartialEq)]
enum Position {
    Open,
    Paused,
    Closed,
}

/// Whether a reader reads, waits, or closes its end.
#[derive(Clone)]
pub(crate) struct Gate(Arc<(Mutex<Position>, Condvar)>);

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate(Arc::new((Mutex::new(Position::Open), Condvar::new())))
    }

    pub(crate) fn open(&self) {
        self.set(Position::Open);
    }

    pub(crate) fn pause(&self) {
        self.set(Position::Paused);
    }

    pub(crate) fn close(&self) {
        self.set(Position::Closed);
    }

    fn set(&self, position: Position) {
        *self.0.0.lock().expect("lock") = position;
        self.0.1.notify_all();
    }

    /// Waits while the gate is paused. Returns whether the gate is open then.
    fn passes(&self) -> bool {
        let position = self.0.0.lock().expect("lock");
        let position = self.0.1.wait_while(position, |position| *position == Position::Paused).expect("lock");
        *position == Position::Open
    }
}

/// A line of the program's output, and its time.
pub(crate) struct Line {
    pub(crate) bytes: Vec<u8>,
    pub(crate) complete: bool,
    pub(crate) at: Instant,
}

/// A thread that reads a pipe line by line.
pub(crate) struct LineReader {
    all: Arc<Mutex<Vec<u8>>>,
    done: Arc<AtomicBool>,
}

impl LineReader {
    pub(crate) fn spawn(pipe: PipeReader, gate: Gate) -> (LineReader, Receiver<Line>) {
        let (send, receive) = channel();
        let reader = LineReader { all: Arc::default(), done: Arc::default() };
        let (all, done) = (reader.all.clone(), reader.done.clone());
        thread::spawn(move || {
            pump(pipe, &gate, &all, &send);
            done.store(true, Ordering::SeqCst);
        });
        (reader, receive)
    }

    /// All bytes so far.
    #[track_caller]
    pub(crate) fn all(&self) -> Vec<u8> {
        self.all.lock().expect("lock").clone()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }
}

#[track_caller]
fn pump(mut pipe: PipeReader, gate: &Gate, all: &Mutex<Vec<u8>>, send: &Sender<Line>) {
    let mut rest = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if !gate.passes() {
            return;
        }
        if !readable(&pipe) {
            continue;
        }
        let count = pipe.read(&mut buffer).unwrap_or(0);
        if count == 0 {
            break;
        }
        all.lock().expect("lock").extend_from_slice(&buffer[..count]);
        // Each byte is looked at once: a reader that falls behind would count as one that does not read.
        let mut unread = &buffer[..count];
        while !unread.is_empty() {
            unread.read_until(b'\n', &mut rest).expect("memory");
            if rest.pop_if(|last| *last == b'\n').is_some() {
                let line = Line { bytes: std::mem::take(&mut rest), complete: true, at: Instant::now() };
                let _ = send.send(line);
            }
        }
    }
    if !rest.is_empty() {
        let _ = send.send(Line { bytes: rest, complete: false, at: Instant::now() });
    }
}

/// Waits briefly for bytes or the end, so that the gate is checked in between.
fn readable(pipe: &PipeReader) -> bool {
    let mut fds = [PollFd::new(pipe, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    matches!(poll(&mut fds, Some(&timeout)), Ok(count) if count > 0)
}

/// A thread that writes stdin, so that a test never blocks. After a drop, it writes the rest and closes stdin.
pub(crate) struct StdinWriter(Sender<Vec<u8>>);

impl StdinWriter {
    pub(crate) fn spawn(mut pipe: PipeWriter) -> StdinWriter {
        let (send, receive) = channel::<Vec<u8>>();
        thread::spawn(move || {
            for bytes in receive {
                if pipe.write_all(&bytes).is_err() {
                    return; // The program has ended; its frames tell the rest.
                }
            }
        });
        StdinWriter(send)
    }

    pub(crate) fn send(&self, bytes: Vec<u8>) {
        let _ = self.0.send(bytes);
    }
}

/// Checks a condition every few milliseconds.
pub(crate) fn wait_for(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + limit;
    loop {
        if done() {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        // No event: a condition may depend on anything, such as the contents of /proc.
        thread::sleep(Duration::from_millis(3));
    }
}

/// Waits for the end of a process.
#[track_caller]
pub(crate) fn exit(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let mut status = None;
    wait_for(limit, || {
        status = child.try_wait().expect("wait");
        status.is_some()
    });
    status
}

/// Cuts the middle out of a long text.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let head: String = text.chars().take(limit * 3 / 4).collect();
    let tail: String = text.chars().skip(count - limit / 4).collect();
    format!("{head} … {tail} ({count} characters)")
}
