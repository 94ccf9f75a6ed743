//! `spec`: from a description to a specification.

use super::admission::{DraftRequest, Surroundings, ignored, project_of, started};
use super::author::{Author, CheckedDraft};
use super::check::{self, Contents};
use super::counted;
use super::draft::DraftPaths;
use super::name::Slug;
use super::plan::{self, Digest};
use super::plan_run;
use super::project::{DESCRIPTION_BYTES_MAX, FILE_BYTES_MAX, LOCAL, PLAN_FILES, Project, plan_folder, shown};
use super::prompts::{CommonValues, PromptText, SessionPrompt};
use super::slip::{command_word, mistaken};
use super::template::PromptKind;
use crate::protocol::failure::Failure;
use crate::protocol::outbound::WorkflowStarted;
use crate::protocol::request::Settings;
use crate::protocol::words::{RefusalReason, Warning, WorkflowKind};
use crate::protocol::workflow::{NAME_FORM, WorkflowSettings};
use std::path::{Path, PathBuf};

/// The limit of the numbers at the end of a name that is taken.
const NUMBERS: u32 = 1000;

pub(crate) fn admit(
    settings: &mut Settings,
    options: WorkflowSettings,
    around: &Surroundings,
) -> Result<(Author, WorkflowStarted), Failure> {
    let kind = WorkflowKind::Spec;
    let project = project_of(settings)?;
    let description = std::mem::take(&mut settings.prompt);
    if description.len() as u64 > DESCRIPTION_BYTES_MAX {
        let message = "The description is longer than 128 KiB: put details into files that the agent reads.";
        return Err(Failure::refused_for(RefusalReason::TooLarge, message));
    }
    let resumes = options.resume;
    if description.trim().is_empty() && !resumes {
        return Err(Failure::refused_for(RefusalReason::Invalid, "The description is empty: describe the need."));
    }
    let doubt = if resumes || around.typed_in.is_none() { None } else { command_word(&description) };
    if let Some(word) = doubt.filter(|_| !settings.interactive) {
        return Err(mistaken(word));
    }
    let ignored = ignored(&options)?;
    let name = match (&options.name, resumes) {
        (Some(name), _) => {
            Slug::parse(name).ok_or_else(|| Failure::invalid_start(format!("`workflow.name` must be {NAME_FORM}.")))?
        }
        (None, true) => only_draft(&project)?,
        (None, false) => free(&project, Slug::of_description(&description), &description, options.force),
    };
    let made = (options.name.is_none() && !resumes).then(|| Slug::of_description(&description));
    let paths = DraftPaths::spec(&name);
    let file = shown(&paths.draft);
    let interactive = settings.interactive;
    let first = |text: &PromptText, values: &CommonValues| match &options.skill {
        Some(skill) => by_skill(skill, &description, &file, interactive),
        None => values.fill(text, |name| match name {
            "description" => Some(&description),
            "file" => Some(&file),
            _ => None,
        }),
    };
    let request = DraftRequest { kind, project, name, paths, ignored };
    let mut author = request.author(settings, &options, around, (PromptKind::Spec, first))?;
    author.prompt.words = options.words.as_deref().unwrap_or(&description).trim().to_owned();
    author.prompt.need = description.trim().to_owned();
    if let Some(made) = made.filter(|made| *made != author.name) {
        let text = format!("{made} is the name of another description, so this specification is {}", author.name);
        author.warnings.push((Warning::NameTaken, text));
    }
    if resumes {
        author.prompt.news = news(&author);
    } else {
        author.source = Some((described(&author.name), description.into_bytes()));
    }
    author.doubt = doubt;
    let options = WorkflowSettings { name: Some(author.name.to_string()), ..options };
    let started = started(kind, &author.project, &author.paths.target, options);
    Ok((author, started))
}

/// The part of the prompt about the plan that was made from the specification. Empty: there is none.
fn news(author: &Author) -> String {
    let folder = plan_folder(&author.name);
    let read = |path: &Path| author.project.read(path, FILE_BYTES_MAX).ok().flatten();
    let Some(text) = read(&folder.join(PLAN_FILES[0])) else { return String::new() };
    let plan = plan::read(&text).plan;
    let mut news = format!(
        "# The plan\n\n`{}` was made from this specification. Its phases:\n\n{}\nKeep the ids of the requirements that stay, and \
         give new ones new ids. Where a requirement that has been met changes, say so in its text.",
        shown(&folder.join(PLAN_FILES[0])),
        plan_run::listed(&plan.phases)
    );
    let name = shown(&author.paths.target);
    let texts = read(&plan_run::planned(&author.name)).zip(read(&author.paths.finished));
    if let Some((old, now)) = texts.filter(|(old, now)| Digest::of_spec(old) != Digest::of_spec(now)) {
        let how = plan_run::changed_text(&name, &String::from_utf8_lossy(&old), &String::from_utf8_lossy(&now));
        news.push_str(&format!(
            "\n\n# The specification changed\n\n`{name}` has changed since that plan was made:\n\n{how}"
        ));
    }
    news
}

/// The file that remembers the description of a specification.
fn described(name: &Slug) -> PathBuf {
    Path::new(LOCAL).join("described").join(format!("{name}.txt"))
}

/// The first of `made`, `made-2` and so on that no other description has. An unknown one counts as the same.
fn free(project: &Project, made: Slug, description: &str, force: bool) -> Slug {
    let is_there = |path: &Path| matches!(project.entry(path), Ok(Some(_)));
    let is_other = |name: &Slug| {
        let paths = DraftPaths::spec(name);
        let is_taken = is_there(&paths.finished) || is_there(&paths.draft);
        let known = project.read(&described(name), DESCRIPTION_BYTES_MAX).ok().flatten();
        is_taken && known.is_some_and(|known| known != description.as_bytes())
    };
    if force || !is_other(&made) {
        return made;
    }
    (2..NUMBERS).map(|number| made.numbered(number)).find(|name| !is_other(name)).unwrap_or(made)
}

pub(crate) fn check(author: &Author) -> CheckedDraft {
    // A draft that has become a link counts as missing.
    let contents = author.project.markdown(&author.paths.draft).unwrap_or(Contents::Missing);
    let (spec, violations) = check::spec(&shown(&author.paths.draft), &contents, &author.ignored);
    let tasks = spec.tasks.len();
    CheckedDraft { violations, tasks, counts: counted(tasks, "task"), rewritten: None, stale: None, compared: None }
}

/// The prompt that begins with one of the agent's own commands.
fn by_skill(skill: &str, description: &str, file: &str, user_is_present: bool) -> SessionPrompt {
    let mut text = format!("/{skill}\n\nDescription: {description}\nFile: {file}\n");
    if !user_is_present {
        text += "No user is present: analyze the codebase to infer the requirements.\n";
    }
    SessionPrompt { text, raw: true }
}

fn only_draft(project: &Project) -> Result<Slug, Failure> {
    let specs = project.specs().map_err(|problem| problem.refusal("The folder of drafts"))?;
    let mut names = specs.iter().filter(|spec| spec.is_draft).filter_map(|draft| Slug::parse(&draft.name));
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name),
        (None, _) => {
            let message = "No draft to continue: name a specification with --name (workflow.name).";
            Err(Failure::refused_for(RefusalReason::NotFound, message))
        }
        (Some(_), Some(_)) => {
            let message = "Several drafts exist: choose one with --name (workflow.name).";
            Err(Failure::refused_for(RefusalReason::NotFound, message))
        }
    }
}
