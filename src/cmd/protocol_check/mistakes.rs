//! The mistakes of a client.

/// A mistake of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    NotCalled,
    WrongCall,
    SeveralRuns,
    NoStart,
    InvalidMessage,
    UnknownField,
    InvalidStart,
    NotReading,
    UnknownQuestion,
    AnsweredTwice,
    AnsweredResolved,
    Unanswered,
    NotAnsweredAgain,
    ClosedInput,
    LeftRunning,
    StoppedAtUnknown,
    TrustedExitCode,
    WrongEnd,
    NeverEnded,
}

impl Mistake {
    /// The word in JSON.
    pub(super) fn code(self) -> &'static str {
        match self {
            Mistake::NotCalled => "not_called",
            Mistake::WrongCall => "wrong_call",
            Mistake::SeveralRuns => "several_runs",
            Mistake::NoStart => "no_start",
            Mistake::InvalidMessage => "invalid_message",
            Mistake::UnknownField => "unknown_field",
            Mistake::InvalidStart => "invalid_start",
            Mistake::NotReading => "not_reading",
            Mistake::UnknownQuestion => "unknown_question",
            Mistake::AnsweredTwice => "answered_twice",
            Mistake::AnsweredResolved => "answered_resolved",
            Mistake::Unanswered => "unanswered",
            Mistake::NotAnsweredAgain => "not_answered_again",
            Mistake::ClosedInput => "closed_input",
            Mistake::LeftRunning => "left_running",
            Mistake::StoppedAtUnknown => "stopped_at_unknown",
            Mistake::TrustedExitCode => "trusted_exit_code",
            Mistake::WrongEnd => "wrong_end",
            Mistake::NeverEnded => "never_ended",
        }
    }
}
