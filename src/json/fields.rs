//! The fields of one JSON object, as the protocol and the configuration read them: strictly.

use super::object::Object;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The fields of one JSON object, in order, with unparsed values. Duplicates are kept, and the reader of a field
/// decides about them. A key with half a surrogate pair is read as U+FFFD, so that it is ignored like any unknown key.
#[derive(Debug)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Parses `text` as one object. `None`: it is not an object.
    pub fn parse(text: &'a str) -> Option<Fields<'a>> {
        Some(Fields(Object::scanned(text)?.iter().map(|(key, raw)| (key, raw.value())).collect()))
    }

    /// The value of the field `name`, if present.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// Whether one of `known` occurs more than once.
    pub fn repeats_one_of<'n>(&self, known: impl IntoIterator<Item = &'n str>) -> bool {
        known.into_iter().any(|name| self.0.iter().filter(|(key, _)| key == name).count() > 1)
    }

    /// All fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (&**key, *value))
    }
}

/// Decodes a string. `None`: the value is not a string, or contains half a surrogate pair.
pub fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// Reads a finite number. `None`: the value is not one.
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
