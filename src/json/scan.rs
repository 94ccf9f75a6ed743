//! Walks over JSON: checks it, or skips values that are known to be valid. Never recurses, so that deep nesting cannot
//! overflow the stack.

use super::span::Span;
use std::borrow::Cow;

/// Takes the parts of a value that is being checked, in the order of the text.
pub(super) trait Sink {
    /// Takes a string, a number, a boolean or null. The place of a string includes its quotes.
    fn leaf(&mut self, key: FieldKey, place: Span, escapes: bool);
    /// Takes the beginning of an object or an array. Returns `None` to end the walk.
    fn open(&mut self, key: FieldKey, object: bool, at: usize) -> Option<()>;
    /// Takes the end of the innermost open object or array. Returns whether the enclosing value is an object. `None`:
    /// it is the outermost value.
    fn close(&mut self, end: usize) -> Option<bool>;
}

/// The key of a field, without its quotes. Meaningless for the elements of an array.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldKey {
    pub(super) place: Span,
    /// The four bytes at its place. A short key is followed by its quote, a colon and a value.
    pub(super) begin: u32,
    pub(super) escapes: bool,
}

/// A position in a JSON text.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonScan<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    /// Whether only spaces count as white space.
    strict: bool,
}

impl<'a> JsonScan<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> JsonScan<'a> {
        JsonScan { bytes: text.as_bytes(), at, strict: false }
    }

    /// A scan from the beginning that also refuses control characters between values.
    pub(super) fn strict(text: &'a str) -> JsonScan<'a> {
        JsonScan { bytes: text.as_bytes(), at: 0, strict: true }
    }

    /// Passes white space up to the end of the text. `None`: other text follows.
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
    pub(super) fn blanks(&mut self) {
        self.at = after_blanks(self.bytes, self.at, self.strict);
    }

    /// Checks a value of any kind, and passes it.
    pub(super) fn value(&mut self) -> Option<()> {
        self.walk(&mut Nesting::default())
    }

    /// Checks a value of any kind, and hands its parts to a sink in which nothing is open. Positions are kept in local
    /// variables for speed.
    pub(super) fn walk(&mut self, sink: &mut impl Sink) -> Option<()> {
        let (bytes, strict) = (self.bytes, self.strict);
        // `inside`: whether the innermost open value is an object.
        let (mut at, mut key, mut inside) = (self.at, FieldKey::default(), None);
        loop {
            let first = token(bytes, &mut at, strict)?;
            let from = at;
            match first {
                b'"' => {
                    let (end, escapes) = after_string(bytes, at + 1)?;
                    at = end;
                    sink.leaf(key, Span::new(from, at), escapes);
                }
                b'{' | b'[' => {
                    let object = first == b'{';
                    sink.open(key, object, from)?;
                    inside = Some(object);
                    at += 1;
                    if token(bytes, &mut at, strict)? != end_of(object) {
                        if object {
                            (at, key) = after_key(bytes, at, strict)?;
                        }
                        continue;
                    }
                    at += 1;
                    inside = sink.close(at);
                }
                first => {
                    at = after_word(bytes, at, first)?;
                    sink.leaf(key, Span::new(from, at), false);
                }
            }
            // After a value comes the next one, or the end of the enclosing value.
            loop {
                let Some(object) = inside else {
                    self.at = at;
                    return Some(());
                };
                let next = token(bytes, &mut at, strict)?;
                at += 1;
                if next == b',' {
                    if object {
                        (at, key) = after_key(bytes, at, strict)?;
                    }
                    break;
                }
                if next != end_of(object) {
                    return None;
                }
                inside = sink.close(at);
            }
        }
    }

    /// Passes a valid value. Returns its place.
    pub(super) fn skipped(&mut self) -> Span {
        let from = self.at;
        match self.peek() {
            Some(b'"') => self.skip_string(),
            Some(b'{' | b'[') => self.skip_nested(),
            _ => {
                while self.peek().is_some_and(|byte| !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'))
                {
                    self.at += 1;
                }
            }
        }
        Span::new(from, self.at)
    }

    fn skip_string(&mut self) {
        self.at = after_string(self.bytes, self.at + 1).map_or(self.bytes.len(), |(end, _)| end);
    }

    fn skip_nested(&mut self) {
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            if byte == b'"' {
                self.skip_string();
                continue;
            }
            self.at += 1;
            match byte {
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

fn end_of(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}

/// The first byte after white space, which is rare.
#[inline(always)]
fn token(bytes: &[u8], at: &mut usize, strict: bool) -> Option<u8> {
    let byte = *bytes.get(*at)?;
    if byte > b' ' {
        return Some(byte);
    }
    *at = after_blanks(bytes, *at, strict);
    bytes.get(*at).copied()
}

#[cold]
fn after_blanks(bytes: &[u8], mut at: usize, strict: bool) -> usize {
    while let Some(byte) = bytes.get(at).filter(|byte| **byte <= b' ') {
        match byte {
            b' ' => {}
            b'\t' | b'\r' | b'\n' if !strict => {}
            _ => break,
        }
        at += 1;
    }
    at
}

/// Checks a key with its colon. Returns the place after them.
#[inline(always)]
fn after_key(bytes: &[u8], mut at: usize, strict: bool) -> Option<(usize, FieldKey)> {
    if token(bytes, &mut at, strict)? != b'"' {
        return None;
    }
    let from = at + 1;
    let (mut at, escapes) = after_string(bytes, from)?;
    let place = Span::new(from, at - 1);
    let begin = u32::from_le_bytes(*bytes.get(from..)?.first_chunk()?);
    (token(bytes, &mut at, strict)? == b':').then_some((at + 1, FieldKey { place, begin, escapes }))
}

/// Checks a string from the place after its opening quote. Returns the place after its closing one, and whether it has
/// escapes.
#[inline(always)]
fn after_string(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let at = after_plain(bytes, at);
    match bytes.get(at) {
        Some(b'"') => Some((at + 1, false)),
        _ => after_escapes(bytes, at).map(|at| (at, true)),
    }
}

/// The length of the string literal that `text` begins with, quotes included.
pub(super) fn literal_len(text: &str) -> usize {
    after_string(text.as_bytes(), 1).map_or(text.len(), |(end, _)| end)
}

/// The rest of a string from its first escape on.
#[cold]
fn after_escapes(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => {}
            _ => return None,
        }
        at += match bytes.get(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' if bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return None,
        };
        at = after_plain(bytes, at);
    }
}

/// The place of the first quote, backslash or control character.
#[inline(always)]
fn after_plain(bytes: &[u8], mut at: usize) -> usize {
    // Most strings end within their first words.
    for _ in 0..2 {
        let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) else { break };
        let found = marks(*word);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    after_plain_blocks(bytes, at)
}

/// The bytes of a word that end the plain part of a string, by the highest bit of each; only the lowest of them is
/// certain. A vector would examine more bytes at once, but its result would take longer to reach a general register.
#[inline(always)]
fn marks(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(word);
    let quotes = word ^ (ONES * b'"' as u64);
    let escapes = word ^ (ONES * b'\\' as u64);
    let below = word.wrapping_sub(ONES * 0x20) & !word;
    (below | quotes.wrapping_sub(ONES) & !quotes | escapes.wrapping_sub(ONES) & !escapes) & (ONES << 7)
}

#[cold]
fn after_plain_blocks(bytes: &[u8], mut at: usize) -> usize {
    let is_plain = |byte: &u8| (*byte != b'"') & (*byte != b'\\') & (*byte >= 0x20);
    let (blocks, _) = bytes.get(at..).unwrap_or_default().as_chunks::<32>();
    at += 32 * blocks.iter().take_while(|block| block.iter().fold(true, |plain, byte| plain & is_plain(byte))).count();
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let found = marks(*word);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !is_plain(byte)).unwrap_or(rest.len())
}

/// Checks `true`, `false`, `null` or a number that begins with this byte. Returns the place after it.
#[cold]
fn after_word(bytes: &[u8], at: usize, first: u8) -> Option<usize> {
    match first {
        b't' => after_literal(bytes, at, b"true"),
        b'f' => after_literal(bytes, at, b"false"),
        b'n' => after_literal(bytes, at, b"null"),
        _ => after_number(bytes, at),
    }
}

fn after_literal<const LENGTH: usize>(bytes: &[u8], at: usize, literal: &[u8; LENGTH]) -> Option<usize> {
    (bytes.get(at..)?.first_chunk() == Some(literal)).then_some(at + LENGTH)
}

fn after_number(bytes: &[u8], mut at: usize) -> Option<usize> {
    at += usize::from(bytes.get(at) == Some(&b'-'));
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { after_digits(bytes, at)? };
    if bytes.get(at) == Some(&b'.') {
        at = after_digits(bytes, at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = after_digits(bytes, at + 1 + usize::from(signed))?;
    }
    Some(at)
}

fn after_digits(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = bytes.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then_some(at + digits)
}

/// The objects and arrays around a position, one bit each. 64 levels take no allocation.
#[derive(Default)]
struct Nesting {
    /// The innermost levels, the last of them in the lowest bit.
    near: u64,
    depth: usize,
    /// The outer levels, 64 in each word.
    far: Vec<u64>,
}

impl Sink for Nesting {
    fn leaf(&mut self, _: FieldKey, _: Span, _: bool) {}

    fn open(&mut self, _: FieldKey, object: bool, _: usize) -> Option<()> {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.far.push(self.near);
        }
        self.near = self.near << 1 | u64::from(object);
        self.depth += 1;
        Some(())
    }

    fn close(&mut self, _: usize) -> Option<bool> {
        self.near >>= 1;
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.near = self.far.pop().unwrap_or_default();
        }
        (self.depth > 0).then_some(self.near & 1 == 1)
    }
}

/// Decodes a valid string, given without its quotes. Half a surrogate pair becomes U+FFFD. The result is borrowed if
/// the string has no escapes.
pub(super) fn unescape(inner: &str) -> Cow<'_, str> {
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

/// The character of the escape at the beginning of `text`, and the escape's length in bytes.
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
    use super::{JsonScan, after_plain, after_string, unescape};
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    fn is_value(text: &str) -> bool {
        let mut scan = JsonScan::new(text, 0);
        let read = scan.value().is_some();
        scan.blanks();
        read && scan.at == text.len()
    }

    pub(in crate::json) fn nearly_json() -> impl Strategy<Value = String> {
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
    pub(in crate::json) fn json() -> impl Strategy<Value = String> {
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

    #[test]
    fn the_plain_part_of_a_string_ends_where_any_byte_ends_it() {
        let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        for (first, second) in
            (0..=u8::MAX).flat_map(|first| [0, 0x1f, b' ', b'"', b'#', 0x5d, 0xa2].map(|b| (first, b)))
        {
            for at in [0, 6, 7, 8, 15, 23, 31, 32, 39, 70] {
                let mut bytes = vec![b'a'; 80];
                bytes[at..at + 2].copy_from_slice(&[first, second]);
                let naive = bytes.iter().position(is_end).unwrap_or(bytes.len());
                assert_eq!(after_plain(&bytes, 0), naive, "{first} {second} at {at}");
                assert_eq!(after_plain(&bytes[..at + 2], 0), naive.min(at + 2), "{first} {second} at {at}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_accepted_text_is_json(text in nearly_json()) {
            prop_assert_eq!(is_value(&text), serde_json::from_str::<&RawValue>(&text).is_ok(), "{}", text);
        }

        #[test]
        fn skipping_ends_where_checking_does(text in json()) {
            prop_assert!(is_value(&text), "{}", text);
            let line = format!("{text} ,]");
            let (mut checked, mut skipped) = (JsonScan::new(&line, 0), JsonScan::new(&line, 0));
            prop_assert!(checked.value().is_some());
            skipped.skipped();
            prop_assert_eq!((skipped.at, checked.at), (text.len(), text.len()), "{}", text);
        }

        #[test]
        fn a_text_is_unchanged_after_a_round_trip(text in "[ -~é\u{1f600}\n\u{1}\"\\\\]{0,40}") {
            let literal = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(after_string(literal.as_bytes(), 1).map(|(end, _)| end), Some(literal.len()));
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
