//! The positions of the values in a line, found in one walk. The memory is reused for the next line.

use super::scan::{after_string, after_word, token};

/// The maximum number of indexed values. A line with more is rare, and is walked again for each field that is read.
const VALUES: usize = 1 << 17;
/// The maximum number of values whose memory is kept for the next line.
const KEPT: usize = 1 << 12;

/// A part of a line, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Span {
    /// The positions fit into 32 bits because no line reaches 4 GiB.
    pub(super) fn new(from: usize, to: usize) -> Span {
        Span { from: from as u32, to: to as u32 }
    }

    #[inline]
    pub(super) fn slice_of(self, line: &str) -> &str {
        line.get(self.from as usize..self.to as usize).unwrap_or_default()
    }

    #[inline]
    pub(super) fn is(self, line: &str, text: &str) -> bool {
        let bytes = line.as_bytes().get(self.from as usize..self.to as usize);
        (self.to - self.from) as usize == text.len() && bytes.is_some_and(|bytes| is_same(bytes, text.as_bytes()))
    }

    /// The span of a string without its quotes.
    pub(super) fn inside(self) -> Span {
        Span { from: self.from + 1, to: (self.from + 1).max(self.to.saturating_sub(1)) }
    }

    /// The span of a string with its quotes, from the span without them.
    pub(super) fn outside(self) -> Span {
        Span { from: self.from.saturating_sub(1), to: self.to + 1 }
    }
}

/// Whether texts of the same length are equal. Compares words: faster than a call for texts as short as keys.
#[inline]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    if let Some(last) = a.last_chunk::<8>() {
        return b.last_chunk() == Some(last) && a.as_chunks::<8>().0.iter().eq(b.as_chunks().0);
    }
    if let (Some(first), Some(last)) = (a.first_chunk::<4>(), a.last_chunk::<4>()) {
        return b.first_chunk() == Some(first) && b.last_chunk() == Some(last);
    }
    a.iter().eq(b)
}

/// A field of an object, or an element of an array. The nodes inside its value follow it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Without its quotes. Meaningless for an element of an array.
    pub(super) key: Span,
    pub(super) value: Span,
    begin: u32,
    /// The number of nodes inside the value, and the flags. While the value is open: the index of the node around it.
    below: u32,
}

const KEY_ESCAPES: u32 = 1 << 31;
/// Flag: the value is a string with escapes, or an object whose keys have escapes.
const ESCAPES: u32 = 1 << 30;
/// Flag: the value is an object, and still open.
const OBJECT: u32 = 1 << 29;
const COUNT: u32 = OBJECT - 1;

impl Node {
    pub(super) fn below(&self) -> usize {
        (self.below & COUNT) as usize
    }

    /// Whether this is the node's key, which has no escapes. `beginning`: its own.
    #[inline]
    pub(super) fn has_key(&self, line: &str, key: &str, beginning: Beginning) -> bool {
        // Rules out nearly all others.
        self.begin & beginning.mask == beginning.bytes
            && (self.key.to - self.key.from) as usize == key.len()
            && (key.len() <= size_of::<u32>() || self.key.is(line, key))
    }

    pub(super) fn key_escapes(&self) -> bool {
        self.below & KEY_ESCAPES != 0
    }

    pub(super) fn escapes(&self) -> bool {
        self.below & ESCAPES != 0
    }
}

/// The first four bytes of a wanted key, or all if there are fewer.
#[derive(Clone, Copy)]
pub(super) struct Beginning {
    bytes: u32,
    mask: u32,
}

impl Beginning {
    #[inline]
    pub(super) fn new(key: &str) -> Beginning {
        if let Some(bytes) = key.as_bytes().first_chunk() {
            return Beginning { bytes: u32::from_le_bytes(*bytes), mask: u32::MAX };
        }
        let bytes = key.bytes().rev().fold(0, |bytes, byte| bytes << 8 | u32::from(byte));
        Beginning { bytes, mask: (1 << (8 * key.len())) - 1 }
    }
}

/// The key of a field. Meaningless for the elements of an array.
#[derive(Clone, Copy, Default)]
struct FieldKey {
    place: Span,
    /// The four bytes at its place. A short key is followed by its quote, a colon and a value.
    begin: u32,
    escapes: bool,
}

/// The index of one line. The first node is the line's whole value.
#[derive(Debug, Default)]
pub struct Index {
    pub(super) nodes: Vec<Node>,
    /// The innermost open value.
    open: u32,
}

impl Index {
    /// `None`: it is not JSON, or has too many values.
    pub(super) fn walk(&mut self, line: &str) -> Option<()> {
        self.nodes.clear();
        if self.nodes.capacity() > KEPT {
            self.nodes = Vec::new();
        }
        self.walk_over(line, VALUES)
    }

    /// Records the values of a text in an empty index. From `most` values on, no further one may contain others.
    /// Positions are kept in local variables for speed.
    pub(super) fn walk_over(&mut self, line: &str, most: usize) -> Option<()> {
        u32::try_from(line.len()).ok()?;
        self.open = COUNT;
        // `inside`: whether the innermost open value is an object.
        let (bytes, mut at, mut key, mut inside) = (line.as_bytes(), 0, FieldKey::default(), None);
        loop {
            let first = token(bytes, &mut at)?;
            let from = at;
            match first {
                b'"' => {
                    let (end, escapes) = after_string(bytes, at + 1)?;
                    at = end;
                    self.push(key, Span::new(from, at), if escapes { ESCAPES } else { 0 });
                }
                b'{' | b'[' => {
                    let object = first == b'{';
                    self.open(key, object, from, most)?;
                    inside = Some(object);
                    at += 1;
                    if token(bytes, &mut at)? != end_of(object) {
                        if object {
                            (at, key) = after_key(bytes, at)?;
                        }
                        continue;
                    }
                    at += 1;
                    inside = self.close(at);
                }
                first => {
                    at = after_word(bytes, at, first)?;
                    self.push(key, Span::new(from, at), 0);
                }
            }
            // After a value comes the next one, or the end of the enclosing value.
            loop {
                let Some(object) = inside else {
                    return bytes[at..].trim_ascii().is_empty().then_some(());
                };
                let next = token(bytes, &mut at)?;
                at += 1;
                if next == b',' {
                    if object {
                        (at, key) = after_key(bytes, at)?;
                    }
                    break;
                }
                if next != end_of(object) {
                    return None;
                }
                inside = self.close(at);
            }
        }
    }

    #[inline(always)]
    fn push(&mut self, key: FieldKey, value: Span, below: u32) {
        let mark = if key.escapes { self.escaped_key() } else { 0 };
        self.nodes.push(Node { key: key.place, value, begin: key.begin, below: below | mark });
    }

    #[cold]
    fn escaped_key(&mut self) -> u32 {
        if let Some(object) = self.nodes.get_mut(self.open as usize) {
            object.below |= ESCAPES;
        }
        KEY_ESCAPES
    }

    #[inline(always)]
    fn open(&mut self, key: FieldKey, object: bool, at: usize, most: usize) -> Option<()> {
        let number = self.nodes.len();
        self.push(key, Span::new(at, at), self.open | if object { OBJECT } else { 0 });
        self.open = number as u32;
        (number < most).then_some(())
    }

    /// Ends the innermost open value. Returns whether the enclosing one is an object. `None`: it is the outermost.
    #[inline(always)]
    fn close(&mut self, end: usize) -> Option<bool> {
        let (open, count) = (self.open as usize, self.nodes.len());
        let node = self.nodes.get_mut(open)?;
        node.value.to = end as u32;
        self.open = node.below & COUNT;
        node.below = node.below & (KEY_ESCAPES | ESCAPES) | (count - open - 1) as u32;
        self.nodes.get(self.open as usize).map(|node| node.below & OBJECT != 0)
    }
}

fn end_of(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}

/// Checks a key with its colon. Returns the place after them.
#[inline(always)]
fn after_key(bytes: &[u8], mut at: usize) -> Option<(usize, FieldKey)> {
    if token(bytes, &mut at)? != b'"' {
        return None;
    }
    let from = at + 1;
    let (mut at, escapes) = after_string(bytes, from)?;
    let place = Span::new(from, at - 1);
    let begin = u32::from_le_bytes(*bytes.get(from..)?.first_chunk()?);
    (token(bytes, &mut at)? == b':').then_some((at + 1, FieldKey { place, begin, escapes }))
}

#[cfg(test)]
mod tests {
    use super::{Index, KEPT, VALUES};
    use crate::json::scan::after_value;
    use crate::json::{Object, Raw};
    use proptest::prelude::*;
    use serde_json::Value;
    use serde_json::value::RawValue;
    use std::borrow::Cow;

    /// The value as the readers of fields and elements see it. Of fields with the same key the last counts.
    fn value(raw: Raw<'_>) -> Value {
        if let Some(object) = raw.object() {
            return object.iter().map(|(key, raw)| (key.into_owned(), value(raw))).collect();
        }
        if let Some(elements) = raw.elements() {
            return elements.map(value).collect();
        }
        // A number out of range is valid JSON that serde does not read: its text stands for it.
        let scalar = || serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().into());
        raw.str().map_or_else(scalar, |text| text.into_owned().into())
    }

    fn to_value(object: Object<'_>) -> Value {
        value(object.0)
    }

    fn is_value(text: &str) -> bool {
        Index::default().value(text).is_some()
    }

    fn nearly_json() -> impl Strategy<Value = String> {
        let tokens = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"\\u00e9\\n\"",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"\t\"",
            "\"0123456789\"",
            "\"é\"",
            "0",
            "01",
            "-",
            "-0.5e+3",
            "1.",
            "true",
            "nul",
            "null",
            " ",
            "\t",
            "\"",
            "\\",
        ]);
        prop::collection::vec(tokens, 0..14).prop_map(|tokens| tokens.concat())
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec!["0", "-1.5e-7", "true", "null", "\"\"", "\"]}\\\"\\\\\"", "{}", "[ ]"]);
        leaf.prop_map(str::to_owned).prop_recursive(5, 40, 4, |inner| {
            let fields = prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|values| format!("{{\"a\\\"}}\" : {}}}", values.join(" ,\"\":")));
            prop_oneof![
                prop::collection::vec(inner, 1..4).prop_map(|values| format!("[{}\t]", values.join(", "))),
                fields
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_accepted_text_is_json(text in nearly_json()) {
            prop_assert_eq!(is_value(&text), serde_json::from_str::<&RawValue>(&text).is_ok() && !text.trim_end().contains('\t'), "{}", text);
        }

        #[test]
        fn skipping_ends_where_the_value_does(text in json()) {
            prop_assert!(is_value(&text.replace('\t', " ")), "{}", text);
            prop_assert_eq!(after_value(format!("{text} ,]").as_bytes(), 0), text.len(), "{}", text);
        }

        #[test]
        fn a_line_reads_as_serde_reads_it(text in json()) {
            let line = format!(" {{\"k\":{text} , \"\\u006b2\":[{text}],\"k3\":{{\"é\\n\":{text}}}}} ");
            let wanted: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(to_value(Object::parse(&line).unwrap()), wanted.clone(), "{}", line);
            let (mut index, mut read) = (Index::default(), Cow::Borrowed(&*line));
            let object = index.read(&mut read).unwrap();
            prop_assert_eq!(to_value(object), wanted.clone(), "{}", line);
            for name in ["k", "k2", "k3"] {
                prop_assert_eq!(object.raw(name).map(value).unwrap_or_default(), wanted[name].clone(), "{}", line);
            }
        }

        #[test]
        fn the_index_and_the_scan_refuse_the_same_texts(text in nearly_json()) {
            let line = format!("{{\"k\":{text}}}");
            let clean = line.replace('\t', " ");
            let read = Index::default().read(&mut Cow::Borrowed(&line)).map(to_value);
            prop_assert_eq!(read, Object::parse(&clean).map(to_value), "{}", line);
        }
    }

    #[test]
    fn a_number_out_of_range_is_read_as_its_text() {
        let line = "{\"k\":-0.5e+3001}";
        let object = Index::default().read(&mut Cow::Borrowed(line)).map(to_value);
        assert_eq!(object, Object::parse(line).map(to_value));
        assert_eq!(object.unwrap()["k"], "-0.5e+3001");
    }

    #[test]
    fn control_characters_become_blanks_also_between_values() {
        let mut index = Index::default();
        for (line, value) in
            [("{\"a\":[1,\t2]}\r", "[1, 2]"), ("\u{feff}{\"a\":\"x\ty\"}", "\"x y\""), ("{\"a\":[1,2]} \r", "[1,2]")]
        {
            let mut line = Cow::Borrowed(line);
            assert_eq!(index.read(&mut line).unwrap().raw("a").unwrap().get(), value);
        }
        assert!(index.read(&mut Cow::Borrowed("{\"\\ud800\":1}")).is_none());
        assert!(index.read(&mut Cow::Borrowed("{\"a\":{\"\\ud800\":1}}")).unwrap().object("a").is_none());
    }

    #[test]
    fn a_line_with_too_many_values_is_read_without_an_index() {
        let mut index = Index::default();
        for (count, indexed) in [(VALUES - 3, true), (VALUES + 1, false)] {
            let line = format!("{{\"a\":[{}0],\"b\":{{\"c\":1}}}}", "[],".repeat(count - 1));
            let mut line = Cow::Borrowed(&*line);
            let object = index.read(&mut line).unwrap();
            assert_eq!(object.0.below.is_some(), indexed);
            assert_eq!(object.list("a").unwrap().count(), count);
            assert_eq!(object.object("b").unwrap().count("c"), Some(1));
        }
        assert!(index.read(&mut Cow::Borrowed("{}")).is_some());
        assert!(index.nodes.capacity() <= KEPT);
    }

    #[test]
    fn any_depth_is_checked() {
        for depth in [1, 63, 64, 65, 128, 129, 100_000] {
            let (open, close) = ("[{\"a\":".repeat(depth), "}]".repeat(depth));
            assert!(is_value(&format!("{open}0{close}")), "{depth}");
            assert!(!is_value(&format!("{open}0{}", &close[1..])), "{depth}");
            assert!(!is_value(&format!("{open}0{}]]", &close[..close.len() - 2])), "{depth}");
        }
    }
}
