//! Lines of a pipe, with a limit applied while reading, so that a line of any length takes no more memory than the
//! limit.

use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::fd::AsFd;

/// One line as read, without its LF.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Framed {
    /// A line that ended with LF.
    Line(Vec<u8>),
    /// The bytes after the last LF; empty if they exceeded the limit.
    Rest(Vec<u8>),
    /// A line longer than the limit, which was skipped.
    TooLong,
}

/// Reads lines of at most `limit` bytes.
pub(crate) struct LineReader<R: Read> {
    reader: BufReader<R>,
    limit: usize,
}

impl<R: Read + AsFd> LineReader<R> {
    pub(crate) fn new(reader: R, limit: usize) -> LineReader<R> {
        LineReader { reader: BufReader::with_capacity(64 << 10, reader), limit }
    }

    /// The source being read.
    pub(crate) fn source(&self) -> &R {
        self.reader.get_ref()
    }

    /// The next line. `None`: the source ended, or a read error ended the reading the same way.
    pub(crate) fn next(&mut self) -> Option<Framed> {
        let (mut line, mut skipping, limit) = (Vec::new(), false, self.limit);
        loop {
            let (used, ended) = {
                let Some(chunk) = self.fill().ok().filter(|chunk| !chunk.is_empty()) else {
                    return (skipping || !line.is_empty()).then_some(Framed::Rest(line));
                };
                let end = chunk.iter().position(|byte| *byte == b'\n');
                let part = &chunk[..end.unwrap_or(chunk.len())];
                if line.len() + part.len() > limit {
                    (line, skipping) = (Vec::new(), true);
                }
                if !skipping {
                    line.extend_from_slice(part);
                }
                (part.len() + usize::from(end.is_some()), end.is_some())
            };
            self.reader.consume(used);
            if ended {
                return Some(if skipping { Framed::TooLong } else { Framed::Line(line) });
            }
        }
    }

    /// Fills the buffer and returns it. Waits for input even if somebody else made the pipe non-blocking.
    fn fill(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.reader.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait(self.reader.get_ref(), PollFlags::IN)?;
                }
                Err(error) => return Err(error),
            }
        }
        // The borrow checker does not let the slice from `match` leave the loop; this returns the same bytes without
        // another read.
        Ok(self.reader.buffer())
    }
}

/// Waits until a descriptor is ready for `what`, or broken. Retries after a signal.
///
/// # Errors
/// The system's.
pub(crate) fn wait(fd: &impl AsFd, what: PollFlags) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(fd, what)], None) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map(|_| ()).map_err(io::Error::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Framed, LineReader};
    use std::io::Write;

    fn all(bytes: &[u8], limit: usize) -> Vec<Framed> {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(bytes).unwrap();
        drop(writer);
        let mut lines = LineReader::new(reader, limit);
        std::iter::from_fn(|| lines.next()).collect()
    }

    #[test]
    fn long_lines_are_skipped_and_the_next_is_whole() {
        let line = |text: &str| Framed::Line(text.into());
        assert_eq!(all(b"ab\n\nabc\nx", 2), [line("ab"), line(""), Framed::TooLong, Framed::Rest("x".into())]);
        assert_eq!(all(b"abc", 2), [Framed::Rest(Vec::new())]);
        assert_eq!(all(b"", 2), []);
    }
}
