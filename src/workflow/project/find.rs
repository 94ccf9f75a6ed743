//! Finds the project around a folder, and the file that an argument names.

use super::folder::{Entry, FileProblem};
use super::{HOME, PLAN_FILES, Project, plan_folder, spec_file};
use crate::config::is_work_tree;
use crate::protocol::failure::Failure;
use crate::protocol::words::RefusalReason;
use crate::workflow::name::Slug;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// An argument SPEC or PLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A path: it contains a `/` or ends in `.md`.
    Path(PathBuf),
    Name(Slug),
}

/// The paths of a plan, relative to the project's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanPath {
    pub folder: PathBuf,
    pub file: PathBuf,
}

impl Argument {
    /// `what`: SPEC or PLAN. Error: the text is neither a path nor a name.
    pub fn parse(what: &str, text: &OsStr) -> Result<Argument, Failure> {
        let bytes = text.as_encoded_bytes();
        if bytes.contains(&b'/') || bytes.ends_with(b".md") {
            return Ok(Argument::Path(text.into()));
        }
        let name = text.to_str().and_then(Slug::parse).map(Argument::Name);
        name.ok_or_else(|| {
            let message = format!(
                "{what} must be a path with a `/` or `.md` in it, or a name of up to 50 lower-case letters, digits, `_` and `-`."
            );
            Failure::refused_for(RefusalReason::Invalid, message)
        })
    }
}

impl PlanPath {
    pub fn in_folder(folder: PathBuf) -> PlanPath {
        PlanPath { file: folder.join(PLAN_FILES[0]), folder }
    }

    /// The plan at a path, which is its folder or its file with the ending `.md`.
    pub fn new(path: PathBuf) -> PlanPath {
        if path.extension().is_some_and(|ending| ending == "md") {
            let folder = path.parent().map(Path::to_owned).unwrap_or_default();
            return PlanPath { folder, file: path };
        }
        PlanPath::in_folder(path)
    }
}

impl Project {
    /// The project around a folder: the nearest folder with a `.spektacular`, up to the root of the git work tree;
    /// without one, that root; outside git, the folder itself. Error: the folder does not exist.
    pub fn around(cwd: &Path) -> io::Result<Project> {
        let cwd = cwd.canonicalize()?;
        let root = cwd.ancestors().find(|folder| is_work_tree(folder));
        let within = |folder: &&Path| root.is_some_and(|root| folder.starts_with(root));
        let home = |folder: &&Path| folder.join(HOME).symlink_metadata().is_ok();
        let folder = cwd.ancestors().take_while(within).find(home).or(root).unwrap_or(&cwd).to_owned();
        Ok(Project { folder })
    }

    /// Relative to the project's folder. `from`: the base of relative paths. Error: it does not exist, or lies outside.
    pub fn spec(&self, argument: &Argument, from: &Path) -> Result<PathBuf, Failure> {
        match argument {
            Argument::Path(path) => self.inside("SPEC", path, from),
            Argument::Name(name) => {
                let path = spec_file(name);
                let others = || self.other_specs(name.as_str());
                self.must_be_file(&path, || format!("The specification {name}"), others).map(|()| path)
            }
        }
    }

    /// Error: the plan does not exist, or lies outside the project.
    pub fn plan(&self, argument: &Argument, from: &Path) -> Result<PlanPath, Failure> {
        let (plan, what, name) = match argument {
            Argument::Path(path) => {
                (PlanPath::new(self.inside("PLAN", path, from)?), "The plan.md of PLAN".to_owned(), "")
            }
            Argument::Name(name) => (PlanPath::in_folder(plan_folder(name)), format!("The plan {name}"), name.as_str()),
        };
        let others = || self.other_plans(name);
        self.must_be_file(&plan.file, || what, others).map(|()| plan)
    }

    /// Returns a user's path relative to the project's folder, without links. Error: it is missing, or lies outside.
    pub fn inside(&self, what: &str, path: &Path, from: &Path) -> Result<PathBuf, Failure> {
        let outside = || {
            let message = format!(
                "{what} must lie in the project's folder, and neither the file nor a folder from {HOME} down may be a link."
            );
            Failure::refused_for(RefusalReason::Outside, message)
        };
        let path = from.join(path);
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Err(outside()) };
        if has_link(&path) {
            return Err(outside());
        }
        let missing = |_| FileProblem::Io(ErrorKind::NotFound).refusal(what);
        let folder = folder.canonicalize().map_err(missing)?;
        let inside = folder.strip_prefix(&self.folder).map_err(|_| outside())?;
        folder.join(name).symlink_metadata().map_err(missing)?;
        Ok(inside.join(name))
    }

    /// `others`: a sentence that lists the files that exist, or an empty text.
    fn must_be_file(
        &self,
        path: &Path,
        what: impl FnOnce() -> String,
        others: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let problem = match self.entry(path) {
            Ok(Some(Entry::File)) => return Ok(()),
            Ok(Some(Entry::Folder | Entry::Link | Entry::Other)) => FileProblem::Outside,
            Ok(None) => {
                let refusal = FileProblem::Io(ErrorKind::NotFound).refusal(&what());
                return Err(Failure { message: refusal.message.with(&others()), ..refusal });
            }
            Err(problem) => problem,
        };
        Err(problem.refusal(&what()))
    }
}

/// Whether the last part of a path, or any part from `.spektacular` on, is a link.
fn has_link(path: &Path) -> bool {
    let mut prefix = PathBuf::new();
    let (mut home, mut last) = (false, false);
    for part in path.components() {
        prefix.push(part);
        home |= part.as_os_str() == HOME;
        last = prefix.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
        if home && last {
            return true;
        }
    }
    last
}
