//! The parts that a workflow's run consists of: sessions of the agent, and steps without it.

use super::prompts::SessionPrompt;
use crate::agent::Reply;
use crate::protocol::outbound::{AgentExit, Outcome};
use crate::protocol::question::Judge;
use crate::run::{StepWork, TurnBegin};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Session {
    pub prompt: SessionPrompt,
    pub start: TurnBegin,
    /// The whole prompt, for an agent that takes over. `None`: `prompt` is.
    pub whole: Option<SessionPrompt>,
    /// Whether the process may stay for a further turn.
    pub keeps_process: bool,
    /// Whether the prompt offers the marker of a blocked agent, which is removed from the text then.
    pub offers_blocked: bool,
    pub judge: Arc<dyn Judge>,
    /// The limit of the whole run applies too.
    pub limit: Option<Duration>,
}

/// A step without the agent.
pub(crate) struct Step {
    pub work: StepWork,
    /// The limit of the whole run applies too.
    pub limit: Option<Duration>,
    pub judge: Option<Arc<dyn Judge>>,
}

#[derive(Debug)]
pub(crate) struct StepEnd {
    pub outcome: Outcome,
    pub exit: Option<AgentExit>,
    /// Whether it reached its own time limit.
    pub timed_out: bool,
    /// The end of the output of its command, redacted.
    pub output: String,
    pub reply: Option<Reply>,
}

impl StepEnd {
    pub(crate) fn passed(&self) -> bool {
        matches!(self.outcome, Outcome::Completed { .. }) && self.exit.is_some_and(|exit| exit.code == Some(0))
    }
}
