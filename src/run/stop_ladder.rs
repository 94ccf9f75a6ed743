//! The decided end of a run, and the steps that stop its agent.
//!
//! This is the state alone. `stop` carries out the steps.

use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::{Outcome, Text};
use crate::protocol::words::Source;
use std::time::Duration;

/// The time from the interrupt to the closing of stdin, and from there to SIGTERM.
const RUNG: Duration = Duration::from_millis(700);
/// The time from SIGTERM to SIGKILL. All steps together take 2.1 s, so that the run ends within the 4 s of the protocol
/// even if nobody reads stdout.
pub(crate) const TERM_GRACE: Duration = Duration::from_millis(700);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Interrupted,
    /// The agent was told to leave, and its stdin is closed.
    Leaving,
    Terminated,
    Killed,
}

#[derive(Debug)]
pub(super) struct DecidedEnd {
    pub(super) outcome: Outcome,
    stage: Stage,
    due: Option<Duration>,
    /// Whether the agent was stopped instead of exiting by itself after its result.
    pub(super) stopped: bool,
    /// The time in which the agent exits when it is told to. Zero: it does not, and the next step follows at once.
    leave_time: Duration,
}

/// The first outcome stands.
#[derive(Default)]
pub(super) struct StopLadder {
    end: Option<DecidedEnd>,
    /// The number of signals, or requests of a person, to end the run.
    pub(super) signals: u32,
    /// A cancel after the outcome was decided, for the next part of the run.
    late: Option<Outcome>,
}

impl StopLadder {
    /// Decides an end that lets the agent exit by itself, within `leave_time`.
    pub(super) fn begin_exit(&mut self, now: Duration, outcome: Outcome, leave_time: Duration) {
        let due = Some(now + leave_time);
        self.end.get_or_insert(DecidedEnd { outcome, stage: Stage::Leaving, due, stopped: false, leave_time });
    }

    pub(super) fn begin_stop(&mut self, now: Duration, outcome: Outcome, leave_time: Duration) {
        let due = Some(now + RUNG);
        self.end.get_or_insert(DecidedEnd { outcome, stage: Stage::Interrupted, due, stopped: true, leave_time });
    }

    pub(super) fn is_decided(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.stopped)
    }

    pub(super) fn is_late(&self) -> bool {
        let failure =
            |end: &DecidedEnd| matches!(&end.outcome, Outcome::Failed(failure) if failure.code == Code::Timeout);
        self.end.as_ref().is_some_and(failure)
    }

    pub(super) fn is_interrupting(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.stage == Stage::Interrupted)
    }

    pub(super) fn due(&self) -> Option<Duration> {
        self.end.as_ref()?.due
    }

    /// Lets the agent rest after a result: no step is due. Returns whether there is a result.
    pub(super) fn rest(&mut self) -> bool {
        let result = self.end.as_mut().filter(|end| matches!(end.outcome, Outcome::Completed { .. }));
        result.map(|end| end.due = None).is_some()
    }

    pub(super) fn is_resting(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.stage == Stage::Leaving && end.due.is_none())
    }

    /// Begins the steps anew, because the agent cannot rest. Returns whether the end is decided.
    pub(super) fn end_rest(&mut self, now: Duration) -> bool {
        let Some(DecidedEnd { outcome, leave_time, .. }) = self.end.take() else { return false };
        self.begin_exit(now, outcome, leave_time);
        true
    }

    /// Moves to the next step, which the caller carries out. `None`: the end is not decided.
    pub(super) fn next_step(&mut self, now: Duration) -> Option<Stage> {
        let end = self.end.as_mut()?;
        (end.stage, end.due) = match end.stage {
            Stage::Interrupted => (Stage::Leaving, Some(now + end.leave_time.min(RUNG))),
            Stage::Leaving => (Stage::Terminated, Some(now + TERM_GRACE)),
            Stage::Terminated | Stage::Killed => (Stage::Killed, None),
        };
        Some(end.stage)
    }

    pub(super) fn skip_to_kill(&mut self) {
        if let Some(end) = &mut self.end {
            (end.stage, end.due) = (Stage::Killed, None);
        }
    }

    pub(super) fn note_late(&mut self, reason: &Option<Text>, source: Source) {
        if self.is_decided() && !self.is_stopping() {
            self.late.get_or_insert_with(|| Outcome::Cancelled { reason: reason.clone(), source });
        }
    }

    /// Begins a part of the run, or ends it at once, if a cancel came after the outcome of the last part.
    pub(super) fn begin_part(&mut self, now: Duration) {
        let StopLadder { end, late, signals: _ } = std::mem::take(self);
        self.end = end;
        late.into_iter().for_each(|outcome| self.begin_stop(now, outcome, Duration::ZERO));
    }

    /// Returns whether there was a result.
    pub(super) fn replace_result(&mut self, failure: &Failure) -> bool {
        match &mut self.end {
            Some(DecidedEnd { outcome: outcome @ Outcome::Completed { .. }, .. }) => {
                *outcome = Outcome::Failed(failure.clone());
                true
            }
            Some(_) | None => false,
        }
    }

    pub(super) fn take_if(&mut self, is_done: bool) -> Option<DecidedEnd> {
        self.end.take_if(|_| is_done)
    }
}
