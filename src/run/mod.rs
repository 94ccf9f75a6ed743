//! A run as a pure state machine: it takes an event and returns effects. It has no clock, I/O, randomness or channel.
//!
//! Three rules give a run exactly one end: [`Phase::Ended`] ignores every event, only [`Run::end`] builds a terminal
//! body, and the stamper refuses a frame after it.

mod active_run;
mod agent_events;
mod agent_side;
mod artifacts;
mod asked_question;
mod awaited_servers;
mod background;
mod blocked;
mod budget;
mod checkpoints;
mod effects;
mod event;
mod frame_texts;
mod limit_wait;
mod messages;
mod open_questions;
mod orchestrator;
mod outcome;
mod part;
mod parts;
mod provider_limit;
mod questions;
mod servers;
mod step;
mod steps;
mod stop;
mod stop_ladder;
mod takeover;
mod text_markers;
mod tool_calls;
mod turn_end;
mod turns;

pub use event::{
    AgentEnd, CheckpointOrder, CheckpointReport, Effect, Event, FoundFiles, OnEof, Origin, ReadInput, Refusal, Start,
    StopSignal,
};
pub use open_questions::Answered;
pub use part::{
    Closing, Part, PartEnd, PartSeen, PartWork, Remake, ShellCommand, StepWork, Turn, TurnBegin, completed,
};

use crate::agent::Features;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::{InboundId, QuestionId, RunId};
use crate::protocol::inbound::{Addressee, Flaw};
use crate::protocol::limits::HELD_WARNINGS;
use crate::protocol::outbound::{Body, Metadata, Outcome, Progress, Terminal, Text, WorkflowEnd};
use crate::protocol::question::{Ask, Kind};
use crate::protocol::request::Settings;
use crate::protocol::words::{Source, Warning, WorkflowKind};
use crate::redact::Redactor;
use active_run::ActiveRun;
pub(crate) use agent_side::limit_value;
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use stop_ladder::DecidedEnd;
pub(crate) use stop_ladder::TERM_GRACE;

enum Phase {
    /// Before run.start. Warnings wait for run.started.
    Waiting(Vec<Held>),
    ActiveRun(Box<ActiveRun>),
    /// A workflow's run waits for its next part.
    Between(Box<ActiveRun>),
    Ended,
}

struct Held {
    reply_to: Option<InboundId>,
    warning: Warning,
    text: Cow<'static, str>,
    /// The number of further ignored messages, for which no warning is held.
    more: u64,
}

impl Held {
    fn line(&self) -> String {
        if self.more == 0 { self.text.to_string() } else { format!("{} (and {} more messages)", self.text, self.more) }
    }
}

pub struct Run {
    phase: Phase,
    on_eof: OnEof,
    random: String,
    redactor: Redactor,
    exit_code: Option<u8>,
    stopping: Option<Duration>,
    /// `None`: the run is a session of the agent.
    pub(crate) workflow: Option<WorkflowKind>,
    /// The file that the workflow writes or works on.
    target: Option<Text>,
    /// Whether the run of a workflow has begun.
    is_open: bool,
    part_end: Option<Box<PartEnd>>,
    /// Since 1970.
    date: Duration,
}

impl Run {
    /// `random`: lower-case letters and digits that make ids unique across processes. `redactor`: redacts everything
    /// before run.start.
    pub fn new(random: &str, on_eof: OnEof, redactor: Redactor) -> Run {
        Run {
            phase: Phase::Waiting(Vec::new()),
            on_eof,
            random: random.to_owned(),
            redactor,
            exit_code: None,
            stopping: None,
            workflow: None,
            target: None,
            is_open: false,
            part_end: None,
            date: Duration::ZERO,
        }
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_))
    }

    /// The exit code, once the terminal frame is built.
    pub fn exit_code(&self) -> Option<u8> {
        self.exit_code
    }

    pub fn redactor(&self) -> &Redactor {
        match &self.phase {
            Phase::ActiveRun(active) | Phase::Between(active) => &active.texts.redactor,
            Phase::Waiting(_) | Phase::Ended => &self.redactor,
        }
    }

    fn active(&self) -> Option<&ActiveRun> {
        match &self.phase {
            Phase::ActiveRun(active) => Some(active),
            Phase::Waiting(_) | Phase::Between(_) | Phase::Ended => None,
        }
    }

    /// Whether events of the agent's last line wait. [`Event::More`] must come until none does, before any other line.
    pub fn has_more(&self) -> bool {
        self.active().is_some_and(|active| !active.agent.waiting.is_empty())
    }

    /// The time at which the orchestrator, a signal or a limit requested the end. From then on, the run does not wait
    /// for an orchestrator that does not read.
    pub fn stopping(&self) -> Option<Duration> {
        self.stopping
    }

    /// The deadline of the whole run, from the agent's start until an end is decided.
    pub fn deadline(&self) -> Option<Duration> {
        self.active().filter(|active| !active.ladder.is_decided())?.deadlines.run
    }

    /// Whether the run stops the agent before it has a result. False for a run that has its result and is only told to
    /// end sooner.
    pub(crate) fn is_stopping(&self) -> bool {
        self.active().is_some_and(|active| active.ladder.is_stopping())
    }

    pub fn is_between(&self) -> bool {
        matches!(self.phase, Phase::Between(_)) || self.part_end.is_some()
    }

    pub fn take_part_end(&mut self) -> Option<Box<PartEnd>> {
        self.part_end.take()
    }

    pub(crate) fn features_at_start(&self, settings: &Settings) -> Option<Features> {
        match &self.phase {
            Phase::Between(active) => Some(active.features_at_start(settings)),
            Phase::ActiveRun(_) | Phase::Waiting(_) | Phase::Ended => None,
        }
    }

    pub(crate) fn begun(&self) -> Duration {
        match &self.phase {
            Phase::ActiveRun(active) | Phase::Between(active) => active.deadlines.begun,
            Phase::Waiting(_) | Phase::Ended => Duration::ZERO,
        }
    }

    pub(crate) fn hide(&mut self, paths: Vec<String>) {
        if let Phase::ActiveRun(active) | Phase::Between(active) = &mut self.phase {
            active.artifacts.hidden = paths;
        }
    }

    pub(crate) fn is_open(&self, question_id: &QuestionId) -> bool {
        self.active().is_some_and(|active| active.questions.find(question_id).is_some())
    }

    /// The settings of the run, while it has an agent.
    pub(crate) fn settings(&self) -> Option<&Settings> {
        self.active().map(|active| &active.settings)
    }

    /// The working directory, if the answer to this question is a path to check.
    pub(crate) fn path_question(&self, question_id: &QuestionId) -> Option<PathBuf> {
        let active = self.active()?;
        let ask: &Ask = &active.questions.find(question_id)?.shown;
        matches!(ask.kind, Kind::FilePath).then(|| active.settings.cwd.clone())
    }

    /// The time at which the next [`Event::Tick`] is due.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.active()?.next_deadline()
    }

    /// Takes the memory of a body that was emitted, for the next one.
    pub(crate) fn reuse(&mut self, body: Body) {
        if let (Phase::ActiveRun(active), Body::Progress(mut progress)) = (&mut self.phase, body) {
            progress.text = Text::default();
            active.effects.spare = Some(progress);
        }
    }

    /// Requests [`Effect::Said`], because a recording is being made.
    pub(crate) fn recorded(&mut self) {
        if let Phase::ActiveRun(active) = &mut self.phase {
            active.effects.recorded = true;
        }
    }

    pub fn set_date(&mut self, date: SystemTime) {
        self.date = date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    }

    pub fn step(&mut self, now: Duration, event: Event<'_>, effects: &mut Vec<Effect>) {
        // A signal also ends a run that has its outcome and only waits for its reader.
        let urged = matches!(&event, Event::Cancel(_, _, source) if *source != Source::Orchestrator);
        self.take(now, event, effects);
        if urged || self.is_stopping() {
            self.stopping.get_or_insert(now);
        }
    }

    fn take(&mut self, now: Duration, event: Event<'_>, effects: &mut Vec<Effect>) {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Waiting(held) => self.waiting(now, held, event, effects),
            Phase::ActiveRun(mut active) => {
                (active.effects.now, active.effects.date) = (now, self.date);
                std::mem::swap(&mut active.effects.list, effects);
                active.handle(event);
                let end = active.take_end();
                std::mem::swap(&mut active.effects.list, effects);
                self.go_on(now, active, end, effects);
            }
            Phase::Between(active) => self.between(now, active, event, effects),
            Phase::Ended => self.go_on_after_fault(event, effects),
        }
    }

    fn between(&mut self, now: Duration, mut active: Box<ActiveRun>, event: Event<'_>, effects: &mut Vec<Effect>) {
        (active.effects.now, active.effects.date) = (now, self.date);
        std::mem::swap(&mut active.effects.list, effects);
        if let Event::Close(closing) = event {
            self.stopping = None;
            let terminal = active.close(*closing);
            std::mem::swap(&mut active.effects.list, effects);
            self.redactor = std::mem::take(&mut active.texts.redactor);
            effects.push(self.end(terminal, None));
        } else if let Event::Part(part) = event {
            self.stopping = None;
            if let PartWork::Rest(_) = part.work {
                active.sums = None;
                self.is_open = false;
            }
            active.begin_part(*part);
            let end = active.take_end();
            std::mem::swap(&mut active.effects.list, effects);
            self.go_on(now, active, end, effects);
        } else {
            active.handle(event);
            std::mem::swap(&mut active.effects.list, effects);
            self.phase = Phase::Between(active);
        }
    }

    /// Lets a workflow close its run, whose facts a fault of our own has lost.
    fn go_on_after_fault(&mut self, event: Event<'_>, effects: &mut Vec<Effect>) {
        if !self.is_open || self.exit_code.is_some() {
            return;
        }
        if let Event::Part(_) = event {
            self.part_end = Some(Box::new(PartEnd::failed(Failure::of_our_own())));
        } else if let Event::Close(closing) = event {
            let workflow = closing.workflow.map(Box::new);
            effects.push(self.end(Terminal { workflow, ..Terminal::new(closing.outcome) }, None));
        }
    }

    fn go_on(&mut self, now: Duration, mut active: Box<ActiveRun>, end: Option<DecidedEnd>, effects: &mut Vec<Effect>) {
        let Some(ending) = end else {
            self.phase = Phase::ActiveRun(active);
            return;
        };
        if ending.stopped {
            self.stopping.get_or_insert(now);
        }
        if active.sums.is_some() {
            self.part_end = Some(Box::new(active.end_part(ending.outcome)));
            effects.append(&mut active.effects.list);
            self.phase = Phase::Between(active);
            return;
        }
        let terminal = active.terminal(ending.outcome);
        self.redactor = std::mem::take(&mut active.texts.redactor);
        effects.push(self.end(terminal, None));
    }

    /// Ends a run that cannot continue because our own code or the machine failed, or the part of a workflow, which closes
    /// the run then. The terminal body has no other facts about the run.
    pub(crate) fn crashed(&mut self, now: Duration, failure: Failure) -> Option<Effect> {
        self.stopping.get_or_insert(now);
        if self.exit_code.is_some() {
            return None;
        }
        self.phase = Phase::Ended;
        if self.is_open {
            self.part_end = Some(Box::new(PartEnd::failed(failure)));
            return None;
        }
        Some(self.end(Terminal::new(Outcome::Failed(failure)), None))
    }

    fn end(&mut self, mut terminal: Terminal, reply_to: Option<InboundId>) -> Effect {
        self.exit_code = Some(match &terminal.outcome {
            Outcome::Failed(failure) => failure.code.exit_code(),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } => 0,
        });
        self.phase = Phase::Ended;
        if let (Some(kind), None) = (self.workflow, &terminal.workflow) {
            let target = terminal.outcome.refused_target().or_else(|| self.target.take());
            terminal.workflow = Some(Box::new(WorkflowEnd { target, ..WorkflowEnd::unknown(kind) }));
        }
        Effect::Emit { body: Body::Terminal(Box::new(terminal)), reply_to, measure: None }
    }

    fn waiting(&mut self, now: Duration, held: Vec<Held>, event: Event<'_>, effects: &mut Vec<Effect>) {
        let mut metadata = None;
        let (origin, outcome) = match event {
            Event::Start(origin, Ok(start)) => return self.begin(now, held, origin, *start, effects),
            Event::Start(origin, Err(refusal)) => {
                metadata = refusal.metadata;
                self.redactor = refusal.redactor.unwrap_or_else(|| std::mem::take(&mut self.redactor));
                (origin, Outcome::Failed(refusal.failure))
            }
            Event::Cancel(origin, reason, source) => (origin, Outcome::Cancelled { reason, source }),
            Event::Malformed(origin, flaw) => (origin, Outcome::Failed(malformed(flaw))),
            Event::Unsupported(origin) => (origin, Outcome::Failed(orchestrator::unsupported())),
            Event::InputEnded => (Origin::default(), Outcome::Failed(no_start(&held))),
            Event::Refused(failure) => (Origin::default(), Outcome::Failed(failure)),
            Event::OutputLost => {
                self.exit_code = Some(crate::protocol::failure::EXIT_UNDELIVERED);
                return;
            }
            Event::Answer(origin, _) => {
                return self.hold(held, origin.id, Warning::UnknownQuestion, questions::UNKNOWN_QUESTION.into());
            }
            Event::Prompt(origin, ..) => {
                let text = "A prompt was ignored: no run has begun";
                return self.hold(held, origin.id, Warning::PromptRefused, text.into());
            }
            Event::CancelTurn(origin, reason) => (origin, Outcome::Cancelled { reason, source: Source::Orchestrator }),
            Event::UnknownType(origin, text) => return self.hold(held, origin.id, Warning::UnknownType, text.into()),
            Event::Warn(origin, warning, text) => return self.hold(held, origin.id, warning, text.into()),
            // These come from an agent, or from a run that has one.
            Event::Spawned
            | Event::SpawnedByNpx(_)
            | Event::TakesOver(_)
            | Event::TaskOver
            | Event::SpawnFailed(_)
            | Event::Line(_)
            | Event::Stderr(_)
            | Event::SessionLost
            | Event::AskServerCame
            | Event::ToolAsk { .. }
            | Event::ToolAskWithdrawn { .. }
            | Event::McpServer { .. }
            | Event::Submitted(_)
            | Event::More
            | Event::TreeGone(_)
            | Event::AgentEnded(..)
            | Event::Rested(_)
            | Event::CannotRest
            | Event::Checkpoint(_)
            | Event::Part(_)
            | Event::Tell(_)
            | Event::Wrote(_)
            | Event::Close(_)
            | Event::Ignored(_)
            | Event::NotRead
            | Event::Tick => {
                self.phase = Phase::Waiting(held);
                return;
            }
        };
        if matches!(outcome, Outcome::Cancelled { .. }) {
            self.stopping.get_or_insert(now);
        }
        effects.push(Effect::RunId(self.run_id(&origin)));
        effects.extend(held.into_iter().map(|held| Effect::Diagnose(format!("warning: {}", held.line()))));
        effects.push(self.end(Terminal { metadata: Metadata(metadata), ..Terminal::new(outcome) }, origin.id));
    }

    fn hold(&mut self, mut held: Vec<Held>, reply_to: Option<InboundId>, warning: Warning, text: Cow<'static, str>) {
        let is_full = held.len() >= HELD_WARNINGS;
        match held.last_mut().filter(|_| is_full) {
            Some(last) => last.more += 1,
            None => held.push(Held { reply_to, warning, text, more: 0 }),
        }
        self.phase = Phase::Waiting(held);
    }

    fn run_id(&self, origin: &Origin) -> RunId {
        match &origin.run {
            Addressee::Run(id) => id.clone(),
            Addressee::Unnamed | Addressee::Invalid => RunId::generated(&self.random),
        }
    }

    fn begin(&mut self, now: Duration, held: Vec<Held>, origin: Origin, start: Start, effects: &mut Vec<Effect>) {
        let run_id = self.run_id(&origin);
        effects.extend([Effect::RunId(run_id.clone()), Effect::FrameLimit(start.settings.max_frame_bytes)]);
        self.target = start.workflow.as_ref().and_then(|workflow| workflow.target.clone());
        match ActiveRun::begin(now, &self.random, self.on_eof, run_id, origin.id.clone(), start) {
            Ok(mut active) => {
                effects.extend(active.effects.list.drain(..1));
                effects.extend(held.into_iter().map(|held| {
                    let progress = Box::new(Progress::warning(held.warning, held.line()));
                    Effect::Emit { body: Body::Progress(progress), reply_to: held.reply_to, measure: None }
                }));
                let end = active.take_end();
                effects.append(&mut active.effects.list);
                self.is_open = active.sums.is_some();
                match self.is_open {
                    true => self.phase = Phase::Between(active),
                    false => self.go_on(now, active, end, effects),
                }
            }
            // As a run.start that cannot be read.
            Err(refusal) => self.waiting(now, held, Event::Start(origin, Err(refusal)), effects),
        }
    }
}

/// Names the last message of an unknown type, which may be a misspelled one.
fn no_start(held: &[Held]) -> Failure {
    let stranger = held.iter().rfind(|held| held.warning == Warning::UnknownType);
    let stranger = stranger.map(|held| format!(" {}", held.text)).unwrap_or_default();
    let message = format!("stdin ended before a run.start: send one line of JSON, ended by LF.{stranger}");
    Failure::new(Code::NoStart, message)
}

fn malformed(flaw: Flaw) -> Failure {
    let message = format!("The line is not a message: {}. Send one JSON object per line.", flaw.clause());
    Failure::new(Code::InvalidMessage, message)
}
