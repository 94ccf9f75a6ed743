//! Reads stdin as a text: the prompt, or text that accompanies it. If the user asked for stdin, we wait for it. If it
//! is merely there, time limits apply, since it may stay open and silent forever: hosts that start a program through
//! pipes often leave it so.

use super::keys::{Keys, KeysReady};
use super::tty;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The usual wait for the first byte of a stdin that nobody asked for: time for a short build.
pub(crate) const FIRST_BYTE: Duration = Duration::from_secs(60);
/// The maximum wait for the whole text of such a stdin.
pub(crate) const WHOLE: Duration = Duration::from_secs(600);
/// The silence after which the user is told what the program waits for.
const NOTICE: Duration = Duration::from_secs(2);
/// The longest single wait. If this process is stopped meanwhile, the stop counts as no more than one such wait.
const SLICE: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For the first byte.
    pub first: Duration,
    pub whole: Duration,
    /// For the first byte, before [`read`] calls its `notice`.
    pub notice: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdinKind {
    Terminal,
    /// A pipe or a regular file: somebody provided it for this program, or for whatever reads it first.
    Piped,
    /// A socket, a directory, `/dev/null` or another device. A closed stdin too, since std opens it as `/dev/null`.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The command line asks for it: we wait as long as it takes.
    Asked,
    /// stdin is a pipe or a file that may hold nothing for us: limits apply.
    Offered {
        /// The maximum wait for the first byte.
        first: Duration,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdinProblem {
    /// No byte arrived within this time.
    Silent(Duration),
    /// stdin did not end within [`WHOLE`].
    Endless,
    /// Another error: the system's; `FileTooLarge` if the text is too long; `InvalidData` if it is not UTF-8.
    Io(ErrorKind),
}

pub(crate) fn kind() -> StdinKind {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return StdinKind::Terminal;
    }
    match fstat(stdin).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::Fifo | FileType::RegularFile) => StdinKind::Piped,
        Ok(_) | Err(_) => StdinKind::Other,
    }
}

/// Whether another process group has the terminal at stdin: to read it, this process must come to the foreground.
pub(crate) fn is_in_background() -> bool {
    !super::foreground::in_front(io::stdin())
}

/// Calls `notice` once after some silence. The time limits apply only to [`Wish::Offered`].
pub(crate) fn read(wish: Wish, bytes: u64, notice: impl FnOnce()) -> Result<String, StdinProblem> {
    let mut text = Vec::new();
    let io = |error: io::Error| StdinProblem::Io(error.kind());
    match tty::stdin() {
        Some(terminal) => _ = Typed(Keys::always(terminal)).take(bytes + 1).read_to_end(&mut text).map_err(io)?,
        None => {
            let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(io)?;
            let limits = match wish {
                Wish::Asked => None,
                Wish::Offered { first } => Some(Limits { first, whole: WHOLE, notice: NOTICE }),
            };
            read_piped(stdin, limits, bytes, &mut text, notice)?;
        }
    }
    if text.len() as u64 > bytes {
        return Err(StdinProblem::Io(ErrorKind::FileTooLarge));
    }
    String::from_utf8(text).map_err(|_| StdinProblem::Io(ErrorKind::InvalidData))
}

fn read_piped(
    mut stdin: File,
    limits: Option<Limits>,
    bytes: u64,
    text: &mut Vec<u8>,
    notice: impl FnOnce(),
) -> Result<(), StdinProblem> {
    let mut notice = Some(notice);
    let slice = Timespec::try_from(SLICE).ok();
    let mut waited = Duration::ZERO;
    let mut buffer = vec![0; 64 << 10];
    while text.len() as u64 <= bytes {
        let began = Instant::now();
        let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], slice.as_ref()).is_ok_and(|ready| ready > 0);
        waited += began.elapsed().min(SLICE);
        let is_silent = !ready && text.is_empty();
        if is_silent && limits.is_some_and(|limits| (limits.notice..limits.first).contains(&waited)) {
            notice.take().into_iter().for_each(|notice| notice());
        }
        match limits {
            Some(Limits { first, .. }) if is_silent && waited >= first => return Err(StdinProblem::Silent(first)),
            Some(limits) if waited >= limits.whole => return Err(StdinProblem::Endless),
            _ if !ready => continue,
            _ => {}
        }
        match stdin.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => text.extend_from_slice(&buffer[..count]),
            // Some hosts leave a pipe in non-blocking mode.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(StdinProblem::Io(error.kind())),
        }
    }
    Ok(())
}

struct Typed(Keys);

impl Read for Typed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.0.wait()? != KeysReady::Input {
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
    use super::{Limits, StdinProblem, read_piped};
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    /// Reads a pipe that holds `said` and stays open; the limits are in milliseconds. Returns whether a notice came, too.
    fn open_pipe(said: &[u8], first: u64, whole: u64) -> (Result<(), StdinProblem>, Vec<u8>, bool) {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(said).unwrap();
        let [first, whole, notice] = [first, whole, 1].map(Duration::from_millis);
        let (mut text, mut noticed) = (Vec::new(), false);
        let limits = Limits { first, whole, notice };
        let read = read_piped(File::from(OwnedFd::from(reader)), Some(limits), 4, &mut text, || noticed = true);
        (read, text, noticed)
    }

    #[test]
    fn a_pipe_that_stays_open_ends_by_a_limit() {
        let silent = Err(StdinProblem::Silent(Duration::from_millis(300)));
        assert_eq!(open_pipe(b"", 300, 10_000), (silent, Vec::new(), true));
        assert_eq!(open_pipe(b"abc", 10_000, 300), (Err(StdinProblem::Endless), b"abc".to_vec(), false));
        // The text is already too long, so nothing more is waited for.
        assert_eq!(open_pipe(b"abcde", 10_000, 10_000), (Ok(()), b"abcde".to_vec(), false));
    }
}
