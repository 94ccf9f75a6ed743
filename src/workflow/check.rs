//! Checks of a project's files.

use super::plan::{self, Digest, WorkPlan};
use super::project::{FILE_BYTES_MAX, FileProblem, PLAN_FILES, PlanPath, Project, shown};
use super::spec::{self, Spec};
use super::violation::{Rule, VIOLATIONS_MAX, Violation, Violations};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    Missing,
    TooLarge,
    Bytes(Vec<u8>),
}

impl Project {
    /// Error: the file is not a regular file, is a link, or cannot be read.
    pub fn markdown(&self, path: &Path) -> Result<Contents, FileProblem> {
        match self.read(path, FILE_BYTES_MAX) {
            Ok(Some(bytes)) => Ok(Contents::Bytes(bytes)),
            Ok(None) => Ok(Contents::Missing),
            Err(FileProblem::TooLarge) => Ok(Contents::TooLarge),
            Err(problem @ (FileProblem::Outside | FileProblem::Exhausted | FileProblem::Io(_))) => Err(problem),
        }
    }
}

pub fn spec(file: &str, contents: &Contents, ignored: &[Rule]) -> (Spec, Vec<Violation>) {
    match contents {
        Contents::Bytes(bytes) => spec::check(file, bytes, ignored),
        Contents::Missing | Contents::TooLarge => (Spec::default(), absent(file, contents)),
    }
}

#[derive(Clone, Copy, Debug)]
pub struct PlanCheck<'a> {
    /// The plan's folder as violations name it.
    pub shown: &'a Path,
    /// Whether research.md and context.md must be there.
    pub whole: bool,
    /// The specification to name, relative to the project's folder. `None`: outside a workflow, where any will do.
    pub of: Option<&'a Path>,
    pub ignored: &'a [Rule],
}

/// Returns the plan, its text, and the violations. Error: plan.md is not a regular file, is a link, or cannot be read.
pub fn plan(
    project: &Project,
    path: &PlanPath,
    check: PlanCheck<'_>,
) -> Result<(WorkPlan, String, Vec<Violation>), FileProblem> {
    let name = path.file.file_name().unwrap_or_default();
    let file = shown(&check.shown.join(name));
    let (plan, text, mut violations) = match project.markdown(&path.file)? {
        Contents::Bytes(bytes) => {
            let mut checked = plan::read(&bytes);
            if let Some(of) = check.of {
                checked.names(&of.to_string_lossy());
            }
            if let Some(spec) = spec_of(project, &checked.plan) {
                checked.covers(&spec);
            }
            let text = std::mem::take(&mut checked.text);
            let (plan, violations) = checked.violations(&file, check.ignored);
            (plan, text, violations)
        }
        contents @ (Contents::Missing | Contents::TooLarge) => {
            (WorkPlan::default(), String::new(), absent(&file, &contents))
        }
    };
    for name in PLAN_FILES.iter().skip(1).filter(|_| check.whole) {
        // A file that has become a link counts as missing.
        let contents = project.markdown(&path.folder.join(name)).unwrap_or(Contents::Missing);
        let mut found = Violations::default();
        if let Contents::Bytes(bytes) = &contents {
            super::markdown::decoded(bytes, &mut found);
        }
        let file = shown(&check.shown.join(name));
        violations.extend(found.sorted(&file, check.ignored).into_iter().chain(absent(&file, &contents)));
    }
    violations.truncate(VIOLATIONS_MAX);
    Ok((plan, text, violations))
}

/// Whether the specification has changed since the plan was made, or is gone.
pub(crate) fn spec_has_changed(project: &Project, plan: &WorkPlan) -> bool {
    let (Some(spec), Some(digest)) = (&plan.spec, &plan.digest) else { return false };
    let bytes = project.read(Path::new(&spec.path), FILE_BYTES_MAX).ok().flatten();
    bytes.is_none_or(|bytes| Digest::of_spec(&bytes) != *digest)
}

/// The path of the specification that a plan names, if it lies in the project.
pub(crate) fn spec_path(project: &Project, plan: &WorkPlan) -> Option<PathBuf> {
    project.inside("Spec", Path::new(&plan.spec.as_ref()?.path), project.folder()).ok()
}

fn spec_of(project: &Project, plan: &WorkPlan) -> Option<Spec> {
    let path = spec_path(project, plan)?;
    let Contents::Bytes(bytes) = project.markdown(&path).ok()? else { return None };
    Some(spec::check("", &bytes, &[]).0)
}

fn absent(file: &str, contents: &Contents) -> Vec<Violation> {
    let mut found = Violations::default();
    match contents {
        Contents::Missing => {
            let of_plan = PLAN_FILES.iter().find(|name| Path::new(file).ends_with(name));
            let name = of_plan.map_or("the specification", |name| name);
            found.absent(Rule::MissingFile, format!("Write {name} as a regular file."));
        }
        Contents::TooLarge => found.too_long(),
        Contents::Bytes(_) => {}
    }
    found.sorted(file, &[])
}
