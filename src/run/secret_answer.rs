//! Answers that are secrets.

use super::open_questions::{Answered, OpenQuestions};
use crate::protocol::ids::QuestionId;
use crate::protocol::limits::SECRET_BYTES;
use crate::protocol::question::Kind;
use crate::redact::Redactor;

impl OpenQuestions {
    /// Registers a secret answer with the redactor before it is used. Returns the answer, and whether it is too plain to
    /// be redacted.
    pub(super) fn keep_secret(
        &mut self,
        id: &QuestionId,
        answered: Answered,
        redactor: &mut Redactor,
    ) -> (Answered, bool) {
        let is_secret = self.find(id).is_some_and(|(_, member)| is_secret(&member.shown.kind, &answered));
        let (true, Answered::Value(raw, _) | Answered::Kept(raw, _)) = (is_secret, &answered) else {
            return (answered, false);
        };
        let Some(text) = crate::json::string(raw) else { return (answered, false) };
        if text.len() > SECRET_BYTES {
            return (Answered::TooLong, false);
        }
        let is_kept = redactor.add(&text);
        if is_kept {
            self.hide(redactor);
        }
        (answered, !is_kept)
    }
}

/// Whether an answer is a secret: any answer to a secret question, and free text from `value_from`.
fn is_secret(kind: &Kind, answered: &Answered) -> bool {
    match (kind, answered) {
        (Kind::Secret, _) => true,
        (Kind::Select { choices, .. }, Answered::Kept(raw, _)) => {
            let text = crate::json::string(raw).unwrap_or_default();
            !choices
                .as_slice()
                .iter()
                .any(|choice| choice.value == text.as_str() || choice.label.unredacted().eq_ignore_ascii_case(&text))
        }
        (Kind::Text | Kind::FilePath, Answered::Kept(..)) => true,
        (Kind::Confirm, Answered::Kept(..))
        | (_, Answered::Value(..) | Answered::Unreadable(_) | Answered::TooLong | Answered::Declined) => false,
    }
}
