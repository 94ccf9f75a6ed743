//! The real host of the loop: sessions, commands and questions as parts of the run, plan.md, and the clock of a phase.

mod commits;
mod reviews;

use super::attempted::{Attempted, Seen};
use super::command::{probe, program, verify};
use super::commit::Commits;
use super::judge::Guarded;
use super::kept_state::{KeptState, no_record};
use super::phase_loop::{Attempt, Failing, Fault, ManualAnswer, Mark, PhaseHost, TurnPrompt};
use super::plan_file::PlanFile;
use super::prompt;
use super::protect::{Looked, ProtectedState, Stamps, Unread};
use super::question::{checked, done_already, manual};
use super::ready::READ_LIMIT;
use super::ready::ReadyPlan;
use super::report::{self, Account};
use crate::process::background_task::BackgroundTask;
use crate::process::git::{Baseline, Head, moved_head};
use crate::process::query::Until;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::{Outcome, ProgressKind, Text};
use crate::protocol::question::Ask;
use crate::protocol::review::ReviewFinding;
use crate::protocol::words::{PhaseState, PlanStatus, Warning};
use crate::run::{ShellCommand, StepWork};
use crate::workflow::conversation::{AgentTurn, Conversation, Terms};
use crate::workflow::part::{Step, StepEnd};
use crate::workflow::plan::PlanPhase;
use crate::workflow::project::HOME;
use crate::workflow::prompts::SessionPrompt;
use crate::workflow::review::ReviewVerdict;
use crate::workflow::stop::{Stop, phase_is_late};
use crate::workflow::workflow_run::WorkflowRun;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const GIT_LIMIT: Duration = Duration::from_secs(5);
/// The maximum time for the last look at the changes. A cancelled run must end soon.
const REMEMBER_LIMIT: Duration = Duration::from_secs(1);
/// The maximum length of a manual check in a warning, in characters.
const SHOWN: usize = 80;

pub(super) struct PhaseIo<'r, 'o, 'p> {
    pub(super) outer: &'o mut WorkflowRun<'p>,
    pub(super) ready: &'r ReadyPlan,
    pub(super) plan: PlanFile,
    pub(super) commits: Option<Commits>,
    /// Whether the content that the commands have judged is noted for the next commit.
    has_judged: bool,
    /// The work tree after the last commit.
    pub(super) committed: Option<Arc<Baseline>>,
    pub(super) accounts: Vec<Account>,
    pub(super) steps: Vec<PlanStatus>,
    conversation: Conversation,
    /// The contents of the phase's protected paths before its first attempt, or of those of all phases before the final
    /// check. `None`: nothing is protected, or no phase runs.
    protected: Option<Arc<ProtectedState>>,
    /// The inodes of the protected files at the last look. `None`: nobody has looked since the agent's turn.
    stamps: Option<Stamps>,
    /// Whether each phase was begun and has not passed, so that it has a record of its protected paths, if it has any.
    underway: Vec<bool>,
    /// The record of the phase's changes. `None`: git is missing, or no phase runs.
    attempted: Option<Attempted>,
    /// The place of HEAD at the start of the phase, or after its commit. `None`: git is missing.
    head: Option<Head>,
    /// The time at which the phase began, by the clock of limits.
    began: Option<Duration>,
}

impl<'r, 'o, 'p> PhaseIo<'r, 'o, 'p> {
    pub(super) fn new(outer: &'o mut WorkflowRun<'p>, ready: &'r ReadyPlan, commits: Option<Commits>) -> Self {
        let status = |phase: &PlanPhase| if phase.is_done() { PlanStatus::Completed } else { PlanStatus::Pending };
        PhaseIo {
            plan: PlanFile::new(ready.project.clone(), ready.path.file.clone(), ready.text.clone(), outer.again),
            accounts: ready.plan.phases.iter().map(|_| Account::default()).collect(),
            steps: ready.plan.phases.iter().map(status).collect(),
            outer,
            ready,
            commits,
            has_judged: false,
            committed: None,
            conversation: Conversation::default(),
            protected: None,
            stamps: None,
            underway: ready.plan.phases.iter().map(PlanPhase::is_underway).collect(),
            attempted: None,
            head: None,
            began: None,
        }
    }

    pub(super) fn tell_steps(&mut self) {
        let phases = self.ready.plan.phases.iter();
        let steps: Vec<(String, PlanStatus)> =
            phases.zip(&self.steps).map(|(phase, status)| (step_text(phase), *status)).collect();
        self.outer.plan(steps);
    }

    fn phase(&self, index: usize) -> &'r PlanPhase {
        &self.ready.plan.phases[index]
    }

    /// `None`: no limit.
    fn left(&self) -> Result<Option<Duration>, Stop> {
        let (Some(limit), Some(began)) = (self.ready.options.phase_timeout_s, self.began) else { return Ok(None) };
        match limit.duration().saturating_sub(self.outer.elapsed().saturating_sub(began)) {
            Duration::ZERO => Err(phase_is_late().into()),
            left => Ok(Some(left)),
        }
    }

    /// The protected paths of a phase, relative to the project's folder.
    fn guarded(&self, index: usize) -> Vec<String> {
        self.phase(index).protect.iter().map(|entry| entry.path.clone()).collect()
    }

    /// Reads the protected paths of a phase. Those that `known` holds stay as they are there.
    fn protected_paths(&mut self, index: usize, known: Option<Arc<ProtectedState>>) -> Result<ProtectedState, Stop> {
        let (project, paths) = (self.ready.project.folder().to_owned(), self.guarded(index));
        let take = move |until: &Until| ProtectedState::read(&project, &paths, known.as_deref(), until);
        match self.wait(READ_LIMIT, take)?.unwrap_or(Err(Unread::GivenUp)) {
            Ok(state) => Ok(state),
            Err(why) => Err(why.refusal(self.phase(index)).into()),
        }
    }

    fn kept_state(&self, index: usize) -> Option<KeptState> {
        KeptState::for_phase(self.ready.project.folder(), &self.ready.path.folder, self.phase(index).number)
    }

    /// Records the state of a phase's protected paths for later runs.
    fn keep(&mut self, index: usize, state: &ProtectedState) {
        if self.kept_state(index).is_none_or(|record| record.store(state).is_err()) {
            let text = "The state of the protected files could not be stored, so a later run cannot continue the phase. \
                        It belongs below XDG_STATE_HOME, or ~/.local/state.";
            self.outer.warn(Warning::Unverified, text);
        }
    }

    pub(super) fn restore(&mut self) -> Result<(), Stop> {
        let Some(back) = self.plan.restore()? else { return Ok(()) };
        let file = &self.ready.target;
        let text = match &back.kept {
            Some(kept) => {
                let to = kept.to.shown();
                format!("{file} was changed and has been restored: the changed version is in {to}")
            }
            None if back.was_gone => format!("{file} was removed and has been restored"),
            None => format!("{file} was changed and has been restored: the changed version could not be kept"),
        };
        self.outer.warn(Warning::PlanChanged, text);
        self.outer.end.kept.extend(back.kept);
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<StepEnd, Stop> {
        let own = self.left()?;
        let limit = [step.limit, own].into_iter().flatten().min();
        let end = self.outer.step(Step { limit, ..step })?;
        if end.timed_out && own.is_some() && limit == own {
            return Err(phase_is_late().into());
        }
        match &end.outcome {
            // Other failures are those of the machine or the run, about which the command decides nothing.
            Outcome::Failed(failure)
                if !matches!(failure.code, Code::Timeout | Code::AgentNotFound | Code::AgentStartFailed) =>
            {
                Err(Stop::Failed(Box::new(failure.clone())))
            }
            Outcome::Failed(_) | Outcome::Completed { .. } | Outcome::Cancelled { .. } => Ok(end),
        }
    }

    /// Runs a script with the time limit of a command.
    fn shell(&mut self, command: ShellCommand) -> Result<StepEnd, Stop> {
        let limit = Some(self.ready.options.verify_timeout_s.duration());
        self.step(Step { work: StepWork::Command(command), limit, judge: None })
    }

    /// The variables of the agent's entry.
    fn env(&self) -> Vec<(String, String)> {
        self.outer.agent().base.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn confirm(&mut self, ask: Ask) -> Result<ManualAnswer, Stop> {
        let end = self.step(Step { work: StepWork::Ask(Box::new(ask)), limit: None, judge: None })?;
        Ok(end.reply.map_or(ManualAnswer::Unanswered, |reply| checked(&reply)))
    }

    fn wait<T: Send + 'static>(
        &mut self,
        limit: Duration,
        work: impl FnOnce(&Until) -> T + Send + 'static,
    ) -> Result<Option<T>, Stop> {
        let left = self.left()?;
        self.outer.wait_for_task(left, BackgroundTask::start("phase-io", limit, work))
    }

    /// Begins the record of the phase's changes, which lasts if this run is killed.
    fn record_changes(&mut self, index: usize) -> Result<(), Stop> {
        let left = self.left()?;
        let seen = self.outer.wait_for_task(left, Seen::look(&self.ready.project))?.flatten();
        let (phase, folder) = (self.phase(index), &self.ready.path.folder);
        // A phase without a state line begins anew, whatever an earlier run recorded about it.
        let begun = phase.state.is_some() || self.attempted.is_some();
        let is_known = |record: &Attempted| begun || !record.is_of(phase.number);
        let earlier = Attempted::load(&self.ready.project, folder).filter(is_known);
        let commits = self.commits.is_some();
        self.head = seen.as_ref().map(|seen| seen.head.clone());
        self.attempted = seen.map(|seen| Attempted::begin(phase.number, commits, &seen, earlier.as_ref()));
        if let Some(record) = &self.attempted {
            record.store(&self.ready.project, folder);
        }
        Ok(())
    }

    /// Completes the record of a phase that has not passed, however the run ends, and looks where HEAD is.
    pub(super) fn remember_changes(&mut self) {
        let Some(mut record) = self.attempted.take() else { return };
        let Some(seen) = last_look(Seen::look(&self.ready.project)) else { return };
        record.close(&seen);
        record.store(&self.ready.project, &self.ready.path.folder);
        let index = self.ready.plan.phases.iter().position(|phase| record.is_of(phase.number));
        let Some((index, from)) = index.zip(self.head.clone()).filter(|(_, from)| *from != seen.head) else { return };
        let (folder, old) = (self.ready.project.folder().to_owned(), from.clone());
        let look = move |until: &Until| moved_head(&folder, &old, until).ok().flatten();
        if let Some(now) = last_look(BackgroundTask::start("git-status", REMEMBER_LIMIT, look)) {
            self.tell_head(index, &from, &now);
        }
    }

    fn first(&self, index: usize, earlier: bool, reopened: Option<&Failing>) -> SessionPrompt {
        let phase = prompt::phase(self.phase(index), earlier, reopened);
        self.ready.prompts.implement(&phase)
    }

    /// Adds the cost and the changed files of a session, including a failed one.
    fn account(&mut self, index: usize, before: Option<f64>) {
        let after = self.outer.usage().cost_usd;
        let account = &mut self.accounts[index];
        if let Some(after) = after {
            account.cost_usd = Some(account.cost_usd.unwrap_or_default() + after - before.unwrap_or_default());
        }
        let files = self.outer.seen().files.iter().filter(|file| !is_own(file.path.shown()));
        files.for_each(|file| account.add(file));
    }

    /// `before`: from before the turn. The run's own baseline can be too late: a fast agent changes files at once.
    fn acted(&mut self, said: &AgentTurn, before: Option<Arc<Baseline>>) -> Result<bool, Stop> {
        let reported = self.outer.seen().files.iter().any(|file| !is_own(file.path.shown()));
        let changed = self.changed_since(before)?;
        let sees_tools = self.outer.features().reports_tools;
        Ok(said.acted || reported || changed.unwrap_or(!sees_tools))
    }

    /// `None`: git cannot list the work tree.
    fn work_tree(&mut self) -> Result<Option<Arc<Baseline>>, Stop> {
        let project = self.ready.project.folder().to_owned();
        Ok(self.wait(GIT_LIMIT, move |until| Baseline::now(&project, until).ok().flatten())?.flatten())
    }

    /// Whether files outside `.spektacular` changed. `None`: git cannot tell.
    fn changed_since(&mut self, before: Option<Arc<Baseline>>) -> Result<Option<bool>, Stop> {
        let Some(before) = before else { return Ok(None) };
        let own = self.ready.project.folder().join(HOME);
        let changed = self.wait(GIT_LIMIT, move |until| {
            let files = before.compare(until).ok()?;
            let is_work = files.iter().any(|(path, _)| !path.starts_with(&own));
            if is_work { Some(true) } else { before.has_ignored_changes(&own, until).ok() }
        })?;
        Ok(changed.flatten())
    }
}

/// The result of a look at the end of the run. `None`: it found nothing, or took too long.
fn last_look<T: Send + 'static>(mut look: BackgroundTask<Option<T>>) -> Option<T> {
    let found = look.wait_for_result(REMEMBER_LIMIT).flatten();
    look.give_up();
    // The thread ends a git that hangs.
    let _ = look.over().recv_timeout(REMEMBER_LIMIT);
    found
}

pub(super) fn is_own(path: &str) -> bool {
    Path::new(path).starts_with(HOME)
}

pub(super) fn step_text(phase: &PlanPhase) -> String {
    format!("{}: {}", phase.id(), phase.title)
}

impl PhaseHost for PhaseIo<'_, '_, '_> {
    type Stop = Stop;

    fn begin(&mut self, index: usize) -> Result<(), Stop> {
        self.began = Some(self.outer.elapsed());
        self.stamps = None;
        self.record_changes(index)?;
        self.record_start(index)?;
        let after_final_check = self.protected.take();
        if self.guarded(index).is_empty() {
            return Ok(());
        }
        let known = match after_final_check {
            None if self.underway[index] => {
                let record = self.kept_state(index).and_then(|record| record.load());
                Some(Arc::new(record.ok_or_else(|| no_record(self.phase(index)))?))
            }
            known => known,
        };
        let state = self.protected_paths(index, known)?;
        self.keep(index, &state);
        self.protected = Some(Arc::new(state));
        Ok(())
    }

    fn begin_final(&mut self) -> Result<(), Stop> {
        let mut all = None::<Arc<ProtectedState>>;
        for index in 0..self.ready.plan.phases.len() {
            if self.guarded(index).is_empty() {
                continue;
            }
            let mut state = self.protected_paths(index, all.clone())?;
            all.iter().for_each(|all| state.join(all));
            all = Some(Arc::new(state));
        }
        self.protected = all;
        self.stamps = None;
        // A command that changes a file and restores it has changed the file's inode since.
        self.differences(0).map(drop)
    }

    fn end(&mut self, index: usize) {
        if let Some(began) = self.began.take() {
            self.accounts[index].took += self.outer.elapsed().saturating_sub(began);
        }
        self.protected = None;
    }

    fn mark(&mut self, at: Attempt, mark: Mark) -> Result<(), Stop> {
        if mark == Mark::InProgress {
            self.outer.budgets_left()?;
        }
        self.restore()?;
        if mark == Mark::Reopened && !self.guarded(at.phase).is_empty() {
            let state = self.protected_paths(at.phase, self.protected.clone())?;
            self.keep(at.phase, &state);
        }
        self.plan.mark(self.phase(at.phase).number, at.number, mark)?;
        self.underway[at.phase] = mark != Mark::Passed;
        if mark == Mark::Passed {
            self.kept_state(at.phase).iter().for_each(KeptState::forget);
        }
        Ok(())
    }

    fn tell(&mut self, at: Attempt, state: PhaseState, why: Option<&Fault>) {
        let (phase, of) = (self.phase(at.phase), self.ready.plan.phases.len());
        let number = at.phase + 1;
        let again = if at.number > 1 { format!(", attempt {},", at.number) } else { String::new() };
        let why = why.map(|fault| format!(": {}", report::words(fault))).unwrap_or_default();
        let text = match state {
            PhaseState::Started if at.number <= 1 => format!("Phase {number} of {of}: {}", phase.title),
            PhaseState::Verifying if at.number == 0 => format!("Phase {number} of {of}, before the work"),
            PhaseState::Reviewing => format!("Phase {number} of {of}{again} is reviewed"),
            PhaseState::Passed if at.number == 0 => format!("Phase {number} of {of} passed: it was done already"),
            PhaseState::Started
            | PhaseState::Verifying
            | PhaseState::Failed
            | PhaseState::Passed
            | PhaseState::Reopened => format!("Phase {number} of {of}{again} {}{why}", state.word()),
        };
        let about = ProgressKind::Phase {
            phase: phase.id(),
            title: Text::from(phase.title.as_str()),
            number: number as u64,
            of: of as u64,
            attempt: at.number.into(),
            state,
            agent: match state {
                PhaseState::Reviewing => self.outer.reviewer(),
                PhaseState::Started
                | PhaseState::Verifying
                | PhaseState::Failed
                | PhaseState::Passed
                | PhaseState::Reopened => self.outer.agent().name.clone(),
            },
        };
        self.outer.tell(about, text);
        let status = match state {
            PhaseState::Started | PhaseState::Verifying | PhaseState::Reviewing => PlanStatus::InProgress,
            PhaseState::Failed | PhaseState::Reopened => PlanStatus::Pending,
            PhaseState::Passed => PlanStatus::Completed,
        };
        // The step stays in progress between two attempts.
        let waits = state == PhaseState::Failed && (1..self.ready.options.attempts).contains(&at.number);
        if !waits && std::mem::replace(&mut self.steps[at.phase], status) != status {
            self.tell_steps();
        }
    }

    fn turn(&mut self, at: Attempt, prompt: TurnPrompt<'_>) -> Result<AgentTurn, Stop> {
        let mut paths = self.guarded(at.phase);
        paths.extend(self.protected.iter().flat_map(|state| state.behind_links()));
        paths.push(self.ready.path.folder.to_string_lossy().into_owned());
        let judge = Guarded { project: self.ready.project.folder().to_owned(), paths };
        let tree = self.work_tree()?;
        self.stamps = None;
        // The agent exits before anything of its work is looked at, with all that it does when it exits.
        let terms = Terms { judge: Arc::new(judge), limit: self.left()?, offers_blocked: true, keeps_process: false };
        let before = self.outer.usage().cost_usd;
        let mut conversation = std::mem::take(&mut self.conversation);
        let said = match prompt {
            TurnPrompt::First { earlier, reopened } => {
                let words = self.first(at.phase, earlier, reopened);
                conversation.begin(self.outer, words, &terms)
            }
            TurnPrompt::Retry(fault) => {
                let of = self.ready.options.attempts;
                let words = self.ready.prompts.retry(&prompt::failure(at.number, of, fault));
                let whole = self.first(at.phase, false, None).followed_by(&words);
                conversation.further_turn(self.outer, words, whole, &terms)
            }
        };
        self.conversation = conversation;
        self.accounts[at.phase].agent = Some(self.outer.agent().name.clone());
        self.account(at.phase, before);
        let said = said?;
        let acted = self.acted(&said, tree)?;
        self.watch_head(at.phase)?;
        self.restore()?;
        Ok(AgentTurn { acted, ..said })
    }

    fn differences(&mut self, _phase: usize) -> Result<Vec<String>, Stop> {
        let Some(before) = self.protected.clone() else { return Ok(Vec::new()) };
        let project = self.ready.project.folder().to_owned();
        let looked = self.wait(READ_LIMIT, move |until| before.look(&project, until))?;
        let Looked { mut changed, stamps } = looked.ok_or_else(Failure::no_thread)?;
        let touched = self.stamps.iter().flat_map(|then| then.differences(&stamps));
        changed.extend(touched.filter(|path| !changed.contains(path)).collect::<Vec<_>>());
        self.stamps = Some(stamps);
        Ok(changed)
    }

    fn lacks_program(&mut self, failing: &Failing) -> Result<bool, Stop> {
        let Some(program) = program(&failing.command).filter(|_| failing.not_found()) else { return Ok(false) };
        let end = self.shell(probe(program, self.env()))?;
        Ok(matches!(end.outcome, Outcome::Completed { .. }) && !end.passed())
    }

    fn accepts_done(&mut self, at: Attempt) -> Result<bool, Stop> {
        let phase = self.phase(at.phase);
        if self.ready.options.accept_done {
            return Ok(true);
        }
        if self.outer.settings().interactive {
            return Ok(self.confirm(done_already(&phase.id(), &phase.title))? == ManualAnswer::Yes);
        }
        let text = format!(
            "{}: its commands passed before any work, so it seems done already: --accept-done counts such a phase as passed",
            phase.id()
        );
        self.outer.warn(Warning::Unverified, text);
        Ok(false)
    }

    fn command(&mut self, at: Attempt, command: &str) -> Result<Option<Failing>, Stop> {
        let end = self.shell(verify(command, self.env(), self.phase(at.phase).id()))?;
        if end.passed() {
            return Ok(None);
        }
        let exit = end.exit.filter(|_| !end.timed_out);
        let no_shell = matches!(&end.outcome, Outcome::Failed(failure) if failure.code != Code::Timeout);
        Ok(Some(Failing {
            command: command.to_owned(),
            exit_code: exit.and_then(|exit| exit.code),
            signal: exit.and_then(|exit| exit.signal),
            timed_out: end.timed_out,
            no_shell,
            changed: Vec::new(),
            output: end.output,
        }))
    }

    fn judged(&mut self, phase: usize) -> Result<(), Stop> {
        let Some(commits) = self.commits.take() else { return Ok(()) };
        let noted = self.note_judged(&commits, phase);
        self.commits = Some(commits);
        self.has_judged = noted?;
        Ok(())
    }

    fn tell_flaky(&mut self, at: Attempt, command: &str) {
        let (phase, command) = (self.phase(at.phase).id(), prompt::short(command, SHOWN));
        let text = format!("{phase}: a command failed, and passed when it ran once more, so it is flaky: {command}");
        self.outer.warn(Warning::Unverified, text);
    }

    fn review(&mut self, at: Attempt) -> Result<(ReviewVerdict, bool), Stop> {
        self.review_phase(at.phase)
    }

    fn tell_open(&mut self, at: Attempt, findings: &[ReviewFinding]) {
        let phase = self.phase(at.phase).id();
        self.outer.tell_open(&phase, findings);
    }

    fn manual(&mut self, at: Attempt, text: &str) -> Result<ManualAnswer, Stop> {
        let answer = self.confirm(manual(text))?;
        if answer == ManualAnswer::Unanswered {
            let phase = self.phase(at.phase).id();
            let text = prompt::short(text, SHOWN);
            self.outer.warn(Warning::Unverified, format!("{phase}: nobody confirmed the manual check: {text}"));
        }
        Ok(answer)
    }

    fn commit(&mut self, index: usize) -> Result<bool, Stop> {
        let Some(commits) = self.commits.take() else { return Ok(false) };
        let done = self.commit_with(&commits, index);
        self.commits = Some(commits);
        // A file that a hook rewrites does not count as work of the next command.
        self.stamps = None;
        if done.is_ok() {
            self.attempted = None;
            // An empty record is about no phase.
            Attempted::default().store(&self.ready.project, &self.ready.path.folder);
        }
        // A hook may also change protected files without committing them.
        Ok(done? || !self.differences(index)?.is_empty())
    }
}
