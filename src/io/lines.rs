//! Lines of a pipe, with a limit applied while reading, so that a line of any length takes no more memory than the
//! limit.

use crate::system::read_now;
use memchr::memchr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::borrow::Cow;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Duration;

/// The maximum bytes of one read. A line that fits is not copied.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// A smaller buffer saves memory, because creating it touches each of its pages.
const SMALL_READ_BYTES: usize = 16 << 10;
/// The part of a line beyond the limit that is kept, in bytes.
const HEAD_BYTES: usize = 4 << 10;

/// Without its LF. It lies in the reader's buffer, unless it came in several reads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Framed<'a> {
    Line(Cow<'a, [u8]>),
    /// The bytes after the last LF.
    Rest(Vec<u8>),
    /// A line that exceeds the limit, by its first [`HEAD_BYTES`]. It is reported at once, because its end may never come,
    /// and then skipped.
    TooLong(Vec<u8>),
}

impl Framed<'_> {
    pub(crate) fn into_owned(self) -> Framed<'static> {
        match self {
            Framed::Line(line) => Framed::Line(Cow::Owned(line.into_owned())),
            Framed::Rest(rest) => Framed::Rest(rest),
            Framed::TooLong(head) => Framed::TooLong(head),
        }
    }
}

/// `limit`: the maximum length of a line, in bytes.
#[derive(Debug)]
pub(crate) struct LineReader<R: Read> {
    source: R,
    limit: usize,
    buffer: Vec<u8>,
    /// The part of the buffer that was read and not yet returned.
    start: usize,
    end: usize,
    /// The length of the first line in that part, with its LF, once it was looked for.
    first: Option<usize>,
    skipping: bool,
}

impl<R: Read + AsFd> LineReader<R> {
    pub(crate) fn new(source: R, limit: usize) -> LineReader<R> {
        LineReader::with_buffer(source, limit, READ_BYTES)
    }

    /// A reader of a source that seldom carries much.
    pub(crate) fn small(source: R, limit: usize) -> LineReader<R> {
        LineReader::with_buffer(source, limit, SMALL_READ_BYTES)
    }

    fn with_buffer(source: R, limit: usize, bytes: usize) -> LineReader<R> {
        LineReader { source, limit, buffer: vec![0; bytes], start: 0, end: 0, first: None, skipping: false }
    }

    /// Reads once into the empty buffer, if there is something to read within this time. Waits no longer, even if
    /// somebody else reads the same source. An error or the end of the source shows in the next read.
    pub(crate) fn fill_within(&mut self, time: Duration) {
        let mut read = || read_now(&self.source, &mut self.buffer);
        let mut count = read();
        if count == Err(Errno::AGAIN) {
            let time = Timespec::try_from(time).ok();
            let ready = poll(&mut [PollFd::new(&self.source, PollFlags::IN)], time.as_ref());
            count = if ready.is_ok_and(|ready| ready > 0) { read() } else { Ok(0) };
        }
        (self.start, self.end) = (0, count.unwrap_or(0));
    }

    /// The next line. `None`: the source ended, or a read error ended the reading the same way.
    pub(crate) fn next(&mut self) -> Option<Framed<'_>> {
        let mut line = Vec::new();
        loop {
            if self.is_empty() && !self.fill() {
                self.skipping = false;
                return (!line.is_empty()).then_some(Framed::Rest(line));
            }
            let (part, ended) = self.part();
            if self.skipping {
                self.skipping = !ended;
                continue;
            }
            // A CR before the LF belongs to the end of the line.
            let is_cr = self.buffer[part.clone()].last() == Some(&b'\r');
            if line.len() + part.len() > self.limit + usize::from(is_cr) {
                self.skipping = !ended;
                let room = HEAD_BYTES.saturating_sub(line.len()).min(part.len());
                line.extend_from_slice(&self.buffer[part][..room]);
                line.truncate(HEAD_BYTES);
                line.shrink_to_fit();
                return Some(Framed::TooLong(line));
            }
            if ended && line.is_empty() {
                return Some(Framed::Line((&self.buffer[part]).into()));
            }
            line.extend_from_slice(&self.buffer[part]);
            if ended {
                return Some(Framed::Line(line.into()));
            }
        }
    }

    /// The next part of a line, without its LF, and whether the line ends with it. `None`: the source ended, or a read
    /// error ended the reading the same way. The limit does not apply: a part is at most as long as a read.
    pub(crate) fn next_part(&mut self) -> Option<(&[u8], bool)> {
        if self.is_empty() && !self.fill() {
            return None;
        }
        let (part, ended) = self.part();
        Some((&self.buffer[part], ended))
    }

    /// Takes from the buffer the first line, without its LF, or all there is. Returns whether the line ends there.
    fn part(&mut self) -> (Range<usize>, bool) {
        let ended = self.has_end();
        let length = self.first.take().unwrap_or(self.end - self.start);
        let part = self.start..self.start + length - usize::from(ended);
        self.start += length;
        (part, ended)
    }

    /// Whether [`LineReader::next`] returns a line without another read.
    pub(crate) fn has_line(&mut self) -> bool {
        !self.skipping && self.has_end()
    }

    pub(crate) fn peek(&mut self) -> Option<&[u8]> {
        let length = self.has_line().then_some(self.first).flatten()?;
        Some(&self.buffer[self.start..self.start + length - 1])
    }

    /// Whether everything that was read was returned.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn has_end(&mut self) -> bool {
        if self.first.is_none() {
            self.first = memchr(b'\n', &self.buffer[self.start..self.end]).map(|at| at + 1);
        }
        self.first.is_some()
    }

    /// Reads once into the empty buffer. Waits for input even if somebody else made the pipe non-blocking. `false`:
    /// nothing more will come.
    pub(crate) fn fill(&mut self) -> bool {
        loop {
            match self.source.read(&mut self.buffer) {
                Ok(count) => {
                    (self.start, self.end) = (0, count);
                    return count > 0;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && wait(&self.source, PollFlags::IN).is_ok() => {}
                Err(_) => return false,
            }
        }
    }
}

/// Returns for a broken descriptor too. Retries after a signal.
pub(crate) fn wait(fd: &impl AsFd, what: PollFlags) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(fd, what)], None) {
            Err(Errno::INTR) => {}
            other => return other.map(|_| ()).map_err(io::Error::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Framed, HEAD_BYTES, LineReader, READ_BYTES};
    use std::io::Write;
    use std::time::Duration;

    fn all(bytes: &[u8], limit: usize) -> Vec<Framed<'static>> {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(bytes).unwrap();
        drop(writer);
        let mut lines = LineReader::new(reader, limit);
        std::iter::from_fn(|| lines.next().map(Framed::into_owned)).collect()
    }

    fn too_long(head: &str) -> Framed<'static> {
        Framed::TooLong(head.into())
    }

    #[test]
    fn long_lines_are_skipped_and_the_next_is_whole() {
        let line = |text: &'static str| Framed::Line(text.as_bytes().into());
        assert_eq!(all(b"ab\n\nabc\nx", 2), [line("ab"), line(""), too_long("abc"), Framed::Rest("x".into())]);
        assert_eq!(all(b"abc", 2), [too_long("abc")]);
        assert_eq!(all(&[b'x'; 2 * HEAD_BYTES], HEAD_BYTES), [too_long(&"x".repeat(HEAD_BYTES))]);
        assert_eq!(all(b"", 2), []);
        assert_eq!(all(b"ab\r\nab\r\r\n", 2), [line("ab\r"), too_long("ab\r\r")], "a CR is part of the line's end");
    }

    #[test]
    fn a_line_that_never_ends_is_reported_once_it_is_too_long() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut lines = LineReader::new(reader, 2);
        writer.write_all(b"abc").unwrap();
        assert_eq!(lines.next(), Some(too_long("abc")));
        writer.write_all(b"de\nf\n").unwrap();
        lines.fill_within(Duration::ZERO);
        assert!(!lines.has_line());
        assert_eq!(lines.next(), Some(Framed::Line(b"f".into())));
        assert!(!lines.has_line());
    }

    #[test]
    fn available_input_is_read_at_once_and_the_rest_later() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut lines = LineReader::new(reader, 10);
        lines.fill_within(Duration::ZERO);
        assert!(!lines.has_line());
        writer.write_all(b"ab\ncd").unwrap();
        lines.fill_within(Duration::ZERO);
        assert!(lines.has_line());
        assert_eq!(lines.next(), Some(Framed::Line(b"ab".into())));
        assert!(!lines.has_line());
        writer.write_all(b"e\n").unwrap();
        drop(writer);
        assert_eq!(lines.next(), Some(Framed::Line(b"cde".into())));
        lines.fill_within(Duration::MAX);
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn a_line_over_the_end_of_the_buffer_is_whole() {
        for first in READ_BYTES - 3..READ_BYTES + 2 {
            let (reader, mut writer) = std::io::pipe().unwrap();
            let text = "x".repeat(first) + "\nsecond\nthird\n";
            let write = std::thread::spawn(move || writer.write_all(text.as_bytes()).unwrap());
            let mut lines = LineReader::new(reader, usize::MAX);
            let mut next = || match lines.next() {
                Some(Framed::Line(line)) => line.len(),
                other => panic!("{other:?}"),
            };
            assert_eq!([next(), next(), next()], [first, 6, 5]);
            write.join().unwrap();
        }
    }
}
