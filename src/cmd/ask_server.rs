//! `ask-server`: an agent starts this command so that its model can ask the user of the run.

use crate::engine::relay;
use crate::protocol::failure::{Code, Failure};

/// Runs the command; returns the exit code.
pub(super) fn run() -> u8 {
    match relay() {
        Ok(()) => 0,
        Err(why) => super::complain(&Failure::new(Code::Usage, why)),
    }
}
