//! A question as it may leave the process: redacted, with options that can still be told apart.

use crate::protocol::question::{Answer, Ask, Choice, Choices, Kind};
use crate::protocol::words::Purpose;
use crate::redact::Redactor;
use std::collections::{HashMap, HashSet};

/// The question as it is answered, and as it is shown. Of a permission the texts are kept once, and not more of them
/// than fits a frame.
pub(super) fn both(mut ask: Ask, redactor: &Redactor, frame_bytes: usize) -> (Ask, Ask) {
    let mut copy = shown(&ask, redactor);
    if ask.purpose == Purpose::Permission
        && let (Some(kept), Some(subject)) = (&mut ask.subject, &mut copy.subject)
    {
        (ask.text, kept.detail, kept.title) = (String::new(), String::new(), String::new());
        // Redacted before it is cut: half a secret would not be found any more.
        let cut = |text: &str, bytes: usize| -> Option<String> {
            let clean = (text.len() > bytes).then(|| redactor.redact(text))?;
            Some(clean[..clean.floor_char_boundary(bytes)].to_owned())
        };
        if let Some(title) = cut(&subject.title, frame_bytes) {
            copy.text = copy.text.replace(&subject.title, &title);
            subject.title = title;
        }
        // The text of a permission contains its title.
        copy.text = cut(&copy.text, 2 * frame_bytes).unwrap_or(copy.text);
        subject.detail = cut(&subject.detail, frame_bytes).unwrap_or_else(|| std::mem::take(&mut subject.detail));
    }
    (ask, copy)
}

/// The question without secrets. An option's value that contains one becomes `option_N`, so that an answer can name it.
pub(super) fn shown(ask: &Ask, redactor: &Redactor) -> Ask {
    let clean = |text: &str| redactor.redact(text).into_owned();
    let mut shown = ask.clone();
    if ask.purpose == Purpose::Permission {
        // Its options are the protocol's own words, and its texts are redacted with the frame.
        return shown;
    }
    shown.text = if ask.text.trim().is_empty() { WITHOUT_TEXT.to_owned() } else { clean(&ask.text) };
    shown.validation.note_unchecked();
    shown.validation.pattern = ask.validation.pattern.as_deref().map(clean);
    shown.header = clean(&ask.header).chars().take(crate::protocol::limits::HEADER_CHARS).collect();
    if let Kind::Select { choices: asked, multiple, allow_other } = &ask.kind {
        let (mut values, mut labels) = (HashSet::new(), HashSet::new());
        let mut all: Vec<Choice> = Vec::new();
        for (at, choice) in asked.as_slice().iter().enumerate() {
            let number = at + 1;
            let value = usable(&choice.value, &clean(&choice.value), format!("option_{number}"));
            let label = clean(&choice.label);
            let cut = format!("{} ({number})", &label[..label.floor_char_boundary(OPTION_BYTES)]);
            let label = usable(&choice.label, &label, cut);
            let description = choice.description.as_deref().map(clean);
            all.push(Choice { value: unlike(value, &mut values), label: unlike(label, &mut labels), description });
        }
        let Some(choices) = Choices::new(all) else { return shown };
        let pairs = asked.as_slice().iter().zip(choices.as_slice());
        let named: HashMap<&String, &String> = pairs.map(|(asked, shown)| (&asked.value, &shown.value)).collect();
        // A default that does not name an option is free text.
        let default = |value: &String| named.get(value).map_or_else(|| clean(value), |shown| (*shown).clone());
        shown.default = ask.default.as_ref().map(|given| match given {
            Answer::One(value) => Answer::One(default(value)),
            Answer::Many(values) => Answer::Many(values.iter().map(default).collect()),
            Answer::Bool(_) | Answer::Text(_) | Answer::Null => given.clone(),
        });
        shown.kind = Kind::Select { choices, multiple: *multiple, allow_other: *allow_other };
    }
    shown
}

/// The text of a question that has none.
const WITHOUT_TEXT: &str = "The agent asks a question without a text.";

/// The maximum length of an option's value or label, in bytes.
const OPTION_BYTES: usize = 1024;

/// The text, or `instead` if it contains a secret or is too long.
fn usable(original: &str, clean: &str, instead: String) -> String {
    if original == clean && clean.len() <= OPTION_BYTES { clean.to_owned() } else { instead }
}

/// The text, made unlike those in `others`, and added to them.
fn unlike(mut text: String, others: &mut HashSet<String>) -> String {
    while !others.insert(text.clone()) {
        text.push('_');
    }
    text
}
