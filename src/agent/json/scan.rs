//! Walks over JSON: checks it, or skips what is known to be valid. Never recurses, so that no depth overflows the stack.

use super::index::Place;
use std::borrow::Cow;

/// A position in a JSON text.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonScan<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    /// Whether only blanks are white space.
    strict: bool,
}

/// Takes the parts of a value that is being checked, in the order of the text. Positions include the quotes of strings
/// but not those of keys.
pub(super) trait Sink {
    /// A key. Its value comes next.
    fn key(&mut self, from: usize, to: usize, escapes: bool);
    /// A value that is no object and no array.
    fn leaf(&mut self, from: usize, to: usize, escapes: bool);
    /// The beginning of an object or an array. `None` ends the walk.
    fn open(&mut self, object: bool, at: usize) -> Option<()>;
    /// The end of the innermost open object or array.
    fn close(&mut self, end: usize);
    /// Whether the innermost open value is an object. `None`: no value is open.
    fn is_in_object(&self) -> Option<bool>;
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = ONES << 7;

/// A word whose lowest set bit is in the lowest byte of `word` that is zero. Zero: no byte is.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

const fn equals(word: u64, byte: u8) -> u64 {
    zeros(word ^ (ONES * byte as u64))
}

/// Marks the lowest byte below 0x20 in the same way.
const fn controls(word: u64) -> u64 {
    word.wrapping_sub(ONES * 0x20) & !word & HIGHS
}

impl<'a> JsonScan<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> JsonScan<'a> {
        JsonScan { bytes: text.as_bytes(), at, strict: false }
    }

    /// A scan from the beginning that refuses control characters also between values.
    pub(super) fn strict(text: &'a str) -> JsonScan<'a> {
        JsonScan { bytes: text.as_bytes(), at: 0, strict: true }
    }

    /// Passes white space up to the end of the text. `None`: something else follows.
    pub(super) fn end(mut self) -> Option<()> {
        self.strict = false;
        self.blanks();
        self.peek().is_none().then_some(())
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Passes this byte, if it comes next.
    pub(super) fn pass(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Passes white space.
    #[inline]
    pub(super) fn blanks(&mut self) {
        while let Some(byte) = self.peek().filter(|byte| *byte <= b' ') {
            match byte {
                b' ' => {}
                b'\t' | b'\r' | b'\n' if !self.strict => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Checks a string, after its opening quote, and passes its closing one. Returns whether it has escapes.
    pub(super) fn string(&mut self) -> Option<bool> {
        let mut escapes = false;
        loop {
            self.run(
                |word| equals(word, b'"') | equals(word, b'\\') | controls(word),
                |b| matches!(b, b'"' | b'\\' | 0..0x20),
            );
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(escapes);
                }
                b'\\' => {
                    escapes = true;
                    self.at += 1;
                    self.escape()?;
                }
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let kind = self.peek()?;
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    /// Passes a valid string, after its opening quote.
    fn skip_string(&mut self) {
        loop {
            self.run(|word| equals(word, b'"') | equals(word, b'\\'), |b| matches!(b, b'"' | b'\\'));
            match self.peek() {
                Some(b'\\') => self.at += 2,
                Some(_) => {
                    self.at += 1;
                    return;
                }
                None => return,
            }
        }
    }

    /// Passes the bytes before the first one that `marks` marks in a word, and that `is_end` accepts.
    #[inline]
    fn run(&mut self, marks: impl Fn(u64) -> u64, is_end: impl Fn(u8) -> bool) {
        let mut rest = self.bytes.get(self.at..).unwrap_or_default();
        while let Some((word, after)) = rest.split_first_chunk::<8>() {
            let found = marks(u64::from_le_bytes(*word));
            if found != 0 {
                self.at = self.bytes.len() - rest.len() + found.trailing_zeros() as usize / 8;
                return;
            }
            rest = after;
        }
        let tail = rest.iter().position(|byte| is_end(*byte)).unwrap_or(rest.len());
        self.at = self.bytes.len() - rest.len() + tail;
    }

    /// Checks a value of any kind, and passes it.
    pub(super) fn value(&mut self) -> Option<()> {
        self.walk(&mut Nesting::default())
    }

    /// Checks a value of any kind, and hands its parts to a sink in which nothing is open.
    pub(super) fn walk(&mut self, sink: &mut impl Sink) -> Option<()> {
        loop {
            self.blanks();
            let from = self.at;
            let first = self.peek()?;
            self.at += 1;
            match first {
                b'"' => {
                    let escapes = self.string()?;
                    sink.leaf(from, self.at, escapes);
                }
                b'{' => {
                    sink.open(true, from)?;
                    self.blanks();
                    if !self.pass(b'}') {
                        self.key(sink)?;
                        continue;
                    }
                    sink.close(self.at);
                }
                b'[' => {
                    sink.open(false, from)?;
                    self.blanks();
                    if !self.pass(b']') {
                        continue;
                    }
                    sink.close(self.at);
                }
                _ => {
                    match first {
                        b't' => self.word(b"rue")?,
                        b'f' => self.word(b"alse")?,
                        b'n' => self.word(b"ull")?,
                        b'-' | b'0'..=b'9' => self.number(first)?,
                        _ => return None,
                    }
                    sink.leaf(from, self.at, false);
                }
            }
            // After a value: the next one, or the end of what holds it.
            loop {
                let Some(in_object) = sink.is_in_object() else { return Some(()) };
                self.blanks();
                let next = self.peek()?;
                self.at += 1;
                match (next, in_object) {
                    (b',', true) => {
                        self.blanks();
                        self.key(sink)?;
                        break;
                    }
                    (b',', false) => break,
                    (b'}', true) | (b']', false) => sink.close(self.at),
                    _ => return None,
                }
            }
        }
    }

    /// Checks a key with its colon, and passes them.
    #[inline]
    fn key(&mut self, sink: &mut impl Sink) -> Option<()> {
        if !self.pass(b'"') {
            return None;
        }
        let from = self.at;
        let escapes = self.string()?;
        sink.key(from, self.at - 1, escapes);
        self.blanks();
        self.pass(b':').then_some(())
    }

    fn word(&mut self, rest: &[u8]) -> Option<()> {
        let fits = self.bytes.get(self.at..)?.starts_with(rest);
        self.at += rest.len();
        fits.then_some(())
    }

    /// Checks a number after its first byte.
    fn number(&mut self, first: u8) -> Option<()> {
        match first {
            b'-' if self.pass(b'0') => {}
            b'-' => self.digits()?,
            b'0' => {}
            _ => drop(self.digits()),
        }
        if self.pass(b'.') {
            self.digits()?;
        }
        if self.pass(b'e') || self.pass(b'E') {
            let _ = self.pass(b'+') || self.pass(b'-');
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > from).then_some(())
    }

    /// Passes a valid value. Returns its place.
    pub(super) fn skipped(&mut self) -> Place {
        let from = self.at;
        self.skip();
        Place::new(from, self.at)
    }

    fn skip(&mut self) {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.skip_string();
            }
            Some(b'{' | b'[') => self.skip_nested(),
            _ => {
                while self.peek().is_some_and(|byte| !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'))
                {
                    self.at += 1;
                }
            }
        }
    }

    fn skip_nested(&mut self) {
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => self.skip_string(),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                _ => {}
            }
        }
    }
}

/// The objects and arrays around a position, one bit each. 64 levels take no allocation.
#[derive(Default)]
struct Nesting {
    /// The innermost levels, the last of them in the lowest bit.
    near: u64,
    depth: usize,
    /// The levels outside of those, 64 at a time.
    far: Vec<u64>,
}

impl Sink for Nesting {
    fn key(&mut self, _: usize, _: usize, _: bool) {}

    fn leaf(&mut self, _: usize, _: usize, _: bool) {}

    fn open(&mut self, object: bool, _: usize) -> Option<()> {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.far.push(self.near);
        }
        self.near = self.near << 1 | u64::from(object);
        self.depth += 1;
        Some(())
    }

    fn close(&mut self, _: usize) {
        self.near >>= 1;
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.near = self.far.pop().unwrap_or_default();
        }
    }

    fn is_in_object(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.near & 1 == 1)
    }
}

/// The text of a valid string, given without its quotes. Half a surrogate pair becomes U+FFFD. Borrowed if there is
/// nothing to decode.
pub(in crate::agent) fn unescape(inner: &str) -> Cow<'_, str> {
    let Some(first) = inner.find('\\') else { return Cow::Borrowed(inner) };
    let mut out = String::with_capacity(inner.len());
    let (mut rest, mut next) = (inner, Some(first));
    while let Some(at) = next {
        out.push_str(&rest[..at]);
        let (c, used) = escaped(&rest[at..]);
        out.push(c);
        rest = rest.get(at + used..).unwrap_or_default();
        next = rest.find('\\');
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The character of the escape that `text` begins with, and how many bytes it takes.
fn escaped(text: &str) -> (char, usize) {
    let plain = match text.as_bytes().get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
            let first = unit(text).unwrap_or(0xfffd);
            let pair = [first, text.get(6..).and_then(unit).unwrap_or_default()];
            return match (char::from_u32(first.into()), char::decode_utf16(pair).next()) {
                (Some(c), _) => (c, 6),
                (None, Some(Ok(c))) => (c, 12),
                (None, _) => (char::REPLACEMENT_CHARACTER, 6),
            };
        }
        Some(other) => char::from(*other),
        None => char::REPLACEMENT_CHARACTER,
    };
    (plain, 2)
}

#[cfg(test)]
pub(super) mod tests {
    use super::{JsonScan, unescape};
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    fn is_value(text: &str) -> bool {
        let mut scan = JsonScan::new(text, 0);
        let read = scan.value().is_some();
        scan.blanks();
        read && scan.at == text.len()
    }

    /// Texts that are JSON, or nearly.
    pub(in crate::agent::json) fn nearly_json() -> impl Strategy<Value = String> {
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

    /// Valid JSON of every shape.
    pub(in crate::agent::json) fn json() -> impl Strategy<Value = String> {
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
        #[test]
        fn what_is_accepted_is_json(text in nearly_json()) {
            prop_assert_eq!(is_value(&text), serde_json::from_str::<&RawValue>(&text).is_ok(), "{}", text);
        }

        #[test]
        fn skipping_ends_where_checking_does(text in json()) {
            prop_assert!(is_value(&text), "{}", text);
            let line = format!("{text} ,]");
            let (mut checked, mut skipped) = (JsonScan::new(&line, 0), JsonScan::new(&line, 0));
            prop_assert!(checked.value().is_some());
            skipped.skip();
            prop_assert_eq!((skipped.at, checked.at), (text.len(), text.len()), "{}", text);
        }

        #[test]
        fn a_text_comes_back(text in "[ -~é\u{1f600}\n\u{1}\"\\\\]{0,40}") {
            let literal = serde_json::to_string(&text).unwrap();
            let mut scan = JsonScan::new(&literal, 1);
            prop_assert!(scan.string().is_some() && scan.at == literal.len());
            prop_assert_eq!(unescape(&literal[1..literal.len() - 1]), text);
        }
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

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        for (inner, text) in [
            (r"\ud83d\ude00\udc00", "\u{1f600}\u{fffd}"),
            (r"\ud800\ud83d\ude00", "\u{fffd}\u{1f600}"),
            (r"\ud800\n\\ud800\/", "\u{fffd}\n\\ud800/"),
            (r"\ud800", "\u{fffd}"),
            (r"\u0000é", "\0é"),
        ] {
            assert_eq!(unescape(inner), text);
        }
    }
}
