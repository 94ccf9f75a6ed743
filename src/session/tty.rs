//! JSON Lines over a terminal, for hosts that can write to a program only through one. A terminal cuts a line at
//! 4,096 bytes, echoes it into the output and ends lines with CR LF; all three are switched off for the session.

use rustix::termios::{InputModes, LocalModes, OptionalActions, OutputModes, Termios, tcgetattr, tcsetattr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Switched terminals; dropping it switches them back.
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
