//! Workflows: a specification from an idea, a plan from a specification, and code that the plan's own commands verify.
//!
//! | file | contents |
//! |---|---|
//! | `project`, `name` | the project's folder, the paths in it, safe reading and writing |
//! | `markdown` | lines, fences, headings, list items |
//! | `spec`, `plan` | the two formats: types, rules, edits that change no other byte |
//! | `check` | checks of the files of a project |
//! | `template`, `prompts` | prompts with placeholders, and which text of one is in force |
//! | `init` | the folders of a project |
//! | `violation` | what a file breaks |
//! | `admission`, `author`, `spec_run`, `plan_run` | the workflows that write a draft: their common checks, their common course, and each one |
//! | `draft`, `old`, `lock`, `last_session`, `permit` | their files, what gave way, locks, sessions to go on with, permissions |
//! | `outer`, `joined`, `quiet`, `stop` | one run for the orchestrator, made of several; its peer; parts without a process; what ends it early |
//! | `implement` | phase by phase, each verified by its commands |
//!
//! The formats are pure: text in, types and violations out. A workflow is plain blocking code over [`outer::Outer`].

pub mod admission;
pub mod author;
pub mod check;
pub mod draft;
pub mod implement;
pub mod init;
mod joined;
pub mod last_session;
pub mod lock;
pub mod markdown;
pub mod name;
pub mod old;
pub mod outer;
pub mod permit;
pub mod plan;
pub mod plan_run;
pub mod project;
pub mod prompts;
mod quiet;
pub mod spec;
pub mod spec_run;
pub mod stop;
pub mod template;
pub mod violation;

use crate::failure::{Code, Failure};

/// The refusal of a field.
fn invalid(message: String) -> Failure {
    Failure::new(Code::InvalidRequest, message)
}

/// `1 task`, `3 tasks`.
pub fn tasks_in_words(count: usize) -> String {
    if count == 1 { "1 task".into() } else { format!("{count} tasks") }
}

/// `1 phase`, `3 phases`.
pub fn phases_in_words(count: usize) -> String {
    if count == 1 { "1 phase".into() } else { format!("{count} phases") }
}
