//! Questions as frames show them: redacted, with options that can still be distinguished.

use super::frame_texts::FrameTexts;
use crate::json::encoded_bytes;
use crate::protocol::question::{Answer, Ask, Choice, Choices, Kind};
use crate::protocol::text::Text;
use crate::protocol::words::{Category, Purpose};
use crate::redact::Redactor;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The room in a frame for everything but the action, in bytes: the envelope, the options and a cut title.
const ROOM: usize = 4 << 10;
/// The room for the keys and the line number of a place, in bytes.
const PLACE: usize = 48;

/// A question as it is answered, and as it is shown.
pub(super) struct AskedAndShown {
    pub(super) asked: Ask,
    pub(super) shown: Ask,
    /// The reason why the question is never asked.
    pub(super) hidden: Option<Hidden>,
}

/// The reason why nobody can approve an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    /// No frame can show the whole action.
    TooLong,
    /// The agent does not name the command.
    NoCommand,
    /// The agent does not name the files of an edit.
    NoFile,
}

/// The question as it is answered, and as it is shown. The texts of a permission are kept only once, and only if they
/// fit into a frame: a person must not approve what no frame showed.
pub(super) fn both(mut asked: Ask, texts: &FrameTexts, frame_bytes: usize) -> AskedAndShown {
    let redactor = &texts.redactor;
    let mut copy = shown(&asked, redactor);
    let mut hidden = None;
    if asked.purpose == Purpose::Permission
        && let (Some(kept), Some(subject)) = (&mut asked.subject, &mut copy.subject)
    {
        (asked.text, kept.detail, kept.title) = (Text::default(), Text::default(), Text::default());
        // Only the text of a plan is shown whole. That of another permission is its title and a few words.
        let is_plan = subject.category == Category::Mode;
        let size = |text: &Text| encoded_bytes(&text.redacted_action(redactor));
        let places: usize = texts.places(&subject.locations).iter().map(|place| size(&place.path) + PLACE).sum();
        let text = if is_plan { size(&copy.text) } else { 0 };
        let fits = ROOM + places + text + size(&subject.detail) <= frame_bytes;
        hidden = if !fits {
            Some(Hidden::TooLong)
        } else if subject.category == Category::Execute && subject.detail.is_blank() {
            Some(Hidden::NoCommand)
        } else if subject.category.changes_files() && subject.locations.is_empty() {
            Some(Hidden::NoFile)
        } else {
            None
        };
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
    AskedAndShown { asked, shown: copy, hidden }
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
            Answer::Decision(_) | Answer::Bool(_) | Answer::Text(_) | Answer::Null => given.clone(),
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
