//! spektacular.
#![forbid(unsafe_code)]

pub mod agent;
pub mod clean;
pub mod cli;
pub mod cmd;
pub mod failure;
pub mod help;
pub mod protocol;
pub mod recording;
pub mod redact;
pub mod run;
pub mod session;
pub mod terminal;
