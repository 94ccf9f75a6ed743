//! Reasons why a workflow stops early.

use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::{Outcome, Text};
use crate::protocol::sentence::Sentence;
use crate::protocol::words::{LimitField, Source};

pub(super) fn phase_is_late() -> Failure {
    let text =
        |limit| format!("The phase took longer than {limit}: raise it or split the phase, then continue the plan.");
    let message = Sentence::pair(text("workflow.phase_timeout_s"), text("--phase-timeout"));
    Failure::new(Code::Timeout, message).at(LimitField::PhaseTimeout)
}

#[derive(Clone, Debug)]
pub(crate) enum Stop {
    Failed(Box<Failure>),
    Cancelled {
        reason: Option<Text>,
        source: Source,
    },
    /// Frames can no longer be delivered.
    Lost,
}

impl Stop {
    pub(crate) fn failed(code: Code, message: impl Into<Sentence>) -> Stop {
        Stop::Failed(Box::new(Failure::new(code, message)))
    }

    /// `own`: whether the part's own limit was shorter than the run's.
    pub(super) fn from_outcome(outcome: Outcome, own: bool) -> Stop {
        match outcome {
            Outcome::Failed(failure) if own && failure.code == Code::Timeout => phase_is_late().into(),
            Outcome::Failed(failure) => failure.into(),
            Outcome::Cancelled { reason, source } => Stop::Cancelled { reason, source },
            Outcome::Completed { .. } => Stop::failed(Code::InternalError, "A part of the run ended without a result."),
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(Box::new(failure))
    }
}
