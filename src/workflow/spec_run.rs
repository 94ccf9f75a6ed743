//! `spec`: from a description to a specification.

use super::author::{Author, AuthorPrompt, CheckedDraft};
use super::check::{self, Contents};
use super::draft::DraftPaths;
use super::lock::Lock;
use super::name::Slug;
use super::project::{DESCRIPTION_BYTES_MAX, Entry, FileProblem, Project, SPECS, shown};
use super::prompts::{PromptText, user};
use super::template::PromptKind;
use super::violation::Rule;
use super::{invalid, tasks_in_words};
use crate::config::Places;
use crate::failure::Failure;
use crate::process::myself;
use crate::protocol::outbound::{Text, WorkflowStarted};
use crate::protocol::request::Settings;
use crate::protocol::words::{RefusalReason, Warning, WorkflowKind};
use crate::protocol::workflow::WorkflowOptions;
use std::path::{Path, PathBuf};

/// What a workflow learns from the command line and the machine.
pub struct Surroundings {
    /// Where relative paths of the command line start. `None`: run.start came as a message.
    pub typed_in: Option<PathBuf>,
    /// The places of the configuration.
    pub places: Places,
    /// Whether the workflow only shows what it would do: it takes no lock.
    pub dry: bool,
}

/// The largest number of drafts to look at.
const DRAFTS: usize = 10_000;

/// Checks a run.start of `spec`.
///
/// # Errors
/// What is wrong, or in the way.
pub fn admit(
    settings: &mut Settings,
    options: WorkflowOptions,
    around: &Surroundings,
) -> Result<(Author, WorkflowStarted), Failure> {
    let project = project_of(settings)?;
    let description = std::mem::take(&mut settings.prompt);
    if description.len() as u64 > DESCRIPTION_BYTES_MAX {
        let message = "The description is longer than 128 KiB: put details into files that the agent reads.";
        return Err(Failure::refused_for(RefusalReason::TooLarge, message));
    }
    let resumes = options.resume == Some(true);
    if description.trim().is_empty() && !resumes {
        return Err(Failure::refused_for(RefusalReason::Invalid, "The description is empty: say what is needed."));
    }
    let ignored = ignored(&options)?;
    let name = match (&options.name, resumes) {
        (Some(name), _) => Slug::parse(name).ok_or_else(|| invalid("run.start: `workflow.name` is no name.".into()))?,
        (None, true) => only_draft(&project)?,
        (None, false) => Slug::of_description(&description),
    };
    let paths = DraftPaths::spec(&name);
    let about = shown(&paths.target);
    let found = Found { project, name, paths, description, ignored };
    found.author(settings, options, around).map_err(|failure| failure.about(about))
}

/// What a description is about.
struct Found {
    project: Project,
    name: Slug,
    paths: DraftPaths,
    description: String,
    ignored: Vec<Rule>,
}

impl Found {
    fn author(
        self,
        settings: &mut Settings,
        options: WorkflowOptions,
        around: &Surroundings,
    ) -> Result<(Author, WorkflowStarted), Failure> {
        let Found { project, name, paths, description, ignored } = self;
        let kind = WorkflowKind::Spec;
        let resumes = options.resume == Some(true);
        may_begin(&project, &paths, &options, kind)?;
        let texts = (load(PromptKind::Spec, &project, around)?, load(PromptKind::Continue, &project, around)?);
        let check = check_command("spec", &paths.draft)?;
        let warnings = warnings_of([if resumes { &texts.1 } else { &texts.0 }].into_iter());
        let user = user(settings.interactive);
        let (text, raw) = match &options.skill {
            Some(skill) => (by_skill(skill, &description, &paths.draft, settings.interactive), true),
            None => (prompt(&texts.0, &project, &paths, (&description, user, &check)), texts.0.is_raw()),
        };
        let prompt = AuthorPrompt { text, raw, resume: texts.1, words: description.trim().to_owned(), user, check };
        let lock = lock(&project, &name, around)?;
        settings.cwd = project.folder().to_owned();
        let options = WorkflowOptions { name: Some(name.to_string()), ..options };
        let started = started(kind, &project, &paths, options);
        Ok((Author { kind, project, name, paths, resumes, ignored, prompt, warnings, lock }, started))
    }
}

/// Checks the draft.
///
/// # Errors
/// It cannot be read.
pub fn check(author: &Author) -> Result<CheckedDraft, FileProblem> {
    // A draft that has become a link counts as missing.
    let contents = author.project.markdown(&author.paths.draft).unwrap_or(Contents::Missing);
    let (spec, violations) = check::spec(&shown(&author.paths.draft), &contents, &author.ignored);
    let tasks = spec.tasks.len();
    Ok(CheckedDraft { violations, tasks, counts: tasks_in_words(tasks), rewritten: None })
}

fn prompt(
    text: &PromptText,
    project: &Project,
    paths: &DraftPaths,
    (description, user, check): (&str, &str, &str),
) -> String {
    let (folder, knowledge, file) = (project.folder().to_string_lossy(), project.knowledge(), shown(&paths.draft));
    text.expanded(|name| match name {
        "project" => Some(&folder),
        "knowledge" => Some(&knowledge),
        "user" => Some(user),
        "check" => Some(check),
        "description" => Some(description),
        "file" => Some(&file),
        _ => None,
    })
}

/// The prompt that begins with a command of the agent's.
fn by_skill(skill: &str, description: &str, draft: &Path, is_present: bool) -> String {
    let mut text = format!("/{skill}\n\nDescription: {description}\nFile: {}\n", shown(draft));
    if !is_present {
        text += "No user is present: analyze the codebase to infer the requirements.\n";
    }
    text
}

/// The name of the only draft.
fn only_draft(project: &Project) -> Result<Slug, Failure> {
    let entries = project.list(Path::new(SPECS), DRAFTS).map_err(|problem| problem.refusal("The folder of drafts"))?;
    let mut names = entries.iter().filter(|(_, entry)| *entry == Entry::File).filter_map(|(name, _)| {
        let name = name.to_str()?.strip_suffix(".draft.md")?;
        Slug::parse(name)
    });
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name),
        (None, _) => {
            let message = "There is no draft to continue: name a specification with --name (workflow.name).";
            Err(Failure::refused_for(RefusalReason::NotFound, message))
        }
        (Some(_), Some(_)) => {
            let message = "There are several drafts: choose one with --name (workflow.name).";
            Err(Failure::refused_for(RefusalReason::NotFound, message))
        }
    }
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
                let message = format!("There is neither {file} nor a draft of it: leave out --continue.");
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

/// What run.started shows.
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
