//! What ends a workflow before its end.

use crate::failure::{Code, Failure};
use crate::protocol::outbound::{Outcome, Text};
use crate::protocol::words::Source;
use crate::run::Late;

pub use self::Halt as Stop;

/// The reason why a workflow does not go on.
#[derive(Clone, Debug)]
pub enum Halt {
    /// A failure, of the agent's or of the workflow.
    Failed(Box<Failure>),
    /// Somebody cancelled it.
    Cancelled {
        /// Why, as the one who did said.
        reason: Option<Text>,
        /// Who did.
        source: Source,
    },
    /// No frame can be delivered any more.
    Lost,
}

impl Halt {
    /// A failure with this code and message.
    pub fn failed(code: Code, message: impl Into<String>) -> Halt {
        Halt::Failed(Box::new(Failure::new(code, message)))
    }

    /// The stop that an outcome means which is no result. `own`: whether a limit of the part's own was shorter than the
    /// run's.
    pub(super) fn of(outcome: Outcome, own: bool) -> Halt {
        match outcome {
            Outcome::Failed(mut failure) => {
                if own && failure.code == Code::Timeout {
                    failure.message = "The phase took longer than phase_timeout_s: raise it or split the phase.".into();
                }
                Halt::Failed(Box::new(failure))
            }
            Outcome::Cancelled { reason, source } => Halt::Cancelled { reason, source },
            Outcome::Completed { .. } => Halt::failed(Code::InternalError, "A part of the run ended without a result."),
        }
    }
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Halt {
        Halt::Failed(Box::new(failure))
    }
}

impl From<Late> for Halt {
    fn from(late: Late) -> Halt {
        Halt::Cancelled { reason: late.reason.map(Text::from), source: late.source }
    }
}
