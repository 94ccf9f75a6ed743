//! The parts that a workflow's run consists of: sessions of the agent, and steps without it.

use super::prompts::SessionPrompt;
use crate::agent::Driver;
use crate::protocol::ids::SessionId;
use crate::protocol::outbound::{AgentExit, Outcome};
use crate::protocol::question::Judge;
use crate::protocol::request::Settings;
use crate::run::Remake;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionStart {
    /// A new session in a new process.
    New,
    Resume(SessionId),
    /// The session of the process that stayed. See [`super::workflow_run::WorkflowRun::has_process_for`].
    SameProcess,
}

/// The agent's process at the beginning of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartProcess {
    New,
    /// The process that stayed takes a further turn.
    Stayed,
    /// The process that stayed is told to leave.
    Leaves,
}

pub(crate) struct Session {
    pub prompt: SessionPrompt,
    pub start: SessionStart,
    /// Whether the process may stay for a further turn.
    pub keeps_process: bool,
    /// Decides about the permissions that the prompt needs.
    pub judge: Option<Arc<dyn Judge>>,
    /// The time limit. The limit of the whole run applies too.
    pub limit: Option<Duration>,
    /// Wraps or replaces the agent's driver.
    pub wrap: Option<Wrap>,
    /// Makes the driver of a new process, with which the session goes on after a provider's limit.
    pub remake: Option<Remake>,
}

/// A part of the run with its driver.
pub(super) struct Part {
    pub(super) settings: Settings,
    pub(super) driver: Box<dyn Driver>,
    pub(super) process: PartProcess,
    pub(super) keeps_process: bool,
    pub(super) remake: Option<Remake>,
}

pub(crate) type Wrap = Box<dyn FnOnce(Box<dyn Driver>) -> Box<dyn Driver>>;

/// A step without the agent.
pub(crate) struct Step {
    /// The step's driver.
    pub driver: Box<dyn Driver>,
    /// The time limit. The limit of the whole run applies too.
    pub limit: Option<Duration>,
    /// The phase of the plan that the step belongs to.
    pub phase: Option<String>,
    /// Decides about the step's own question.
    pub judge: Option<Arc<dyn Judge>>,
}

#[derive(Debug)]
pub(crate) struct StepEnd {
    pub outcome: Outcome,
    pub exit: Option<AgentExit>,
    /// Whether it reached its own time limit.
    pub timed_out: bool,
}

impl StepEnd {
    /// Whether its process exited with status 0.
    pub(crate) fn passed(&self) -> bool {
        matches!(self.outcome, Outcome::Completed { .. }) && self.exit.is_some_and(|exit| exit.code == Some(0))
    }
}
