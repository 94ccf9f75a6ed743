//! Reads an agent's JSON leniently: ignores unknown fields, treats wrong types as absent, repairs broken characters.
//!
//! [`Object::parse`] checks a text once, as a whole. Everything below it is a slice of the same text, known to be valid
//! and never copied: a field costs nothing until it is asked for.

mod scan;

pub(super) use self::scan::unescape;

use self::scan::JsonScan;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A valid JSON value, verbatim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// The JSON text.
    pub fn get(self) -> &'a str {
        self.0
    }

    /// The same for serde.
    pub fn value(self) -> &'a RawValue {
        serde_json::from_str(self.0).unwrap_or(RawValue::NULL)
    }

    /// Whether it is a string.
    pub fn is_string(self) -> bool {
        self.0.starts_with('"')
    }

    /// A string's text. Half a surrogate pair becomes U+FFFD. Borrowed unless it has escapes.
    pub fn str(self) -> Option<Cow<'a, str>> {
        self.0.strip_prefix('"')?.strip_suffix('"').map(unescape)
    }

    /// A string's text, owned.
    pub fn string(self) -> Option<String> {
        self.str().map(Cow::into_owned)
    }

    /// The object that it is.
    pub fn object(self) -> Option<Object<'a>> {
        Object::index(self.0, 0, |scan| {
            scan.skip();
            Some(())
        })
    }

    /// The elements of the array that it is.
    pub fn elements(self) -> Option<Elements<'a>> {
        self.0.starts_with('[').then(|| Elements { text: self.0, scan: JsonScan::new(self.0, 1) })
    }
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    text: &'a str,
    scan: JsonScan<'a>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        self.scan.blanks();
        self.scan.pass(b',');
        self.scan.blanks();
        if matches!(self.scan.peek(), None | Some(b']')) {
            return None;
        }
        let from = self.scan.at;
        self.scan.skip();
        self.text.get(from..self.scan.at).map(Raw)
    }
}

/// One JSON object from an agent.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    text: &'a str,
    /// The first fields. Most objects have no more, and take no allocation.
    few: [Field; FEW],
    count: usize,
    more: Vec<Field>,
    /// Whether a key has escapes.
    escapes: bool,
}

const FEW: usize = 8;

/// Where a field is: its key without quotes, and its value. Byte offsets; no line reaches 4 GiB.
#[derive(Clone, Copy, Debug, Default)]
struct Field {
    key: (u32, u32),
    value: (u32, u32),
}

impl<'a> Object<'a> {
    /// Reads a text as one object.
    pub fn parse(text: &'a str) -> Option<Object<'a>> {
        u32::try_from(text.len()).ok()?;
        let mut begin = JsonScan::new(text, 0);
        begin.blanks();
        Object::index(text, begin.at, |scan| scan.value())
    }

    /// Finds the fields of the object at `at`. `pass` passes one value; white space may follow the object.
    fn index(text: &'a str, at: usize, mut pass: impl FnMut(&mut JsonScan<'a>) -> Option<()>) -> Option<Object<'a>> {
        let mut scan = JsonScan::new(text, at);
        let mut object = Object { text, few: Default::default(), count: 0, more: Vec::new(), escapes: false };
        if !scan.pass(b'{') {
            return None;
        }
        scan.blanks();
        if !scan.pass(b'}') {
            loop {
                scan.blanks();
                if !scan.pass(b'"') {
                    return None;
                }
                let key = scan.at;
                let escapes = scan.string()?;
                let key_end = scan.at - 1;
                if escapes {
                    // Half a surrogate pair becomes U+FFFD, so two such keys would look alike: refuse them.
                    serde_json::from_str::<String>(text.get(key - 1..scan.at)?).ok()?;
                    object.escapes = true;
                }
                scan.blanks();
                if !scan.pass(b':') {
                    return None;
                }
                scan.blanks();
                let value = scan.at;
                pass(&mut scan)?;
                object.push(Field { key: (key as u32, key_end as u32), value: (value as u32, scan.at as u32) });
                scan.blanks();
                if !scan.pass(b',') {
                    break;
                }
            }
            if !scan.pass(b'}') {
                return None;
            }
        }
        scan.blanks();
        scan.peek().is_none().then_some(object)
    }

    fn push(&mut self, field: Field) {
        match self.few.get_mut(self.count) {
            Some(place) => *place = field,
            None => self.more.push(field),
        }
        self.count += 1;
    }

    fn fields(&self) -> impl DoubleEndedIterator<Item = &Field> {
        self.few[..self.count.min(FEW)].iter().chain(&self.more)
    }

    fn slice(&self, (from, to): (u32, u32)) -> &'a str {
        self.text.get(from as usize..to as usize).unwrap_or_default()
    }

    /// A field, verbatim; null counts as absent. Of fields with the same key the last counts.
    pub fn raw(&self, name: &str) -> Option<Raw<'a>> {
        let is_named = |field: &&Field| match self.escapes {
            false => self.text.as_bytes().get(field.key.0 as usize..field.key.1 as usize) == Some(name.as_bytes()),
            true => unescape(self.slice(field.key)) == name,
        };
        let field = self.fields().rev().find(is_named)?;
        Some(Raw(self.slice(field.value))).filter(|raw| raw.0 != "null")
    }

    /// All fields in order, verbatim.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> {
        self.fields().map(|field| (unescape(self.slice(field.key)), Raw(self.slice(field.value))))
    }

    /// All fields except these, verbatim, as a text to compare objects by.
    pub fn without(&self, names: &[&str]) -> String {
        let kept = self.iter().filter(|(name, _)| !names.contains(&&**name));
        kept.map(|(name, raw)| format!("{}:{}\n", crate::protocol::json::to_line(&name), raw.get())).collect()
    }

    /// A field that is a string.
    pub fn str(&self, name: &str) -> Option<Cow<'a, str>> {
        self.raw(name).and_then(Raw::str)
    }

    /// A field that is a string, owned.
    pub fn string(&self, name: &str) -> Option<String> {
        self.raw(name).and_then(Raw::string)
    }

    /// A field that is a string and equal to `wanted`.
    pub fn is(&self, name: &str, wanted: &str) -> bool {
        self.str(name).is_some_and(|text| text == wanted)
    }

    /// A field that is an object.
    pub fn object(&self, name: &str) -> Option<Object<'a>> {
        self.raw(name).and_then(Raw::object)
    }

    /// The objects in a field that is an array.
    pub fn objects(&self, name: &str) -> impl Iterator<Item = Object<'a>> + use<'a> {
        self.array(name).filter_map(Raw::object)
    }

    /// The elements of a field that is an array.
    pub fn array(&self, name: &str) -> impl Iterator<Item = Raw<'a>> + use<'a> {
        self.list(name).into_iter().flatten()
    }

    /// Like [`Object::array`], but `None` if the field is not an array.
    pub fn list(&self, name: &str) -> Option<Elements<'a>> {
        self.raw(name).and_then(Raw::elements)
    }

    /// A field that is a non-negative whole number.
    pub fn count(&self, name: &str) -> Option<u64> {
        let number = self.number(name)?;
        (number >= 0.0 && number.fract() == 0.0 && number < 1e18).then_some(number as u64)
    }

    /// A field that is a finite number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw.0).ok()).filter(|number: &f64| number.is_finite())
    }

    /// A field that is true or false.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.raw(name)?.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
}

/// Replaces raw control characters, which JSON forbids in strings, with blanks. Copies only if there are any.
pub fn without_controls(line: Cow<'_, str>) -> Cow<'_, str> {
    // In blocks and without an early end, so that the compiler compares many bytes at once.
    let has_controls = |block: &[u8]| block.iter().fold(false, |found, byte| found | (*byte < 0x20));
    if !line.as_bytes().chunks(64).any(has_controls) && !line.starts_with('\u{feff}') {
        return line;
    }
    Cow::Owned(line.trim_start_matches('\u{feff}').replace(|c: char| c < ' ', " "))
}

#[cfg(test)]
mod tests {
    use super::{Object, Raw, without_controls};

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
        assert_eq!(object.objects("c").count(), 1);
        assert_eq!((object.count("a"), object.count("e")), (Some(1), None));
    }

    #[test]
    fn the_last_of_several_fields_counts_also_behind_an_escape() {
        for (text, value) in [
            (r#"{"a":1,"b":2,"a":3}"#, Some("3")),
            (r#" { "b" : 2 , "a" : 1 , "\u0061" : [ 3 ] } "#, Some("[ 3 ]")),
            (r#"{"a":1,"a":null}"#, None),
            (r#"{"0":0,"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"a":8,"9":9}"#, Some("8")),
            (r#"{"a":0,"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"a":8,"9":9}"#, Some("8")),
            ("{}", None),
        ] {
            assert_eq!(Object::parse(text).unwrap().raw("a").map(Raw::get), value, "{text}");
        }
    }

    #[test]
    fn elements_are_verbatim() {
        let object = Object::parse(r#"{"a":[ 1 ,"x,]",{"b":[]} , [] ],"b":[],"c":{}}"#).unwrap();
        let elements: Vec<&str> = object.array("a").map(Raw::get).collect();
        assert_eq!(elements, ["1", "\"x,]\"", "{\"b\":[]}", "[]"]);
        assert_eq!(object.list("b").map(Iterator::count), Some(0));
        assert!(object.list("c").is_none());
    }

    #[test]
    fn broken_objects_are_none() {
        for text in
            ["", "[1]", "{} {}", "{\"a\":\"\t\"}", "{\"a\":1,}", "{\"a\"}", "{\"a\":{\"b\":}}", "{\"\\ud800\":1}", "{"]
        {
            assert!(Object::parse(text).is_none(), "{text}");
        }
        assert!(Object::parse(r#"{"a":{"\ud800":1}}"#).unwrap().object("a").is_none());
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
