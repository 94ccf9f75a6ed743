//! Questions and their resolutions as frames: redacted, with options that can still be distinguished.

use super::effects::Effects;
use super::frame_texts::FrameTexts;
use super::open_questions::{OpenQuestions, Resolved};
use crate::json::encoded_bytes;
use crate::protocol::ids::{InboundId, QuestionId};
use crate::protocol::outbound::{About, Body, PermissionEnd, Progress, Question, Text};
use crate::protocol::question::{Answer, Ask, Asks, BadAnswer, Choice, Choices, Kind, Subject};
use crate::protocol::request::Seconds;
use crate::protocol::words::{Category, Purpose, Warning};
use crate::redact::Redactor;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
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
        if one.too_long {
            let text = "A permission was denied, because no frame can show the whole action: raise max_frame_bytes";
            self.warn(Warning::PermissionTooLong, text, None);
        }
        let subject = one.ask.subject.as_ref();
        let what = texts.title(subject.map_or(&one.ask.text, |subject| &subject.title));
        let how = one.resolution.word().replace('_', " ");
        let how = match one.value {
            Some(value) if subject.is_some() => format!("{value} ({how})"),
            Some(_) | None => how,
        };
        let about = About::Resolved {
            question_id: one.question_id.clone(),
            resolution: one.resolution,
            used_default: one.used_default,
            permission: subject
                .map(|subject| PermissionEnd { subject: shown_subject(subject, texts), value: one.value }),
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

/// The room in a frame for everything but the action, in bytes: the envelope, the options and a cut title.
const ROOM: usize = 4 << 10;
/// The room for the keys and the line number of a place, in bytes.
const PLACE: usize = 48;

/// A question as it is answered, and as it is shown.
pub(super) struct AskedAndShown {
    pub(super) asked: Ask,
    pub(super) shown: Ask,
    /// Whether a frame can show the whole action. If not, the question is never asked.
    pub(super) fits: bool,
}

/// The question as it is answered, and as it is shown. The texts of a permission are kept only once, and only if they
/// fit into a frame: a person must not approve what no frame showed.
pub(super) fn both(mut asked: Ask, texts: &FrameTexts, frame_bytes: usize) -> AskedAndShown {
    let redactor = &texts.redactor;
    let mut copy = shown(&asked, redactor);
    let mut fits = true;
    if asked.purpose == Purpose::Permission
        && let (Some(kept), Some(subject)) = (&mut asked.subject, &mut copy.subject)
    {
        (asked.text, kept.detail, kept.title) = (Text::default(), Text::default(), Text::default());
        // Only the text of a plan is shown whole. That of another permission is its title and a few words.
        let is_plan = subject.category == Category::Mode;
        let size = |text: &Text| encoded_bytes(&text.redacted_action(redactor));
        let places: usize = texts.places(&subject.locations).iter().map(|place| size(&place.path) + PLACE).sum();
        let text = if is_plan { size(&copy.text) } else { 0 };
        fits = ROOM + places + text + size(&subject.detail) <= frame_bytes;
        if !fits {
            subject.detail = Text::default();
        }
        if subject.title.size() > frame_bytes {
            let title = subject.title.redacted_action(redactor).into_owned();
            let cut = title[..title.floor_char_boundary(frame_bytes)].to_owned();
            copy.text = copy.text.redacted_action(redactor).replace(&title, &cut).into();
            subject.title = cut.into();
        } else if !fits {
            copy.text = subject.title.clone();
        }
    }
    AskedAndShown { asked, shown: copy, fits }
}

/// Redacts a question. An option's value that contains a secret becomes `option_N`, so that an answer can name the
/// option.
pub(super) fn shown(ask: &Ask, redactor: &Redactor) -> Ask {
    let clean = |text: &Text| Text::from(text.redacted(redactor));
    let mut shown = ask.clone();
    if ask.text.is_blank() {
        shown.text = WITHOUT_TEXT.into();
    }
    if ask.purpose == Purpose::Permission {
        // A permission's options are the protocol's own words, and its texts are redacted with the frame.
        return shown;
    }
    shown.text = clean(&shown.text);
    shown.validation.note_unchecked();
    shown.validation.pattern = ask.validation.pattern.as_ref().map(clean);
    let header: String = ask.header.redacted(redactor).chars().take(crate::protocol::limits::HEADER_CHARS).collect();
    shown.header = header.into();
    if let Kind::Select { choices: asked, multiple, allow_other } = &ask.kind {
        let (mut values, mut labels) = (HashSet::new(), HashSet::new());
        let mut all: Vec<Choice> = Vec::new();
        for (at, choice) in asked.as_slice().iter().enumerate() {
            let number = at + 1;
            let value = usable(choice.value.redacted(redactor), |_| format!("option_{number}"));
            let cut = |label: &str| format!("{} ({number})", &label[..label.floor_char_boundary(OPTION_BYTES)]);
            let label = usable(choice.label.redacted(redactor), cut);
            let description = choice.description.as_ref().map(clean);
            let (value, label) = (unlike(value, &mut values), unlike(label, &mut labels));
            all.push(Choice { value: value.into(), label: label.into(), description });
        }
        let Some(choices) = Choices::new(all) else { return shown };
        let pairs = asked.as_slice().iter().zip(choices.as_slice());
        let named: HashMap<&Text, &Text> = pairs.map(|(asked, shown)| (&asked.value, &shown.value)).collect();
        // A default that does not name an option is free text.
        let default = |value: &Text| named.get(value).map_or_else(|| clean(value), |shown| (*shown).clone());
        shown.default = ask.default.as_ref().map(|given| match given {
            Answer::One(value) => Answer::One(default(value)),
            Answer::Many(values) => Answer::Many(values.iter().map(default).collect()),
            Answer::Bool(_) | Answer::Text(_) | Answer::Null => given.clone(),
        });
        shown.kind = Kind::Select { choices, multiple: *multiple, allow_other: *allow_other };
    }
    shown
}

/// The text of a question for which the agent provided none.
const WITHOUT_TEXT: &str = "The agent asked a question without text.";

/// The maximum length of an option's value or label, in bytes.
const OPTION_BYTES: usize = 1024;

/// A redacted text, or the result of `instead` if the text contained a secret or is too long.
fn usable(text: Cow<'_, str>, instead: impl FnOnce(&str) -> String) -> String {
    match text {
        Cow::Borrowed(same) if same.len() <= OPTION_BYTES => same.to_owned(),
        text @ (Cow::Borrowed(_) | Cow::Owned(_)) => instead(&text),
    }
}

/// Makes a text different from those in `others`, and adds it to them.
fn unlike(mut text: String, others: &mut HashSet<String>) -> String {
    while !others.insert(text.clone()) {
        text.push('_');
    }
    text
}
