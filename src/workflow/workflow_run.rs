//! One run for the orchestrator, made of several runs of the engine: opened once, continued in sessions of the agent and
//! in steps without it, closed once. A workflow is plain blocking code over these calls.

use super::combined_peer::{CombinedPeer, Opened, PartKind, PartSeen};
use super::own_step::OwnStep;
use super::part::{Part, PartProcess, Session, SessionStart, Step, StepEnd};
use super::prompts::SessionPrompt;
use super::spent::Spent;
use super::stop::Stop;
use crate::agent::registry::Agent;
use crate::agent::{Driver, Features, Reply};
use crate::engine::{Begin, Carried, Engine, Job, Next, NextProcess, Over, Peer, Report, RestingAgent};
use crate::process::background_task::BackgroundTask;
use crate::process::session_files::cost_before;
use crate::protocol::failure::{Code, EXIT_UNDELIVERED, Failure};
use crate::protocol::ids::{RunId, SessionId};
use crate::protocol::outbound::{
    AgentExit, Body, Metadata, Outcome, PlanEntry, Progress, ProgressKind, Terminal, Text, Unattended, Usage,
    WorkflowEnd, WorkflowStarted,
};
use crate::protocol::question::{Ask, Judge};
use crate::protocol::request::{Seconds, Settings};
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::words::{OnQuestionTimeout, PlanStatus, StopReason, Warning, WorkflowKind};
use crate::protocol::workflow::{WorkflowOptions, WorkflowSettings};
use crate::redact::Redactor;
use crossbeam_channel::{Receiver, bounded};
use std::cell::RefCell;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The maximum wait for the processes of abandoned work. After it, they are left to the kernel.
const SETTLE_LIMIT: Duration = Duration::from_millis(500);

pub(crate) struct WorkflowRun<'p> {
    engine: Engine,
    peer: CombinedPeer<'p>,
    /// The settings that all parts share.
    shared: Job,
    run_id: RunId,
    settings: Settings,
    agent: Agent,
    carried: Option<Carried>,
    /// The bodies that the next part emits first.
    first: Vec<Body>,
    spent: Spent,
    /// The number of the agent's turns so far. Each has a recording.
    turns: u32,
    last: Last,
    /// The agent, if its process stayed after its last turn.
    resting: Option<Resting>,
    signal: Option<i32>,
    asked_at: Option<Instant>,
    /// A cancel that arrived after a part had its outcome.
    late: Option<Stop>,
    /// The way to continue, as a part of a sentence.
    pub(crate) again: &'static str,
    /// The object `workflow` of the terminal frame.
    pub end: WorkflowEnd,
}

/// The way to continue a run.
pub(crate) const SAME_COMMAND: &str = "run the same command";
/// The way to continue a run in a worktree: the same command would make another one.
pub(crate) const SHOWN_COMMAND: &str = "run the command that the last lines on stderr show";

/// The fields of the terminal frame that come from the sessions.
#[derive(Default)]
struct Last {
    session_id: Option<SessionId>,
    /// The total cost of that session in this run, in US dollars.
    cost_usd: Option<f64>,
    exit: Option<AgentExit>,
    completion: bool,
    unattended: Unattended,
}

/// The agent, whose process stayed after its last turn.
struct Resting {
    agent: RestingAgent,
    /// Whether its process takes prompts raw. See [`SessionPrompt::raw`].
    raw: bool,
}

/// The end of a run, as the process reports it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub code: u8,
    pub signal: Option<i32>,
    /// See [`Report::asked_at`].
    pub asked_at: Option<Instant>,
    /// Whether run.cancelled was the end.
    pub cancelled: bool,
    /// A sentence about the answers given in advance whose keys matched no question.
    pub unused_answers: Option<String>,
    /// The report of the run, outside of workflows.
    pub report: Option<Box<Report>>,
}

impl From<Report> for Ended {
    fn from(report: Report) -> Ended {
        let Report { code, signal, asked_at, .. } = report;
        let (cancelled, unused_answers) = (report.is_cancelled(), report.unused_answers.clone());
        Ended { code, signal, asked_at, cancelled, unused_answers, report: Some(Box::new(report)) }
    }
}

/// An open run with the result of its admission. Error: the run is over already.
pub(crate) type OpenedRun<'p, T> = Result<(WorkflowRun<'p>, T), Ended>;

impl<'p> WorkflowRun<'p> {
    /// Opens the run: takes the run.start, checks it, and emits run.started. `admit` checks the settings for the workflow,
    /// may change them, and returns the part of run.started about it. It must not change files, because the driver may
    /// still refuse the run.
    pub(crate) fn open<T: 'p>(
        mut engine: Engine,
        job: Job,
        peer: &'p mut dyn Peer,
        (kind, flags): (WorkflowKind, WorkflowOptions),
        admit: impl FnOnce(&mut Settings, &Agent, WorkflowSettings) -> Result<(T, WorkflowStarted), Failure> + 'p,
    ) -> OpenedRun<'p, T> {
        let found = Rc::new(RefCell::new(None));
        let kept = Rc::clone(&found);
        let admit = move |settings: &mut Settings, agent: &Agent, options: WorkflowSettings| {
            let (it, workflow) = admit(settings, agent, options)?;
            *kept.borrow_mut() = Some((it, workflow.target.clone()));
            Ok(workflow)
        };
        let mut peer = CombinedPeer::new(peer, kind, flags, Box::new(admit));
        let shared = job.another();
        let report = engine.run(Job { opens: true, debug_log: None, ..job }, &mut peer);
        let opened = peer.opened.take().zip(found.take());
        let Some((Opened { run_id, settings, agent }, (it, target))) = opened.filter(|_| report.terminal.is_some())
        else {
            return Err(report.into());
        };
        peer.opened = Some(Opened { run_id: run_id.clone(), settings: settings.clone(), agent: agent.clone() });
        let outer = WorkflowRun {
            engine,
            peer,
            shared,
            run_id,
            settings,
            agent,
            carried: Some(report.carried),
            first: Vec::new(),
            spent: Spent::begin(),
            turns: 0,
            last: Last::default(),
            resting: None,
            signal: report.signal,
            asked_at: report.asked_at,
            late: report.late.map(Stop::from),
            again: SAME_COMMAND,
            end: WorkflowEnd { target, ..WorkflowEnd::unknown(kind) },
        };
        Ok((outer, it))
    }

    /// The settings of the run. `prompt` is the description, the specification or the plan.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    pub(crate) fn features(&self) -> Features {
        self.agent.features(&self.settings)
    }

    /// The agent's last session, if it can be resumed.
    pub(crate) fn resumable(&self) -> Option<&SessionId> {
        self.session_id().filter(|_| self.can_resume())
    }

    /// Whether the agent can resume a session. True if unknown.
    pub(crate) fn can_resume(&self) -> bool {
        self.features().capabilities.resume != Some(false)
    }

    /// The agent's last session, even one that failed.
    pub(crate) fn session_id(&self) -> Option<&SessionId> {
        self.last.session_id.as_ref()
    }

    /// A sentence for a failure's message about the number of denied permissions. Empty: none were denied.
    pub(crate) fn denials(&self) -> String {
        let count = self.peer.denied;
        let (were, them) = if count == 1 { ("permission was", "it") } else { ("permissions were", "them") };
        if count == 0 {
            String::new()
        } else {
            format!(" {count} {were} denied: allow {them} with --permissions or --yes.")
        }
    }

    /// The usage of all sessions so far.
    pub(crate) fn usage(&self) -> Usage {
        self.peer.usage
    }

    /// A redactor with every secret of the run so far.
    pub(crate) fn redactor(&self) -> Redactor {
        self.carried.as_ref().map(|carried| carried.redactor().clone()).unwrap_or_default()
    }

    /// The facts from the frames of the last part.
    pub(crate) fn seen(&self) -> &PartSeen {
        &self.peer.seen
    }

    /// Files that run.artifact never reports, as frames show their paths. A folder ends with a slash.
    pub(crate) fn hide(&mut self, paths: Vec<String>) {
        self.peer.hidden = paths;
    }

    /// Emits a progress frame at the beginning of the next part, if the run's level includes its kind.
    pub(crate) fn tell(&mut self, about: ProgressKind, text: impl Into<Text>) {
        self.progress(Progress::new(about, text));
    }

    pub(crate) fn warn(&mut self, warning: Warning, text: impl Into<Sentence>) {
        self.progress(Progress::warning(warning, text));
    }

    fn progress(&mut self, progress: Progress) {
        if self.settings.progress >= progress.about.level() {
            self.first.push(Body::Progress(Box::new(progress)));
        }
    }

    /// Emits the workflow's own steps.
    pub(crate) fn plan(&mut self, steps: impl IntoIterator<Item = (String, PlanStatus)>) {
        let entries = steps.into_iter().map(|(text, status)| PlanEntry { text: Text::from(text), status });
        self.tell(ProgressKind::Plan(entries.collect()), "The plan changed");
    }

    /// Queues any other body, such as an artifact, for the beginning of the next part.
    pub(crate) fn queue(&mut self, body: Body) {
        self.first.push(body);
    }

    /// Runs a session of the agent. Returns the session's id. Error: the session failed, or the run is over.
    pub(crate) fn session(&mut self, session: Session) -> Result<Option<SessionId>, Stop> {
        let Session { prompt: SessionPrompt { text, raw }, start, keeps_process, judge, limit, wrap, remake } = session;
        let mut settings = Settings { prompt: text, raw_prompt: raw, judge, ..self.settings.clone() };
        settings.max_cost_usd = self.money_left()?;
        let (process, known) = match start {
            SessionStart::New => (PartProcess::New, None),
            SessionStart::Resume(id) => {
                let is_last = self.last.session_id.as_ref() == Some(&id);
                settings.session_id = Some(id);
                // An old version does not store the cost.
                let known = self.last.cost_usd.filter(|_| is_last);
                (PartProcess::New, cost_before(&self.agent, &settings).or(known))
            }
            SessionStart::SameProcess => (PartProcess::Stayed, self.last.cost_usd),
        };
        settings.session_cost_usd = known;
        let before = settings.session_cost_usd.unwrap_or_default();
        let limits_itself = self.limit(&mut settings, limit)?;
        let driver = self.agent.driver();
        let driver = match wrap {
            Some(wrap) => wrap(driver),
            None => driver,
        };
        self.turns += 1;
        let job = Job {
            record: self.shared.record.as_deref().map(|path| numbered(path, self.turns)),
            debug_log: self.shared.debug_log.clone(),
            ..self.job()
        };
        let terminal = self.part(PartKind::Session, job, Part { settings, driver, process, keeps_process, remake })?;
        self.last.session_id.clone_from(&terminal.session_id);
        // A process that ends before its turn reports no cost: that of the session's earlier turns is still known.
        self.last.cost_usd = terminal.usage.cost_usd.map(|cost| before + cost).or(known);
        self.last.exit = terminal.agent_exit;
        self.last.completion |= terminal.completion_detected;
        match terminal.outcome {
            Outcome::Completed { .. } => Ok(terminal.session_id),
            outcome @ (Outcome::Failed(_) | Outcome::Cancelled { .. }) => {
                Err(Stop::from_outcome(outcome, limits_itself))
            }
        }
    }

    /// Whether the agent's process stayed after its last turn.
    pub(crate) fn has_process(&self) -> bool {
        self.resting.is_some()
    }

    /// Whether the agent's process stayed and can take this prompt.
    pub(crate) fn has_process_for(&self, prompt: &SessionPrompt) -> bool {
        self.resting.as_ref().is_some_and(|resting| resting.raw == prompt.raw && resting.agent.is_alive())
    }

    /// Ends the agent's process that stayed after its last turn. `driver`: the one of that turn. Error: the run is over.
    pub(crate) fn leave(&mut self, driver: Box<dyn Driver>) -> Result<(), Stop> {
        let (process, keeps_process, remake) = (PartProcess::Leaves, false, None);
        let (job, settings) = (self.job(), self.settings.clone());
        let part = Part { settings, driver, process, keeps_process, remake };
        let terminal = self.part(PartKind::Leaving, job, part)?;
        self.last.exit = terminal.agent_exit;
        Ok(())
    }

    /// Runs a step without the agent. Error: the run is over. A failed step is not an error.
    pub(crate) fn step(&mut self, step: Step) -> Result<StepEnd, Stop> {
        self.step_beside(step, None)
    }

    /// Asks a question of spektacular's own. `judge` may answer it. `None`: the step ended without a reply. Error: the run
    /// is over.
    pub(crate) fn ask(&mut self, ask: Ask, judge: Option<Arc<dyn Judge>>) -> Result<Option<Reply>, Stop> {
        let (sender, reply) = bounded(1);
        let driver = Box::new(OwnStep::Asks(Box::new(ask), sender));
        self.step(Step { driver, limit: None, phase: None, judge })?;
        Ok(reply.try_recv().ok())
    }

    /// Like [`WorkflowRun::step`]. `task`: the work that a step without a process waits for.
    fn step_beside(&mut self, step: Step, task: Option<Receiver<Infallible>>) -> Result<StepEnd, Stop> {
        debug_assert!(
            self.resting.is_none(),
            "the reaper of an agent that rests takes the step's process for an orphan"
        );
        let Step { driver, limit, phase, judge } = step;
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
        let job = Job { task, ..self.job() };
        let (process, keeps_process, remake) = (PartProcess::New, false, None);
        let part = Part { settings, driver, process, keeps_process, remake };
        let terminal = self.part(PartKind::Step(phase), job, part)?;
        let timed_out = matches!(&terminal.outcome, Outcome::Failed(failure) if failure.code == Code::Timeout);
        match terminal.outcome {
            outcome @ Outcome::Cancelled { .. } => Err(Stop::from_outcome(outcome, false)),
            Outcome::Failed(failure) if timed_out && !limits_itself => Err(Stop::Failed(Box::new(failure))),
            outcome @ (Outcome::Completed { .. } | Outcome::Failed(_)) => {
                Ok(StepEnd { outcome, exit: terminal.agent_exit, timed_out })
            }
        }
    }

    /// Waits for work in a separate thread, as a part of the run that serves cancels, signals and time limits
    /// meanwhile. `limit`: the remaining time of the phase. Returns `None` if no thread could be started. Error: the
    /// run is over, or the limit was reached. The work is abandoned, and its processes are stopped.
    pub(crate) fn wait_for_task<T: Send + 'static>(
        &mut self,
        limit: Option<Duration>,
        mut work: BackgroundTask<T>,
    ) -> Result<Option<T>, Stop> {
        let step = Step { driver: Box::new(OwnStep::Waits), limit, phase: None, judge: None };
        let end = self.step_beside(step, Some(work.over())).and_then(|end| match end.outcome {
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

    /// The job of the next part, with the bodies that wait to be emitted.
    fn job(&mut self) -> Job {
        Job {
            record: None,
            debug_log: None,
            first: std::mem::take(&mut self.first),
            carried: self.carried.take(),
            ..self.shared.another()
        }
    }

    fn part(&mut self, kind: PartKind, job: Job, part: Part) -> Result<Terminal, Stop> {
        if let Some(stop) = self.late.take() {
            (self.first, self.carried) = (job.first, job.carried);
            return Err(stop);
        }
        let Part { settings, driver, process, keeps_process, remake } = part;
        let raw = settings.raw_prompt;
        let process = match process {
            PartProcess::New => NextProcess::New,
            PartProcess::Stayed => self.resting.take().map_or(NextProcess::New, |it| NextProcess::Resting(it.agent)),
            PartProcess::Leaves => self.resting.take().map_or(NextProcess::New, |it| NextProcess::Leaving(it.agent)),
        };
        let display_name = self.agent.display_name.clone();
        let run_id = self.run_id.clone();
        let next = Next { run_id, settings, display_name, driver, process, keeps_process, remake };
        self.peer.begin(kind);
        let began = Instant::now();
        let report = self.engine.run(Job { begin: Begin::Next(Box::new(next)), ..job }, &mut self.peer);
        self.signal = self.signal.or(report.signal);
        self.asked_at = self.asked_at.or(report.asked_at);
        self.late = report.late.map(Stop::from);
        self.carried = Some(report.carried);
        let Some(mut terminal) = report.terminal else { return Err(Stop::Lost) };
        if let Some(agent) = report.resting {
            self.resting = Some(Resting { agent, raw });
        }
        let took = Duration::from_millis(terminal.duration_ms);
        self.spent.add(began, took, report.worked);
        self.last.unattended.join(std::mem::take(&mut terminal.unattended));
        Ok(terminal)
    }

    /// Limits the part to the remaining time of the run and to `limit`. Returns whether `limit` is the shorter one.
    fn limit(&self, settings: &mut Settings, limit: Option<Duration>) -> Result<bool, Stop> {
        let worked = self.spent.worked();
        let left = self.settings.timeout_s.map(|whole| whole.duration().saturating_sub(worked.unwrap_or_default()));
        if left == Some(Duration::ZERO) {
            return Err(Stop::Failed(Box::new(Failure::took_too_long())));
        }
        let shorter = limit.is_some_and(|limit| left.is_none_or(|left| limit < left));
        let left = if shorter { limit } else { left };
        settings.timeout_s = left.map(|left| Seconds(left.as_secs_f64()));
        Ok(shorter)
    }

    /// The remaining money, in US dollars. `None`: no limit. Error: nothing is left.
    pub(super) fn money_left(&self) -> Result<Option<f64>, Stop> {
        let spent = self.peer.usage.cost_usd.unwrap_or_default();
        match self.settings.max_cost_usd.map(|whole| whole - spent) {
            Some(left) if left <= 0.0 => {
                let how = match self.end.name {
                    WorkflowKind::Spec | WorkflowKind::Plan => "continue the draft with --continue".to_owned(),
                    WorkflowKind::Implement => format!("{} to continue", self.again),
                };
                let message = sentence!("The run has used up {max_cost_usd:#}: raise it, then {how}.", max_cost_usd);
                Err(Stop::failed(Code::LimitReached, message))
            }
            left => Ok(left),
        }
    }

    /// The time that the run has used so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.spent.elapsed()
    }

    /// Ends the run with the text of its result, or with the reason for its stop.
    pub(crate) fn close(mut self, outcome: Result<String, Stop>) -> Ended {
        if let Some(resting) = self.resting.take() {
            // The run was stopped while the agent rested. It must end soon.
            self.last.exit = resting.agent.kill(&self.redactor());
        }
        let outcome = match outcome {
            Ok(text) => Outcome::Completed {
                text: Text::from(text),
                message_id: None,
                text_cut: false,
                structured_output: None,
                stop_reason: StopReason::EndTurn,
            },
            Err(Stop::Failed(failure)) => Outcome::Failed(*failure),
            Err(Stop::Cancelled { reason, source }) => Outcome::Cancelled { reason, source },
            Err(Stop::Lost) => {
                let (code, signal, asked_at) = (EXIT_UNDELIVERED, self.signal, self.asked_at);
                return Ended { code, signal, asked_at, cancelled: false, unused_answers: None, report: None };
            }
        };
        let terminal = self.terminal(outcome);
        let max_frame_bytes = self.settings.max_frame_bytes;
        let over = Over { run_id: self.run_id.clone(), max_frame_bytes, terminal };
        let job = Job { begin: Begin::Over(Box::new(over)), ..self.job() };
        self.peer.begin(PartKind::Closing);
        let report = self.engine.run(job, &mut self.peer);
        let signal = self.signal.or(report.signal);
        let asked_at = self.asked_at.or(report.asked_at);
        Ended { signal, asked_at, report: None, ..Ended::from(report) }
    }

    fn terminal(&mut self, outcome: Outcome) -> Terminal {
        let mut artifacts = self.peer.artifacts.clone();
        artifacts.extend(self.first.iter().filter_map(Body::artifact));
        Terminal {
            session_id: self.last.session_id.take(),
            artifacts,
            usage: self.peer.usage,
            duration_ms: u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX),
            metadata: Metadata(self.settings.metadata.take().map(Into::into)),
            unattended: std::mem::take(&mut self.last.unattended),
            completion_detected: self.last.completion,
            agent_exit: self.last.exit,
            workflow: Some(Box::new(self.end.clone())),
            truncated: self.peer.has_more_artifacts(),
            ..Terminal::new(outcome)
        }
    }
}

/// The path of a turn's recording: the second turn adds `-2` before the extension, and so on.
fn numbered(path: &Path, turn: u32) -> PathBuf {
    if turn <= 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{turn}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
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
