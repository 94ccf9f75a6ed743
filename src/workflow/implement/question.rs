//! The questions that spektacular itself asks: consent to the commands, and manual checks.

use super::phase_loop::ManualAnswer;
use crate::agent::Reply;
use crate::protocol::outbound::Text;
use crate::protocol::question::{Answer, Ask, Kind, Place, Subject};
use crate::protocol::words::{Category, Purpose};

/// The commands as the question for consent shows them: a line for each, with the id of its phase.
pub(super) fn listed<'a>(commands: impl IntoIterator<Item = (String, &'a str)>) -> String {
    commands.into_iter().map(|(phase, command)| format!("{phase}: {command}")).collect::<Vec<_>>().join("\n")
}

/// The question for consent. `plan`: the path of plan.md; `commands`: see [`listed`].
pub(super) fn consent(plan: &str, commands: String) -> Ask {
    let noun = if commands.contains('\n') { "the commands" } else { "the command" };
    let title = format!("{noun} of {plan}");
    let text = format!("Run {title} to verify the work?");
    let locations = vec![Place { path: Text::from(plan), line: None }];
    let subject = Subject::new(Category::Execute, title, locations, commands);
    Ask { header: "Verification".into(), ..Ask::permission(subject, text, None) }
}

/// The question for a manual check.
pub(crate) fn manual(text: &str) -> Ask {
    Ask::new(Purpose::Clarification, Kind::Confirm, "Manual check", text)
}

/// The question whether a phase counts as passed because its commands pass before any work.
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
    use super::{ManualAnswer, checked, consent, listed, manual};
    use crate::agent::Reply;
    use crate::protocol::question::{ALLOW_ONCE, Answer, DENY, Decision};
    use crate::protocol::words::Category;

    #[test]
    fn consent_names_every_command_with_its_phase() {
        let commands = listed([("P1".to_owned(), "make"), ("P2".to_owned(), "test -s a\u{3000}")]);
        let ask = consent(".spektacular/plans/x/plan.md", commands);
        let subject = ask.subject.clone().unwrap();
        assert_eq!((subject.category, subject.detail.shown()), (Category::Execute, "P1: make\nP2: test -s a\u{3000}"));
        assert_eq!(subject.locations[0].path.shown(), ".spektacular/plans/x/plan.md");
        assert_eq!((ask.header.shown(), &ask.default), ("Verification", &Some(Answer::Decision(Decision::Deny))));
        assert!(ask.offers(ALLOW_ONCE) && ask.offers(DENY) && !ask.offers("allow_always"));
    }

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
