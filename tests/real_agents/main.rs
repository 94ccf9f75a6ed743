//! The program with real coding agents, each against a model that is a script on loopback: no account, no key, no
//! network but for the installation by npm. Only the agent is real here that the black-box tests imitate.
//!
//! The rows are functions that take an agent and run it with the one client, which knows none of them. What an agent
//! does in its own way is data: `ways.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed"
)]

mod agents;
mod client;
mod dialects;
mod install;
mod lab;
#[macro_use]
mod rows;
mod errors;
mod images;
mod permissions;
mod questions;
mod scenario;
mod sessions;
mod stops;
mod stub;
#[expect(dead_code, unused_imports, reason = "the suite uses the other helpers")]
#[path = "../support/mod.rs"]
mod support;
mod tools;
mod ways;
mod workflows;
