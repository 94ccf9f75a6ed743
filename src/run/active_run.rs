//! The state of a run with an agent. Its siblings implement what the run does, one subject each.

use super::budget::Budget;
use super::messages::Messages;
use super::open_questions::OpenQuestions;
use super::stop_ladder::DecidedEnd;
use super::turns::Turns;
use super::waiting_events::WaitingEvents;
use super::work::{Artifacts, Tools};
use super::{Effect, Ids, Late, OnEof, Remake};
use crate::agent::{AgentEvent, AskKey, Driver};
use crate::protocol::ids::{RunId, SessionId};
use crate::protocol::outbound::{AgentExit, Progress, Text, Usage};
use crate::protocol::request::Settings;
use crate::protocol::words::Status;
use crate::redact::Redactor;
use std::collections::HashMap;
use std::time::Duration;

/// The state of a run with an agent.
pub(super) struct ActiveRun {
    pub(super) now: Duration,
    /// The effects of the current event.
    pub(super) out: Vec<Effect>,
    /// The memory of the last progress.
    pub(super) spare: Option<Box<Progress>>,
    pub(super) settings: Settings,
    /// The working directory with a final slash, which is removed from paths in texts.
    pub(super) folder: String,
    pub(super) redactor: Redactor,
    pub(super) run_id: RunId,
    pub(super) on_eof: OnEof,
    pub(super) status: Option<Status>,
    pub(super) clocks: Clocks,
    pub(super) agent: AgentSide,
    pub(super) work: Progressed,
    pub(super) questions: Questions,
    pub(super) turns: Turns,
    /// Makes the driver of a new process for the same session.
    pub(super) remake: Option<Remake>,
    /// Whether the agent's process stays after a completed turn.
    pub(super) keeps_process: bool,
    pub(super) end: EndState,
}

/// The times of past events, and of deadlines.
pub(super) struct Clocks {
    /// The time when the run began.
    pub(super) begun: Duration,
    /// The deadline of the run. Set when the agent starts.
    pub(super) run: Option<Duration>,
    /// The deadline of the agent's first output. `None`: the output came, or there is no limit.
    pub(super) start: Option<Duration>,
    /// The time of the agent's last output, or of the last answer to it.
    pub(super) active: Duration,
    /// The time of the last frame.
    pub(super) frame: Duration,
}

pub(super) struct AgentSide {
    pub(super) driver: Box<dyn Driver>,
    pub(super) process: ProcessState,
    /// The exit of the last process.
    pub(super) exit: Option<AgentExit>,
    /// Whether the agent has written anything.
    pub(super) alive: bool,
    /// The events of the agent's last line that wait.
    pub(super) waiting: WaitingEvents,
    /// Empty between two lines. RequestBytes to reuse its memory.
    pub(super) events: Vec<AgentEvent>,
    /// Whether a recording needs the pieces of messages.
    pub(super) recorded: bool,
}

impl AgentSide {
    pub(super) fn before_spawn(driver: Box<dyn Driver>) -> AgentSide {
        AgentSide {
            driver,
            process: ProcessState::Due,
            exit: None,
            alive: false,
            waiting: WaitingEvents::default(),
            events: Vec::new(),
            recorded: false,
        }
    }
}

/// The state of the agent's process. An agent may have one process per turn, and has at most one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessState {
    /// The process is to be started.
    Due,
    Running,
    /// The process is gone, and the search for changed files is running. Only heartbeats are due.
    Drained,
    /// The process is gone. The run is over, or waits for answers that begin another turn.
    Gone,
    /// The process rests for a later part of the run, and this part is over.
    Resting,
}

/// The agent's work so far.
pub(super) struct Progressed {
    pub(super) messages: Messages,
    pub(super) tools: Tools,
    pub(super) artifacts: Artifacts,
    /// The limits that the run keeps itself.
    pub(super) budget: Budget,
    /// The usage of this process and of those before it.
    pub(super) usage: Usage,
    /// The usage of the processes before this one.
    earlier: Usage,
    /// The usage of this process by the driver's count, and its part before this run.
    pub(super) counted: Usage,
    counted_before: Usage,
    pub(super) session_id: Option<SessionId>,
    /// The model that the agent reports.
    pub(super) model: Option<Text>,
}

impl Progressed {
    /// No work yet. `ids`: the counters after the previous run.
    pub(super) fn after(ids: Ids, budget: Budget) -> Progressed {
        Progressed {
            messages: Messages::after(ids.messages),
            tools: Tools::after(ids.calls),
            artifacts: Artifacts::after(ids.artifacts),
            budget,
            usage: Usage::default(),
            earlier: Usage::default(),
            counted: Usage::default(),
            counted_before: Usage::default(),
            session_id: None,
            model: None,
        }
    }
}

impl Progressed {
    /// Keeps the usage of the processes that have ended, because a new one counts from zero.
    pub(super) fn begin_process(&mut self) {
        self.earlier = self.usage;
        self.continue_process(Usage::default());
    }

    /// Continues with a process that has this usage already.
    pub(super) fn continue_process(&mut self, before: Usage) {
        (self.counted, self.counted_before) = (before, before);
    }

    /// Sets the usage of the current process.
    pub(super) fn set_usage(&mut self, usage: &Usage) {
        self.counted = *usage;
        self.usage = self.earlier.plus(&usage.since(&self.counted_before));
    }
}

pub(super) struct Questions {
    pub(super) book: OpenQuestions,
    pub(super) kept: RequestBytes,
    pub(super) input_closed: bool,
}

/// The size of the requests that wait for answers. The driver and the run keep at most the line that contained a
/// request.
#[derive(Default)]
pub(super) struct RequestBytes {
    /// The size of the agent's current line in bytes, or 0 once it is counted for a request.
    pub(super) line: usize,
    requests: HashMap<AskKey, usize>,
    pub(super) bytes: usize,
}

impl RequestBytes {
    /// Counts the current line for a request in it.
    pub(super) fn add(&mut self, key: &AskKey) {
        let bytes = std::mem::take(&mut self.line);
        self.bytes += bytes;
        *self.requests.entry(key.clone()).or_default() += bytes;
    }

    /// Forgets a request that is answered or withdrawn.
    pub(super) fn forget(&mut self, key: &AskKey) {
        self.bytes -= self.requests.remove(key).unwrap_or_default();
    }
}

#[derive(Default)]
pub(super) struct EndState {
    /// Set once the end is decided.
    pub(super) ending: Option<DecidedEnd>,
    /// The number of signals, or requests of a person, to end the run.
    pub(super) signals: u32,
    /// A cancel after the outcome was decided.
    pub(super) late: Option<Late>,
}
