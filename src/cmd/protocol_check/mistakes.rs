//! The mistakes of a client.

use serde::Serialize;

/// A mistake of a client. Its name in JSON is its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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
