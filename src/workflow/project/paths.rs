//! The paths in a project, relative to its folder.

use crate::clean::one_line;
pub use crate::protocol::workflow::HOME;
use crate::workflow::name::Slug;
use std::path::{Path, PathBuf};

pub const CONFIG: &str = ".spektacular/config.json";
pub const SPECS: &str = ".spektacular/specs";
pub const PLANS: &str = ".spektacular/plans";
pub const PROMPTS: &str = ".spektacular/prompts";
pub const KNOWLEDGE: &str = ".spektacular/knowledge";
/// This machine's own data: sessions, locks, replaced files.
pub const LOCAL: &str = ".spektacular/local";

/// The files of a plan. The first one is the plan itself.
pub const PLAN_FILES: [&str; 3] = ["plan.md", "research.md", "context.md"];

pub fn spec_file(name: &Slug) -> PathBuf {
    format!("{SPECS}/{name}.md").into()
}

pub fn spec_draft(name: &Slug) -> PathBuf {
    format!("{SPECS}/{name}.draft.md").into()
}

pub fn plan_folder(name: &Slug) -> PathBuf {
    format!("{PLANS}/{name}").into()
}

pub fn plan_draft(name: &Slug) -> PathBuf {
    format!("{PLANS}/{name}.draft").into()
}

/// A path as messages and frames show it: on one line, without escape sequences. Secrets are not yet redacted.
pub fn shown(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}
