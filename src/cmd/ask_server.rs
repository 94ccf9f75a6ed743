//! `ask-server`: what an agent starts so that its model can ask the user of the run.

use crate::failure::{Code, Failure};
use crate::session;

/// Runs it; gives the exit code.
pub fn run() -> u8 {
    match session::relay() {
        Ok(()) => 0,
        Err(why) => super::complain(&Failure::new(Code::Usage, why)),
    }
}
