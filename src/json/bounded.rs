//! Reads a JSON text into a tree of limited size. A small object takes up to 100 times the length of its text.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;

/// Reads a text as a tree. The outer `levels` keep all their fields and elements; of the values below them, only the
/// first `most` are kept. Everything is checked, as if it were kept.
pub fn bounded(text: &[u8], levels: usize, most: usize) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Bounded { levels, left: &Cell::new(most) }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Bounded<'l> {
    levels: usize,
    left: &'l Cell<usize>,
}

impl Bounded<'_> {
    fn inner(self) -> Self {
        Bounded { levels: self.levels.saturating_sub(1), ..self }
    }

    fn keeps(self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(usize::from(self.levels == 0)));
        self.levels > 0 || left > 0
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

macro_rules! visit {
    ($($visit:ident: $type:ty;)*) => {$(
        fn $visit<E: Error>(self, value: $type) -> Result<Value, E> {
            Ok(value.into())
        }
    )*};
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    visit! { visit_bool: bool; visit_i64: i64; visit_u64: u64; visit_f64: f64; visit_str: &str; }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        while let Some(element) = elements.next_element_seed(self.inner())? {
            if self.keeps() {
                kept.push(element);
            }
        }
        Ok(kept.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(self.inner())?;
            if self.keeps() {
                kept.insert(key, value);
            }
        }
        Ok(kept.into())
    }
}

#[cfg(test)]
mod tests {
    use super::bounded;
    use serde_json::{Value, json};

    #[test]
    fn the_outer_levels_are_whole_and_the_values_below_them_are_limited() {
        let text = json!({"a": [[1, 2], {"b": 3}, "x", 4], "c": {"d": 1.5, "e": null}, "f": true}).to_string();
        let read = |levels, most| bounded(text.as_bytes(), levels, most).unwrap();
        assert_eq!(read(0, 100), serde_json::from_str::<Value>(&text).unwrap());
        assert_eq!(read(0, 0), json!({}));
        assert_eq!(read(1, 3), json!({"a": [[1, 2]], "c": {}, "f": true}));
        assert_eq!(read(2, 1), json!({"a": [[1], {}, "x", 4], "c": {"d": 1.5, "e": null}, "f": true}));
    }

    #[test]
    fn what_is_not_kept_is_checked() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in ["{\"a\":[\"\\ud800\"]}", "[1e999]", "[1] 2", "[tru]", &deep] {
            assert!(bounded(text.as_bytes(), 0, 0).is_err(), "{text}");
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        }
    }
}
