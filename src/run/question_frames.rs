//! Questions and their resolutions as frames.

use super::effects::Effects;
use super::frame_texts::FrameTexts;
use super::open_questions::{OpenQuestions, Resolved};
use super::redact_question::Hidden;
use crate::protocol::ids::{InboundId, QuestionId};
use crate::protocol::outbound::{Body, Progress, ProgressKind, Question, Text};
use crate::protocol::question::{Answer, Ask, Asks, BadAnswer, Kind, Subject};
use crate::protocol::request::Seconds;
use crate::protocol::terms::sentence;
use crate::protocol::words::{Category, Level, Purpose, Warning};
use std::time::Duration;

/// The number of options that the line about an unanswered question names.
const OPTIONS_SHOWN: usize = 8;

impl Effects {
    /// Warns about the questions and options beyond the limits.
    pub(super) fn warn_of_dropped(&mut self, asks: &Asks, texts: &FrameTexts) {
        let options = |ask: &Ask| match &ask.kind {
            Kind::Select { choices, .. } => choices.warning(&format!("the question \"{}\"", texts.title(&ask.text))),
            Kind::Confirm | Kind::Text | Kind::Secret | Kind::FilePath => None,
        };
        let questions = asks.warning("question", "questions", "one request");
        for text in questions.into_iter().chain(asks.iter().filter_map(options)) {
            self.warn(Warning::AgentOutputUnparsed, text, None);
        }
    }

    /// Reports how a question was resolved. Returns what it was about, in one short line.
    pub(super) fn resolution(
        &mut self,
        one: &Resolved,
        lists_options: bool,
        texts: &FrameTexts,
        reply_to: Option<InboundId>,
    ) -> String {
        match one.hidden {
            Some(Hidden::TooLong) => {
                let text = sentence!(
                    "A permission was denied, because no frame can show the whole action: raise {max_frame_bytes:#}",
                    max_frame_bytes
                );
                self.warn(Warning::PermissionTooLong, text, None);
            }
            Some(Hidden::NoCommand) => {
                let text = "A permission was denied, because the agent did not say which command it would run";
                self.warn(Warning::AgentOutputUnparsed, text, None);
            }
            Some(Hidden::NoFile) => {
                let text = "A permission was denied, because the agent did not say which files it would change";
                self.warn(Warning::AgentOutputUnparsed, text, None);
            }
            None => {}
        }
        let subject = one.ask.subject.as_ref();
        let what = texts.title(subject.map_or(&one.ask.text, |subject| &subject.title));
        let how = one.resolution.word().replace('_', " ");
        let how = if let Answer::Decision(decision) = one.value { format!("{} ({how})", decision.word()) } else { how };
        let about = ProgressKind::Resolved {
            question_id: one.question_id.clone(),
            resolution: one.resolution,
            used_default: one.used_default,
            subject: subject.map(|subject| shown_subject(subject, texts)),
            value: (subject.is_some() || self.level > Level::Minimal).then(|| one.value.clone()),
            what: if lists_options { with_options(&one.ask, &what, texts) } else { Text::default() },
        };
        let progress = Progress::new(about, format!("{what}: {how}"));
        self.progress(Progress { truncated: !one.fits, ..progress }, reply_to);
        what
    }
}

impl OpenQuestions {
    /// The frame of an open question. `deadline`: of the run.
    pub(super) fn frame(
        &self,
        id: &QuestionId,
        error: Option<BadAnswer>,
        deadline: Option<Duration>,
        now: Duration,
        texts: &FrameTexts,
    ) -> Option<Body> {
        let (group, member) = self.find(id)?;
        let due = deadline.map_or(group.deadline, |end| end.min(group.deadline));
        let left = due.saturating_sub(now);
        let mut ask = member.shown.clone();
        // The text of a permission contains its title, except for a plan.
        if let Some(subject) = ask.subject.as_ref().filter(|subject| subject.category != Category::Mode) {
            let redactor = &texts.redactor;
            let (text, title) = (ask.text.redacted_action(redactor), subject.title.redacted_action(redactor));
            let text = match title.is_empty() {
                true => text,
                false => text.replace(&*title, &texts.action_title(&subject.title)).into(),
            };
            ask.text = texts.cut(&text).into();
        }
        ask.subject = ask.subject.as_ref().map(|subject| shown_subject(subject, texts));
        Some(Body::Question(Box::new(Question {
            question_id: member.id.clone(),
            group_id: group.id.clone(),
            group_size: group.members.len(),
            timeout_s: Seconds(left.as_millis() as f64 / 1000.0),
            attempt: member.attempt,
            error: error.map(Text::from),
            ask,
            truncated: false,
        })))
    }
}

/// A permission's subject as frames show it.
fn shown_subject(subject: &Subject, texts: &FrameTexts) -> Subject {
    Subject {
        title: texts.action_title(&subject.title).into(),
        locations: texts.places(&subject.locations),
        ..subject.clone()
    }
}

/// A question in one line, with its options.
fn with_options(ask: &Ask, what: &str, texts: &FrameTexts) -> Text {
    let Kind::Select { choices, .. } = &ask.kind else { return what.into() };
    if ask.purpose == Purpose::Permission {
        return what.into();
    }
    let labels = choices.as_slice().iter().map(|choice| choice.label.redacted(&texts.redactor));
    let mut labels: Vec<String> = labels.take(OPTIONS_SHOWN + 1).map(|label| texts.cut(&label).into_owned()).collect();
    if labels.len() > OPTIONS_SHOWN {
        labels[OPTIONS_SHOWN] = "...".into();
    }
    format!("{what} ({})", labels.join(", ")).into()
}
