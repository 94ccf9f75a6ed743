//! Why a run ends, and the ladder by which its agent is brought to an end.

use crate::protocol::outbound::Outcome;
use std::time::Duration;

/// After a result, how long the agent may take to leave by itself.
const LEAVE: Duration = Duration::from_secs(2);
/// How long the interrupt may take before stdin is closed, and that before SIGTERM.
const RUNG: Duration = Duration::from_millis(700);
/// How long SIGTERM may take before SIGKILL. From the first rung to SIGKILL it is 2.1 s, so that the whole end stays
/// below the 4 s that the protocol gives it, also where stdout is not read.
const GRACE: Duration = Duration::from_millis(700);

/// How far the end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The agent was asked to stop what it does.
    Interrupted,
    /// It was told to leave, and its stdin is closed.
    Leaving,
    /// SIGTERM was sent.
    Terminated,
    /// SIGKILL was sent.
    Killed,
}

/// A decided end.
#[derive(Debug)]
pub(crate) struct Ending {
    /// How the run ends. The first reason is kept.
    pub(crate) outcome: Outcome,
    /// How far it is.
    pub(crate) stage: Stage,
    /// When the next rung is due.
    pub(crate) due: Option<Duration>,
    /// Whether we stopped the agent, rather than let it leave after its result.
    pub(crate) stopped: bool,
    /// Whether the agent leaves when it is told to. Else it is not waited for.
    leaves: bool,
}

impl Ending {
    /// After the agent's result. `leaves`: whether it leaves when it is told to.
    pub(crate) fn after_result(now: Duration, outcome: Outcome, leaves: bool) -> Ending {
        let due = if leaves { now + LEAVE } else { now };
        Ending { outcome, stage: Stage::Leaving, due: Some(due), stopped: false, leaves }
    }

    /// Against the agent's will.
    pub(crate) fn stop(now: Duration, outcome: Outcome, leaves: bool) -> Ending {
        Ending { outcome, stage: Stage::Interrupted, due: Some(now + RUNG), stopped: true, leaves }
    }

    /// The next rung; what it needs done is the caller's.
    pub(crate) fn advance(&mut self, now: Duration) -> Stage {
        (self.stage, self.due) = match self.stage {
            Stage::Interrupted => (Stage::Leaving, Some(if self.leaves { now + RUNG } else { now })),
            Stage::Leaving => (Stage::Terminated, Some(now + GRACE)),
            Stage::Terminated | Stage::Killed => (Stage::Killed, None),
        };
        self.stage
    }

    /// Straight to the last rung.
    pub(crate) fn kill(&mut self) {
        (self.stage, self.due) = (Stage::Killed, None);
    }
}
