//! `ask-server`: what an agent starts so that its model can ask the user of the run.

use crate::engine::relay;
use crate::failure::{Code, Failure};

/// Runs it; gives the exit code.
pub fn run() -> u8 {
    match relay() {
        Ok(()) => 0,
        Err(why) => super::complain(&Failure::new(Code::Usage, why)),
    }
}
