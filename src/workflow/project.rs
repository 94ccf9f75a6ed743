//! The project of a workflow: its folder, its paths, and safe reading and writing of its files.
//!
//! An agent may change any file at any time. So every path is opened folder by folder from the project's folder, and no
//! link is followed: whatever the agent does, nothing outside the project is read or written.

mod find;
mod folder;
mod paths;

pub use find::{Argument, PlanPath};
pub use folder::{Entry, FileProblem};
pub use paths::{
    CONFIG, HOME, KNOWLEDGE, LOCAL, PLAN_FILES, PLANS, PROMPTS, SPECS, plan_draft, plan_folder, shown, spec_draft,
    spec_file,
};

use std::io;
use std::path::{Path, PathBuf};

pub use super::spec::FILE_BYTES_MAX;
pub const DESCRIPTION_BYTES_MAX: u64 = 128 << 10;

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
