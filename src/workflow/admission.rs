//! The common steps before an agent starts: the project, the ignored rules, files in the way, prompts, the lock.

use super::author::{Author, AuthorPrompt};
use super::draft::DraftPaths;
use super::invalid;
use super::lock::Lock;
use super::name::Slug;
use super::project::{FileProblem, Project, shown};
use super::prompts::{CommonValues, PromptText, SessionPrompt};
use super::template::PromptKind;
use super::violation::Rule;
use crate::config::Places;
use crate::process::own_executable;
use crate::protocol::failure::Failure;
use crate::protocol::outbound::{Text, WorkflowStarted};
use crate::protocol::request::Settings;
use crate::protocol::sentence::Sentence;
use crate::protocol::words::{RefusalReason, Warning, WorkflowKind};
use crate::protocol::workflow::{ShownOptions, WorkflowSettings};
use std::path::{Path, PathBuf};

/// The command line's and the machine's part of a workflow's input.
#[derive(Clone)]
pub(crate) struct Surroundings {
    /// The base of relative paths on the command line. `None`: run.start came as a message.
    pub typed_in: Option<PathBuf>,
    pub places: Places,
    /// Whether this is a dry run, which takes no lock.
    pub dry: bool,
    pub in_worktree: bool,
    /// The files of `--report` and `--record`, as typed. They are no work of the agent's.
    pub own: Vec<PathBuf>,
}

pub(super) fn project_of(settings: &Settings) -> Result<Project, Failure> {
    Project::around(&settings.cwd).map_err(|_| invalid("The working directory no longer exists."))
}

pub(super) fn ignored(options: &WorkflowSettings) -> Result<Vec<Rule>, Failure> {
    let rules = options.ignore.iter().map(|name| Rule::ignored(name));
    rules.collect::<Result<_, _>>().map_err(|why| {
        invalid(Sentence::pair(format!("run.start: `workflow.ignore`: {why}"), format!("--ignore: {why}")))
    })
}

pub(super) struct DraftRequest {
    pub(super) kind: WorkflowKind,
    pub(super) project: Project,
    pub(super) name: Slug,
    pub(super) paths: DraftPaths,
    pub(super) ignored: Vec<Rule>,
}

impl DraftRequest {
    /// Checks everything that must hold before the agent starts. `first` fills in the prompt for a new draft.
    pub(super) fn author(
        self,
        settings: &mut Settings,
        options: &WorkflowSettings,
        around: &Surroundings,
        (kind, first): (PromptKind, impl FnOnce(&PromptText, &CommonValues) -> SessionPrompt),
    ) -> Result<Author, Failure> {
        let target = shown(&self.paths.target);
        let author = || {
            self.may_begin(options)?;
            let load = |kind| PromptText::load(kind, &self.project, &around.places)?.checked();
            let (begin, resume) = (load(kind)?, load(PromptKind::Continue)?);
            let begins = (!options.resume).then_some(&begin);
            let continues = (options.resume || options.attempts > 1).then_some(&resume);
            let review = options.review.as_ref().map(|_| load(PromptKind::Review)).transpose()?;
            let all = [begins, continues, review.as_ref()].into_iter().flatten();
            let warnings = all.filter_map(|prompt| prompt.warning.clone());
            let warnings = warnings.map(|text| (Warning::UntrustedPrompt, text)).collect();
            let check = check_command(self.kind, &shown(&self.paths.draft))?;
            let values = CommonValues::new(&self.project, settings.interactive, check);
            let first = first(&begin, &values);
            let lock = match around.dry {
                true => None,
                false => Some(Lock::of_name(&self.project, self.name.as_str())?),
            };
            settings.cwd = self.project.folder().to_owned();
            let DraftRequest { kind, project, name, paths, ignored } = self;
            let (words, news, need) = Default::default();
            let prompt = AuthorPrompt { first, resume, words, news, review, need, values };
            let (doubt, source, options) = (None, None, options.clone());
            Ok(Author { kind, project, name, paths, doubt, options, ignored, prompt, warnings, source, _lock: lock })
        };
        author().map_err(|failure: Failure| failure.about(target))
    }

    fn may_begin(&self, options: &WorkflowSettings) -> Result<(), Failure> {
        let DraftRequest { kind, project, paths, .. } = self;
        let file = shown(&paths.target);
        let refusal = |problem: FileProblem| problem.refusal(&file);
        let finished = paths.is_there(project, &paths.finished).map_err(refusal)?;
        if !finished && project.entry(&paths.finished).map_err(refusal)?.is_some() {
            return Err(FileProblem::Outside.refusal(&file));
        }
        let draft = paths.is_there(project, &paths.draft).map_err(refusal)?;
        if options.resume {
            return match finished || draft {
                true => Ok(()),
                false => {
                    let message = format!("Neither {file} nor a draft of it exists: leave out --continue.");
                    Err(Failure::refused_for(RefusalReason::NotFound, message))
                }
            };
        }
        if finished && !options.force {
            let or = if *kind == WorkflowKind::Spec { ", or choose another name with --name" } else { "" };
            let message = format!("{file} exists: replace it with --force{or}.");
            return Err(Failure::refused_for(RefusalReason::Exists, message));
        }
        Ok(())
    }
}

pub(super) fn check_command(kind: WorkflowKind, file: &str) -> Result<String, Failure> {
    let program = own_executable::file().ok_or_else(own_executable::not_found)?;
    Ok(format!("{} {} check {file}", crate::clean::shell_word(&program.to_string_lossy()), super::document(kind).0))
}

pub(super) fn started(
    kind: WorkflowKind,
    project: &Project,
    target: &Path,
    options: WorkflowSettings,
) -> WorkflowStarted {
    WorkflowStarted {
        name: kind,
        project: Text::from(project.folder().to_string_lossy().into_owned()),
        target: Some(Text::from(shown(target))),
        options: ShownOptions { of: kind, settings: options },
    }
}
