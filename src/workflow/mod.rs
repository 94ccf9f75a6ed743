//! Workflows: a specification from an idea, a plan from a specification, and code that the plan's own commands verify.
//!
//! | file | contents |
//! |---|---|
//! | `project`, `name` | the project's folder, its paths, safe reading and writing, replaced files |
//! | `markdown` | lines, fences, headings, list items |
//! | `spec`, `plan` | the two formats: types, rules, edits that change no other byte |
//! | `check`, `documents` | checks of a project's files, and the lists of its specifications and plans |
//! | `template`, `prompts` | prompts with placeholders, and the text of each that is in force |
//! | `init` | the folders of a project |
//! | `violation` | the rules, and their violations |
//! | `admission`, `author`, `spec_run`, `plan_run` | the workflows that write a draft: common checks, common steps, and each workflow |
//! | `conversation` | the agent's sessions |
//! | `review`, `started` | the review of a phase or a draft; the work tree before a plan and before a phase |
//! | `consent`, `set_up` | consent to the commands of a file, and those that set up a worktree |
//! | `slip` | a description that is probably a command |
//! | `draft`, `lock`, `permit` | their files, locks, permissions |
//! | `workflow_run`, `part`, `budgets`, `stop` | the run with the check of its run.start, its parts, what all of them may use, the reasons for an early end |
//! | `implement` | phase by phase, each verified by its commands |
//!
//! The formats are pure: text in, types and violations out. A workflow is plain blocking code over [`workflow_run::WorkflowRun`].

pub(crate) mod admission;
pub(crate) mod author;
mod budgets;
pub mod check;
pub(crate) mod consent;
mod conversation;
pub(crate) mod documents;
pub(crate) mod draft;
pub(crate) mod implement;
pub(crate) mod init;
pub(crate) mod lock;
pub(crate) mod markdown;
pub mod name;
mod part;
pub(crate) mod permit;
pub mod plan;
pub(crate) mod plan_run;
pub mod project;
pub mod prompts;
pub(crate) mod review;
pub(crate) mod set_up;
pub(crate) mod slip;
pub mod spec;
pub(crate) mod spec_run;
pub(crate) mod started;
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

/// `1 task`, `3 tasks`.
pub fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// The first names, and the number of the others: `a, b and 3 more`.
pub(crate) fn first_of(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let first = names.take(most).collect::<Vec<_>>().join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

/// The document that a workflow checks: the command that checks it, and its name in sentences.
fn document(kind: WorkflowKind) -> (&'static str, &'static str) {
    match kind {
        WorkflowKind::Spec => ("spec", "specification"),
        WorkflowKind::Plan | WorkflowKind::Implement => ("plan", "plan"),
    }
}
