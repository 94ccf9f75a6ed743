//! `spec`: from a description to a specification.

use super::admission::{Surroundings, check_command, ignored, load, lock, may_begin, project_of, started, warnings_of};
use super::author::{Author, AuthorPrompt, CheckedDraft};
use super::check::{self, Contents};
use super::draft::DraftPaths;
use super::name::Slug;
use super::project::{DESCRIPTION_BYTES_MAX, Entry, FileProblem, Project, SPECS, shown};
use super::prompts::{PromptText, user};
use super::template::PromptKind;
use super::violation::Rule;
use super::{invalid, tasks_in_words};
use crate::failure::Failure;
use crate::protocol::outbound::WorkflowStarted;
use crate::protocol::request::Settings;
use crate::protocol::words::{RefusalReason, WorkflowKind};
use crate::protocol::workflow::WorkflowOptions;
use std::path::Path;

/// The largest number of drafts to look at.
const DRAFTS: usize = 10_000;

/// Checks a run.start of `spec`.
///
/// # Errors
/// The reason for the refusal.
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

/// The inputs of a specification, checked.
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
