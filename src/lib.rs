//! spektacular runs a coding agent and answers its questions through one interface: JSON Lines on stdin and stdout
//! for an orchestrator, a terminal for a person. This page is the map.
//!
//! ```text
//! io: stdin lines ───┐ control
//!     signals ───────┤                  ┌──────────────── pure ────────────────┐
//!     deadlines ─────┼─► engine loop ──►│ run::Run::step(now, Event)            │
//! process: agent ────┤ data (lines)     │   ↕ agent::Driver (a line in,         │
//!          exit, git │                  │     neutral events and lines out)     │
//! ask-server ────────┘                  └──────────────────┬───────────────────┘
//!                                                          ▼ effects
//!   Emit → redact → Peer (json_lines or terminal) → outbox → stdout, or the writer thread
//!   Spawn, ToAgent, SignalTree → Host (a process tree, git, the guard)
//! ```
//!
//! # Where to go
//!
//! | module | contents |
//! |---|---|
//! | [`cli`], [`help`] | argv → a command: the parser, and the flags that several commands share; help, completions and the manual page from the rows |
//! | [`cmd`] | the commands, a file each with its row, texts, flags, reader and main function, listed in `cmd::COMMANDS`: `adhoc`, `chat`, `acp`, `init`, `spec`, `plan`, `implement`, `status`, `prompts`, `agents`, `ask-server`, `config`, `sessions`, `worktrees`, `export`, `open`, `integrate`, `protocol`, `demo`, `replay`, `report`, `completions`, `man`; `cmd::protocol_check` judges clients. `adhoc` exits with the code of `run::Run`, and at a terminal after a signal with 128 and its number |
//! | [`config`] | the layers of the configuration, its keys, its files, and which of them are trusted |
//! | [`engine`] | the one run of a process: its loop, its conductor, the peers' trait, preparation, dry run |
//! | `acp` | sessions for a client of the Agent Client Protocol; each has a run in a child of this program |
//! | [`json_lines`], [`terminal`] | the two peers of a run: an orchestrator, and a person; `terminal::ask` has the keyboard and its echo |
//! | [`io`] | stdin, the two output doors, terminal modes, signals, the backstop of every end |
//! | [`process`] | the agent's process and its tree, the guard, git, queries to programs, the hand-over of the terminal |
//! | [`workflow`] | `spec`, `plan` and `implement`: blocking code that gives its run one part after another (`workflow_run`); the two formats and their checks, prompts, drafts, verification |
//! | [`run`] | one run: a pure state machine. `run::active_run` passes each event to its subject: `open_questions` (also policies, and permissions that nobody answers), `turns`, `budget`, and others. `part` begins and ends the parts of a workflow's run, `step` those without the agent. A cancel or a signal goes from `orchestrator` to `stop`, which takes the steps of the `stop_ladder`; `outcome` ends turns and the run |
//! | [`agent`] | the [`agent::Driver`] trait, the dialects (any command too), the demo agent and its scenarios, the registry of agents, `agent::native` for each agent outside its dialect; `agent::limit`: who keeps each limit of a run, which a driver's `features` says |
//! | [`protocol`] | messages in, frames out (`outbound`), the kinds of run.progress (`kinds`); the fields of run.start, one row each; sizes (`limits`), words, failure codes, errors and warnings in the words of both readers (`sentence`), questions and the check of answers; [`protocol::publish`] describes them to other languages |
//! | [`redact`] | the search for secrets, also across the pieces of a message |
//! | `integrate` | files for other programs that use this one, and their configuration |
//! | [`recording`] | the format of recorded dialogues |
//! | `report` | a run or a recording as one page of HTML |
//! | [`scripted_model`] | a model on loopback that plays a scenario in the API of a provider, for `agents verify` and the tests with real agents |
//! | `sessions` | the last sessions of each agent, for `--continue` |
//! | `system` | the differences between systems, behind one interface: a form for Linux and one for the others |
//! | `suggest` | typed names as messages show them, and did-you-mean |
//! | `base64` | the encoding of images, and of secrets to find |
//! | [`json`] | the reader and the writer of JSON |
//! | `markers` | markers in a text that arrives in pieces |
//! | `paths` | absolute paths without dots |
//! | [`clean`] | agent text without escape sequences |
//!
//! Dependencies point one way: `main → cmd → {workflow, json_lines, terminal → engine → {config, process → io, run}} →
//! {agent, protocol}`. `protocol` knows no agent; `agent` knows no frame, and shares the types of questions and settings.
//! `tests/suite/tidy` holds these rules.
//!
//! # Invariants
//!
//! - A run has exactly one terminal frame, and it is the last: `Phase::Ended` ignores everything, one function builds
//!   terminal bodies, and both the conductor and the stamper refuse a frame after one.
//! - The outcome is decided when it is known; it is emitted when the agent's whole process tree is gone and its output
//!   is read to the end.
//! - One thread owns all state. The others move bytes, and that of stdin parses its messages, so that no signal waits for
//!   a long one. There is no Mutex and no callback.
//! - `run` and the drivers have no clock, no I/O and no randomness, so a recording replays to the same bytes. One
//!   exception: `run::asked_question` and the [`protocol::question::Judge`] of spec and plan resolve symbolic links on disk when
//!   they judge a path, because a link that the agent made a moment ago must not lead a permission out of the project.
//! - The conductor has no thread and no channel, so recordings play in tests through the code that real runs use.
//! - From the first signal, cancel or deadline on, the process ends within 4 s, whatever a thread, a channel or a file of
//!   its own does: nothing on that way waits without a limit, and `io::backstop` ends the process if it does.
//! - A process has one run, one host and one reaper. A part of a workflow's run leaves no thread and no descriptor behind.
//! - A workflow and the loop of its run share a thread and never work at the same time: whatever of a workflow's own takes
//!   long is work in a thread, for which the loop waits as a part of the run.
//! - Nothing is read without a limit, and only the agent waits for an orchestrator that does not read.
//! - Nothing waits for more to come: the loop gets the lines that one read brought, and a chunk holds the frames that
//!   were ready when it was written.
//! - Either the reader or the loop has the agent's lines, so at most one read of them waits. The loop takes one line at a
//!   time, and at most 64 in a row before a message or a signal has its turn.
//! - No error text holds a value that somebody typed.
//!
//! # Absent on purpose
//!
//! An async runtime, a PTY, a log framework, global state, retries of our own (agents have theirs), an agent's name
//! anywhere in `protocol` or `run`, and unsafe code.
#![forbid(unsafe_code)]
// Each match states its decision about every variant, so that a new one cannot be forgotten.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod acp;
pub mod agent;
mod base64;
pub mod clean;
pub mod cli;
pub mod cmd;
pub mod config;
pub mod engine;
pub mod help;
mod integrate;
pub mod io;
pub mod json;
pub mod json_lines;
mod markers;
mod paths;
pub mod process;
pub mod protocol;
pub mod recording;
pub mod redact;
mod report;
pub mod run;
pub mod scripted_model;
mod sessions;
mod suggest;
mod system;
pub mod terminal;
pub mod workflow;
