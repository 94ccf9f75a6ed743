//! Reads an agent's JSON leniently: ignores unknown fields, treats wrong types as absent, repairs broken characters.
//!
//! [`super::Index::read`] walks over a line once, checks it, and records the position of each value. All values are slices of
//! the line, known to be valid and never copied. [`Object::parse`] only checks a text; each access searches for its
//! value.

use super::decode::unescape;
use super::index::{Beginning, Index, Node, Span};
use super::scan::{after_blanks, after_string, after_value, literal_len};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// A valid JSON value, verbatim.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    pub(super) line: &'a str,
    pub(super) place: Span,
    /// The index entries of the values inside this one. `None`: the index does not cover them.
    pub(super) below: Option<&'a [Node]>,
    /// Whether the value may be a string with escapes, or an object whose keys have escapes.
    pub(super) escapes: bool,
}

impl<'a> Raw<'a> {
    pub fn get(self) -> &'a str {
        self.place.slice_of(self.line)
    }

    /// `None`: the value is longer than 4 GiB.
    pub fn of(raw: &'a RawValue) -> Option<Raw<'a>> {
        let line = raw.get();
        u32::try_from(line.len()).ok()?;
        Some(Raw { line, place: Span::new(0, line.len()), below: None, escapes: true })
    }

    pub fn value(self) -> &'a RawValue {
        serde_json::from_str(self.get()).unwrap_or(RawValue::NULL)
    }

    fn first(self) -> Option<u8> {
        self.line.as_bytes().get(self.place.from as usize).copied()
    }

    pub fn is_string(self) -> bool {
        self.first() == Some(b'"')
    }

    /// A string without its quotes, verbatim.
    pub(crate) fn literal(self) -> Option<&'a str> {
        self.is_string().then(|| self.place.inside().slice_of(self.line))
    }

    /// A string's text. Half a surrogate pair becomes U+FFFD. Borrowed unless it has escapes.
    #[inline]
    pub fn str(self) -> Option<Cow<'a, str>> {
        let inner = self.literal()?;
        Some(if self.escapes { unescape(inner) } else { Cow::Borrowed(inner) })
    }

    /// `None`: it is not a string, or has escapes.
    pub(crate) fn plain_str(self) -> Option<&'a str> {
        self.literal().filter(|_| !self.escapes)
    }

    pub fn string(self) -> Option<String> {
        self.str().map(Cow::into_owned)
    }

    pub fn object(self) -> Option<Object<'a>> {
        let object = (self.first() == Some(b'{')).then_some(Object(self))?;
        // Half a surrogate pair becomes U+FFFD, so two such keys would look alike: refuse them.
        let is_whole = |key: Span| serde_json::from_str::<String>(key.outside().slice_of(self.line)).is_ok();
        let broken = self.escapes && object.children().any(|child| child.key_escapes && !is_whole(child.key));
        (!broken).then_some(object)
    }

    /// Half surrogate pairs in keys become U+FFFD. `None`: it is not an object.
    pub fn fields(self) -> Option<ObjectFields<'a>> {
        (self.first() == Some(b'{')).then(|| Object(self).iter())
    }

    /// The position of the value in its line.
    pub(crate) fn at(self) -> usize {
        self.place.from as usize
    }

    pub(crate) fn place(self) -> Range<usize> {
        self.at()..self.place.to as usize
    }

    pub fn elements(self) -> Option<Elements<'a>> {
        (self.first() == Some(b'[')).then(|| Elements(Children::new(self, false)))
    }
}

#[derive(Clone, Debug)]
pub struct Elements<'a>(Children<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Raw<'a>;

    #[inline]
    fn next(&mut self) -> Option<Raw<'a>> {
        self.0.next().map(|child| child.value)
    }
}

#[derive(Clone, Debug)]
pub struct ObjectFields<'a>(Children<'a>);

impl<'a> Iterator for ObjectFields<'a> {
    type Item = (Cow<'a, str>, Raw<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let line = self.0.line;
        self.0.next().map(|child| (unescape(child.key.slice_of(line)), child.value))
    }
}

/// The fields of an object or the elements of an array, from the index, or by a walk over the text.
#[derive(Clone, Debug)]
struct Children<'a> {
    line: &'a str,
    /// The index entries that are left. `None`: the text is walked instead.
    nodes: Option<&'a [Node]>,
    at: usize,
    object: bool,
}

/// A field of an object, or an element of an array, which has no key.
#[derive(Clone, Copy, Debug)]
struct Child<'a> {
    /// Without its quotes.
    key: Span,
    key_escapes: bool,
    value: Raw<'a>,
}

impl<'a> Children<'a> {
    fn new(parent: Raw<'a>, object: bool) -> Children<'a> {
        Children { line: parent.line, nodes: parent.below, at: parent.place.from as usize + 1, object }
    }

    /// The next child, by a walk over text that is known to be valid.
    #[cold]
    fn walk(&mut self) -> Option<Child<'a>> {
        let bytes = self.line.as_bytes();
        let mut at = after_blanks(bytes, self.at);
        if bytes.get(at) == Some(&b',') {
            at = after_blanks(bytes, at + 1);
        }
        if matches!(bytes.get(at), None | Some(b']' | b'}')) {
            return None;
        }
        let (mut key, mut key_escapes) = (Span::default(), false);
        if self.object {
            let (end, escapes) = after_string(bytes, at + 1)?;
            (key, key_escapes) = (Span::new(at + 1, end - 1), escapes);
            at = after_blanks(bytes, after_blanks(bytes, end) + 1);
        }
        self.at = after_value(bytes, at);
        let place = Span::new(at, self.at);
        Some(Child { key, key_escapes, value: Raw { line: self.line, place, below: None, escapes: true } })
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = Child<'a>;

    #[inline]
    fn next(&mut self) -> Option<Child<'a>> {
        let Some(nodes) = self.nodes else { return self.walk() };
        let (node, rest) = nodes.split_first()?;
        let (below, rest) = rest.split_at_checked(node.below())?;
        self.nodes = Some(rest);
        let value = Raw { line: self.line, place: node.value, below: Some(below), escapes: node.escapes() };
        Some(Child { key: node.key, key_escapes: node.key_escapes(), value })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Object<'a>(pub(super) Raw<'a>);

impl<'a> Object<'a> {
    /// `None`: it is not one, or a key of it has half a surrogate pair.
    pub fn parse(text: &'a str) -> Option<Object<'a>> {
        Object::scanned(text)?.0.object()
    }

    /// Like [`Object::parse`], with half a surrogate pair in keys too.
    pub(super) fn scanned(text: &'a str) -> Option<Object<'a>> {
        // Many texts are none, and an error of serde_json takes memory.
        text.trim_ascii_start().starts_with('{').then_some(())?;
        Raw::of(serde_json::from_str(text).ok()?).map(Object)
    }

    /// The whole line that contains the value.
    pub fn line(&self) -> &'a str {
        self.0.line
    }

    fn children(&self) -> Children<'a> {
        Children::new(self.0, true)
    }

    /// Null counts as absent. If a key is repeated, the last value counts.
    pub fn raw(&self, name: &str) -> Option<Raw<'a>> {
        let [raw] = self.raws([name]);
        raw
    }

    /// Like [`Object::raw`] for several fields, found in one walk.
    #[inline]
    pub fn raws<const N: usize>(&self, names: [&str; N]) -> [Option<Raw<'a>>; N] {
        let Raw { line, below: Some(nodes), escapes: false, .. } = self.0 else {
            return names.map(|name| self.walked(name));
        };
        let wanted = names.map(|name| (name, Beginning::new(name)));
        let (mut rest, mut found) = (nodes, [None; N]);
        while let Some((node, after)) = rest.split_first() {
            for ((name, beginning), found) in wanted.iter().zip(&mut found) {
                if node.has_key(line, name, *beginning) {
                    *found = Some(rest);
                }
            }
            rest = after.get(node.below()..).unwrap_or_default();
        }
        found.map(|nodes| {
            let value = Children { line, nodes: Some(nodes?), at: 0, object: true }.next()?.value;
            (value.first() != Some(b'n')).then_some(value)
        })
    }

    /// Like [`Object::raw`], for an object without an index or whose keys have escapes.
    #[cold]
    fn walked(&self, name: &str) -> Option<Raw<'a>> {
        let line = self.0.line;
        let is_named = |child: &Child<'a>| match child.key_escapes {
            false => child.key.is(line, name),
            true => unescape(child.key.slice_of(line)) == name,
        };
        let value = self.children().filter(is_named).last()?.value;
        (value.first() != Some(b'n')).then_some(value)
    }

    /// The places of the fields in order: of the key, without the quotes, and of the value.
    pub(super) fn places(&self) -> impl Iterator<Item = (Span, Span)> + use<'a> {
        self.children().map(|child| (child.key, child.value.place))
    }

    pub fn iter(&self) -> ObjectFields<'a> {
        ObjectFields(self.children())
    }

    /// All fields except `names`, verbatim, as a text by which objects can be compared.
    pub fn without(&self, names: &[&str]) -> String {
        let kept = self.iter().filter(|(name, _)| !names.contains(&&**name));
        kept.map(|(name, raw)| format!("{}:{}\n", super::to_line(&name), raw.get())).collect()
    }

    pub fn str(&self, name: &str) -> Option<Cow<'a, str>> {
        self.raw(name).and_then(Raw::str)
    }

    pub fn string(&self, name: &str) -> Option<String> {
        self.raw(name).and_then(Raw::string)
    }

    pub fn is(&self, name: &str, wanted: &str) -> bool {
        self.str(name).is_some_and(|text| text == wanted)
    }

    pub fn object(&self, name: &str) -> Option<Object<'a>> {
        self.raw(name).and_then(Raw::object)
    }

    pub fn objects(&self, name: &str) -> impl Iterator<Item = Object<'a>> + use<'a> {
        self.array(name).filter_map(Raw::object)
    }

    /// Empty if the field is not an array.
    pub fn array(&self, name: &str) -> impl Iterator<Item = Raw<'a>> + use<'a> {
        self.list(name).into_iter().flatten()
    }

    /// The texts of the content blocks in a field, one per line. `None`: the field has none.
    pub fn texts(&self, name: &str) -> Option<String> {
        let texts: Vec<String> = self.objects(name).filter_map(|block| block.string("text")).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
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
        self.raw(name).and_then(|raw| serde_json::from_str(raw.get()).ok()).filter(|number: &f64| number.is_finite())
    }

    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.raw(name)?.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
}

impl Index {
    /// Reads a text as one value, whatever the number of values in it. `None`: it is not JSON, or not one line.
    pub fn value<'a>(&'a mut self, text: &'a str) -> Option<Raw<'a>> {
        self.nodes = Vec::with_capacity(values_in(text));
        self.walk_over(text, usize::MAX)?;
        let (first, below) = self.nodes.split_first()?;
        Some(Raw { line: text, place: first.value, below: Some(below), escapes: first.escapes() })
    }

    /// Raw control characters, which JSON forbids in strings, become blanks; only a line that has any is copied.
    pub fn read<'a>(&'a mut self, line: &'a mut Cow<'_, str>) -> Option<Object<'a>> {
        if self.walk(line).is_none() {
            *line = without_controls(std::mem::take(line));
            return Object::parse(line);
        }
        let (first, below) = self.nodes.split_first()?;
        Raw { line, place: first.value, below: Some(below), escapes: first.escapes() }.object()
    }
}

/// The number of values in a valid text. White space in an empty object or array counts as one more.
fn values_in(text: &str) -> usize {
    let (mut at, mut count) = (0, 1);
    while let Some(byte) = text.as_bytes().get(at) {
        let is_empty = || matches!(text.as_bytes().get(at + 1), Some(b'}' | b']'));
        count += usize::from(*byte == b',' || matches!(byte, b'{' | b'[') && !is_empty());
        at += if *byte == b'"' { literal_len(&text[at..]) } else { 1 };
    }
    count
}

/// Whether a line consists only of white space and control characters.
pub(crate) fn is_blank(line: &str) -> bool {
    let blank = |c: char| c <= ' ' || c.is_whitespace();
    line.trim_start_matches('\u{feff}').trim_start_matches(blank).is_empty()
}

/// Copies only if there are any.
fn without_controls(line: Cow<'_, str>) -> Cow<'_, str> {
    if !line.bytes().any(|byte| byte < b' ') && !line.starts_with('\u{feff}') {
        return line;
    }
    Cow::Owned(line.trim_start_matches('\u{feff}').replace(|c: char| c < ' ', " "))
}

#[cfg(test)]
mod tests {
    use super::{Index, Object, Raw, without_controls};

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
            let object = Object::parse(text).unwrap();
            assert_eq!(object.raw("a").map(Raw::get), value, "{text}");
            let mut line = text.into();
            let mut index = Index::default();
            let object = index.read(&mut line).unwrap();
            assert_eq!(object.raws(["z", "a"]).map(|raw| raw.map(Raw::get)), [None, value], "{text}");
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
    fn fields_that_are_not_read_make_no_difference() {
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
