//! The run of a workflow: opened once, continued in sessions of the agent and in steps without it, closed once. A workflow
//! is plain blocking code over these calls.

use super::budgets::Spent;
use super::invalid;
use super::part::{Session, Step, StepEnd};
use super::prompts::SessionPrompt;
use super::stop::Stop;
use crate::agent::registry::Agent;
use crate::agent::{Features, Reply};
use crate::engine::{Admission, Admit, DebugLog, Engine, Job, Peer, Recorded, Report, RunLoop};
use crate::paths::suffixed;
use crate::process::background_task::BackgroundTask;
use crate::process::session_files::cost_before;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::fields::field;
use crate::protocol::ids::SessionId;
use crate::protocol::outbound::{
    Artifact, Outcome, PlanEntry, Progress, ProgressKind, Text, Usage, WorkflowEnd, WorkflowStarted,
};
use crate::protocol::question::{Ask, Judge};
use crate::protocol::request::{Seconds, Settings};
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::words::{Category, OnQuestionTimeout, PlanStatus, Policy, Warning, WorkflowKind};
use crate::protocol::workflow::{WorkflowFields, WorkflowOptions, WorkflowSettings};
use crate::redact::Redactor;
use crate::run::{Part, PartEnd, PartSeen, PartWork, Remake, StepWork, Turn, TurnBegin, completed, limit_value};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The maximum wait for the processes of abandoned work. After it, they are left to the kernel.
const SETTLE_LIMIT: Duration = Duration::from_millis(500);
const REVIEW_LIMIT: Duration = Duration::from_secs(30 * 60);

pub(crate) struct WorkflowRun<'p> {
    run: RunLoop<'p, 'p>,
    settings: Settings,
    agent: Agent,
    record: Option<PathBuf>,
    debug_log: Option<DebugLog>,
    /// Each turn has a recording.
    turns: u32,
    last: Last,
    spent: Spent,
    denied: u64,
    seen: PartSeen,
    /// The way to continue, as a part of a sentence.
    pub(crate) again: &'static str,
    /// The object `workflow` of the terminal frame.
    pub end: WorkflowEnd,
    /// Whether this is no workflow, but a session after steps.
    is_session: bool,
}

pub(crate) const SAME_COMMAND: &str = "run the same command";
/// The way to continue a run in a worktree: the same command would make another one.
pub(crate) const SHOWN_COMMAND: &str = "run the command that the last lines on stderr show";

/// The agent's last session.
#[derive(Default)]
struct Last {
    session_id: Option<SessionId>,
    /// The total cost of that session in this run, in US dollars.
    cost_usd: Option<f64>,
    takes_turns: bool,
    /// Whether the agent's process, which stayed, takes prompts raw: see [`SessionPrompt::raw`]. `None`: it did not stay.
    stays_raw: Option<bool>,
}

/// Error: the run is over already.
pub(crate) type OpenedRun<'p, T> = Result<(WorkflowRun<'p>, T), Box<Report>>;

impl<'p> WorkflowRun<'p> {
    /// Emits run.started. `admit` may change the settings but no file, because the driver may still refuse the run.
    pub(crate) fn open<T: 'static>(
        engine: &'p mut Engine,
        job: Job,
        peer: &'p mut dyn Peer,
        (kind, flags): (WorkflowKind, WorkflowOptions),
        admit: impl FnOnce(&mut Settings, &Agent, WorkflowSettings) -> Result<(T, WorkflowStarted), Failure> + 'static,
    ) -> OpenedRun<'p, T> {
        let (admission, admitted) = admission(kind, flags, admit);
        let (record, debug_log) = (job.record.clone(), job.debug_log.clone());
        let job = Job { admission: Some(admission), debug_log: None, ..job };
        let run = engine.open(job, peer)?;
        let Some((it, settings, agent, target)) = admitted.take() else { return Err(Box::new(run.finish())) };
        let end = WorkflowEnd { target, ..WorkflowEnd::unknown(kind) };
        Ok((WorkflowRun::new(run, (settings, agent), (record, debug_log), end), it))
    }

    /// Opens the run of a session that begins with steps. Error: the run is over already.
    pub(crate) fn open_session(
        engine: &'p mut Engine,
        job: Job,
        peer: &'p mut dyn Peer,
    ) -> Result<WorkflowRun<'p>, Box<Report>> {
        let found = Rc::new(RefCell::new(None));
        let kept = Rc::clone(&found);
        let keep = move |settings: &Settings, agent: &Agent| {
            *kept.borrow_mut() = Some((settings.clone(), agent.clone()));
        };
        let (record, debug_log) = (job.record.clone(), job.debug_log.clone());
        let run = engine.open(Job { first_steps: Some(Box::new(keep)), debug_log: None, ..job }, peer)?;
        let Some(found) = found.take() else { return Err(Box::new(run.finish())) };
        // The session has no end of a workflow.
        let end = WorkflowEnd::unknown(WorkflowKind::Spec);
        Ok(WorkflowRun { is_session: true, ..WorkflowRun::new(run, found, (record, debug_log), end) })
    }

    fn new(
        run: RunLoop<'p, 'p>,
        (settings, agent): (Settings, Agent),
        (record, debug_log): (Option<PathBuf>, Option<DebugLog>),
        end: WorkflowEnd,
    ) -> WorkflowRun<'p> {
        WorkflowRun {
            run,
            settings,
            agent,
            record,
            debug_log,
            turns: 0,
            last: Last::default(),
            spent: Spent::default(),
            denied: 0,
            seen: PartSeen::default(),
            again: SAME_COMMAND,
            end,
            is_session: false,
        }
    }

    /// Carries out the session that is the rest of the run.
    pub(crate) fn rest(self) -> Report {
        let mut settings = self.settings.clone();
        match self.limit(&mut settings, None) {
            Ok(_) => {
                let recorded = Recorded { file: self.record, debug_log: self.debug_log };
                let start = settings.session_id.clone().map_or(TurnBegin::NewSession, TurnBegin::Resume);
                let work = PartWork::Rest(Turn { start, ..Turn::new_session() });
                self.run.rest(Part { settings, work }, recorded)
            }
            Err(stop) => self.close(Err(stop)),
        }
    }

    /// `prompt` is the description, the specification or the plan.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    pub(crate) fn features(&self) -> Features {
        self.agent.features(&self.settings)
    }

    pub(crate) fn resumable(&self) -> Option<&SessionId> {
        self.session_id().filter(|_| self.can_resume())
    }

    /// True if unknown.
    pub(crate) fn can_resume(&self) -> bool {
        self.features().capabilities.resume != Some(false)
    }

    /// The agent's last session, even one that failed.
    pub(crate) fn session_id(&self) -> Option<&SessionId> {
        self.last.session_id.as_ref()
    }

    /// Whether the agent takes a turn after its last one.
    pub(super) fn takes_turns(&self) -> bool {
        self.last.takes_turns
    }

    /// A sentence for a failure's message about the number of denied permissions. Empty: none were denied.
    pub(crate) fn denials(&self) -> String {
        let count = self.denied;
        let (were, them) = if count == 1 { ("permission was", "it") } else { ("permissions were", "them") };
        let policies = [Category::Edit, Category::Delete, Category::Move, Category::Execute];
        let allows = policies.iter().all(|category| self.settings.permissions.policy(*category) == Policy::Allow);
        match (count, allows) {
            (0, _) => String::new(),
            // The plan's `### Protect`, or a place that is not the draft's.
            (_, true) => format!(" {count} {were} denied by the rules of the workflow."),
            (_, false) => format!(" {count} {were} denied: allow {them} with --permissions or --yes."),
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        self.spent.usage
    }

    /// A redactor with every secret of the run so far.
    pub(crate) fn redactor(&self) -> Redactor {
        self.run.redactor()
    }

    pub(crate) fn seen(&self) -> &PartSeen {
        &self.seen
    }

    /// Files that run.artifact never reports, as frames show their paths. A folder ends with a slash.
    pub(crate) fn hide(&mut self, paths: Vec<String>) {
        self.run.hide(paths);
    }

    /// Emits a progress frame, if the run's level includes its kind.
    pub(crate) fn tell(&mut self, about: ProgressKind, text: impl Into<Text>) {
        self.run.tell(Progress::new(about, text));
    }

    pub(crate) fn warn(&mut self, warning: Warning, text: impl Into<Sentence>) {
        self.run.tell(Progress::warning(warning, text));
    }

    pub(crate) fn plan(&mut self, steps: impl IntoIterator<Item = (String, PlanStatus)>) {
        let entries = steps.into_iter().map(|(text, status)| PlanEntry { text: Text::from(text), status });
        self.tell(ProgressKind::Plan(entries.collect()), "The plan changed");
    }

    /// Reports a file that the workflow itself changed.
    pub(crate) fn wrote(&mut self, artifact: Artifact) {
        self.run.wrote(artifact);
    }

    /// Returns the session's id. Error: the session failed, or the run is over.
    pub(crate) fn session(&mut self, session: Session) -> Result<Option<SessionId>, Stop> {
        let Session { prompt: SessionPrompt { text, raw }, start, keeps_process, offers_blocked, judge, .. } = session;
        let (limit, whole) = (session.limit, session.whole.map(|prompt| prompt.text));
        let judge = Some(judge);
        let mut settings = Settings { prompt: text, raw_prompt: raw, judge, ..self.settings.clone() };
        self.limit_budgets(&mut settings)?;
        if self.turns > 0 && !matches!(start, TurnBegin::NewSession) {
            // The session has the images already.
            settings.attached.clear();
        }
        let known = match &start {
            TurnBegin::NewSession | TurnBegin::NextProcess => None,
            TurnBegin::Resume(id) => {
                let is_last = self.last.session_id.as_ref() == Some(id);
                settings.session_id = Some(id.clone());
                // An old version does not store the cost.
                let known = self.last.cost_usd.filter(|_| is_last);
                cost_before(&self.agent, &settings).or(known)
            }
            TurnBegin::SameProcess => self.last.cost_usd,
        };
        settings.session_cost_usd = known;
        let limits_itself = self.limit(&mut settings, limit)?;
        let end = self.turn(settings, Turn { start, keeps_process, offers_blocked, whole, ..Turn::new_session() })?;
        // A process that ends before its turn reports no cost: that of the session's earlier turns is still known.
        let cost_usd = end.usage.cost_usd.map(|cost| known.unwrap_or_default() + cost).or(known);
        let stays_raw = end.stays.then_some(raw);
        let takes_turns = end.takes_turns;
        self.last = Last { session_id: end.session_id.clone(), cost_usd, takes_turns, stays_raw };
        self.follow();
        self.seen = end.seen;
        match end.outcome {
            Outcome::Completed { .. } => Ok(end.session_id),
            outcome @ (Outcome::Failed(_) | Outcome::Cancelled { .. }) => {
                Err(Stop::from_outcome(outcome, limits_itself))
            }
        }
    }

    pub(super) fn reviewer(&self) -> String {
        self.run.reviewer().map_or(&self.agent.name, |reviewer| &reviewer.agent.name).clone()
    }

    /// A failed session is not an error, unless the run or the phase, which has the time `left`, is out of time.
    pub(super) fn review_session(&mut self, prompt: SessionPrompt, left: Option<Duration>) -> Result<Outcome, Stop> {
        let (agent, settings) = match self.run.reviewer() {
            Some(other) => (other.agent.clone(), other.settings.clone()),
            None => (self.agent.clone(), self.settings.for_review()),
        };
        let mut settings = Settings { prompt: prompt.text, raw_prompt: prompt.raw, ..settings };
        self.limit_budgets(&mut settings)?;
        let is_of_phase = left.is_some_and(|left| left < REVIEW_LIMIT);
        let limits_itself =
            self.limit(&mut settings, Some(left.map_or(REVIEW_LIMIT, |left| left.min(REVIEW_LIMIT))))?;
        let guest: Option<Remake> = Some(Box::new(move || agent.driver()));
        let end = self.turn(settings, Turn { guest, ..Turn::new_session() })?;
        self.seen = end.seen;
        match end.outcome {
            Outcome::Failed(failure) if failure.code == Code::Timeout && (is_of_phase || !limits_itself) => {
                Err(Stop::from_outcome(Outcome::Failed(failure), limits_itself))
            }
            outcome @ (Outcome::Completed { .. } | Outcome::Failed(_) | Outcome::Cancelled { .. }) => Ok(outcome),
        }
    }

    /// Goes on with the agent that took over, if one did.
    fn follow(&mut self) {
        // It may be another model of the same agent. Each agent that takes over leaves fewer behind it.
        let left = self.settings.fallback.len();
        let Some(next) = self.run.took_over().filter(|next| next.settings.fallback.len() < left) else { return };
        self.settings = self.settings.taken_over_by(&next.settings);
        self.agent = next.agent.clone();
        // The part of the failed agent in it is unknown.
        self.last.cost_usd = None;
    }

    /// Whether the agent's process stayed after its last turn.
    pub(crate) fn has_process(&self) -> bool {
        self.last.stays_raw.is_some()
    }

    pub(crate) fn has_process_for(&self, prompt: &SessionPrompt) -> bool {
        self.last.stays_raw == Some(prompt.raw) && self.run.has_process()
    }

    /// Error: the run is over.
    pub(crate) fn leave(&mut self) -> Result<(), Stop> {
        let part = Part { settings: self.settings.clone(), work: PartWork::Leave };
        self.part(part, Recorded::default())?;
        self.last.stays_raw = None;
        Ok(())
    }

    /// `judge` may answer. `None`: the step ended without a reply. Error: the run is over.
    pub(crate) fn ask(&mut self, ask: Ask, judge: Option<Arc<dyn Judge>>) -> Result<Option<Reply>, Stop> {
        Ok(self.step(Step { work: StepWork::Ask(Box::new(ask)), limit: None, judge })?.reply)
    }

    /// Error: the run is over. A failed step is not an error.
    pub(crate) fn step(&mut self, step: Step) -> Result<StepEnd, Stop> {
        debug_assert!(!self.has_process(), "the step's process takes the place of the agent that rests");
        let Step { work, limit, judge } = step;
        let mut settings = Settings {
            session_id: None,
            judge,
            // The workflow itself decides about a step's question without an answer.
            on_question_timeout: OnQuestionTimeout::Continue,
            start_timeout_s: None,
            idle_timeout_s: Seconds(0.0),
            question_markers: false,
            ..self.settings.clone()
        };
        let limits_itself = self.limit(&mut settings, limit)?;
        let end = self.part(Part { settings, work: PartWork::Step(work) }, Recorded::default())?;
        let PartEnd { outcome, exit, output, reply, .. } = end;
        let timed_out = matches!(&outcome, Outcome::Failed(failure) if failure.code == Code::Timeout);
        match outcome {
            outcome @ Outcome::Cancelled { .. } => Err(Stop::from_outcome(outcome, false)),
            Outcome::Failed(failure) if timed_out && !limits_itself => Err(Stop::Failed(Box::new(failure))),
            outcome @ (Outcome::Completed { .. } | Outcome::Failed(_)) => {
                Ok(StepEnd { outcome, exit, timed_out, output, reply })
            }
        }
    }

    /// Serves cancels, signals and time limits meanwhile. `limit`: of the phase. `None`: no thread could be started.
    /// Error: the run is over, or the limit was reached; the work is abandoned, and its processes are stopped.
    pub(crate) fn wait_for_task<T: Send + 'static>(
        &mut self,
        limit: Option<Duration>,
        mut work: BackgroundTask<T>,
    ) -> Result<Option<T>, Stop> {
        self.run.wait_for(work.over());
        let end = self.step(Step { work: StepWork::Task, limit, judge: None }).and_then(|end| match end.outcome {
            Outcome::Completed { .. } => Ok(()),
            outcome @ (Outcome::Failed(_) | Outcome::Cancelled { .. }) => {
                Err(Stop::from_outcome(outcome, end.timed_out))
            }
        });
        if end.is_err() {
            work.give_up();
        }
        let result = work.wait_for_result(SETTLE_LIMIT);
        end.map(|()| result)
    }

    fn turn(&mut self, settings: Settings, turn: Turn) -> Result<PartEnd, Stop> {
        self.turns += 1;
        let file = self.record.as_deref().map(|path| numbered(path, self.turns));
        let recorded = Recorded { file, debug_log: self.debug_log.clone() };
        let end = self.part(Part { settings, work: PartWork::Turn(turn) }, recorded)?;
        self.spent.tool_calls += end.tool_calls;
        Ok(end)
    }

    fn part(&mut self, part: Part, recorded: Recorded) -> Result<PartEnd, Stop> {
        let end = self.run.part(part, recorded).ok_or(Stop::Lost)?;
        self.spent.usage = self.spent.usage.plus(&end.usage);
        self.denied = end.denied.max(self.denied);
        Ok(end)
    }

    /// Limits the part to the remaining time of the run and to `limit`. Returns whether `limit` is the shorter one.
    fn limit(&self, settings: &mut Settings, limit: Option<Duration>) -> Result<bool, Stop> {
        let worked = self.run.worked();
        let left = self.settings.timeout_s.map(|whole| whole.duration().saturating_sub(worked.unwrap_or_default()));
        if left == Some(Duration::ZERO) {
            return Err(Stop::Failed(Box::new(Failure::took_too_long())));
        }
        let shorter = limit.is_some_and(|limit| left.is_none_or(|left| limit < left));
        let left = if shorter { limit } else { left };
        settings.timeout_s = left.map(|left| Seconds(left.as_secs_f64()));
        Ok(shorter)
    }

    /// Error: one of the run's budgets has nothing left.
    fn limit_budgets(&self, session: &mut Settings) -> Result<(), Stop> {
        self.budgets_left()?;
        self.spent.limit(session, &self.settings);
        Ok(())
    }

    /// Error: one of the run's budgets has nothing left.
    pub(super) fn budgets_left(&self) -> Result<(), Stop> {
        let again = match self.end.name {
            WorkflowKind::Spec | WorkflowKind::Plan => "continue the draft with --continue".to_owned(),
            WorkflowKind::Implement => format!("{} to continue", self.again),
        };
        self.spent.used_up(&self.settings, &again).map_or(Ok(()), |failure| Err(failure.into()))
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.run.elapsed()
    }

    pub(crate) fn close(self, outcome: Result<String, Stop>) -> Report {
        let outcome = match outcome {
            Ok(text) => Some(completed(text)),
            Err(Stop::Failed(mut failure)) => {
                // A part has only what the run had left.
                let whole = failure.limit.and_then(|limit| limit_value(limit, &self.settings));
                failure.value = whole.or(failure.value);
                Some(Outcome::Failed(*failure))
            }
            Err(Stop::Cancelled { reason, source }) => Some(Outcome::Cancelled { reason, source }),
            Err(Stop::Lost) => None,
        };
        match outcome {
            Some(outcome) => self.run.close(outcome, (!self.is_session).then_some(self.end)),
            None => self.run.finish(),
        }
    }
}

/// The path of a turn's recording: the second turn adds `-2` before the extension, and so on.
fn numbered(path: &Path, turn: u32) -> PathBuf {
    if turn <= 1 { path.to_owned() } else { suffixed(path, &format!("-{turn}")) }
}

// The check of run.start, which the engine makes: the fields that a workflow reads, and those that it sets itself.

/// The result of `check`, the settings, the agent, and the file that the workflow writes or works on.
type Admitted<T> = Rc<RefCell<Option<(T, Settings, Agent, Option<Text>)>>>;

/// `check` may change the settings. The second value gets its result.
fn admission<T: 'static>(
    kind: WorkflowKind,
    flags: WorkflowOptions,
    check: impl FnOnce(&mut Settings, &Agent, WorkflowSettings) -> Result<(T, WorkflowStarted), Failure> + 'static,
) -> (Admission, Admitted<T>) {
    let found = Admitted::default();
    let kept = Rc::clone(&found);
    let admit: Box<Admit> = Box::new(move |settings, agent, workflow, said, unknown| {
        let read = WorkflowFields::read(kind, workflow);
        unknown.append(read.unknown);
        if let Some(wrong) = read.wrong {
            return Err(invalid(wrong));
        }
        refuse_own_fields(settings, said)?;
        let options = read.options.over(flags).resolved();
        if matches!(kind, WorkflowKind::Spec | WorkflowKind::Plan) {
            endure_silence(settings);
        }
        let (it, started) = check(settings, agent, options)?;
        settings.is_part = true;
        *kept.borrow_mut() = Some((it, settings.clone(), agent.clone(), started.target.clone()));
        Ok(started)
    });
    (Admission { workflow: kind, admit }, found)
}

/// Refuses the fields that a workflow sets itself, and ignores the configuration's values of them.
fn refuse_own_fields(settings: &mut Settings, said: &[&'static str]) -> Result<(), Failure> {
    let refused = [
        (field!(session_id), true),
        (field!(fork), settings.fork),
        (field!(output_schema), true),
        (field!(raw_prompt), settings.raw_prompt),
        (field!(conversation), settings.conversation),
    ];
    if let Some((field, _)) = refused.into_iter().find(|(field, is_set)| *is_set && said.contains(&field.name)) {
        return Err(Failure::invalid_start(sentence!(
            "{field} cannot be used with a workflow, which makes its own sessions and prompts: leave it out.",
            field = field
        )));
    }
    // The configuration may set these for runs outside of workflows.
    (settings.session_id, settings.output_schema, settings.raw_prompt) = (None, None, false);
    (settings.conversation, settings.fork) = (false, false);
    Ok(())
}

/// Lets a draft be written although nobody answers: the agent infers what it asked.
fn endure_silence(settings: &mut Settings) {
    settings.closed_input_declines = true;
    if !settings.sets_on_question_timeout {
        settings.on_question_timeout = OnQuestionTimeout::Continue;
    }
}

#[cfg(test)]
mod tests {
    use super::numbered;
    use std::path::Path;

    #[test]
    fn the_recording_of_a_later_turn_has_its_number_before_the_extension() {
        for (turn, name) in [(1, "/a/run.jsonl"), (2, "/a/run-2.jsonl"), (13, "/a/run-13.jsonl")] {
            assert_eq!(numbered(Path::new("/a/run.jsonl"), turn), Path::new(name));
        }
        assert_eq!(numbered(Path::new("run"), 2), Path::new("run-2"));
    }
}
