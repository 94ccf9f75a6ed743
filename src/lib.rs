//! spektacular runs a coding agent and answers its questions through one interface: JSON Lines on stdin and stdout
//! for an orchestrator, a terminal for a person. This page is the map.
//!
//! ```text
//! stdin lines ──┐ control
//! signals ──────┤                     ┌────────────── pure ───────────────┐
//! deadlines ────┼──► one select loop ─►│ run::Run::step(now, Event)        │
//! agent lines ──┤ data (32 lines)     │   ↕ agent::Driver (a line in,      │
//! ask-server ───┤                     │     neutral events and lines out)  │
//! agent exit ───┘                     │                                    │
//!                                     └──────────────┬────────────────────┘
//!                                                    ▼ effects
//!   Emit → redact → stamp → Front (JSON or terminal) → outbox → writer thread
//!   Spawn → child     ToAgent → the agent's stdin thread     Stop → process tree
//! ```
//!
//! # Where to go
//!
//! | module | what is there |
//! |---|---|
//! | [`cli`], [`help`] | argv → a request; help, completions and the manual page from the same rows |
//! | [`cmd`] | the commands, one row each in `cmd::COMMANDS`: `adhoc`, `agents`, `ask-server`, `config`, `export`, `open`, `replay`, `completions`, `man` |
//! | [`config`] | the layers of the configuration, its keys, its files, and which of them are trusted |
//! | [`protocol`] | messages in, frames out; the fields of run.start, one row each; limits, words, questions and the check of answers |
//! | [`run`] | one run: a pure state machine; questions, policies, deadlines, the ladder that stops an agent |
//! | [`agent`] | the [`agent::Driver`] trait, the dialects (any command too), the registry of agents, [`agent::native`] for what each is beside its dialect |
//! | [`session`] | the loop and its threads; processes, pipes, signals, the guard |
//! | [`terminal`] | a person as the second reader of the same frames |
//! | [`failure`] | every failure code with its exit code |
//! | [`redact`] | what must not be seen, and how it is found, also over pieces |
//! | [`recording`] | the format of recorded dialogues |
//! | [`suggest`] | names in messages: which may be shown, and which one was meant |
//! | [`clean`] | agent text without escape sequences |
//!
//! Dependencies point one way: `main → cmd → {config, terminal → session → run} → {agent, protocol}`. `protocol` knows no
//! agent; `agent` knows no frame, and shares the types of questions and settings. `tests/tidy.rs` holds these rules.
//!
//! # What always holds
//!
//! - A run has exactly one terminal frame, and it is the last: `Phase::Ended` ignores everything, one function builds
//!   terminal bodies, and the stamper refuses a frame after one.
//! - The outcome is decided when it is known; it is emitted when the agent's whole process tree is gone and its output
//!   is read to the end.
//! - One thread owns all state. The others move bytes. There is no Mutex and no callback.
//! - `run` and the drivers have no clock, no I/O and no randomness, so a recording replays to the same bytes.
//! - Nothing is read without a limit, and nothing waits for an orchestrator that does not read, but the agent.
//! - No text of an error holds a value that somebody typed. A name it may hold, if that is short and plain.
//!
//! # What is absent on purpose
//!
//! An async runtime, a PTY, a log framework, global state, a retry policy of ours (agents have their own), an agent's
//! name anywhere in `protocol` or `run`, and unsafe code.
#![forbid(unsafe_code)]

pub mod agent;
pub mod clean;
pub mod cli;
pub mod cmd;
pub mod config;
pub mod engine;
pub mod failure;
pub mod help;
pub mod io;
pub mod json_lines;
pub mod process;
pub mod protocol;
pub mod recording;
pub mod redact;
pub mod run;
pub mod suggest;
pub mod terminal;
