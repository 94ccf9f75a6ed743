//! The project that a workflow works in: its folder, the paths in it, and how files in it are read and written.
//!
//! An agent may change any file at any time. So every path is walked folder by folder from the open project's folder,
//! and no link is followed: nothing outside of the project is read or written, whatever the agent puts in the way.

mod find;
mod folder;
mod paths;

pub use find::{Argument, PlanPath};
pub use folder::{Entry, FileProblem};
pub use paths::{
    CONFIG, HOME, KNOWLEDGE, LOCAL, PLAN_FILES, PLANS, PROMPTS, SPECS, plan_draft, plan_folder, shown, spec_draft,
    spec_file,
};

use std::path::{Path, PathBuf};

pub use super::spec::FILE_BYTES_MAX;
/// The largest description, in bytes.
pub const DESCRIPTION_BYTES_MAX: u64 = 128 << 10;

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    folder: PathBuf,
}

impl Project {
    /// Its folder: absolute, without links.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
