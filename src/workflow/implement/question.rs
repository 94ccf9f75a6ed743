//! The questions about a phase that spektacular itself asks: manual checks, and whether it is done already.

use super::phase_loop::ManualAnswer;
use crate::agent::Reply;
use crate::protocol::question::{Answer, Ask, Kind};
use crate::protocol::words::Purpose;

pub(crate) fn manual(text: &str) -> Ask {
    Ask::new(Purpose::Clarification, Kind::Confirm, "Manual check", text)
}

pub(super) fn done_already(id: &str, title: &str) -> Ask {
    let text = format!("The commands of {id} ({title}) pass already. Count the phase as done, without the agent?");
    let default = Some(Answer::Bool(false));
    Ask { default, ..Ask::new(Purpose::Clarification, Kind::Confirm, "Done already", text) }
}

pub(super) fn checked(reply: &Reply) -> ManualAnswer {
    match reply {
        Reply::Answer(Answer::Bool(true)) => ManualAnswer::Yes,
        Reply::Answer(Answer::Bool(false)) => ManualAnswer::No,
        Reply::Answer(Answer::Decision(_) | Answer::One(_) | Answer::Many(_) | Answer::Text(_) | Answer::Null)
        | Reply::Allowed
        | Reply::AllowedWith(_)
        | Reply::Declined(_)
        | Reply::Denied(_)
        | Reply::NoUser => ManualAnswer::Unanswered,
    }
}

#[cfg(test)]
mod tests {
    use super::{ManualAnswer, checked, manual};
    use crate::agent::Reply;
    use crate::protocol::question::Answer;

    #[test]
    fn only_yes_and_no_answer_a_manual_check() {
        assert_eq!(manual("Is it friendly?").default, None);
        for (reply, answer) in [
            (Reply::Answer(Answer::Bool(true)), ManualAnswer::Yes),
            (Reply::Answer(Answer::Bool(false)), ManualAnswer::No),
            (Reply::Declined(None), ManualAnswer::Unanswered),
            (Reply::NoUser, ManualAnswer::Unanswered),
        ] {
            assert_eq!(checked(&reply), answer);
        }
    }
}
