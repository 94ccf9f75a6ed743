//! The two output doors: stdout and stderr. Nothing else in the program writes to either.

use super::lines::wait;
use super::spawn_thread;
use super::tty::takes_output;
use crate::clean::one_line;
use crate::failure::EXIT_UNDELIVERED;
use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

/// What is to be written, each as one write.
#[derive(Debug, Default)]
pub struct Chunk {
    /// For stderr, before the rest.
    pub before: Vec<u8>,
    /// For stdout.
    pub out: Vec<u8>,
    /// For stderr.
    pub err: Vec<u8>,
}

/// How the writing went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// stdout cannot be written to any more.
    Lost,
    /// Nobody reads stdout any more. What was handed over before may have been read.
    Closed,
    /// Everything before an [`Order::Flush`] was written.
    Flushed,
}

/// What the writer is to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Write this.
    Write(Chunk),
    /// Say that everything before was written.
    Flush,
}

/// stdout and stderr, written by a thread of their own, as long as the process lives.
#[derive(Debug)]
pub(crate) struct Output {
    /// Orders for the writer. The channel has no room: an order counts as taken when the writer is about to carry it
    /// out.
    pub(crate) orders: Sender<Order>,
    /// How the writing went.
    pub(crate) written: Receiver<Written>,
    /// Whether stdout is lost, for all later runs too.
    pub(crate) lost: bool,
}

impl Output {
    /// Starts the writer, and the watcher of the far end of stdout. Where no thread can be started stdout counts as
    /// lost.
    pub(crate) fn start() -> Output {
        let (orders, taken) = bounded(0);
        let (done, written) = bounded(2);
        let watcher = done.clone();
        if spawn_thread("stdout", move || carry_out(&taken, &done)).is_err() {
            let _ = watcher.send(Written::Lost);
        }
        watch_stdout(watcher);
        Output { orders, written, lost: false }
    }
}

impl Chunk {
    /// Bytes of it, for both.
    pub fn size(&self) -> usize {
        self.before.len() + self.out.len() + self.err.len()
    }
}

/// Carries out orders until their channel ends. Once stdout is lost, everything for it is thrown away.
fn carry_out(orders: &Receiver<Order>, done: &Sender<Written>) {
    // Opened once: later there may be no descriptor left.
    let (mut out, mut err) = (stdout(), stderr());
    let mut lost = false;
    for order in orders {
        let chunk = match order {
            Order::Write(chunk) => chunk,
            Order::Flush if lost => continue,
            Order::Flush => {
                let _ = done.send(Written::Flushed);
                continue;
            }
        };
        write_stderr(err.as_mut(), &chunk.before);
        // Like a reader that does not read: nothing else in the program waits for it.
        while !chunk.out.is_empty() && out.as_ref().is_some_and(|out| !takes_output(out)) {
            thread::sleep(LOOK_AGAIN);
        }
        if !lost && !chunk.out.is_empty() && out.as_mut().is_none_or(|out| write_whole(out, &chunk.out).is_err()) {
            lost = true;
            let _ = done.send(Written::Lost);
        }
        write_stderr(err.as_mut(), &chunk.err);
    }
}

/// Watches the far end of stdout, which also closes while there is nothing to write.
fn watch_stdout(closed: Sender<Written>) {
    let _ = spawn_thread("stdout-watch", move || {
        let stdout = io::stdout();
        // Asked for nothing, poll reports only errors and hang-ups.
        if wait(&stdout.as_fd(), PollFlags::empty()).is_ok() {
            let _ = closed.send(Written::Closed);
        }
    });
}

/// Whether stdout was closed when the process started. std puts /dev/null there, open for reading and writing, before
/// `main`, and every write then succeeds.
pub fn stdout_is_closed() -> bool {
    let null = std::fs::read_link("/proc/self/fd/1").is_ok_and(|target| target.as_os_str() == "/dev/null");
    let info = std::fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).map(str::trim);
    null && flags.is_some_and(|flags| flags.ends_with('2'))
}

/// How long until a terminal that takes nothing from the background is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How long a stderr that nobody reads is waited for.
const STDERR_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// What a pipe takes at once when it is writable at all (POSIX PIPE_BUF on Linux).
const PIPE_BUF: usize = 4096;

/// Writes to stderr as long as it takes it. Diagnostics are a courtesy: one that nobody reads must not hold a run.
fn write_stderr(err: Option<&mut File>, bytes: &[u8]) {
    let Some(err) = err else { return };
    for part in bytes.chunks(PIPE_BUF) {
        let ready = takes_output(&err)
            && poll(&mut [PollFd::new(err, PollFlags::OUT)], Some(&STDERR_WAIT)).is_ok_and(|ready| ready > 0);
        if !ready || write_whole(err, part).is_err() {
            return;
        }
    }
}

/// stdout without std's line buffer, which swallows errors at the exit.
pub(crate) fn stdout() -> Option<File> {
    io::stdout().as_fd().try_clone_to_owned().ok().map(File::from)
}

fn stderr() -> Option<File> {
    io::stderr().as_fd().try_clone_to_owned().ok().map(File::from)
}

/// Bytes on stderr at once, past all chunks that wait: for a process that stops now.
pub(crate) fn write_now(bytes: &[u8]) {
    write_stderr(stderr().as_mut(), bytes);
}

/// One line on stderr, for those who have no session.
pub fn diagnose(text: &str) {
    let line = format!("{}\n", one_line(text));
    write_stderr(stderr().as_mut(), line.as_bytes());
}

/// A text on stdout, for commands that are no run. Gives the exit code: that it could not be written is one.
pub fn deliver(text: &str) -> u8 {
    if print(text) { 0 } else { EXIT_UNDELIVERED }
}

/// A text on stdout, for commands that are no run. `false`: it could not be written.
pub fn print(text: &str) -> bool {
    print_bytes(text.as_bytes())
}

/// The same of what may be no text.
pub fn print_bytes(bytes: &[u8]) -> bool {
    stdout().is_some_and(|mut out| write_whole(&mut out, bytes).is_ok())
}

/// Writes all of it, in one write where the kernel takes it as one, also to a descriptor that somebody made
/// non-blocking.
pub(crate) fn write_whole(file: &mut (impl Write + AsFd), mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(file, PollFlags::OUT)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
