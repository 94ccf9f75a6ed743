//! `plan`: from a specification to a plan.

use super::admission::{Surroundings, check_command, ignored, load, lock, may_begin, project_of, started, warnings_of};
use super::author::{Author, AuthorPrompt, CheckedDraft};
use super::check::{self, Contents, PlanCheck};
use super::draft::DraftPaths;
use super::name::Slug;
use super::plan::{Digest, PlanChange, WorkPlan, edited};
use super::project::{Argument, FileProblem, PlanPath, Project, shown};
use super::prompts::{PromptText, user};
use super::template::PromptKind;
use super::violation::Rule;
use super::{phases_in_words, tasks_in_words};
use crate::failure::Failure;
use crate::protocol::outbound::WorkflowStarted;
use crate::protocol::request::Settings;
use crate::protocol::words::{RefusalReason, Warning, WorkflowKind};
use crate::protocol::workflow::WorkflowOptions;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The specification of a plan.
pub struct SpecInput {
    /// Relative to the project's folder.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Checks a run.start of `plan`.
///
/// # Errors
/// The reason for the refusal.
pub fn admit(
    settings: &mut Settings,
    options: WorkflowOptions,
    around: &Surroundings,
) -> Result<(Author, SpecInput, WorkflowStarted), Failure> {
    let project = project_of(settings)?;
    let from = around.typed_in.clone().unwrap_or_else(|| settings.cwd.clone());
    let spec = read_spec(&project, &settings.prompt, &from)?;
    settings.prompt.clear();
    let ignored = ignored(&options)?;
    let name = Slug::of_file(spec.path.file_name().unwrap_or_default());
    let paths = DraftPaths::plan(&name);
    let about = shown(&paths.target);
    let found = Found { project, name, paths, spec, ignored };
    found.author(settings, options, around).map_err(|failure| failure.about(about))
}

/// The inputs of a plan, checked.
struct Found {
    project: Project,
    name: Slug,
    paths: DraftPaths,
    spec: SpecInput,
    ignored: Vec<Rule>,
}

impl Found {
    fn author(
        self,
        settings: &mut Settings,
        options: WorkflowOptions,
        around: &Surroundings,
    ) -> Result<(Author, SpecInput, WorkflowStarted), Failure> {
        const KIND: WorkflowKind = WorkflowKind::Plan;
        let Found { project, name, paths, spec, ignored } = self;
        may_begin(&project, &paths, &options, KIND)?;
        let texts = (load(PromptKind::Plan, &project, around)?, load(PromptKind::Continue, &project, around)?);
        let resumes = options.resume == Some(true);
        let mut warnings = warnings_of([if resumes { &texts.1 } else { &texts.0 }].into_iter());
        let found = super::spec::check("", &spec.bytes, &[]).1.len();
        if found > 0 {
            let rules = if found == 1 { "a rule".to_owned() } else { format!("{found} rules") };
            let text = format!("{} breaks {rules}: see `spektacular spec check`.", shown(&spec.path));
            warnings.push((Warning::SpecViolations, text));
        }
        let check = check_command("plan", &paths.draft)?;
        let user = user(settings.interactive);
        let text =
            prompt(&texts.0, &project, &paths, (&spec.path, &String::from_utf8_lossy(&spec.bytes), user, &check));
        let raw = texts.0.is_raw();
        let prompt = AuthorPrompt { text, raw, resume: texts.1, words: String::new(), user, check };
        let lock = lock(&project, &name, around)?;
        settings.cwd = project.folder().to_owned();
        let started = started(KIND, &project, &paths, options);
        Ok((Author { kind: KIND, project, name, paths, resumes, ignored, prompt, warnings, lock }, spec, started))
    }
}

/// The specification that an argument names.
fn read_spec(project: &Project, argument: &str, from: &Path) -> Result<SpecInput, Failure> {
    let argument = Argument::parse("SPEC", OsStr::new(argument))?;
    let path = project.spec(&argument, from)?;
    match project.markdown(&path).map_err(|problem| problem.refusal("SPEC"))? {
        Contents::Bytes(bytes) => Ok(SpecInput { path, bytes }),
        Contents::Missing => Err(Failure::refused_for(RefusalReason::NotFound, "SPEC does not exist.")),
        Contents::TooLarge => Err(FileProblem::TooLarge.refusal("SPEC")),
    }
}

/// Checks the draft.
///
/// # Errors
/// It cannot be read.
pub fn check(author: &Author, spec: &SpecInput) -> Result<CheckedDraft, FileProblem> {
    let folder = &author.paths.draft;
    let path = PlanPath::in_folder(folder.clone());
    let request = PlanCheck { shown: folder, whole: true, of: Some(&spec.path), ignored: &author.ignored };
    let missing = |_| {
        let empty = check::plan(&author.project, &PlanPath::in_folder(folder.join("missing")), request);
        empty.unwrap_or_else(|_| (WorkPlan::default(), String::new(), Vec::new()))
    };
    // A draft that has become a link counts as missing.
    let (plan, text, violations) = check::plan(&author.project, &path, request).unwrap_or_else(missing);
    let counts = format!("{} and {}", phases_in_words(plan.phases.len()), tasks_in_words(plan.tasks()));
    let rewritten = edited(&text, &[PlanChange::Spec(Digest::of(&spec.bytes))]);
    let rewritten = rewritten.map(|text| (path.file.clone(), text.into_bytes()));
    Ok(CheckedDraft { violations, tasks: plan.tasks(), counts, rewritten })
}

fn prompt(
    text: &PromptText,
    project: &Project,
    paths: &DraftPaths,
    (path, spec, user, check): (&Path, &str, &str, &str),
) -> String {
    let (folder, draft) = (project.folder().to_string_lossy(), shown(&paths.draft));
    // The check requires this line, and no placeholder holds the path.
    let line = format!("The plan has the line `Spec: {}`.", shown(path));
    let knowledge = format!("{line}\n{}", project.knowledge());
    let expanded = text.expanded(|name| match name {
        "project" => Some(&folder),
        "knowledge" => Some(&knowledge),
        "user" => Some(user),
        "check" => Some(check),
        "spec" => Some(spec),
        "folder" => Some(&draft),
        _ => None,
    });
    match text.has("knowledge") {
        true => expanded,
        // The agent's own command must stay in front.
        false if text.is_raw() => format!("{}\n\n{line}\n", expanded.trim_end()),
        false => format!("{line}\n\n{expanded}"),
    }
}
