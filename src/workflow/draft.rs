//! A draft and the finished file that it becomes: the file of a specification, or the folder of a plan.

use super::name::Slug;
use super::project::{
    Entry, FILE_BYTES_MAX, FileProblem, PLAN_FILES, Project, plan_draft, plan_folder, spec_draft, spec_file,
};
use std::path::{Path, PathBuf};

/// The paths of a draft, relative to the project's folder.
#[derive(Clone, Debug)]
pub(crate) struct DraftPaths {
    pub draft: PathBuf,
    pub finished: PathBuf,
    /// The file that messages name: the finished specification or plan.md.
    pub target: PathBuf,
    /// The names of the files in the folder. Empty: the draft is a single file.
    files: &'static [&'static str],
}

/// The bytes of each file. `None`: the file is missing.
pub(crate) type Snapshot = Vec<Option<Vec<u8>>>;

impl DraftPaths {
    pub(crate) fn spec(name: &Slug) -> DraftPaths {
        let finished = spec_file(name);
        DraftPaths { draft: spec_draft(name), target: finished.clone(), finished, files: &[] }
    }

    pub(crate) fn plan(name: &Slug) -> DraftPaths {
        let finished = plan_folder(name);
        DraftPaths { draft: plan_draft(name), target: finished.join(PLAN_FILES[0]), finished, files: &PLAN_FILES }
    }

    /// `base`: the draft or the finished file.
    pub(crate) fn files(&self, base: &Path) -> Vec<PathBuf> {
        match self.files {
            [] => vec![base.to_owned()],
            names => names.iter().map(|name| base.join(name)).collect(),
        }
    }

    /// The names of the workflow's own files in frames. These files are not artifacts of the agent.
    pub(crate) fn hidden(&self) -> Vec<String> {
        let slash = if self.files.is_empty() { "" } else { "/" };
        [&self.draft, &self.finished].map(|path| format!("{}{slash}", path.to_string_lossy())).to_vec()
    }

    /// Whether there is a usable file or folder. A link counts as missing. Error: a folder on the way is a link.
    pub(crate) fn is_there(&self, project: &Project, base: &Path) -> Result<bool, FileProblem> {
        let wanted = if self.files.is_empty() { Entry::File } else { Entry::Folder };
        Ok(project.entry(base)? == Some(wanted))
    }

    /// The current contents. Links, and files that cannot be read, count as missing.
    pub(crate) fn snapshot(&self, project: &Project, base: &Path) -> Snapshot {
        let read = |path: PathBuf| project.read(&path, FILE_BYTES_MAX).ok().flatten();
        self.files(base).into_iter().map(read).collect()
    }

    pub(crate) fn restore(&self, project: &Project, base: &Path, snapshot: &Snapshot) -> Result<(), FileProblem> {
        for (path, bytes) in self.files(base).iter().zip(snapshot) {
            if let Some(bytes) = bytes {
                project.write(path, bytes)?;
            }
        }
        Ok(())
    }
}
