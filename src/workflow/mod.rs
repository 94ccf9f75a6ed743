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
//! | `outer`, `joined`, `stop` | one run for the orchestrator, made of several; its peer; what ends it early |
//!
//! The formats are pure: text in, types and violations out. A workflow is plain blocking code over [`outer::Outer`].

pub mod check;
pub mod init;
mod joined;
pub mod markdown;
pub mod name;
pub mod outer;
pub mod plan;
pub mod project;
pub mod prompts;
pub mod spec;
pub mod stop;
pub mod template;
pub mod violation;

use crate::failure::{Code, Failure};

/// The refusal of a field.
fn invalid(message: String) -> Failure {
    Failure::new(Code::InvalidRequest, message)
}
