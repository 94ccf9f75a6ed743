//! Workflows: a specification from an idea, a plan from a specification, and code that the plan's own commands verify.
//!
//! | file | contents |
//! |---|---|
//! | `project`, `name` | the project's folder, its paths, safe reading and writing |
//! | `markdown` | lines, fences, headings, list items |
//! | `spec`, `plan` | the two formats: types, rules, edits that change no other byte |
//! | `check`, `documents` | checks of a project's files, and the lists of its specifications and plans |
//! | `template`, `prompts` | prompts with placeholders, and the text of each that is in force |
//! | `init` | the folders of a project |
//! | `violation` | the rules, and their violations |
//! | `admission`, `author`, `spec_run`, `plan_run` | the workflows that write a draft: common checks, common steps, and each workflow |
//! | `conversation`, `observer`, `blocked` | the agent's sessions, and the facts about their turns |
//! | `slip` | a description that is probably a command |
//! | `draft`, `old`, `lock`, `permit` | their files, replaced files, locks, permissions |
//! | `workflow_run`, `part`, `combined_peer`, `own_step`, `stop` | one run for the orchestrator, made of several; its parts; its peer; parts without a process; the reasons for an early end |
//! | `implement` | phase by phase, each verified by its commands |
//!
//! The formats are pure: text in, types and violations out. A workflow is plain blocking code over [`workflow_run::WorkflowRun`].

pub(crate) mod admission;
pub(crate) mod author;
mod blocked;
pub mod check;
mod combined_peer;
mod conversation;
pub(crate) mod documents;
pub(crate) mod draft;
pub(crate) mod implement;
pub(crate) mod init;
pub(crate) mod lock;
pub(crate) mod markdown;
pub mod name;
mod observer;
pub(crate) mod old;
mod own_step;
mod part;
pub(crate) mod permit;
pub mod plan;
pub(crate) mod plan_run;
pub mod project;
pub mod prompts;
pub(crate) mod slip;
pub mod spec;
pub(crate) mod spec_run;
mod spent;
pub(crate) mod stop;
pub mod template;
pub mod violation;
pub(crate) mod workflow_run;

use crate::protocol::failure::{Code, Failure};
use crate::protocol::sentence::Sentence;
use crate::protocol::words::WorkflowKind;

fn invalid(message: impl Into<Sentence>) -> Failure {
    Failure::new(Code::InvalidRequest, message)
}

/// A number of things: `1 task`, `3 tasks`.
pub fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// The document that a workflow checks: the command that checks it, and its name in sentences.
fn document(kind: WorkflowKind) -> (&'static str, &'static str) {
    match kind {
        WorkflowKind::Spec => ("spec", "specification"),
        WorkflowKind::Plan | WorkflowKind::Implement => ("plan", "plan"),
    }
}
