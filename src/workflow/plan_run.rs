//! `plan`: from a specification to a plan.

use super::admission::{DraftRequest, Surroundings, ignored, project_of, started};
use super::author::{Author, CheckedDraft};
use super::check::{self, Contents, PlanCheck};
use super::counted;
use super::draft::{DraftPaths, Snapshot};
use super::markdown::fenced;
use super::name::Slug;
use super::plan::{self, Digest, PlanChange, PlanPhase, WorkPlan, edited, without_own_lines};
use super::project::{Argument, FILE_BYTES_MAX, FileProblem, LOCAL, PlanPath, Project, shown};
use super::prompts::{CommonValues, PromptText};
use super::template::{PromptKind, has_placeholder};
use crate::agent::edits::unified_diff;
use crate::protocol::failure::Failure;
use crate::protocol::outbound::WorkflowStarted;
use crate::protocol::request::Settings;
use crate::protocol::words::{Warning, WorkflowKind};
use crate::protocol::workflow::WorkflowSettings;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub(crate) struct SpecInput {
    /// The path, relative to the project's folder.
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    /// The plan that is continued, if it was made from another version.
    before: Option<PlanBefore>,
}

/// A plan that was made from another version of its specification.
pub(crate) struct PlanBefore {
    digest: Digest,
    /// The files of the plan, without our own lines.
    files: Snapshot,
    phases: Vec<PlanPhase>,
}

impl PlanBefore {
    /// `None`: the specification has not changed. `made_from`: the one that the last run remembered.
    fn find(author: &Author, made_from: Option<&[u8]>, now: &[u8]) -> Option<PlanBefore> {
        let DraftPaths { draft, finished, .. } = &author.paths;
        let is_draft = author.paths.is_there(&author.project, draft).unwrap_or(false);
        let files = author.paths.snapshot(&author.project, if is_draft { draft } else { finished });
        let plan = files.first()?.as_deref().map(|bytes| plan::read(bytes).plan)?;
        // A draft that was never finished has no digest.
        let digest = plan.digest.or_else(|| made_from.map(Digest::of_spec))?;
        let is_stale = author.options.resume && digest != Digest::of_spec(now);
        is_stale.then(|| PlanBefore { digest, files: comparable(files), phases: plan.phases })
    }

    fn news(&self, spec: &Path, made_from: Option<&[u8]>, now: &[u8]) -> String {
        let (name, now) = (shown(spec), String::from_utf8_lossy(now));
        let old = made_from.filter(|old| Digest::of_spec(old) == self.digest).map(String::from_utf8_lossy);
        let how = match old {
            Some(old) => changed_text(&name, &old, &now),
            None => format!("Its earlier text is not known here. It is now:\n\n{}", fenced("text", &now)),
        };
        let phases = listed(&self.phases);
        format!(
            "# The specification changed\n\n`{name}` has changed since this plan was made. Change the plan accordingly.\n\n\
             {how}\n\nThe phases of the plan:\n\n{phases}\nSay of each phase whether it stays, changes or goes. Leave a phase \
             that stays as it is, with its boxes. Untick the boxes of a phase whose work has to be done again or in another \
             way, and remove the line below its heading that begins with `<!-- spektacular:`."
        )
    }

    /// The fate of each phase, for a sentence.
    fn compared(&self, now: &[PlanPhase]) -> String {
        let find = |all: &[PlanPhase], number| all.iter().find(|phase| phase.number == number).cloned();
        let work = |phase: &PlanPhase| (phase.title.clone(), bare(&phase.text));
        let state = |phase: &PlanPhase| if phase.is_done() { "done" } else { "open" };
        let fate = |phase: &PlanPhase| match find(&self.phases, phase.number) {
            None => format!("{} is new", phase.id()),
            Some(old) if work(&old) == work(phase) => format!("{} stays ({})", phase.id(), state(phase)),
            Some(_) => format!("{} changed ({})", phase.id(), state(phase)),
        };
        let gone = self.phases.iter().filter(|phase| find(now, phase.number).is_none());
        now.iter().map(fate).chain(gone.map(|phase| format!("{} is gone", phase.id()))).collect::<Vec<_>>().join(", ")
    }
}

/// The text of a phase without our own lines and the ticks of its boxes.
fn bare(text: &str) -> String {
    without_own_lines(text).replace("- [x] ", "- [ ] ").replace("- [X] ", "- [ ] ").trim().to_owned()
}

pub(super) fn listed(phases: &[PlanPhase]) -> String {
    let state = |phase: &PlanPhase| if phase.is_done() { "has passed" } else { "open" };
    phases.iter().map(|phase| format!("- {}: {} ({})\n", phase.id(), phase.title, state(phase))).collect()
}

/// A text before and after its change: as a difference, or both where that is shorter.
pub(super) fn changed_text(name: &str, old: &str, now: &str) -> String {
    let diff = unified_diff(name, old, now);
    if diff.is_empty() {
        "Only the ends of its lines differ.".to_owned()
    } else if diff.len() > old.len() + now.len() {
        format!("It was:\n\n{}\n\nIt is now:\n\n{}", fenced("text", old), fenced("text", now))
    } else {
        fenced("diff", &diff)
    }
}

/// The file that remembers from which text of a specification a plan was made.
pub(super) fn planned(name: &Slug) -> PathBuf {
    Path::new(LOCAL).join("planned").join(format!("{name}.md"))
}

fn comparable(mut files: Snapshot) -> Snapshot {
    if let Some(Some(plan)) = files.first_mut() {
        *plan = without_own_lines(&String::from_utf8_lossy(plan)).into_bytes();
    }
    files
}

pub(crate) fn admit(
    settings: &mut Settings,
    options: WorkflowSettings,
    around: &Surroundings,
) -> Result<(Author, SpecInput, WorkflowStarted), Failure> {
    let kind = WorkflowKind::Plan;
    let project = project_of(settings)?;
    let from = around.typed_in.clone().unwrap_or_else(|| settings.cwd.clone());
    let mut spec = read_spec(&project, &settings.prompt, &from)?;
    let words = options.words.clone().unwrap_or_default();
    settings.prompt.clear();
    let ignored = ignored(&options)?;
    let name = Slug::of_file(spec.path.file_name().unwrap_or_default());
    let paths = DraftPaths::plan(&name);
    let draft = shown(&paths.draft);
    let first = |text: &PromptText, values: &CommonValues| {
        // The check requires this line, and no placeholder holds the path.
        let mut line = format!("The plan has the line `Spec: {}`.", shown(&spec.path));
        if !words.is_empty() {
            line.push_str(&format!("\nThe user adds: {words}\n"));
        }
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
    let source = planned(&author.name);
    let made_from = author.project.read(&source, FILE_BYTES_MAX).ok().flatten();
    spec.before = PlanBefore::find(&author, made_from.as_deref(), &spec.bytes);
    author.prompt.words = words.trim().to_owned();
    author.prompt.need = String::from_utf8_lossy(&spec.bytes).trim().to_owned();
    author.prompt.news = spec
        .before
        .as_ref()
        .map_or_else(String::new, |before| before.news(&spec.path, made_from.as_deref(), &spec.bytes));
    author.source = Some((source, spec.bytes.clone()));
    let broken = super::spec::check("", &spec.bytes, &[]).1.len();
    if broken > 0 {
        let violations = if broken == 1 { "a violation".to_owned() } else { format!("{broken} violations") };
        let text = format!("{} has {violations}: see `spektacular spec check`.", shown(&spec.path));
        author.warnings.push((Warning::SpecViolations, text));
    }
    let started = started(kind, &author.project, &author.paths.target, options);
    Ok((author, spec, started))
}

fn read_spec(project: &Project, argument: &str, from: &Path) -> Result<SpecInput, Failure> {
    let argument = Argument::parse("SPEC", OsStr::new(argument))?;
    let path = project.spec(&argument, from)?;
    match project.markdown(&path).map_err(|problem| problem.refusal("SPEC"))? {
        Contents::Bytes(bytes) => Ok(SpecInput { path, bytes, before: None }),
        Contents::Missing => Err(FileProblem::Io(ErrorKind::NotFound).refusal("SPEC")),
        Contents::TooLarge => Err(FileProblem::TooLarge.refusal("SPEC")),
    }
}

pub(crate) fn check(author: &Author, spec: &SpecInput) -> CheckedDraft {
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
    let unchanged = spec
        .before
        .as_ref()
        .filter(|before| comparable(author.paths.snapshot(&author.project, folder)) == before.files);
    let digest = unchanged.map_or_else(|| Digest::of_spec(&spec.bytes), |before| before.digest.clone());
    let rewritten = edited(&text, &[PlanChange::Spec(digest)]);
    let rewritten = rewritten.map(|text| (path.file.clone(), text.into_bytes()));
    let stale = unchanged.map(|_| {
        let (spec, plan) = (shown(&spec.path), shown(&author.paths.target));
        format!("{spec} has changed since the plan was made, and {plan} came out unchanged")
    });
    let changed = spec.before.as_ref().filter(|_| stale.is_none());
    let compared = changed.map(|before| {
        let (spec, target) = (shown(&spec.path), shown(&author.paths.target));
        format!("{target} follows the change of {spec}: {}", before.compared(&plan.phases))
    });
    CheckedDraft { violations, tasks: plan.tasks(), counts, rewritten, stale, compared }
}
