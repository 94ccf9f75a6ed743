//! The project of a workflow: its folder, its paths, and safe reading and writing of its files.
//!
//! An agent may change any file at any time. So every path is opened folder by folder from the project's folder, and no
//! link is followed: whatever the agent does, nothing outside the project is read or written.

mod find;
mod folder;

pub use super::spec::FILE_BYTES_MAX;
pub use crate::protocol::workflow::HOME;
pub use find::{Argument, PlanPath};
pub use folder::{Entry, FileProblem};

use super::name::Slug;
use crate::clean::one_line;
use std::io;
use std::path::{Path, PathBuf};

pub const DESCRIPTION_BYTES_MAX: u64 = 128 << 10;

// Paths, relative to the project's folder.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    folder: PathBuf,
}

impl Project {
    /// The project in this folder itself. Error: the folder does not exist.
    pub fn at(folder: &Path) -> io::Result<Project> {
        Ok(Project { folder: folder.canonicalize()? })
    }

    /// The project's folder: absolute, without links.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
