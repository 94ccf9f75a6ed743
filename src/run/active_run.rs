//! The state of a run with an agent. Its siblings implement what the run does, one subject each.

use super::agent_side::AgentSide;
use super::artifacts::Artifacts;
use super::budget::Budget;
use super::effects::Effects;
use super::frame_texts::FrameTexts;
use super::messages::Messages;
use super::open_questions::OpenQuestions;
use super::stop_ladder::DecidedEnd;
use super::tool_calls::Tools;
use super::turns::Turns;
use super::{Late, OnEof};
use crate::protocol::ids::RunId;
use crate::protocol::request::Settings;
use std::time::Duration;

/// The state of a run with an agent.
pub(super) struct ActiveRun {
    pub(super) effects: Effects,
    pub(super) settings: Settings,
    pub(super) texts: FrameTexts,
    pub(super) run_id: RunId,
    pub(super) on_eof: OnEof,
    pub(super) clocks: Clocks,
    pub(super) agent: AgentSide,
    pub(super) messages: Messages,
    pub(super) tools: Tools,
    pub(super) artifacts: Artifacts,
    pub(super) budget: Budget,
    pub(super) questions: OpenQuestions,
    pub(super) turns: Turns,
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
