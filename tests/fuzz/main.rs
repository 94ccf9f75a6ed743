//! Fuzzing on stable Rust, in this process and from a seed, and the model of a run.
//!
//! `cargo test --test fuzz` runs a short round of every target, always the same one. `FUZZ_SECONDS=3600 cargo test
//! --test fuzz -- --nocapture` runs new inputs for an hour.
//!
//! A failure prints the target, the seed and the minimized input, and explains how to keep that input in the corpus.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed"
)]

mod callers;
mod drivers;
mod formats;
mod input;
mod json;
mod model;
mod mutate;
#[expect(dead_code, reason = "the suite uses the rest")]
#[path = "../suite/playback/mod.rs"]
mod playback;
mod processes;
mod rng;
mod round;
mod secrets;
mod stage;
#[expect(dead_code, reason = "the suite uses the rest")]
#[path = "../support/mod.rs"]
mod support;
mod texts;
