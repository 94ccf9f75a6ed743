//! stdin as a text: the prompt, or what goes with it. A stdin that was asked for is waited for; one that is only there
//! may be open and silent for ever, as hosts leave it that start a program by pipes, so it has limits.

use super::keys::{Keys, Ready};
use super::tty;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

/// How long a stdin that nobody asked for is waited for.
pub const LIMITS: Limits = Limits { first: Duration::from_secs(5), whole: Duration::from_secs(600) };
/// The longest single wait. Time in which this process is stopped counts as no more than one of them.
const SLICE: Duration = Duration::from_millis(250);

/// How long is waited.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For its first byte.
    pub first: Duration,
    /// Altogether.
    pub whole: Duration,
}

/// What stdin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Somebody types there.
    Terminal,
    /// A pipe or a regular file: somebody put it there for this program, or for whatever reads it first.
    Piped,
    /// A socket, `/dev/null` or another device, a directory; also one that is closed, which std opens as `/dev/null`.
    Other,
}

/// Why stdin is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The command line names it: it is waited for, as long as it takes.
    Asked,
    /// It is there: [`LIMITS`] hold.
    Offered,
}

/// Why there is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Nothing came within the first limit.
    Silent,
    /// It did not end within the other.
    Endless,
    /// Another error, or one of std's for what was read.
    Io(ErrorKind),
}

/// Looks what stdin is, without reading it.
pub fn kind() -> Kind {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Kind::Terminal;
    }
    let file = stdin.as_fd().try_clone_to_owned().map(File::from).and_then(|file| file.metadata());
    match file.map(|meta| meta.file_type()) {
        Ok(kind) if kind.is_fifo() || kind.is_file() => Kind::Piped,
        Ok(_) | Err(_) => Kind::Other,
    }
}

/// Whether stdin is a terminal that another process group has: to read it, this one must be brought to the foreground.
pub fn is_in_background() -> bool {
    !tty::in_front(io::stdin())
}

/// Reads stdin to its end, at most so many bytes and one more.
///
/// # Errors
/// See [`Problem`]; of the limits of time only where `wish` has them.
pub fn read(wish: Wish, bytes: u64) -> Result<String, Problem> {
    let mut text = Vec::new();
    let io = |error: io::Error| Problem::Io(error.kind());
    match tty::stdin() {
        Some(terminal) => _ = Typed(Keys::always(terminal)).take(bytes + 1).read_to_end(&mut text).map_err(io)?,
        None => {
            let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(io)?;
            read_piped(stdin, (wish == Wish::Offered).then_some(LIMITS), bytes, &mut text)?;
        }
    }
    if text.len() as u64 > bytes {
        return Err(Problem::Io(ErrorKind::FileTooLarge));
    }
    String::from_utf8(text).map_err(|_| Problem::Io(ErrorKind::InvalidData))
}

fn read_piped(mut stdin: File, limits: Option<Limits>, bytes: u64, text: &mut Vec<u8>) -> Result<(), Problem> {
    let slice = Timespec::try_from(SLICE).ok();
    let mut waited = Duration::ZERO;
    let mut buffer = vec![0; 64 << 10];
    while text.len() as u64 <= bytes {
        let began = Instant::now();
        let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], slice.as_ref()).is_ok_and(|ready| ready > 0);
        waited += began.elapsed().min(SLICE);
        match limits {
            Some(limits) if !ready && text.is_empty() && waited >= limits.first => return Err(Problem::Silent),
            Some(limits) if waited >= limits.whole => return Err(Problem::Endless),
            _ if !ready => continue,
            _ => {}
        }
        match stdin.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => text.extend_from_slice(&buffer[..count]),
            // Some hosts leave a pipe non-blocking.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(Problem::Io(error.kind())),
        }
    }
    Ok(())
}

/// A terminal on which somebody types to the end, Ctrl-D.
struct Typed(Keys);

impl Read for Typed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.0.wait()? != Ready::Input {
                continue;
            }
            match self.0.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, Problem, read_piped};
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    /// What comes of a pipe that stays open.
    fn open_pipe(said: &[u8], first: u64, whole: u64) -> (Result<(), Problem>, Vec<u8>) {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(said).unwrap();
        let limits = Limits { first: Duration::from_millis(first), whole: Duration::from_millis(whole) };
        let mut text = Vec::new();
        let read = read_piped(File::from(OwnedFd::from(reader)), Some(limits), 4, &mut text);
        (read, text)
    }

    #[test]
    fn a_pipe_that_stays_open_ends_by_a_limit() {
        assert_eq!(open_pipe(b"", 300, 10_000).0, Err(Problem::Silent));
        assert_eq!(open_pipe(b"abc", 10_000, 300), (Err(Problem::Endless), b"abc".to_vec()));
        // Longer than it may be: nothing more is waited for.
        assert_eq!(open_pipe(b"abcde", 10_000, 10_000), (Ok(()), b"abcde".to_vec()));
    }
}
