//! Answers from the orchestrator, before they are checked.

use crate::protocol::question::{BadAnswer, Kind, PathFact};
use serde_json::value::RawValue;

/// An answer from the orchestrator.
#[derive(Debug)]
pub enum Answered {
    /// A value, and the kind of file at the path that it names.
    Value(Box<RawValue>, Option<PathFact>),
    /// A value that was read from the source in `value_from`.
    Kept(Box<RawValue>, Option<PathFact>),
    /// The source in `value_from` could not be read. The text says why.
    Unreadable(BadAnswer),
    /// A secret that is too long to redact.
    TooLong,
    Declined,
}

impl Answered {
    /// Whether an answer is a secret: any answer to a secret question, and free text from `value_from`.
    pub(super) fn is_secret(&self, kind: &Kind) -> bool {
        match (kind, self) {
            (Kind::Secret, _) => true,
            (Kind::Select { choices, .. }, Answered::Kept(raw, _)) => {
                let text = crate::json::string(raw).unwrap_or_default();
                !choices.as_slice().iter().any(|choice| {
                    choice.value == text.as_str() || choice.label.unredacted().eq_ignore_ascii_case(&text)
                })
            }
            (Kind::Text | Kind::FilePath, Answered::Kept(..)) => true,
            (Kind::Confirm, Answered::Kept(..))
            | (_, Answered::Value(..) | Answered::Unreadable(_) | Answered::TooLong | Answered::Declined) => false,
        }
    }
}
