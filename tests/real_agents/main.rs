//! Tests of the program with real coding agents, each against a scripted model on loopback: no account, no key, no
//! network except for the installation by npm. Only the agent differs from the black-box tests, which imitate it.
//!
//! The rows are functions that take an agent and run it with the one client, which knows no agent. `ways.rs` holds the
//! differences between the agents as data.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed"
)]

mod agents;
mod client;
mod install;
mod lab;
#[macro_use]
mod rows;
mod acp_clients;
mod background;
mod chat;
mod conversations;
mod errors;
mod images;
#[path = "../support/length.rs"]
mod length;
mod limits;
mod mcp_servers;
mod own_setup;
mod permissions;
mod questions;
mod results;
mod sandbox;
mod sessions;
mod setup;
mod stops;
mod stub;
#[expect(dead_code, unused_imports, reason = "the suite uses the other helpers")]
#[path = "../support/mod.rs"]
mod support;
mod tools;
mod verify;
mod ways;
mod workflows;
