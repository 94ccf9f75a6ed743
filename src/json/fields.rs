//! The fields of one JSON object, as the protocol and the configuration read them: strictly.

use super::decode::unescape;
use super::index::Span;
use super::object::{Object, Raw};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// In order, with unparsed values. Duplicates are kept, and the reader of a field decides about them. A key with half a
/// surrogate pair is read as U+FFFD, so that it is ignored like any unknown key.
#[derive(Debug)]
pub struct Fields<'a> {
    text: &'a str,
    /// The keys that have escapes, decoded, one after the other.
    decoded: String,
    /// The key in the text, or, beyond its end, in the decoded keys; and the value. Positions instead of slices: a message
    /// may have millions of fields.
    places: Vec<(Span, Span)>,
}

impl<'a> Fields<'a> {
    /// `None`: the text is not one object.
    pub fn parse(text: &'a str) -> Option<Fields<'a>> {
        let object = Object::scanned(text)?;
        let text = object.line();
        let mut fields = Fields { text, decoded: String::new(), places: Vec::new() };
        for (place, value) in object.places() {
            let key = match unescape(place.slice_of(text)) {
                Cow::Borrowed(_) => place,
                Cow::Owned(key) => {
                    let from = text.len() + fields.decoded.len();
                    fields.decoded.push_str(&key);
                    Span::new(from, from + key.len())
                }
            };
            fields.places.push((key, value));
        }
        Some(fields)
    }

    fn key(&self, place: Span) -> &str {
        let Span { from, to } = place;
        match from.checked_sub(self.text.len() as u32) {
            None => place.slice_of(self.text),
            Some(start) => Span { from: start, to: to - from + start }.slice_of(&self.decoded),
        }
    }

    fn value(&self, place: Span) -> &'a RawValue {
        serde_json::from_str(place.slice_of(self.text)).unwrap_or(RawValue::NULL)
    }

    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.places.iter().rev().find(|(key, _)| self.key(*key) == name).map(|(_, value)| self.value(*value))
    }

    pub fn repeats_one_of<'n>(&self, known: impl IntoIterator<Item = &'n str>) -> bool {
        let mut left: Vec<(&str, bool)> = known.into_iter().map(|name| (name, false)).collect();
        self.places.iter().any(|(key, _)| {
            let known = left.iter_mut().find(|(name, _)| *name == self.key(*key));
            known.is_some_and(|(_, seen)| std::mem::replace(seen, true))
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.places.iter().map(|(key, value)| (self.key(*key), self.value(*value)))
    }
}

/// Read as they are asked for. `None`: the value is not a list.
pub fn elements(raw: &RawValue) -> Option<impl Iterator<Item = &RawValue>> {
    Some(Raw::of(raw)?.elements()?.map(Raw::value))
}

/// `None`: the value is not a string, or contains half a surrogate pair.
pub fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// `None`: the value is not a finite number.
pub fn number(raw: &RawValue) -> Option<f64> {
    serde_json::from_str(raw.get()).ok().filter(|n: &f64| n.is_finite())
}

#[cfg(test)]
mod tests {
    use super::Fields;

    #[test]
    fn an_array_is_not_an_object() {
        assert!(Fields::parse("[1]").is_none());
        assert!(Fields::parse("{} {}").is_none());
        assert!(Fields::parse("{\"a\":\"\t\"}").is_none());
    }

    #[test]
    fn repeated_keys_are_seen() {
        let fields = Fields::parse(r#"{"a":1,"b":2,"\u0061":3}"#).unwrap();
        assert!(fields.repeats_one_of(["a"]));
        assert!(!fields.repeats_one_of(["b", "c"]));
    }

    #[test]
    fn a_key_with_half_a_surrogate_pair_is_unknown() {
        let fields = Fields::parse(r#"{"\ud800":1,"a":2}"#).unwrap();
        assert_eq!(fields.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["\u{fffd}", "a"]);
        assert!(Fields::parse(r#"{"\ud800":}"#).is_none());
    }
}
