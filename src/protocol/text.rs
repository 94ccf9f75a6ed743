//! Text and JSON of the outside world: from an agent, an orchestrator or a person. Neither type can be printed,
//! formatted or serialized: a frame can, once its texts are redacted.

use super::json::{deeper_than, map_strings};
use crate::redact::Redactor;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Free text.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(String);

impl Text {
    /// The text as a reader of a redacted body shows it.
    pub fn shown(&self) -> &str {
        &self.0
    }

    /// The text without the secrets that a redactor knows.
    pub fn redacted(&self, redactor: &Redactor) -> Cow<'_, str> {
        redactor.redact(&self.0)
    }

    /// Whether it is empty or has white space alone.
    pub fn is_blank(&self) -> bool {
        self.0.trim().is_empty()
    }

    /// Its length in bytes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// The text for the walk, which redacts and cuts it.
    pub(super) fn inner(&mut self) -> &mut String {
        &mut self.0
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.to_owned())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.0.len())
    }
}

/// Somebody's JSON. A frame has it as it was written, except for its strings.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Whether its objects and arrays nest deeper than this.
    pub fn is_deeper_than(&self, levels: usize) -> bool {
        deeper_than(self.0.get().as_bytes(), levels)
    }
}

impl Json {
    /// The JSON as a reader of a redacted body shows it.
    pub fn shown(&self) -> &RawValue {
        &self.0
    }

    /// Its length in bytes.
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
    use crate::protocol::outbound::{Body, Place, SubjectFrame};
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
    const _: fn(&SubjectFrame) -> bool = <SubjectFrame as Not<_>>::holds;
    const _: fn(&Body) -> bool = <Body as Not<_>>::holds;

    #[test]
    fn what_is_printed_for_a_developer_shows_no_text() {
        assert_eq!(format!("{:?}", Text::from("a secret")), "Text(8 bytes)");
    }
}
