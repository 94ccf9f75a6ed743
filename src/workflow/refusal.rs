//! Why a workflow does not begin: a closed list of reasons, each with a sentence that says what to do.

use crate::failure::Failure;
pub use crate::protocol::words::RefusalReason as Reason;
use std::fmt;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRefusal {
    /// The reason.
    pub reason: Reason,
    /// One sentence for the user. Paths in it are clean; secrets are not yet redacted.
    pub message: String,
}

impl WorkflowRefusal {
    /// A refusal.
    pub fn new(reason: Reason, message: impl Into<String>) -> WorkflowRefusal {
        WorkflowRefusal { reason, message: message.into() }
    }

    /// The failure of the run.
    pub fn failure(self) -> Failure {
        Failure::refused_for(self.reason, self.message)
    }
}

impl fmt::Display for WorkflowRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}
