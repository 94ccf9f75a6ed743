//! The integration tests, in one binary: a module per capability. Linking once is faster than linking each file, and
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
mod alone;
mod anomalies;
mod answers;
mod approvals;
mod ask_server;
mod boundaries;
mod budgets;
mod cancel;
mod changes;
mod clients;
mod clock;
mod closed;
mod config;
mod configured;
mod conversations;
mod declined;
mod demo;
mod dialogue;
mod dropped;
mod escapes;
mod every_agent;
mod export;
mod fault_table;
mod faults;
mod forms;
mod framing;
mod git;
mod golden;
mod habits;
mod help;
mod hidden;
mod images;
mod integrate;
mod kept;
mod leaks;
mod lifecycle;
mod limits;
mod lines;
mod mcp_servers;
mod messages;
mod misspelt;
mod named_files;
mod oneshot;
mod open;
mod panics;
mod permissions;
mod piped;
mod pressure;
mod processes;
mod protocol_check;
mod published;
mod questions;
mod readme;
mod redact;
mod reference;
mod reference_agents;
mod reference_conversations;
mod reference_page;
mod reference_workflow;
mod releases;
mod report;
mod request;
mod requirements;
mod results;
mod secrets;
mod sessions;
mod simulated;
mod stress;
mod systems;
mod tab;
mod terminal;
mod tidy;
mod tidy_circles;
mod tidy_tests;
mod unanswered;
mod unattended;
mod untrusted;
mod workflow_check;
mod workflow_commits;
mod workflow_demo;
mod workflow_drafts;
mod workflow_formats;
mod workflow_implement;
mod workflow_implement_ends;
mod workflow_parts;
mod workflow_plan;
mod workflow_processes;
mod workflow_project;
mod workflow_protected;
mod workflow_served;
mod workflow_spec;
mod workflow_status;
mod worktree;
