//! The commands. Each takes what was typed, already checked, and gives the exit code.

pub mod adhoc;
mod last;
pub mod manual;
pub mod replay;
mod texts;
