//! Why a workflow does not begin: a closed list of reasons, each with a sentence that says what to do.

use std::fmt;

/// The reason of a refusal: `detail.reason` of an `invalid_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The finished file is there.
    Exists,
    /// A file that is needed is not there.
    NotFound,
    /// A path leads out of the project or over a link.
    Outside,
    /// A file or a value breaks a rule.
    Invalid,
    /// A file or a text is larger than its limit.
    TooLarge,
    /// Another process works on it.
    Locked,
    /// The work tree has changes.
    Dirty,
    /// There is no git work tree.
    NoGit,
    /// Nobody consented to the commands of the plan.
    Consent,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 9] = [
        Reason::Exists,
        Reason::NotFound,
        Reason::Outside,
        Reason::Invalid,
        Reason::TooLarge,
        Reason::Locked,
        Reason::Dirty,
        Reason::NoGit,
        Reason::Consent,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Reason::Exists => "exists",
            Reason::NotFound => "not_found",
            Reason::Outside => "outside",
            Reason::Invalid => "invalid",
            Reason::TooLarge => "too_large",
            Reason::Locked => "locked",
            Reason::Dirty => "dirty",
            Reason::NoGit => "no_git",
            Reason::Consent => "consent",
        }
    }
}

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
}

impl fmt::Display for WorkflowRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}
