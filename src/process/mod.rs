//! Processes: the agent's process with its pipes and its whole tree; the guard, which kills that tree if this program
//! is killed; short queries to other programs; and handing the terminal over to an agent's own interface.
//!
//! `std::process::Command` is used in this folder and nowhere else.

pub(crate) mod batch;
pub mod child;
pub mod git;
pub mod guard;
pub mod handover;
mod info;
pub mod myself;
pub mod query;
mod reaper;
pub mod scratch;
pub mod tree;
