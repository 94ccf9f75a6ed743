//! Reads what a person types at a terminal, only while reading is allowed.
//!
//! A read from the background stops the whole process group with SIGTTIN, perhaps with a child of ours between fork
//! and exec. So we poll the terminal, which is always allowed, and read it only in the foreground. A terminal that a
//! person types at is read only while a question is open; input typed at other times stays for the next reader of the
//! terminal, usually the shell.
//!
//! Nothing tells a process that it gained or lost the terminal, except SIGCONT if a shell sends one, and bash sends
//! none to a running job. So whoever waits for the foreground checks again from time to time.

use super::foreground::in_front;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

#[derive(Debug)]
pub struct Keys {
    /// Non-blocking if it is this process's controlling terminal, so that no read waits for the foreground.
    terminal: File,
    /// Reports when a question opens and closes. `None`: the terminal may always be read.
    gate: Option<PipeReader>,
    open: bool,
    /// Whether a question is open while another process group has the terminal.
    away: bool,
    /// Set while the terminal has input that is not for us: the number of bytes last seen. The terminal is not polled
    /// then, since it would be ready all the time.
    untouched: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeysReady {
    Input,
    /// The terminal is ours again, and input is wanted.
    Foreground,
    /// Somebody pressed Enter while no question was open: the line is not read, but it is on the screen.
    Pressed,
}

/// Dropping it ends the reading.
#[derive(Debug)]
pub(super) struct Gate(PipeWriter);

impl Gate {
    pub(super) fn set(&self, open: bool) {
        // The write fails only if the reader is gone, and then nobody needs to know.
        let _ = (&self.0).write_all(&[u8::from(open)]);
    }
}

impl Keys {
    /// Reads whenever this process is in the foreground. The first time there counts as a return: the process may
    /// have been in the background when it looked at the terminal before.
    pub(super) fn always(terminal: File) -> Keys {
        Keys { terminal, gate: None, open: true, away: true, untouched: None }
    }

    /// Reads only while the gate is open. `None`: no descriptor is left.
    pub(super) fn gated(terminal: File) -> Option<(Keys, Gate)> {
        let (reader, writer) = io::pipe().ok()?;
        let keys = Keys { gate: Some(reader), open: false, away: false, ..Keys::always(terminal) };
        Some((keys, Gate(writer)))
    }

    /// Waits for the next event. After [`KeysReady::Input`] a read returns the input, unless somebody else took it.
    /// Error: `BrokenPipe` once the gate is dropped; otherwise the system's.
    pub(crate) fn wait(&mut self) -> io::Result<KeysReady> {
        loop {
            let front = in_front(&self.terminal);
            if let Some(ready) = self.changed(front) {
                return Ok(ready);
            }
            let watch = front && self.untouched.is_none();
            let patient = if front { watch } else { !self.open };
            let (gate, input) = self.poll(watch, (!patient).then_some(&LOOK_AGAIN))?;
            if gate {
                self.read_gate()?;
            } else if input && self.open && in_front(&self.terminal) {
                return Ok(KeysReady::Input);
            } else if input && !self.open {
                self.untouched = Some(0);
            }
        }
    }

    fn changed(&mut self, front: bool) -> Option<KeysReady> {
        if self.open {
            self.untouched = None;
            let was_away = std::mem::replace(&mut self.away, !front);
            return (was_away && front).then_some(KeysReady::Foreground);
        }
        let before = self.untouched.filter(|_| front)?;
        let now = ioctl_fionread(&self.terminal).unwrap_or_default();
        // Somebody else read the input or threw it away. At end of file the terminal stays ready forever, with
        // nothing to read.
        let gone = now == 0 && self.poll(true, Some(&NOW)).is_ok_and(|(_, input)| !input);
        self.untouched = (!gone).then_some(now);
        (now > before).then_some(KeysReady::Pressed)
    }

    /// Whether the gate has something, and whether the terminal has. Both false after a signal and when the time is up.
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

    /// The last message counts.
    fn read_gate(&mut self) -> io::Result<()> {
        let Some(gate) = &mut self.gate else { return Ok(()) };
        let mut said = [0; 64];
        match gate.read(&mut said) {
            Ok(count @ 1..) => {
                self.open = said[count - 1] != 0;
                // The opener may have seen us in the background, and the foreground may have come since.
                self.away = self.open;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Ok(_) | Err(_) => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    /// Returns 0 if no more keys come within this time.
    pub(crate) fn soon(&mut self, buffer: &mut [u8], time: Duration) -> usize {
        let time = Timespec::try_from(time).ok();
        match self.poll(true, time.as_ref()) {
            Ok((_, true)) if in_front(&self.terminal) => self.terminal.read(buffer).unwrap_or_default(),
            Ok(_) | Err(_) => 0,
        }
    }

    /// Whether the terminal hung up. An end of input alone is only Ctrl-D.
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
