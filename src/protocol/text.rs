//! Text and JSON from outside: from an agent, an orchestrator or a person. Neither type can be printed, formatted or
//! serialised, so that only redacted frames leave the process.

use super::limits::DEPTH;
use crate::json::{deeper_than, has_huge_number, map_strings};
use crate::redact::{Generation, Redactor, Stream};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Free text between decoding and redaction.
#[derive(Clone, Default)]
pub struct Text {
    text: String,
    /// The generation of the redactor that redacted the text, which need not be redacted by the same one again.
    clean: Option<Generation>,
}

impl Text {
    /// Wraps a text that `redactor` returned, or a part of one.
    pub fn clean(text: String, redactor: &Redactor) -> Text {
        Text::clean_since(text, redactor.generation())
    }

    /// Wraps a text whose parts a redactor returned since the generation `since`.
    pub fn clean_since(text: String, since: Generation) -> Text {
        Text { text, clean: Some(since) }
    }

    /// For a reader of a redacted body.
    pub fn shown(&self) -> &str {
        &self.text
    }

    /// Appends words of our own. A secret may end with them.
    pub fn push_own(&mut self, words: &'static str) {
        if !words.is_empty() {
            self.text.push_str(words);
            self.clean = None;
        }
    }

    /// With its secrets. Only for matching, for finding the file that it names, or for returning it to the agent.
    pub fn unredacted(&self) -> &str {
        &self.text
    }

    pub fn redacted(&self, redactor: &Redactor) -> Cow<'_, str> {
        let is_clean = self.clean == Some(redactor.generation());
        if is_clean { Cow::Borrowed(&self.text) } else { redactor.redact(&self.text) }
    }

    /// Like [`Text::redacted`], without copying a text that has no secrets.
    pub fn into_redacted(mut self, redactor: &Redactor) -> String {
        self.redact(redactor);
        self.text
    }

    /// As an action that somebody approves.
    pub fn redacted_action(&self, redactor: &Redactor) -> Cow<'_, str> {
        redactor.redact_action(&self.text)
    }

    /// Returns the redacted text that the stream releases.
    pub fn release_through<'a>(&'a self, stream: &mut Stream, redactor: &Redactor) -> Cow<'a, str> {
        stream.push(redactor, &self.text)
    }

    pub(super) fn redact(&mut self, redactor: &Redactor) {
        if let Cow::Owned(clean) = self.redacted(redactor) {
            self.text = clean;
        }
        self.clean = Some(redactor.generation());
    }

    pub(super) fn redact_action(&mut self, redactor: &Redactor) {
        if let Cow::Owned(clean) = redactor.redact_action(&self.text) {
            self.text = clean;
        }
        self.clean = Some(redactor.generation());
    }

    pub fn contains(&self, marker: &str) -> bool {
        self.text.contains(marker)
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// In bytes.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Only for a redacted text.
    pub(super) fn truncate(&mut self, bytes: usize) {
        self.text.truncate(bytes);
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.text == other.text
    }
}

impl Eq for Text {}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Text {
        Text { text: text.into(), clean: None }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.text.len())
    }
}

/// A frame shows it as it was written, with its strings redacted.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Json {
    pub fn is_hard_to_read(&self) -> bool {
        is_hard_to_read(self.0.get())
    }

    /// For a reader of a redacted body.
    pub fn shown(&self) -> &RawValue {
        &self.0
    }

    /// With its secrets: only for matching.
    pub fn unredacted(&self) -> &str {
        self.0.get()
    }

    /// In bytes.
    pub fn size(&self) -> usize {
        self.0.get().len()
    }

    /// Passes every string that is a value through `change`.
    pub(super) fn map(&mut self, change: &mut dyn FnMut(&str) -> String) {
        if let Ok(raw) = RawValue::from_string(map_strings(self.0.get(), change)) {
            self.0 = raw;
        }
    }
}

/// Whether common readers may fail on a valid value: it nests deeper than [`DEPTH`], or has a number beyond a double's
/// range.
pub(super) fn is_hard_to_read(json: &str) -> bool {
    deeper_than(json.as_bytes(), DEPTH) || has_huge_number(json)
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Json {
        Json(raw)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.size())
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, Text};
    use crate::protocol::outbound::Body;
    use crate::protocol::question::{Answer, Ask, Place, Subject};
    use serde::Serialize;
    use std::fmt::Display;
    use std::ops::Deref;

    /// Each of these has two implementations for a type that has the forbidden trait, so that a call is ambiguous.
    trait Not<Marker> {
        fn holds(&self) -> bool {
            true
        }
    }
    struct Serialized;
    struct Displayed;
    struct Dereferenced;
    impl<T: ?Sized> Not<()> for T {}
    impl<T: ?Sized + Serialize> Not<Serialized> for T {}
    impl<T: ?Sized + Display> Not<Displayed> for T {}
    impl<T: ?Sized + Deref> Not<Dereferenced> for T {}

    // This does not compile once one of these types can leave the process without a redactor.
    const _: fn(&Text) -> bool = <Text as Not<_>>::holds;
    const _: fn(&Json) -> bool = <Json as Not<_>>::holds;
    const _: fn(&Place) -> bool = <Place as Not<_>>::holds;
    const _: fn(&Subject) -> bool = <Subject as Not<_>>::holds;
    const _: fn(&Ask) -> bool = <Ask as Not<_>>::holds;
    const _: fn(&Answer) -> bool = <Answer as Not<_>>::holds;
    const _: fn(&Body) -> bool = <Body as Not<_>>::holds;

    #[test]
    fn debug_output_shows_no_text() {
        assert_eq!(format!("{:?}", Text::from("a secret")), "Text(8 bytes)");
    }
}
