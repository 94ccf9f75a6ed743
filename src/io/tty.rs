//! Terminals: modes of one that carries JSON Lines, reading of one that a person types at, and the width of one that
//! shows a run.
//!
//! Changing a terminal's modes or discarding its input from the background raises SIGTTOU, which would stop the whole
//! process group. So this module does either only in the foreground.

use super::foreground::in_front;
use super::keys::{Gate, Keys};
use crate::system::controlling_terminal;
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetpgrp, tcgetwinsize, tcsetattr,
};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};

#[derive(Debug)]
pub struct Keyboard {
    terminal: File,
    gate: Option<Gate>,
    /// Whether no other program of a pipeline may change the terminal's modes at the same time, as a pager does.
    alone: bool,
}

impl Keyboard {
    pub fn at_stdin() -> Option<Keyboard> {
        stdin().map(Keyboard::at)
    }

    pub fn controlling() -> Option<Keyboard> {
        controlling().map(Keyboard::at)
    }

    fn at(terminal: File) -> Keyboard {
        let alone = ![io::stdin().as_fd(), io::stdout().as_fd()].into_iter().any(is_piped);
        Keyboard { terminal, gate: None, alone }
    }

    /// Typed while [`Keyboard::listen`] is on. `None`: no descriptor is left.
    pub fn keys(&mut self) -> Option<Keys> {
        let (keys, gate) = Keys::gated(self.terminal.try_clone().ok()?)?;
        self.gate = Some(gate);
        Some(keys)
    }

    /// Reading starts once the terminal is ours.
    pub fn listen(&self, listen: bool) {
        self.gate.iter().for_each(|gate| gate.set(listen));
    }

    pub fn is_in_front(&self) -> bool {
        in_front(&self.terminal)
    }

    /// Discards input that was typed and not read yet, including half a line. Does nothing in the background.
    pub fn forget(&self) {
        if self.is_in_front() {
            let _ = tcflush(&self.terminal, QueueSelector::IFlush);
        }
    }

    /// Switches the echo off until the returned value is dropped. Typed lines stay for the terminal's next reader. `None`:
    /// the echo is off already, the terminal is not ours now, or another program may change its modes.
    pub fn switch_echo_off(&self) -> Option<EchoOff> {
        let old = tcgetattr(&self.terminal).ok().filter(|_| self.alone && self.is_in_front())?;
        if !old.local_modes.contains(LocalModes::ECHO) {
            return None;
        }
        let terminal = self.terminal.try_clone().ok()?;
        let mut new = old.clone();
        // Keep line mode, in which the kernel edits the lines, and ISIG.
        new.local_modes -= LocalModes::ECHO | LocalModes::ECHONL;
        tcsetattr(&self.terminal, OptionalActions::Now, &new).ok()?;
        Some(EchoOff { terminal, old, modes: new.local_modes })
    }

    /// Switches line mode and echo off until the returned value is dropped, and discards input that was not read yet.
    /// `None`: this terminal does not support it, or it is not ours now.
    pub fn take_keys(&self, wanted: KeyWish) -> Option<KeyMode> {
        let old = tcgetattr(&self.terminal).ok().filter(|_| self.is_in_front())?;
        let terminal = self.terminal.try_clone().ok()?;
        let mut new = old.clone();
        // Keep ISIG, so that Ctrl-C and Ctrl-Z are still signals.
        new.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL | LocalModes::IEXTEN;
        // Enter and the line breaks of a paste arrive as they were sent.
        new.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR;
        new.special_codes[SpecialCodeIndex::VMIN] = 1;
        new.special_codes[SpecialCodeIndex::VTIME] = 0;
        if wanted.secret {
            // Disable the key for SIGQUIT, which is close to others.
            new.special_codes[SpecialCodeIndex::VQUIT] = 0;
        }
        tcsetattr(&self.terminal, OptionalActions::Flush, &new).ok()?;
        let mode = KeyMode { terminal, old, wanted };
        mode.mark_pastes(MARK_PASTES);
        Some(mode)
    }
}

/// The modes of the controlling terminal, for an end of this process in which nothing is dropped.
#[derive(Debug)]
pub(super) struct SavedModes {
    terminal: File,
    modes: Termios,
}

impl SavedModes {
    /// `None`: this process has no terminal.
    pub(super) fn save() -> Option<SavedModes> {
        let terminal = controlling()?;
        let modes = tcgetattr(&terminal).ok()?;
        Some(SavedModes { terminal, modes })
    }

    /// Sets them, if they differ and the terminal is ours. Never waits.
    pub(super) fn restore(&self) {
        let now = tcgetattr(&self.terminal).ok().filter(|_| in_front(&self.terminal));
        let Some(now) = now.filter(|now| now.local_modes != self.modes.local_modes) else { return };
        if !now.local_modes.contains(LocalModes::ICANON) {
            let _ = (&self.terminal).write_all(LEAVE_PASTES);
        }
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.modes);
    }
}

/// Whether this is a pipe, so that the program at its other end may use the same terminal.
fn is_piped(stream: BorrowedFd<'_>) -> bool {
    let kind = fstat(stream).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}

/// stdin, if that is a terminal. The controlling terminal is opened anew: only then may it be non-blocking, which
/// other processes that share stdin would not expect.
pub(super) fn stdin() -> Option<File> {
    let stdin = io::stdin();
    let is_ours = || !matches!(tcgetpgrp(&stdin), Err(Errno::NOTTY));
    let own = || stdin.as_fd().try_clone_to_owned().ok().map(File::from);
    stdin.is_terminal().then(|| is_ours().then(controlling).flatten().or_else(own)).flatten()
}

fn controlling() -> Option<File> {
    let terminal = File::options().read(true).write(true).open(controlling_terminal()).ok()?;
    ioctl_fionbio(&terminal, true).ok()?;
    Some(terminal)
}

/// The sequences that make a terminal put marks around a pasted text (bracketed paste), and end that.
const MARK_PASTES: &[u8] = b"\x1b[?2004h";
const LEAVE_PASTES: &[u8] = b"\x1b[?2004l";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyWish {
    pub secret: bool,
    /// Whether the terminal understands escape sequences, so that it can mark a paste.
    pub marks: bool,
}

/// A terminal without line mode and echo; dropping this restores them.
#[derive(Debug)]
pub struct KeyMode {
    terminal: File,
    old: Termios,
    pub wanted: KeyWish,
}

impl KeyMode {
    fn mark_pastes(&self, sequence: &[u8]) {
        // A terminal that takes no output now does not mark pastes either.
        let _ = (&self.terminal).write_all(if self.wanted.marks { sequence } else { &[] });
    }
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        if in_front(&self.terminal) {
            self.mark_pastes(LEAVE_PASTES);
            // The flush discards what was typed and not read, such as the end of a paste, so that the next reader of
            // the terminal does not get it.
            let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.old);
        }
    }
}

/// A terminal without echo; dropping this restores it.
#[derive(Debug)]
pub struct EchoOff {
    terminal: File,
    old: Termios,
    modes: LocalModes,
}

impl EchoOff {
    /// A shell changes the modes when it suspends this process.
    pub fn holds(&self) -> bool {
        tcgetattr(&self.terminal).is_ok_and(|modes| modes.local_modes == self.modes)
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        // Modes that another program has set since are left alone.
        if in_front(&self.terminal) && self.holds() {
            let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.old);
        }
    }
}

/// The width of the terminal at stderr; 80 if unknown.
pub(crate) fn columns() -> usize {
    let columns = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { 80 } else { columns }
}

/// The modes of terminals that carry JSON Lines, for hosts that can write to a program only through a terminal. A
/// terminal cuts a line at 4,096 bytes, echoes it into the output and ends lines with CR LF; [`LineModes::switch`]
/// turns all three off, and dropping this restores the modes.
#[derive(Default)]
pub(crate) struct LineModes(Vec<(Which, Termios)>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Stdin,
    Stdout,
}

impl LineModes {
    /// Switches each stream that is a terminal in whose foreground we are. A later call catches up on the other.
    pub(crate) fn switch(&mut self) {
        for which in [Which::Stdin, Which::Stdout] {
            if self.0.iter().any(|(switched, _)| *switched == which) {
                continue;
            }
            with(which, |fd| {
                let Some(old) = tcgetattr(fd).ok().filter(|_| in_front(fd)) else { return };
                let mut new = old.clone();
                match which {
                    // Keep ISIG, so that Ctrl-C is still a signal.
                    Which::Stdin => {
                        new.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL;
                        new.input_modes -= InputModes::IXON;
                    }
                    Which::Stdout => new.output_modes -= OutputModes::OPOST,
                }
                if tcsetattr(fd, OptionalActions::Now, &new).is_ok() {
                    self.0.push((which, old));
                }
            });
        }
    }

    pub(crate) fn restore(&mut self) {
        // Undo the last switch first, since both may be the same terminal.
        while let Some((which, old)) = self.0.pop() {
            with(which, |fd| {
                if in_front(fd) {
                    let _ = tcsetattr(fd, OptionalActions::Now, &old);
                }
            });
        }
    }
}

impl Drop for LineModes {
    fn drop(&mut self) {
        self.restore();
    }
}

fn with(which: Which, work: impl FnOnce(BorrowedFd<'_>)) {
    match which {
        Which::Stdin => work(io::stdin().as_fd()),
        Which::Stdout => work(io::stdout().as_fd()),
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyWish, Keyboard};
    use rustix::fs::{Mode, OFlags, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};
    use std::fs::File;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_panic_brings_the_echo_back() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let echo = || tcgetattr(&master).unwrap().local_modes.contains(LocalModes::ECHO);
        let mut keyboard = Keyboard { terminal: File::from(terminal), gate: None, alone: true };
        let keys = keyboard.keys().unwrap();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let echo_off = keyboard.switch_echo_off().unwrap();
            assert!(!echo() && echo_off.holds() && keyboard.switch_echo_off().is_none());
            std::panic::resume_unwind(Box::new("a fault"));
        }));
        assert!(ended.is_err() && echo());
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let _mode = keyboard.take_keys(KeyWish { secret: true, marks: true }).unwrap();
            assert!(!echo());
            std::panic::resume_unwind(Box::new("a fault"));
        }));
        assert!(ended.is_err() && echo());
        assert!(!keys.is_gone());
        drop(master);
        assert!(keys.is_gone());
    }
}
