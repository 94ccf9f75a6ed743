//! The two output doors: stdout and stderr. Nothing else in the program writes to either.

use super::failpoint::point;
use super::foreground::takes_output;
use super::lines::wait;
use super::spawn_thread;
use crate::clean::one_line;
use crate::protocol::failure::EXIT_UNDELIVERED;
use crate::system::{PIPE_BUF, parent_holds, reopen_stdout};
use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, stat};
use rustix::net::{SendFlags, send};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Bytes to write, each field in one write.
#[derive(Debug, Default)]
pub struct Chunk {
    /// For stderr, written first.
    pub before: Vec<u8>,
    pub out: Vec<u8>,
    /// For stderr, written last.
    pub err: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// A write to stdout failed; nothing more can be delivered.
    Lost,
    /// The far end of stdout is closed. Output handed over before may have been read.
    Closed,
    Flushed,
}

#[derive(Debug)]
pub(crate) enum Order {
    Write(Chunk),
    /// Report when everything ordered before was written.
    Flush,
}

/// Writes that would block go to a separate thread, which runs as long as the process.
#[derive(Debug)]
pub(crate) struct StdoutWriter {
    /// The channel holds none: a send completes when the writer is about to carry the order out.
    pub(crate) orders: Sender<Order>,
    pub(crate) written: Receiver<Written>,
    /// Grows whenever stdout has taken something.
    pub(crate) progress: Arc<AtomicUsize>,
    /// If the machine has no thread left for the writer, [`write_here`] does its work.
    pub(crate) has_thread: bool,
    direct: Direct,
    /// The chunk that stdout did not take at once, and the number of bytes written. It is the next order.
    rest: Option<(Chunk, usize)>,
    pending: Arc<AtomicUsize>,
    /// The arguments of the writer's and the watcher's threads, until they start.
    writer: Option<(Receiver<Order>, Sender<Written>)>,
    watcher: Option<Sender<Written>>,
}

impl StdoutWriter {
    /// Does not start the threads, because they would delay the first frame.
    pub(crate) fn new() -> StdoutWriter {
        let (orders, taken) = bounded(0);
        let (done, written) = bounded(2);
        StdoutWriter {
            orders,
            written,
            progress: Arc::default(),
            has_thread: true,
            direct: Direct::open(),
            rest: None,
            pending: Arc::default(),
            writer: Some((taken, done.clone())),
            watcher: Some(done),
        }
    }

    /// Starts the watcher of stdout's far end, and the writer if it has something to do, unless they run.
    pub(crate) fn watch(&mut self, to_write: bool) {
        if let Some((taken, done)) = self.writer.take_if(|_| to_write) {
            let (progress, pending) = (Arc::clone(&self.progress), Arc::clone(&self.pending));
            let work = move || carry_out(&taken, &done, &progress, &pending);
            self.has_thread = spawn_thread("stdout", work).is_ok();
        }
        self.watcher.take().into_iter().for_each(watch_stdout);
    }

    /// Whether the writer has nothing to do and nothing to report.
    pub(crate) fn is_idle(&self) -> bool {
        self.rest.is_none() && self.pending.load(Ordering::Acquire) == 0 && self.written.is_empty()
    }

    /// Always false where only the writer can write.
    pub(crate) fn is_direct(&self) -> bool {
        !matches!(self.direct, Direct::No) && self.is_idle()
    }

    /// The part that stdout does not take at once is the next order. Returns the chunk's memory. Error: stdout is lost.
    pub(crate) fn write(&mut self, chunk: Chunk) -> io::Result<Vec<u8>> {
        let mut at = 0;
        if chunk.before.is_empty() && !chunk.out.is_empty() {
            match self.direct.write(&chunk.out) {
                Ok(count) => at = count,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(error) => return Err(error),
            }
            self.progress.fetch_add(usize::from(at > 0), Ordering::Relaxed);
        }
        if at < chunk.out.len() || !chunk.before.is_empty() || !chunk.err.is_empty() {
            self.rest = Some((chunk, at));
            return Ok(Vec::new());
        }
        Ok(chunk.out)
    }

    pub(crate) fn has_rest(&self) -> bool {
        self.rest.is_some()
    }

    /// The order that the writer takes now: the rest of what stdout did not take at once, or else `next`.
    pub(crate) fn order(&mut self, next: impl FnOnce() -> Order) -> Order {
        self.pending.fetch_add(1, Ordering::Relaxed);
        let Some((mut chunk, written)) = self.rest.take() else { return next() };
        chunk.out.drain(..written);
        Order::Write(chunk)
    }
}

/// A way to stdout that never waits. The terminals and files that have none are left to the writer.
#[derive(Debug)]
enum Direct {
    /// A pipe, opened anew: whoever else has it keeps their mode.
    Pipe(File),
    Socket,
    No,
}

impl Direct {
    fn open() -> Direct {
        let Ok(stat) = fstat(io::stdout()) else { return Direct::No };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Socket {
            return Direct::Socket;
        }
        let pipe = (kind == FileType::Fifo).then(reopen_stdout).flatten();
        pipe.map_or(Direct::No, Direct::Pipe)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Direct::Pipe(pipe) => Ok(rustix::io::write(pipe, bytes)?),
            Direct::Socket => Ok(send(io::stdout(), bytes, SendFlags::DONTWAIT)?),
            Direct::No => Err(ErrorKind::WouldBlock.into()),
        }
    }
}

impl Chunk {
    pub fn size(&self) -> usize {
        self.before.len() + self.out.len() + self.err.len()
    }
}

/// Once stdout is lost, output for it is discarded.
fn carry_out(orders: &Receiver<Order>, done: &Sender<Written>, progress: &AtomicUsize, pending: &AtomicUsize) {
    let (mut out, mut err) = (stdout(), Stderr { file: stderr(), stuck: false });
    let on_terminal = io::stdout().is_terminal();
    let mut lost = false;
    for order in orders {
        let chunk = match order {
            Order::Write(chunk) => chunk,
            Order::Flush => {
                if !lost {
                    let _ = done.send(Written::Flushed);
                }
                Chunk::default()
            }
        };
        err.write(&chunk.before);
        // Wait as for a reader that does not read: nothing else in the program waits for this thread.
        while on_terminal && !chunk.out.is_empty() && !takes_output(&out) {
            thread::sleep(LOOK_AGAIN);
        }
        // A pipe takes no more than such a part at once: each shows that somebody reads.
        for part in chunk.out.chunks(PIPE_BYTES) {
            if lost {
                break;
            }
            lost = write_whole(&mut out, part).is_err();
            progress.fetch_add(1, Ordering::Relaxed);
            if lost {
                let _ = done.send(Written::Lost);
            }
        }
        err.write(&chunk.err);
        point("stdout chunk");
        pending.fetch_sub(1, Ordering::Release);
    }
}

/// Returns whether stdout took the chunk.
pub(crate) fn write_here(chunk: &Chunk) -> bool {
    write_now(&chunk.before);
    let taken = write_whole(&mut stdout(), &chunk.out).is_ok();
    write_now(&chunk.err);
    taken
}

/// The far end can also close while there is nothing to write.
fn watch_stdout(closed: Sender<Written>) {
    let _ = spawn_thread("stdout-watch", move || {
        let stdout = io::stdout();
        // A poll without a wish for input or room reports only errors and hang-ups. macOS reports a hang-up only to those
        // who ask for it, and also a device that it cannot watch, such as /dev/null.
        if wait(&stdout.as_fd(), PollFlags::HUP).is_ok() && reader_has_left() {
            let _ = closed.send(Written::Closed);
        }
    });
}

/// Whether they are different files, at least one a regular one: nobody can see in which order they are written.
pub(crate) fn streams_are_apart() -> bool {
    let (Ok(out), Ok(err)) = (fstat(io::stdout()), fstat(io::stderr())) else { return false };
    let is_file = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
    (out.st_dev, out.st_ino) != (err.st_dev, err.st_ino) && (is_file(out.st_mode) || is_file(err.st_mode))
}

pub(crate) fn reader_has_left() -> bool {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::HUP)];
    let ready = poll(&mut fds, Some(&Timespec::default()));
    ready.is_ok() && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Whether stdout was closed when the process started. In that case std opens /dev/null for reading and writing in
/// its place before `main`, and every write succeeds. The parent may have opened it so on purpose; then it often holds the
/// same open file. stdin and stderr prove nothing: where they were closed too, std gave all of them the same open file.
pub fn stdout_is_closed() -> bool {
    let stdout = io::stdout();
    let Ok(flags) = fcntl_getfl(&stdout) else { return true };
    let is_null = || fstat(&stdout).is_ok_and(|out| stat("/dev/null").is_ok_and(|null| out.st_rdev == null.st_rdev));
    flags & OFlags::RWMODE == OFlags::RDWR && is_null() && !parent_holds(&stdout, flags)
}

const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// The maximum wait for a stderr that nobody reads, before each part of a write.
const STDERR_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The number of bytes that a pipe holds on Linux.
const PIPE_BYTES: usize = 64 << 10;

/// stderr, which takes what it can and drops the rest. Diagnostics are a courtesy: a stderr that nobody reads must not
/// block a run, so it is waited for once, and then not again before it takes something.
struct Stderr<F> {
    file: F,
    stuck: bool,
}

impl<F: Write + AsFd> Stderr<F> {
    fn write(&mut self, bytes: &[u8]) {
        let file = &mut self.file;
        for part in bytes.chunks(PIPE_BUF) {
            let wait = if self.stuck { Timespec::default() } else { STDERR_WAIT };
            self.stuck = poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&wait)).is_ok_and(|ready| ready == 0);
            if self.stuck || !takes_output(&file) || write_whole(file, part).is_err() {
                return;
            }
        }
    }
}

/// Without std's buffer, which swallows errors at exit, and without a descriptor of its own, since none may be left.
pub(crate) struct Unbuffered(BorrowedFd<'static>);

impl AsFd for Unbuffered {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0
    }
}

impl Write for Unbuffered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.0, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn stdout() -> Unbuffered {
    Unbuffered(rustix::stdio::stdout())
}

pub(crate) fn stderr() -> Unbuffered {
    Unbuffered(rustix::stdio::stderr())
}

/// Writes ahead of all waiting chunks, for a process that stops now.
pub(crate) fn write_now(bytes: &[u8]) {
    Stderr { file: stderr(), stuck: false }.write(bytes);
}

pub fn diagnose(text: &str) {
    explain(&format!("{}\n", one_line(text)));
}

/// Writes lines of our own to stderr, for callers without a session.
pub fn explain(lines: &str) {
    write_now(lines.as_bytes());
}

pub fn deliver(text: &str) -> u8 {
    if print(text) { 0 } else { EXIT_UNDELIVERED }
}

/// `false`: the text could not be written, or stdout was closed when the process started.
pub fn print(text: &str) -> bool {
    print_bytes(text.as_bytes())
}

pub fn print_bytes(bytes: &[u8]) -> bool {
    !stdout_is_closed() && write_whole(&mut stdout(), bytes).is_ok()
}

/// Uses one write if the kernel takes all bytes at once. Works for a descriptor that somebody made non-blocking too.
/// Error: the system's; `WriteZero` if a write takes no byte.
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

/// Writes lines until there are no more, or until a write fails. `sent`: takes the bytes of each, without its LF.
pub(crate) fn write_lines(lines: &Receiver<String>, file: &mut (impl Write + AsFd), sent: impl Fn(usize)) {
    for line in lines {
        if write_whole(file, format!("{line}\n").as_bytes()).is_err() {
            return;
        }
        sent(line.len());
    }
}

#[cfg(test)]
mod tests {
    use super::{PIPE_BUF, Stderr};
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    #[test]
    fn a_stderr_that_nobody_reads_is_waited_for_once() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut err = Stderr { file: File::from(OwnedFd::from(writer)), stuck: false };
        let line = [b'x'; PIPE_BUF];
        while !err.stuck {
            err.write(&line);
        }
        // With a wait for each of them this would take half an hour.
        (0..20_000).for_each(|_| err.write(b"dropped"));
        let mut read = 0;
        while err.stuck {
            read += reader.read(&mut [0; PIPE_BUF]).unwrap();
            err.write(b"heard");
        }
        drop(err);
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert!(read > 0 && rest.ends_with(b"xheard"), "{read}");
    }
}
