//! The integration tests, in one binary: a folder per capability. Linking once is faster than linking each file, and
//! shared helpers compile once.
//!
//! A suite that changes its process (its directory, signals or children) is a target of its own: `tests/engine`,
//! `tests/tree.rs`. So are `tests/real_agents`, which a feature turns on, and the benchmark.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed"
)]

#[path = "../support/length.rs"]
mod length;
#[path = "../support/mod.rs"]
mod support;

mod playback;

mod acp;
mod agents;
mod changed_files;
mod config;
mod ends;
mod kit;
mod pages;
mod permissions;
mod privacy;
mod protocol;
mod questions;
mod sessions;
mod terminal;
mod tidy;
mod workflows;
