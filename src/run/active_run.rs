//! A run with an agent: passes each event to the subjects that it concerns, which have their own state.

use super::agent_side::{AgentSide, ProcessState};
use super::artifacts::Artifacts;
use super::blocked::BlockedText;
use super::budget::Budget;
use super::effects::Effects;
use super::frame_texts::FrameTexts;
use super::messages::Messages;
use super::open_questions::{Asker, OpenQuestions};
use super::part::{PartSeen, Sums};
use super::servers::Servers;
use super::step::RunningStep;
use super::stop_ladder::StopLadder;
use super::tool_calls::Tools;
use super::turns::{StopCause, TurnState, Turns};
use super::{CheckpointOrder, Event, OnEof, Refusal, Start};
use crate::agent::{DriverOutput, limit};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::{CheckpointId, InboundId, RunId};
use crate::protocol::outbound::{
    AgentName, Body, Capabilities, Json, Metadata, Outcome, ProtocolVersion, ShownSettings, Started, Text,
};
use crate::protocol::request::Settings;
use crate::protocol::terms::sentence;
use crate::protocol::words::{LimitField, WaitingOn, Warning};
use std::collections::HashSet;
use std::time::Duration;

const NO_ASK_SOCKET: &str =
    "The tool ask_user is not available: cannot create its socket in the directory for temporary files";

pub(super) struct ActiveRun {
    pub(super) effects: Effects,
    pub(super) settings: Settings,
    pub(super) texts: FrameTexts,
    pub(super) run_id: RunId,
    pub(super) on_eof: OnEof,
    pub(super) deadlines: Deadlines,
    pub(super) agent: AgentSide,
    pub(super) messages: Messages,
    pub(super) tools: Tools,
    pub(super) artifacts: Artifacts,
    pub(super) budget: Budget,
    pub(super) checkpoints: RewindState,
    pub(super) questions: OpenQuestions,
    pub(super) servers: Servers,
    /// The agent's work that outlives its turns, each by a short name.
    pub(super) background: Vec<Text>,
    pub(super) turns: Turns,
    pub(super) ladder: StopLadder,
    pub(super) denied: u64,
    /// The running step of a workflow. `None`: the agent is at work.
    pub(super) step: Option<RunningStep>,
    pub(super) blocked: Option<BlockedText>,
    pub(super) whole: Option<String>,
    pub(super) seen: PartSeen,
    /// The sums over the parts of a workflow's run. `None`: the run is a session of the agent.
    pub(super) sums: Option<Sums>,
}

impl ActiveRun {
    /// The first effect is run.started.
    pub(super) fn begin(
        now: Duration,
        random: &str,
        on_eof: OnEof,
        run_id: RunId,
        reply_to: Option<InboundId>,
        start: Start,
    ) -> Result<Box<ActiveRun>, Box<Refusal>> {
        let Start { mut settings, display_name, mut driver, redactor, short_secrets, asking_failed, .. } = start;
        let Start { missing, remake, workflow, has_steps, checkpoints, .. } = start;
        let mut out = DriverOutput::default();
        let launch = match limit::launch(&settings, driver.as_mut(), &mut out) {
            Ok(launch) => launch,
            Err(failure) => {
                let metadata = settings.metadata.map(Json::from);
                return Err(Box::new(Refusal { failure, metadata, redactor: Some(redactor) }));
            }
        };
        // A run with parts only checks that its settings work.
        let has_parts = workflow.is_some() || has_steps;
        let launch = (!has_parts).then_some(launch);
        let start_timeout = launch.as_ref().and_then(|launch| launch.start_timeout);
        settings.start_timeout_s = settings.start_timeout_s.or(start_timeout);
        let features = driver.features(&settings);
        let budget = Budget::new(&settings, &features.keepers);
        let servers = Servers::new(&settings);
        let can = Capabilities { rewind: checkpoints, ..features.capabilities };
        let started = Started { workflow, ..started(display_name, &settings, can) };
        let turns = Turns::first(now, 0, &settings);
        let mut active = Box::new(ActiveRun {
            effects: Effects::new(now, &settings),
            texts: FrameTexts::new(&settings.cwd, redactor),
            settings,
            run_id,
            on_eof,
            deadlines: Deadlines::new(now),
            servers,
            agent: AgentSide::new(driver, remake),
            messages: Messages::default(),
            tools: Tools::default(),
            artifacts: Artifacts::default(),
            budget,
            checkpoints: RewindState { on: checkpoints, ..RewindState::default() },
            questions: OpenQuestions::new(random),
            background: Vec::new(),
            turns,
            ladder: StopLadder::default(),
            denied: 0,
            step: None,
            blocked: None,
            whole: None,
            seen: PartSeen::default(),
            sums: has_parts.then(Sums::default),
        });
        active.effects.warned = has_parts.then(HashSet::default);
        active.effects.emit(Body::Started(Box::new(started)), reply_to.clone());
        if short_secrets > 0 {
            active.effects.warn(Warning::ShortSecret, "A secret is too short or too plain to be redacted", reply_to);
        }
        active.tell_missing(missing, asking_failed);
        active.checkpoint(CheckpointOrder::Begin(CheckpointId::Prompt(0)));
        match launch {
            Some(launch) => active.launch(launch, out),
            None => {
                // The driver needs no process, or the first part of a workflow begins it.
                active.agent.process = ProcessState::Ended;
                active.deadlines.begin_run(now, &active.settings);
                active.apply(out);
            }
        }
        Ok(active)
    }

    pub(super) fn tell_missing(&mut self, sandbox: Option<String>, asking_failed: bool) {
        if let Some(why) = sandbox {
            self.effects.warn(Warning::SandboxPartial, why, None);
        }
        if asking_failed {
            self.effects.warn(Warning::UnsupportedOption, NO_ASK_SOCKET, None);
        }
    }

    pub(super) fn handle(&mut self, event: Event<'_>) {
        let now = self.effects.now;
        match event {
            Event::Start(origin, _) => {
                let text = "A second run.start was ignored: one process is one run";
                self.effects.warn(Warning::DuplicateStart, text, origin.id);
            }
            Event::Answer(origin, input) if self.is_for_us(&origin) => self.answer_question(origin.id, input),
            Event::Prompt(origin, input, images) if self.is_for_us(&origin) => {
                self.take_prompt_input(origin.id, input, images)
            }
            Event::Cancel(origin, reason, source) if self.is_for_us(&origin) => self.cancel(origin.id, reason, source),
            Event::CancelTurn(origin, reason) if self.is_for_us(&origin) => self.cancel_turn(origin.id, reason),
            // These name another run.
            Event::Answer(..) | Event::Prompt(..) | Event::Cancel(..) | Event::CancelTurn(..) => {}
            Event::Malformed(origin, flaw) => {
                let text = format!("A line on stdin was ignored: {}", flaw.clause());
                self.effects.warn(Warning::MalformedMessage, text, origin.id);
            }
            Event::Unsupported(origin) => self.refuse_version(origin.id),
            Event::UnknownType(origin, text) => self.effects.warn(Warning::UnknownType, text, origin.id),
            Event::InputEnded => self.end_input(),
            Event::Tell(progress) => self.effects.progress(*progress, None),
            Event::Wrote(artifact) => self.artifacts.report_own(*artifact, &mut self.effects),
            // These come only between two parts.
            Event::Part(_) | Event::Close(_) => {}
            Event::Refused(failure) => self.stop(Outcome::Failed(failure), None),
            Event::OutputLost => {
                let failure = Failure::new(Code::InternalError, "stdout is closed: nothing can be delivered.");
                self.stop(Outcome::Failed(failure), None);
            }
            Event::Spawned => self.begin_process(),
            Event::SpawnedByNpx(package) => self.effects.tell_of_npx(package),
            Event::SpawnFailed(failure) => {
                self.agent.process = ProcessState::Ended;
                self.fail_start(failure);
            }
            Event::TakesOver(start) => self.take_over(*start),
            Event::TaskOver => self.end_task(),
            Event::Line(line) => self.read_line(line),
            Event::Stderr(text) => self.drive(|driver, out| driver.stderr(text, out)),
            Event::SessionLost => self.agent.session_id = None,
            Event::More => self.handle_waiting_event(),
            Event::AskServerCame => self.drive(|driver, out| driver.ask_server_came(out)),
            Event::ToolAsk { call, asks } => {
                self.deadlines.active = now;
                self.ask_questions(Asker::Tool(call), asks.into_iter().collect());
            }
            Event::ToolAskWithdrawn { call } => {
                self.deadlines.active = now;
                self.withdraw_questions(Some(&Asker::Tool(call)));
            }
            Event::McpServer { position, state, words } => {
                self.deadlines.active = now;
                self.server_launched(position, state, words);
            }
            Event::Submitted(result) => {
                self.deadlines.active = now;
                self.submit_result(result);
            }
            Event::Checkpoint(report) => self.take_checkpoint_report(report),
            Event::Ignored(count) => self.tell_ignored(count),
            Event::Warn(origin, warning, text) => self.effects.warn(warning, text, origin.id),
            Event::NotRead => self.deadlines.note_output(now, false),
            Event::TreeGone(exit) => self.end_tree(exit),
            Event::AgentEnded(end, files) => self.end_agent(end, files),
            Event::Rested(files) => self.end_at_rest(files),
            Event::CannotRest => self.refuse_rest(),
            Event::Tick => self.tick(),
        }
    }

    fn tell_ignored(&mut self, count: u64) {
        let text = format!("{count} messages were ignored while stdout was not read");
        self.effects.warn(Warning::MalformedMessage, text, None);
    }

    /// Only the heartbeat's counts during the search for changed files.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let heartbeat = self.effects.heartbeat_at();
        let all = match (self.agent.process, self.ladder.is_decided()) {
            (ProcessState::TreeGone, _) => [heartbeat, None, None, None, None, None, None],
            (_, true) => [heartbeat, self.ladder.due(), None, None, None, None, None],
            (_, false) => {
                let Deadlines { run, start, .. } = self.deadlines;
                let (questions, turn) = (self.questions.due(), self.turns.due(&self.settings));
                let agent = self.limit_due().or_else(|| self.idle_at());
                [heartbeat, run, start, agent, questions, turn, self.servers.due]
            }
        };
        all.into_iter().flatten().min()
    }

    fn waiting_on(&self) -> WaitingOn {
        match (self.questions.is_waiting(), self.turns.is_over()) {
            (true, _) => WaitingOn::Input,
            (false, true) if !self.ends_when_idle() => WaitingOn::Prompt,
            (false, true | false) => WaitingOn::Agent,
        }
    }

    fn idle_at(&self) -> Option<Duration> {
        let working = self.tools.running_since().or_else(|| self.background_since());
        let idle_at = self.deadlines.idle_at(&self.settings, working);
        idle_at.filter(|_| self.waiting_on() == WaitingOn::Agent && !self.turns.awaits_limit())
    }

    fn tick(&mut self) {
        let now = self.effects.now;
        let is_due = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        if self.agent.process != ProcessState::TreeGone {
            if is_due(self.ladder.due()) {
                self.advance();
            }
            if !self.ladder.is_decided() && is_due(self.servers.due) {
                self.miss_servers();
            }
            let passed = self.deadlines.passed(now, self.idle_at()).filter(|_| !self.ladder.is_decided());
            if let Some(failure) = passed {
                if failure.limit == Some(LimitField::IdleTimeout) && self.background_since().is_some() {
                    return self.conclude();
                }
                return self.stop(Outcome::Failed(failure), None);
            }
            if !self.ladder.is_decided() && is_due(self.turns.due(&self.settings)) {
                match self.turns.current.state {
                    TurnState::Running | TurnState::AwaitingLimit(_) => self.interrupt_turn(StopCause::Timeout, None),
                    TurnState::Stopping { .. } => self.turns.signal_tree(&mut self.effects),
                    TurnState::Over { .. } => self.close_conversation(),
                }
            }
            if !self.ladder.is_decided() {
                self.tick_limit();
            }
            if !self.ladder.is_decided() && is_due(self.questions.due()) {
                self.give_up_questions(self.questions.due_cause());
            }
        }
        if is_due(self.effects.heartbeat_at()) {
            self.effects.heartbeat(now.saturating_sub(self.deadlines.active), self.waiting_on());
        }
    }
}

fn started(display_name: String, settings: &Settings, capabilities: Capabilities) -> Started {
    Started {
        agent: AgentName { name: settings.agent.clone(), display_name: display_name.into(), version: None },
        config: ShownSettings {
            settings: Box::new(settings.clone()),
            cwd: Text::from(settings.cwd.to_string_lossy().into_owned()),
            sandbox: settings.sandbox.in_force(),
            agent_args: settings.agent_args.iter().map(|arg| Text::from(arg.as_str())).collect(),
        },
        protocol: ProtocolVersion::OURS,
        capabilities,
        metadata: Metadata(settings.metadata.clone().map(Json::from)),
        workflow: None,
        truncated: false,
    }
}

/// The state of the run's checkpoints.
#[derive(Default)]
pub(super) struct RewindState {
    /// Whether they are taken. `None`: nobody asked for them.
    pub(super) on: Option<bool>,
    pub(super) rewinds: u64,
    /// The message that asked for the rewind that is running.
    pub(super) running: Option<Option<InboundId>>,
}

pub(super) struct Deadlines {
    pub(super) begun: Duration,
    /// Set when the agent starts.
    pub(super) run: Option<Duration>,
    /// The deadline of the agent's first output. `None` after that output, or without a limit.
    pub(super) start: Option<Duration>,
    /// The time of the agent's last output, or of the last answer to it.
    pub(super) active: Duration,
}

impl Deadlines {
    pub(super) fn new(now: Duration) -> Deadlines {
        Deadlines { begun: now, run: None, start: None, active: now }
    }

    pub(super) fn begin_part(&mut self, now: Duration) {
        *self = Deadlines { begun: self.begun, ..Deadlines::new(now) };
    }

    pub(super) fn begin_run(&mut self, now: Duration, settings: &Settings) {
        self.run = settings.timeout_s.map(|limit| now + limit.duration());
    }

    pub(super) fn await_output(&mut self, now: Duration, settings: &Settings) {
        self.start = settings.start_timeout_s.map(|limit| now + limit.duration());
    }

    /// The agent wrote, or its output waits because nobody reads stdout. `is_opening`: the session is not open yet.
    pub(super) fn note_output(&mut self, now: Duration, is_opening: bool) {
        self.active = now;
        self.start.take_if(|_| !is_opening);
    }

    /// A tool that has been running since `tool` stops the clock for at most `tool_timeout_s`.
    pub(super) fn idle_at(&self, settings: &Settings, tool: Option<Duration>) -> Option<Duration> {
        let limit = settings.idle_timeout_s.duration();
        let held = tool.map(|since| since + settings.tool_timeout_s.duration());
        let is_limited = !limit.is_zero() && !self.active.is_zero();
        is_limited.then(|| self.active.max(held.unwrap_or_default()) + limit)
    }

    /// The failure of the deadline that passed first. `idle_at`: of the agent's next output.
    pub(super) fn passed(&self, now: Duration, idle_at: Option<Duration>) -> Option<Failure> {
        let all: [(_, fn() -> Failure); 3] = [
            (self.run, Failure::took_too_long),
            (self.start, || {
                let message = sentence!(
                    "The agent was not ready within {start_timeout_s:#}: check its installation.",
                    start_timeout_s
                );
                Failure::new(Code::StartTimeout, message).at(LimitField::StartTimeout)
            }),
            (idle_at, || {
                let message = sentence!(
                    "The agent was silent for longer than {idle_timeout_s:#}: raise it, or check what the agent is \
                     waiting for.",
                    idle_timeout_s
                );
                Failure::new(Code::IdleTimeout, message).at(LimitField::IdleTimeout)
            }),
        ];
        let passed = all.into_iter().filter(|(at, _)| at.is_some_and(|at| at <= now));
        passed.min_by_key(|(at, _)| *at).map(|(_, failure)| failure())
    }

    pub(super) fn elapsed_ms(&self, now: Duration) -> u64 {
        u64::try_from(now.saturating_sub(self.begun).as_millis()).unwrap_or(u64::MAX)
    }
}
