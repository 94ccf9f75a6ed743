//! `ask-server`: what an agent starts so that its model can ask the user of the run.

use crate::failure::Code;
use crate::session;

/// Runs it; gives the exit code.
pub fn run() -> u8 {
    match session::relay() {
        Ok(()) => 0,
        Err(why) => {
            session::diagnose(&format!("spektacular: {}: {why}", Code::Usage.name()));
            Code::Usage.exit_code()
        }
    }
}
