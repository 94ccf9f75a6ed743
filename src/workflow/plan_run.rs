//! `plan`: from a specification to a plan.

use super::admission::{DraftRequest, Surroundings, ignored, project_of, started};
use super::author::{Author, CheckedDraft};
use super::check::{self, Contents, PlanCheck};
use super::counted;
use super::draft::DraftPaths;
use super::name::Slug;
use super::plan::{Digest, PlanChange, WorkPlan, edited};
use super::project::{Argument, FileProblem, PlanPath, Project, shown};
use super::prompts::{CommonValues, PromptText};
use super::template::{PromptKind, has_placeholder};
use crate::protocol::failure::Failure;
use crate::protocol::outbound::WorkflowStarted;
use crate::protocol::request::Settings;
use crate::protocol::words::{Warning, WorkflowKind};
use crate::protocol::workflow::WorkflowSettings;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The specification of a plan.
pub(crate) struct SpecInput {
    /// The path, relative to the project's folder.
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// Checks a run.start of `plan`.
pub(crate) fn admit(
    settings: &mut Settings,
    options: WorkflowSettings,
    around: &Surroundings,
) -> Result<(Author, SpecInput, WorkflowStarted), Failure> {
    let kind = WorkflowKind::Plan;
    let project = project_of(settings)?;
    let from = around.typed_in.clone().unwrap_or_else(|| settings.cwd.clone());
    let spec = read_spec(&project, &settings.prompt, &from)?;
    settings.prompt.clear();
    let ignored = ignored(&options)?;
    let name = Slug::of_file(spec.path.file_name().unwrap_or_default());
    let paths = DraftPaths::plan(&name);
    let draft = shown(&paths.draft);
    let first = |text: &PromptText, values: &CommonValues| {
        // The check requires this line, and no placeholder holds the path.
        let line = format!("The plan has the line `Spec: {}`.", shown(&spec.path));
        let knowledge = format!("{line}\n{}", values.knowledge);
        let contents = String::from_utf8_lossy(&spec.bytes);
        let mut prompt = CommonValues { knowledge, ..values.clone() }.fill(text, |name| match name {
            "spec" => Some(&contents),
            "folder" => Some(&draft),
            _ => None,
        });
        if !has_placeholder(&text.text, "knowledge") {
            prompt.text = match prompt.raw {
                // The agent's own command must stay in front.
                true => format!("{}\n\n{line}\n", prompt.text.trim_end()),
                false => format!("{line}\n\n{}", prompt.text),
            };
        }
        prompt
    };
    let request = DraftRequest { kind, project, name, paths, ignored };
    let mut author = request.author(settings, &options, around, (PromptKind::Plan, first))?;
    let broken = super::spec::check("", &spec.bytes, &[]).1.len();
    if broken > 0 {
        let rules = if broken == 1 { "a rule".to_owned() } else { format!("{broken} rules") };
        let text = format!("{} breaks {rules}: see `spektacular spec check`.", shown(&spec.path));
        author.warnings.push((Warning::SpecViolations, text));
    }
    let started = started(kind, &author.project, &author.paths.target, options);
    Ok((author, spec, started))
}

/// The specification that an argument names.
fn read_spec(project: &Project, argument: &str, from: &Path) -> Result<SpecInput, Failure> {
    let argument = Argument::parse("SPEC", OsStr::new(argument))?;
    let path = project.spec(&argument, from)?;
    match project.markdown(&path).map_err(|problem| problem.refusal("SPEC"))? {
        Contents::Bytes(bytes) => Ok(SpecInput { path, bytes }),
        Contents::Missing => Err(FileProblem::Io(ErrorKind::NotFound).refusal("SPEC")),
        Contents::TooLarge => Err(FileProblem::TooLarge.refusal("SPEC")),
    }
}

/// Checks the draft. Error: it cannot be read.
pub(crate) fn check(author: &Author, spec: &SpecInput) -> Result<CheckedDraft, FileProblem> {
    let folder = &author.paths.draft;
    let path = PlanPath::in_folder(folder.clone());
    let request = PlanCheck { shown: folder, whole: true, of: Some(&spec.path), ignored: &author.ignored };
    let missing = |_| {
        let empty = check::plan(&author.project, &PlanPath::in_folder(folder.join("missing")), request);
        empty.unwrap_or_else(|_| (WorkPlan::default(), String::new(), Vec::new()))
    };
    // A draft that has become a link counts as missing.
    let (plan, text, violations) = check::plan(&author.project, &path, request).unwrap_or_else(missing);
    let counts = format!("{} and {}", counted(plan.phases.len(), "phase"), counted(plan.tasks(), "task"));
    let rewritten = edited(&text, &[PlanChange::Spec(Digest::of(&spec.bytes))]);
    let rewritten = rewritten.map(|text| (path.file.clone(), text.into_bytes()));
    Ok(CheckedDraft { violations, tasks: plan.tasks(), counts, rewritten })
}
