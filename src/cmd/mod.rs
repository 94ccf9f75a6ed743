//! The commands. Each takes what was typed, already checked, and gives the exit code.

pub mod adhoc;
pub mod replay;
