//! The steps that `spec` and `plan` share before an agent starts: the project, the ignored rules, the files in the way, the
//! prompts, the lock.

use super::draft::DraftPaths;
use super::invalid;
use super::lock::Lock;
use super::name::Slug;
use super::project::{FileProblem, Project, shown};
use super::prompts::PromptText;
use super::template::PromptKind;
use super::violation::Rule;
use crate::config::Places;
use crate::failure::Failure;
use crate::process::myself;
use crate::protocol::outbound::{Text, WorkflowStarted};
use crate::protocol::request::Settings;
use crate::protocol::words::{RefusalReason, Warning, WorkflowKind};
use crate::protocol::workflow::WorkflowOptions;
use std::path::{Path, PathBuf};

/// The command line's and the machine's part of a workflow's input.
pub struct Surroundings {
    /// Where relative paths of the command line start. `None`: run.start came as a message.
    pub typed_in: Option<PathBuf>,
    /// The places of the configuration.
    pub places: Places,
    /// Whether the workflow only shows what it would do: it takes no lock.
    pub dry: bool,
}

/// The project around the run's directory.
pub(super) fn project_of(settings: &Settings) -> Result<Project, Failure> {
    Project::around(&settings.cwd).map_err(|_| invalid("The working directory no longer exists.".into()))
}

/// The rules that the check leaves out.
pub(super) fn ignored(options: &WorkflowOptions) -> Result<Vec<Rule>, Failure> {
    let rules = options.ignore.iter().flatten().map(|name| Rule::ignored(name));
    rules.collect::<Result<_, _>>().map_err(|why| invalid(format!("run.start: `workflow.ignore`: {why}")))
}

/// Refuses what is in the way of a draft.
pub(super) fn may_begin(
    project: &Project,
    paths: &DraftPaths,
    options: &WorkflowOptions,
    kind: WorkflowKind,
) -> Result<(), Failure> {
    let file = shown(&paths.target);
    let refusal = |problem: FileProblem| problem.refusal(&file);
    let finished = paths.is_there(project, &paths.finished).map_err(refusal)?;
    if !finished && project.entry(&paths.finished).map_err(refusal)?.is_some() {
        return Err(FileProblem::Outside.refusal(&file));
    }
    let draft = paths.is_there(project, &paths.draft).map_err(refusal)?;
    if options.resume == Some(true) {
        return match finished || draft {
            true => Ok(()),
            false => {
                let message = format!("Neither {file} nor a draft of it exists: leave out --continue.");
                Err(Failure::refused_for(RefusalReason::NotFound, message))
            }
        };
    }
    if finished && options.force != Some(true) {
        let or = if kind == WorkflowKind::Spec { ", or choose another name with --name" } else { "" };
        let message = format!("{file} exists: replace it with --force{or}.");
        return Err(Failure::refused_for(RefusalReason::Exists, message));
    }
    Ok(())
}

/// A prompt in force, checked.
pub(super) fn load(kind: PromptKind, project: &Project, around: &Surroundings) -> Result<PromptText, Failure> {
    PromptText::load(kind, project, &around.places)?.checked()
}

/// The warnings about prompts that do not count.
pub(super) fn warnings_of<'t>(texts: impl Iterator<Item = &'t PromptText>) -> Vec<(Warning, String)> {
    texts.filter_map(|text| Some((Warning::UntrustedPrompt, text.warning.clone()?))).collect()
}

/// The command that checks a draft.
pub(super) fn check_command(kind: &str, draft: &Path) -> Result<String, Failure> {
    let program = myself::file().ok_or_else(myself::not_found)?;
    Ok(format!("{} {kind} check {}", crate::clean::shell_word(&program.to_string_lossy()), shown(draft)))
}

/// The lock of a name, which all workflows share.
pub(super) fn lock(project: &Project, name: &Slug, around: &Surroundings) -> Result<Option<Lock>, Failure> {
    if around.dry {
        return Ok(None);
    }
    Lock::take(project, name.as_str(), name.as_str()).map(Some)
}

/// The object `workflow` of run.started.
pub(super) fn started(
    kind: WorkflowKind,
    project: &Project,
    paths: &DraftPaths,
    options: WorkflowOptions,
) -> WorkflowStarted {
    WorkflowStarted {
        name: kind,
        project: Text::from(project.folder().to_string_lossy().into_owned()),
        target: Some(Text::from(shown(&paths.target))),
        options,
    }
}
