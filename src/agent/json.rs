//! Reads an agent's JSON leniently: ignores unknown fields, treats wrong types as absent, repairs broken characters.

use crate::protocol::json::{Fields, decode};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// One JSON object from an agent.
#[derive(Debug)]
pub struct Object<'a>(Fields<'a>);

impl<'a> Object<'a> {
    /// Reads a text as one object.
    pub fn parse(text: &'a str) -> Option<Object<'a>> {
        Fields::parse(text).map(Object)
    }

    /// A field, verbatim; null counts as absent.
    pub fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.get(name).filter(|raw| raw.get() != "null")
    }

    /// All fields, verbatim.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter()
    }

    /// All fields except these, verbatim, as a text to compare objects by.
    pub fn without(&self, names: &[&str]) -> String {
        let kept = self.iter().filter(|(name, _)| !names.contains(name));
        kept.map(|(name, raw)| format!("{}:{}\n", crate::protocol::json::to_line(&name), raw.get())).collect()
    }

    /// A field that is a string.
    pub fn str(&self, name: &str) -> Option<String> {
        self.raw(name).and_then(text)
    }

    /// A field that is a string and equal to `wanted`.
    pub fn is(&self, name: &str, wanted: &str) -> bool {
        self.str(name).is_some_and(|text| text == wanted)
    }

    /// A field that is an object.
    pub fn object(&self, name: &str) -> Option<Object<'a>> {
        self.raw(name).and_then(|raw| Object::parse(raw.get()))
    }

    /// The objects in a field that is an array.
    pub fn objects(&self, name: &str) -> Vec<Object<'a>> {
        self.array(name).into_iter().filter_map(|raw| Object::parse(raw.get())).collect()
    }

    /// The elements of a field that is an array.
    pub fn array(&self, name: &str) -> Vec<&'a RawValue> {
        self.list(name).unwrap_or_default()
    }

    /// Like [`Object::array`], but `None` if the field is not an array.
    pub fn list(&self, name: &str) -> Option<Vec<&'a RawValue>> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// A field that is a non-negative whole number.
    pub fn count(&self, name: &str) -> Option<u64> {
        let number = self.number(name)?;
        (number >= 0.0 && number.fract() == 0.0 && number < 1e18).then_some(number as u64)
    }

    /// A field that is a finite number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.raw(name).and_then(crate::protocol::json::number)
    }

    /// A field that is true or false.
    pub fn bool(&self, name: &str) -> Option<bool> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }
}

/// A string value. Half a surrogate pair becomes U+FFFD.
pub fn text(raw: &RawValue) -> Option<String> {
    raw.get().starts_with('"').then(|| decode(raw.get())).flatten()
}

/// Replaces raw control characters, which JSON forbids in strings, with blanks. Copies only if there are any.
pub fn without_controls(line: Cow<'_, str>) -> Cow<'_, str> {
    if line.bytes().all(|b| b >= 0x20) && !line.starts_with('\u{feff}') {
        return line;
    }
    Cow::Owned(line.trim_start_matches('\u{feff}').replace(|c: char| c < ' ', " "))
}

#[cfg(test)]
mod tests {
    use super::{Object, without_controls};

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        let object = Object::parse(r#"{"a":"x\ud800y\\ud800 \ud83d\ude00\udc00"}"#).unwrap();
        assert_eq!(object.str("a").as_deref(), Some("x\u{fffd}y\\ud800 \u{1f600}\u{fffd}"));
    }

    #[test]
    fn a_wrong_type_is_absent() {
        let object = Object::parse(r#"{"a":1,"b":null,"c":[1,{"d":2}],"e":-1}"#).unwrap();
        assert_eq!(object.str("a"), None);
        assert!(object.raw("b").is_none());
        assert_eq!(object.objects("c").len(), 1);
        assert_eq!((object.count("a"), object.count("e")), (Some(1), None));
    }

    #[test]
    fn fields_that_do_not_count_make_no_difference() {
        let of = |text: &str| Object::parse(text).unwrap().without(&["b"]);
        assert_eq!(of(r#"{"a":1,"b":2}"#), of(r#"{"b":{},"a":1}"#));
        assert_ne!(of(r#"{"a":1,"b":2}"#), of(r#"{"a":2,"b":2}"#));
        assert_eq!(of(r#"{"b":1}"#), "");
        assert_ne!(of(r#"{"a":"1\n\"c\":2"}"#), of(r#"{"a":"1","c":2}"#));
    }

    #[test]
    fn raw_control_characters_become_blanks() {
        assert_eq!(without_controls("\u{feff}{\"a\":\"x\ty\"}".into()), "{\"a\":\"x y\"}");
    }
}
