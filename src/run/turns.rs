//! The turns of a run, and the prompts that wait for one.

use crate::protocol::failure::Failure;
use crate::protocol::outbound::{Outcome, Text, Unattended, Usage};
use crate::protocol::words::Source;
use std::collections::VecDeque;
use std::time::Duration;

/// The turns of a run. A run that is not a conversation has one, and further ones only for prompts that wait.
pub(super) struct Turns {
    /// The number of the current or last turn, from 1.
    pub(super) number: u64,
    pub(super) state: TurnState,
    /// The usage of the run when the turn began.
    pub(super) usage_before: Usage,
    /// The time at which the turn began.
    pub(super) began: Duration,
    pub(super) waiting: VecDeque<WaitingPrompt>,
    /// The number of prompts so far, including those of earlier runs.
    pub(super) prompts: u64,
    /// Whether the run ends once no turn runs and no prompt waits.
    pub(super) closing: bool,
    /// The last completed turn.
    pub(super) completed: Option<Outcome>,
    /// The failure of the last failed turn.
    pub(super) failed: Option<Failure>,
    /// The questions of earlier turns that nobody answered.
    pub(super) unattended: Unattended,
    /// Whether an earlier turn had the completion marker.
    pub(super) completion: bool,
}

pub(super) enum TurnState {
    Running,
    /// The agent was asked to stop the turn. If it has not by then, its process is ended.
    Stopping {
        why: StopCause,
        due: Option<Duration>,
    },
    /// The agent waits for a prompt since then.
    Over {
        since: Duration,
    },
}

/// The cause of an interrupted turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    Cancel,
    Timeout,
}

/// A prompt that waits for its turn.
pub(super) struct WaitingPrompt {
    pub(super) number: u64,
    pub(super) text: Text,
}

impl Turns {
    /// The first turn, which runs. `prompts`: the number of prompts of earlier runs.
    pub(super) fn first(now: Duration, prompts: u64) -> Turns {
        Turns {
            number: 1,
            state: TurnState::Running,
            usage_before: Usage::default(),
            began: now,
            waiting: VecDeque::new(),
            prompts,
            closing: false,
            completed: None,
            failed: None,
            unattended: Unattended::default(),
            completion: false,
        }
    }

    /// Whether the agent waits for a prompt.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, TurnState::Over { .. })
    }

    /// Whether the turn is being interrupted.
    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.state, TurnState::Stopping { .. })
    }

    /// Adds what earlier turns left unanswered, and whether they had the completion marker.
    pub(super) fn sum(&mut self, unattended: &mut Unattended, completion: &mut bool) {
        let later = std::mem::replace(unattended, std::mem::take(&mut self.unattended));
        unattended.join(later);
        *completion |= self.completion;
    }

    /// The outcome of a conversation without a running turn.
    pub(super) fn conclusion(&mut self) -> Outcome {
        let failed = self.failed.take().map(Outcome::Failed);
        let cancelled = Outcome::Cancelled { reason: None, source: Source::Orchestrator };
        self.completed.take().or(failed).unwrap_or(cancelled)
    }
}
