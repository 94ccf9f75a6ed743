//! Answers that are secrets.

use super::answered::Answered;
use super::open_questions::OpenQuestions;
use crate::protocol::ids::QuestionId;
use crate::protocol::limits::SECRET_BYTES;
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
        let is_secret = self.find(id).is_some_and(|(_, member)| answered.is_secret(&member.shown.kind));
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
