//! What is typed at a terminal, read only while it may be.
//!
//! A read from the background stops the whole process group by SIGTTIN, perhaps with a child of ours between fork and
//! exec. So the terminal is polled, which is always allowed, and read only in the foreground; a person's is read only
//! while a question is open. What is typed at other times stays for whoever reads the terminal next, the shell mostly.
//!
//! Nothing tells a process that the terminal was given to it or taken away, except SIGCONT where a shell sends one, and
//! bash sends none to a job that runs. So whoever waits for the foreground looks again from time to time.

use super::tty::in_front;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// How long until the foreground is looked at again.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The reading end of a terminal.
#[derive(Debug)]
pub struct Keys {
    /// Non-blocking where this process belongs to it, so that no read waits for the foreground.
    terminal: File,
    /// Says when a question opens and when it is over. `None`: the terminal may always be read.
    gate: Option<PipeReader>,
    open: bool,
    /// A question is open, and another process group has the terminal.
    away: bool,
    /// The terminal has input that is not for us: it is not polled, or it would be ready all the time.
    untouched: Option<u64>,
}

/// What [`Keys::wait`] waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// There is something to read.
    Input,
    /// The terminal is ours again while input is wanted.
    Foreground,
    /// Somebody pressed Enter, and nothing was asked: it is not read, but it is on the screen.
    Pressed,
}

/// The other end of the gate. Dropping it ends the reading.
#[derive(Debug)]
pub(super) struct Gate(PipeWriter);

impl Gate {
    pub(super) fn set(&self, open: bool) {
        // Without a reader there is nobody to be told.
        let _ = (&self.0).write_all(&[u8::from(open)]);
    }
}

impl Keys {
    /// Reads whenever it is in the foreground. The first time there counts as a return: the process may have been in the
    /// background when it looked at the terminal before.
    pub(super) fn always(terminal: File) -> Keys {
        Keys { terminal, gate: None, open: true, away: true, untouched: None }
    }

    /// Reads only while the gate is open. `None`: there is no descriptor left.
    pub(super) fn gated(terminal: File) -> Option<(Keys, Gate)> {
        let (reader, writer) = io::pipe().ok()?;
        let keys = Keys { gate: Some(reader), open: false, away: false, ..Keys::always(terminal) };
        Some((keys, Gate(writer)))
    }

    /// Waits for the next thing that happens. After [`Ready::Input`] a read gives what is there, if nobody else took it.
    pub(crate) fn wait(&mut self) -> io::Result<Ready> {
        loop {
            let front = in_front(&self.terminal);
            if let Some(ready) = self.changed(front) {
                return Ok(ready);
            }
            let watch = front && self.untouched.is_none();
            let patient = if front { watch } else { !self.open };
            let (gate, input) = self.poll(watch, (!patient).then_some(&LOOK_AGAIN))?;
            if gate {
                self.hear()?;
            } else if input && self.open && in_front(&self.terminal) {
                return Ok(Ready::Input);
            } else if input && !self.open {
                self.untouched = Some(0);
            }
        }
    }

    /// What is new since the last look.
    fn changed(&mut self, front: bool) -> Option<Ready> {
        if self.open {
            self.untouched = None;
            let was_away = std::mem::replace(&mut self.away, !front);
            return (was_away && front).then_some(Ready::Foreground);
        }
        let before = self.untouched.filter(|_| front)?;
        let now = ioctl_fionread(&self.terminal).unwrap_or_default();
        // Read by somebody else, or thrown away. At its end the terminal is ready for good.
        let gone = now == 0 && self.poll(true, Some(&NOW)).is_ok_and(|(_, input)| !input);
        self.untouched = (!gone).then_some(now);
        (now > before).then_some(Ready::Pressed)
    }

    /// Whether the gate and the terminal have something. Both are false after a signal, and when the time is over.
    fn poll(&self, watch: bool, limit: Option<&Timespec>) -> io::Result<(bool, bool)> {
        let mut fds = Vec::with_capacity(2);
        fds.extend(self.gate.iter().map(|gate| PollFd::new(gate, PollFlags::IN)));
        let gates = fds.len();
        if watch {
            fds.push(PollFd::new(&self.terminal, PollFlags::IN));
        }
        match poll(&mut fds, limit) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok((false, false)),
            Err(error) => return Err(error.into()),
        }
        let ready = |fds: &[PollFd<'_>]| fds.iter().any(|fd| !fd.revents().is_empty());
        Ok((ready(&fds[..gates]), ready(&fds[gates..])))
    }

    /// Takes what the gate says; the last word counts.
    fn hear(&mut self) -> io::Result<()> {
        let Some(gate) = &mut self.gate else { return Ok(()) };
        let mut said = [0; 64];
        match gate.read(&mut said) {
            Ok(count @ 1..) => {
                self.open = said[count - 1] != 0;
                // Whoever opened it may have seen the background, and the foreground may have come since.
                self.away = self.open;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Ok(_) | Err(_) => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    /// Whether there is nobody at the terminal any more. An end of input is only Ctrl-D.
    pub(crate) fn is_gone(&self) -> bool {
        let mut fds = [PollFd::new(&self.terminal, PollFlags::empty())];
        poll(&mut fds, Some(&NOW)).is_err() || !fds[0].revents().is_empty()
    }
}

impl Read for Keys {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.terminal.read(buffer)
    }
}

impl AsFd for Keys {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }
}
