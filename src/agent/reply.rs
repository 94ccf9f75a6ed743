//! The resolution of a question, as types and as sentences. Only this file has the sentences that explain a missing
//! answer to a model.

use crate::protocol::question::Answer;
use crate::protocol::text::Text;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A valid answer, from the user or the default.
    Answer(Answer),
    /// Permission for this one request. The run remembers "always"; drivers never see it.
    Allowed,
    /// Permission for this one request with another input of its tool, a JSON object. Only for an agent with
    /// [`Capabilities::updated_input`](crate::protocol::outbound::Capabilities::updated_input).
    AllowedWith(String),
    /// The user declined, with the user's message.
    Declined(Option<Text>),
    /// Permission denied, with the message of whoever denied it.
    Denied(Option<Text>),
    /// No user is present: the agent must use its best judgment. A permission is denied.
    NoUser,
}

pub(super) const NO_USER: &str = "No user is present to answer. Use your best judgement and continue.";
/// [`NO_USER`] as the prompt of a further turn, which must mention the questions.
pub const NO_USER_PROMPT: &str = "No user is present to answer your questions. Use your best judgement and continue.";
pub(super) const DECLINED: &str = "The user declined to answer. Continue without an answer.";
pub(super) const WITHDRAWN: &str = "The question was withdrawn because the run is ending.";

impl Reply {
    pub fn spoken(&self) -> String {
        match self {
            Reply::Answer(Answer::One(text) | Answer::Text(text)) => text.unredacted().to_owned(),
            Reply::Answer(Answer::Decision(decision)) => decision.word().into(),
            Reply::Answer(Answer::Many(texts)) => texts.iter().map(Text::unredacted).collect::<Vec<_>>().join(", "),
            Reply::Answer(Answer::Bool(true)) | Reply::Allowed | Reply::AllowedWith(_) => "yes".into(),
            Reply::Answer(Answer::Bool(false)) => "no".into(),
            Reply::Answer(Answer::Null) => "(no answer)".into(),
            Reply::Declined(_) | Reply::Denied(_) => DECLINED.into(),
            Reply::NoUser => NO_USER.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DECLINED, NO_USER, Reply};
    use crate::protocol::question::Answer;

    #[test]
    fn every_reply_has_a_spoken_form() {
        for (reply, words) in [
            (Reply::Answer(Answer::One("a".into())), "a"),
            (Reply::Answer(Answer::Text("b c".into())), "b c"),
            (Reply::Answer(Answer::Many(vec!["a".into(), "b".into()])), "a, b"),
            (Reply::Answer(Answer::Bool(true)), "yes"),
            (Reply::Answer(Answer::Bool(false)), "no"),
            (Reply::Answer(Answer::Null), "(no answer)"),
            (Reply::Allowed, "yes"),
            (Reply::Declined(Some("Later.".into())), DECLINED),
            (Reply::Denied(None), DECLINED),
            (Reply::NoUser, NO_USER),
        ] {
            assert_eq!(reply.spoken(), words);
        }
    }
}
