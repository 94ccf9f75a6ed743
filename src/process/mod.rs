//! Processes: the agent's, with its pipes and its whole tree; the guard that ends them after a kill; short queries to
//! programs; and the terminal handed over to an agent's own interface.
//!
//! `std::process::Command` is used in this folder and nowhere else.

pub mod child;
pub mod git;
pub mod guard;
pub mod handover;
mod info;
pub(crate) mod myself;
pub mod query;
pub mod scratch;
pub mod tree;
