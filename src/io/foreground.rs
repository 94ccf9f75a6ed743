//! Whether this process is in the foreground of a terminal.

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};
use std::io;
use std::os::fd::AsFd;

/// Whether this process may read this terminal and change it. Also true of a terminal that does not control this
/// process, and of a descriptor that is not a terminal: those send no signal.
pub(super) fn in_front(terminal: impl AsFd) -> bool {
    tcgetpgrp(terminal).map_or(true, |group| group == getpgrp())
}

/// Whether output to stderr disturbs no other program's screen. True if stderr is not a terminal.
pub(crate) fn is_in_front() -> bool {
    in_front(io::stderr())
}

/// A terminal with `tostop` answers output from the background with SIGTTOU, again and again.
pub(super) fn takes_output(terminal: impl AsFd) -> bool {
    in_front(&terminal) || tcgetattr(&terminal).is_ok_and(|modes| !modes.local_modes.contains(LocalModes::TOSTOP))
}
