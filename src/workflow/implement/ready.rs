//! The conditions before any agent starts: the plan, its prompts, git, consent.

use super::attempted::{self, Attempted, Seen};
use super::commit::{self, Commits, NoCommits, StatusQuery, named};
use super::kept_state::{KeptState, no_record};
use super::prompt;
use super::protect::ProtectedState;
use crate::config::Places;
use crate::process::background_task::BackgroundTask;
use crate::process::git::BaselineResult;
use crate::process::query::Until;
use crate::protocol::failure::Failure;
use crate::protocol::outbound::WorkflowStarted;
use crate::protocol::request::Settings;
use crate::protocol::words::{RefusalReason, Warning, WorkflowKind};
use crate::protocol::workflow::WorkflowSettings;
use crate::workflow::admission::{Surroundings, check_command, project_of, started};
use crate::workflow::check::{self, PlanCheck, spec_has_changed};
use crate::workflow::consent::Consent;
use crate::workflow::lock::Lock;
use crate::workflow::name::Slug;
use crate::workflow::plan::{PlanPhase, SpecLine, WorkPlan, without_own_lines};
use crate::workflow::project::{Argument, FILE_BYTES_MAX, PLAN_FILES, PlanPath, Project, shown};
use crate::workflow::prompts::{CommonValues, PromptText, SessionPrompt};
use crate::workflow::review;
use crate::workflow::template::PromptKind;
use crate::workflow::violation::{Rule, Violation};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Target {
    pub(super) project: Project,
    pub(super) path: PlanPath,
    /// The plan as people see it.
    pub(super) shown: String,
    pub(super) options: WorkflowSettings,
}

/// `from`: the base of relative paths on the command line. `None`: the plan comes with run.start.
pub(crate) fn admit(
    settings: &mut Settings,
    options: WorkflowSettings,
    from: Option<&Path>,
) -> Result<(Target, WorkflowStarted), Failure> {
    let project = project_of(settings)?;
    let argument = Argument::parse("PLAN", OsStr::new(settings.prompt.trim_end_matches('\n')))?;
    let path = project.plan(&argument, from.unwrap_or(&settings.cwd))?;
    settings.cwd = project.folder().to_owned();
    let started = started(WorkflowKind::Implement, &project, &path.file, options.clone());
    Ok((Target { shown: shown(&path.file), project, path, options }, started))
}

impl Target {
    /// Takes the locks: only one workflow at a time works on a name, and only one `implement` in a project.
    pub(super) fn lock(&self) -> Result<[Lock; 2], Failure> {
        let name = Slug::of_file(self.path.folder.file_name().unwrap_or_default());
        let project = Lock::of_project(&self.project)?;
        Ok([project, Lock::of_name(&self.project, name.as_str())?])
    }
}

/// The maximum number of changed files that a refusal names.
const DIRTY: usize = 10;

/// The time limit for reading the files that an earlier run changed.
const DIGEST_LIMIT: Duration = Duration::from_secs(2);

/// The time limit for reading a plan and its protected files.
pub(super) const READ_LIMIT: Duration = Duration::from_secs(24 * 3600);

pub(crate) struct Preview {
    pub target: String,
    pub plan: WorkPlan,
    /// The prompt of the first open phase. Empty: no phase is open.
    pub prompt: SessionPrompt,
}

/// Changes nothing. Fails like a run would, except for consent and locks.
pub(crate) fn preview(
    settings: &mut Settings,
    options: WorkflowSettings,
    around: &Surroundings,
) -> Result<Preview, Failure> {
    let (target, _) = admit(settings, options, around.typed_in.as_deref())?;
    let ready = ReadyPlan::read(target, settings, &around.places, &Until::deadline(Instant::now() + READ_LIMIT))
        .map_err(|unfit| unfit.failure)?;
    if let Some(look) = ready.look() {
        ready.commits(commit::wait(look), &around.own)?;
    }
    let first = |phase: &PlanPhase| ready.prompts.implement(&prompt::phase(phase, phase.was_attempted(), None));
    let prompt = ready.plan.first_open().map(first).unwrap_or_default();
    Ok(Preview { target: ready.target, plan: ready.plan, prompt })
}

pub(super) struct ReadyPlan {
    pub(super) project: Project,
    pub(super) path: PlanPath,
    pub(super) target: String,
    /// plan.md.
    pub(super) text: String,
    pub(super) plan: WorkPlan,
    pub(super) prompts: Prompts,
    pub(super) options: WorkflowSettings,
    pub(super) warnings: Vec<(Warning, String)>,
}

pub(super) struct Unfit {
    pub(super) failure: Failure,
    /// The number of tasks. `None`: the plan could not be read.
    pub(super) tasks: Option<u64>,
    pub(super) violations: Vec<Violation>,
}

impl From<Failure> for Box<Unfit> {
    fn from(failure: Failure) -> Box<Unfit> {
        Box::new(Unfit { failure, tasks: None, violations: Vec::new() })
    }
}

impl ReadyPlan {
    /// Reads and checks the plan in a thread of its own, because its protected files may take long.
    pub(super) fn begin(
        target: Target,
        settings: &Settings,
        places: &Places,
    ) -> BackgroundTask<Result<ReadyPlan, Box<Unfit>>> {
        let (settings, places) = (settings.clone(), places.clone());
        BackgroundTask::start("plan", READ_LIMIT, move |until| ReadyPlan::read(target, &settings, &places, until))
    }

    pub(super) fn read(
        target: Target,
        settings: &Settings,
        places: &Places,
        until: &Until,
    ) -> Result<ReadyPlan, Box<Unfit>> {
        let Target { project, path, shown, options } = target;
        // Coverage matters while the plan is written, not while it is carried out.
        let ignored = [Rule::Uncovered, Rule::UnknownRequirement];
        let check = PlanCheck { shown: &path.folder, whole: false, of: None, ignored: &ignored };
        let checked = check::plan(&project, &path, check);
        let (plan, text, violations) = checked.map_err(|problem| problem.refusal(&shown))?;
        let tasks = Some(plan.tasks() as u64);
        if !violations.is_empty() {
            let count = match violations.len() {
                1 => "a rule of the format".to_owned(),
                count => format!("rules of the format in {count} places"),
            };
            let message = format!("{shown} breaks {count}: correct it; `spektacular plan check` shows where.");
            let failure = Failure::refused_for(RefusalReason::Invalid, message);
            return Err(Box::new(Unfit { failure, tasks, violations }));
        }
        let unfit = |failure| Box::new(Unfit { failure, tasks, violations: Vec::new() });
        for phase in plan.phases.iter().filter(|phase| !phase.is_done() && !phase.protect.is_empty()) {
            let paths: Vec<String> = phase.protect.iter().map(|entry| entry.path.clone()).collect();
            let state = ProtectedState::read(project.folder(), &paths, None, until);
            state.map_err(|why| unfit(why.refusal(phase)))?;
            let record = || KeptState::for_phase(project.folder(), &path.folder, phase.number)?.load();
            if phase.is_underway() && record().is_none() {
                return Err(unfit(no_record(phase)));
            }
        }
        let prompts = Prompts::load(&project, &path, &text, (settings.interactive, options.review.is_some()), places);
        let (prompts, mut warnings) = prompts.map_err(unfit)?;
        warnings.extend(spec_changed(&project, &plan));
        Ok(ReadyPlan { prompts, warnings, options, target: shown, project, path, text, plan })
    }

    /// `None`: the run makes no commits.
    pub(super) fn look(&self) -> Option<StatusQuery> {
        self.options.commit.then(|| commit::look(self.project.folder()))
    }

    /// The plan's files and its specification, relative to the project's folder.
    pub(super) fn documents(&self) -> Vec<PathBuf> {
        let files = PLAN_FILES.iter().skip(1).map(|name| self.path.folder.join(name));
        let spec = check::spec_path(&self.project, &self.plan);
        std::iter::once(self.path.file.clone()).chain(files).chain(spec).collect()
    }

    fn earlier(&self, before: &Option<BaselineResult>) -> attempted::EarlierWork {
        let record = Attempted::load(&self.project, &self.path.folder);
        let Some((record, Ok(Some(tree)))) = record.zip(before.as_ref()) else {
            return attempted::EarlierWork::default();
        };
        let until = Until::deadline(Instant::now() + DIGEST_LIMIT);
        let open = self.plan.first_open().filter(|phase| phase.state.is_some()).map(|phase| phase.number);
        let is_done = |number| self.plan.phases.iter().any(|phase| phase.number == number && phase.is_done());
        let seen = Seen::read(tree, self.project.folder(), &until);
        seen.map(|seen| record.earlier_work(&seen, open, is_done)).unwrap_or_default()
    }

    /// `own`: files of ours, which no commit takes.
    pub(super) fn commits(&self, before: Option<BaselineResult>, own: &[PathBuf]) -> Result<Commits, Failure> {
        let earlier = self.earlier(&before);
        let commits = Commits::begin(self.project.folder(), before, earlier, own).map_err(|why| {
            let message = match why {
                NoCommits::NoGit => "--commit needs git and a git work tree: run `git init`, or leave --commit out.",
                NoCommits::Failed => "git cannot list the changes here: see `git status`, or leave --commit out.",
            };
            Failure::refused_for(RefusalReason::NoGit, message)
        })?;
        let dirty = commits.dirty();
        if !dirty.is_empty() && !self.options.allow_dirty {
            let message = format!(
                "The work tree has changes: commit or stash them, or keep them out of the commits with --allow-dirty. \
                 Changed: {}.",
                named(&dirty, DIRTY)
            );
            return Err(Failure::refused_for(RefusalReason::Dirty, message));
        }
        Ok(commits)
    }

    pub(super) fn consent(&self) -> Consent {
        let phases = self.plan.phases.iter();
        let commands = phases.flat_map(|phase| phase.verify.iter().map(|command| (phase.id(), command.clone())));
        Consent {
            header: "Verification",
            of: self.target.clone(),
            purpose: "to verify the work",
            commands: commands.collect(),
            is_given: self.options.allow_verify,
            flag: "--allow-verify",
        }
    }
}

fn spec_changed(project: &Project, plan: &WorkPlan) -> Option<(Warning, String)> {
    let text = |spec: &SpecLine| format!("{} has changed since the plan was made", shown(Path::new(&spec.path)));
    let spec = plan.spec.as_ref().filter(|_| spec_has_changed(project, plan))?;
    Some((Warning::SpecChanged, text(spec)))
}

pub(super) struct Prompts {
    implement: PromptText,
    retry: PromptText,
    review: Option<PromptText>,
    values: CommonValues,
    plan: String,
    context: String,
    research: String,
}

impl Prompts {
    fn load(
        project: &Project,
        path: &PlanPath,
        text: &str,
        (user_is_present, reviews): (bool, bool),
        places: &Places,
    ) -> Result<(Prompts, Vec<(Warning, String)>), Failure> {
        let load = |kind| PromptText::load(kind, project, places)?.checked();
        let (implement, retry) = (load(PromptKind::Implement)?, load(PromptKind::Retry)?);
        let review = reviews.then(|| load(PromptKind::Review)).transpose()?;
        let all = [&implement, &retry].into_iter().chain(&review);
        let warnings = all.filter_map(|prompt| prompt.warning.clone());
        let warnings = warnings.map(|text| (Warning::UntrustedPrompt, text)).collect();
        let file = |name: &str| {
            let bytes = project.read(&path.folder.join(name), FILE_BYTES_MAX).ok().flatten();
            let text = bytes.map(|bytes| without_own_lines(&String::from_utf8_lossy(&bytes))).unwrap_or_default();
            text.trim().to_owned()
        };
        let [_, research, context] = PLAN_FILES;
        let check = check_command(WorkflowKind::Implement, &shown(&path.folder))?;
        let prompts = Prompts {
            implement,
            retry,
            review,
            values: CommonValues::new(project, user_is_present, check),
            plan: without_own_lines(text).trim().to_owned(),
            context: file(context),
            research: file(research),
        };
        Ok((prompts, warnings))
    }

    pub(super) fn implement(&self, phase: &str) -> SessionPrompt {
        self.values.fill(&self.implement, |name| match name {
            "phase" => Some(phase),
            "plan" => Some(&self.plan),
            "context" => Some(&self.context),
            "research" => Some(&self.research),
            _ => None,
        })
    }

    pub(super) fn review(&self, phase: &str, spec: &str, difference: &str) -> SessionPrompt {
        let text = self.review.as_ref();
        text.map(|text| review::prompt(&self.values, text, (phase, spec.trim(), difference))).unwrap_or_default()
    }

    pub(super) fn retry(&self, failure: &str) -> SessionPrompt {
        self.values.fill(&self.retry, |name| (name == "failure").then_some(failure))
    }
}
