//! The decided end of a run, and the steps that stop its agent.

use crate::protocol::outbound::Outcome;
use std::time::Duration;

/// The time that the agent has to exit by itself after a result.
const LEAVE: Duration = Duration::from_secs(2);
/// The time from the interrupt to the closing of stdin, and from there to SIGTERM.
const RUNG: Duration = Duration::from_millis(700);
/// The time from SIGTERM to SIGKILL. All steps together take 2.1 s, so that the run ends within the 4 s of the protocol
/// even if nobody reads stdout.
const GRACE: Duration = Duration::from_millis(700);

/// The step that the end has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The agent was asked to stop its work.
    Interrupted,
    /// The agent was told to leave, and its stdin is closed.
    Leaving,
    /// SIGTERM was sent.
    Terminated,
    /// SIGKILL was sent.
    Killed,
}

#[derive(Debug)]
pub(crate) struct DecidedEnd {
    pub(crate) outcome: Outcome,
    /// The current step.
    pub(crate) stage: Stage,
    /// The time at which the next step is due.
    pub(crate) due: Option<Duration>,
    /// Whether the agent was stopped instead of exiting by itself after its result.
    pub(crate) stopped: bool,
    /// Whether the agent exits when it is told to. If not, the next step follows at once.
    leaves: bool,
}

impl DecidedEnd {
    /// Creates an end after the agent's result. `leaves`: whether the agent exits when it is told to.
    pub(crate) fn after_result(now: Duration, outcome: Outcome, leaves: bool) -> DecidedEnd {
        let due = if leaves { now + LEAVE } else { now };
        DecidedEnd { outcome, stage: Stage::Leaving, due: Some(due), stopped: false, leaves }
    }

    /// Creates an end that stops the agent.
    pub(crate) fn stop(now: Duration, outcome: Outcome, leaves: bool) -> DecidedEnd {
        DecidedEnd { outcome, stage: Stage::Interrupted, due: Some(now + RUNG), stopped: true, leaves }
    }

    /// Moves to the next step, which the caller carries out.
    pub(crate) fn advance(&mut self, now: Duration) -> Stage {
        (self.stage, self.due) = match self.stage {
            Stage::Interrupted => (Stage::Leaving, Some(if self.leaves { now + RUNG } else { now })),
            Stage::Leaving => (Stage::Terminated, Some(now + GRACE)),
            Stage::Terminated | Stage::Killed => (Stage::Killed, None),
        };
        self.stage
    }

    /// Moves to the last step.
    pub(crate) fn kill(&mut self) {
        (self.stage, self.due) = (Stage::Killed, None);
    }
}
