//! Terminals: one that carries JSON Lines, one that a person types at, and how wide the one is that shows a run.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr,
};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// A terminal that a person types at.
#[derive(Debug)]
pub struct Keyboard(File);

impl Keyboard {
    /// stdin, if that is a terminal.
    pub fn at_stdin() -> Option<Keyboard> {
        let stdin = io::stdin();
        let own = stdin.as_fd().try_clone_to_owned().ok().filter(|_| stdin.is_terminal());
        own.map(|fd| Keyboard(File::from(fd)))
    }

    /// The terminal that this process belongs to, for where stdin is something else.
    pub fn controlling() -> Option<Keyboard> {
        File::options().read(true).write(true).open("/dev/tty").ok().map(Keyboard)
    }

    /// The same terminal once more. `None`: there is no descriptor left.
    pub fn again(&self) -> Option<Keyboard> {
        self.0.try_clone().ok().map(Keyboard)
    }

    /// Throws away what was typed and not read yet, also half a line.
    pub fn forget(&self) {
        let _ = tcflush(&self.0, QueueSelector::IFlush);
    }

    /// Stops the echo, as long as what comes back is kept.
    pub fn hide(&self) -> Option<Hidden> {
        let old = tcgetattr(&self.0).ok()?;
        let terminal = self.again()?;
        let mut new = old.clone();
        new.local_modes -= LocalModes::ECHO;
        new.local_modes |= LocalModes::ECHONL;
        // The one key that ends a process without a word: the echo would stay off.
        new.special_codes[SpecialCodeIndex::VQUIT] = 0;
        tcsetattr(&self.0, OptionalActions::Flush, &new).ok()?;
        Some(Hidden { terminal, old })
    }

    /// Whether there is nobody at it any more. An end of input is only Ctrl-D.
    pub(crate) fn is_gone(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_err() || !fds[0].revents().is_empty()
    }
}

impl Read for Keyboard {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl AsFd for Keyboard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A terminal without echo; dropping it brings the echo back.
#[derive(Debug)]
pub struct Hidden {
    terminal: Keyboard,
    old: Termios,
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // Half a secret is not for whoever reads this terminal next.
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.old);
    }
}

/// How many columns the terminal at stderr has; 80 where it does not say.
pub fn columns() -> usize {
    let columns = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { 80 } else { columns }
}

/// Terminals that carry JSON Lines, for hosts that can write to a program only through one. A terminal cuts a line at
/// 4,096 bytes, echoes it into the output and ends lines with CR LF; all three are switched off. Dropping this switches
/// them back.
pub(crate) struct LineModes(Vec<(Which, Termios)>);

#[derive(Clone, Copy)]
enum Which {
    Stdin,
    Stdout,
}

impl LineModes {
    /// Switches stdin and stdout, each if it is a terminal.
    pub(crate) fn switch() -> LineModes {
        let mut kept = Vec::new();
        for which in [Which::Stdin, Which::Stdout] {
            with(which, |fd| {
                let Ok(old) = tcgetattr(fd) else { return };
                let mut new = old.clone();
                match which {
                    // ISIG stays: Ctrl-C is still a signal.
                    Which::Stdin => {
                        new.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL;
                        new.input_modes -= InputModes::IXON;
                    }
                    Which::Stdout => new.output_modes -= OutputModes::OPOST,
                }
                if tcsetattr(fd, OptionalActions::Now, &new).is_ok() {
                    kept.push((which, old));
                }
            });
        }
        LineModes(kept)
    }
}

impl Drop for LineModes {
    fn drop(&mut self) {
        // The last switch first: both may be the same terminal.
        while let Some((which, old)) = self.0.pop() {
            with(which, |fd| {
                let _ = tcsetattr(fd, OptionalActions::Now, &old);
            });
        }
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
    use super::Keyboard;
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
        let keyboard = Keyboard(File::from(terminal));
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let _hidden = keyboard.hide().unwrap();
            assert!(!echo());
            std::panic::resume_unwind(Box::new("a fault"));
        }));
        assert!(ended.is_err() && echo());
        assert!(!keyboard.is_gone());
        drop(master);
        assert!(keyboard.is_gone());
    }
}
