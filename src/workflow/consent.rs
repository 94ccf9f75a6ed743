//! Consent to commands that a file names: nothing runs that nobody could see.

use super::stop::Stop;
use super::workflow_run::WorkflowRun;
use crate::agent::Reply;
use crate::json::encoded_bytes;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::Text;
use crate::protocol::question::{Ask, Judge, Place, Subject};
use crate::protocol::request::Settings;
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::words::{Category, Policy, RefusalReason};
use crate::redact::Redactor;
use std::borrow::Cow;
use std::sync::Arc;

/// The maximum size of all commands together in the question for consent, in bytes.
const CONSENT_BYTES: usize = 64 << 10;
/// The room in its frame for everything else, in bytes.
const FRAME_ROOM: usize = 8 << 10;

pub(crate) struct Consent {
    pub header: &'static str,
    /// The file, as people see it.
    pub of: String,
    /// The purpose of the commands, as the rest of a question.
    pub purpose: &'static str,
    /// The commands, each with the label of its line.
    pub commands: Vec<(String, String)>,
    pub is_given: bool,
    pub flag: &'static str,
}

#[derive(Debug)]
struct Consented;

impl Judge for Consented {
    fn decide(&self, _subject: &Subject, _also: &[Category]) -> Option<Policy> {
        Some(Policy::Allow)
    }
}

impl Consent {
    /// Fails if the commands cannot be shown as they would run, or if nobody can consent to them.
    pub(crate) fn check(&self, settings: &Settings, redactor: &Redactor) -> Result<(), Failure> {
        self.showable(settings.max_frame_bytes, redactor)?;
        let nobody = match settings.permissions.policy(Category::Execute) {
            Policy::Allow => false,
            Policy::Ask => !settings.interactive,
            Policy::Deny => true,
        };
        if self.is_given || !nobody {
            return Ok(());
        }
        let Consent { of, purpose, flag, .. } = self;
        let message = format!(
            "{of} has commands {purpose}, and nobody can consent to them: read them, then allow them with {flag}."
        );
        let commands = Some(Box::new(Text::from(self.listed())));
        Err(Failure { commands, ..Failure::refused_for(RefusalReason::Consent, message) })
    }

    pub(crate) fn ask(&self, outer: &mut WorkflowRun<'_>) -> Result<(), Stop> {
        let judge = self.is_given.then(|| Arc::new(Consented) as Arc<dyn Judge>);
        match outer.ask(self.question(), judge)? {
            Some(Reply::Allowed) => Ok(()),
            _ => {
                let Consent { of, flag, .. } = self;
                let message = format!(
                    "Nobody consented to the commands of {of}, so none has run: read them, and allow them when asked or \
                     with {flag}."
                );
                Err(Stop::failed(Code::QuestionDeclined, message))
            }
        }
    }

    fn question(&self) -> Ask {
        let noun = if self.commands.len() == 1 { "the command" } else { "the commands" };
        let title = format!("{noun} of {}", self.of);
        let text = format!("Run {title} {}?", self.purpose);
        let locations = vec![Place { path: Text::from(self.of.clone()), line: None }];
        let subject = Subject::new(Category::Execute, title, locations, self.listed());
        Ask { header: self.header.into(), ..Ask::permission(subject, text, None) }
    }

    fn listed(&self) -> String {
        let lines = self.commands.iter().map(|(label, command)| format!("{label}: {command}"));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Fails if no question can show every command whole and unredacted: nobody consents to what was not shown.
    fn showable(&self, frame_bytes: usize, redactor: &Redactor) -> Result<(), Failure> {
        let refused = |why: Sentence| Err(Failure::refused_for(RefusalReason::Consent, why));
        let hidden = self.commands.iter().find(|(_, text)| {
            matches!(redactor.redact_uncleaned(text), Cow::Owned(_))
                || matches!(redactor.redact_action(text), Cow::Owned(_))
        });
        let label = hidden.map(|(label, _)| label.clone());
        let bytes: usize = self.commands.iter().map(|(_, text)| text.len()).sum();
        let detail = self.listed();
        // A secret of several lines may span two commands.
        let whole = || matches!(redactor.redact_action(&detail), Cow::Owned(_)).then(|| self.of.clone());
        if let Some(place) = label.or_else(whole) {
            let why = format!(
                "A command of {place} holds a secret or what looks like one, so it cannot be shown for consent: put the \
                 value into a variable of the environment."
            );
            return refused(why.into());
        }
        if bytes > CONSENT_BYTES || encoded_bytes(&detail) + FRAME_ROOM > frame_bytes {
            let (of, most) = (&self.of, CONSENT_BYTES >> 10);
            return refused(sentence!(
                "The commands of {of} are too long to be shown in one question: shorten them, or raise \
                 {max_frame_bytes:#}; at most {most} KiB can be shown.",
                max_frame_bytes
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Consent;
    use crate::protocol::question::{ALLOW_ONCE, Answer, DENY, Decision};
    use crate::protocol::words::Category;

    #[test]
    fn consent_names_every_command_with_its_phase() {
        let commands = [("P1", "make"), ("P2", "test -s a\u{3000}")].map(|(id, text)| (id.to_owned(), text.to_owned()));
        let of = ".spektacular/plans/x/plan.md".to_owned();
        let consent = Consent {
            header: "Verification",
            of,
            purpose: "to verify the work",
            commands: commands.into(),
            is_given: false,
            flag: "--x",
        };
        let ask = consent.question();
        let subject = ask.subject.clone().unwrap();
        assert_eq!((subject.category, subject.detail.shown()), (Category::Execute, "P1: make\nP2: test -s a\u{3000}"));
        assert_eq!(subject.locations[0].path.shown(), ".spektacular/plans/x/plan.md");
        assert_eq!((ask.header.shown(), &ask.default), ("Verification", &Some(Answer::Decision(Decision::Deny))));
        assert!(ask.offers(ALLOW_ONCE) && ask.offers(DENY) && !ask.offers("allow_always"));
    }
}
