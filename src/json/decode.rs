//! Decodes strings: whole, in chunks, and in pieces that were cut inside a surrogate pair.

use std::borrow::Cow;
use std::ops::Range;

/// `inner`: a valid string, without its quotes. Half a surrogate pair becomes U+FFFD. Borrowed if there are no escapes.
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

/// The size of a chunk, in bytes of the literal.
const CHUNK: usize = 64 << 10;

#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    rest: &'a str,
}

impl<'a> Chunks<'a> {
    /// `literal`: the JSON string, with its quotes.
    pub fn new(literal: &'a str) -> Chunks<'a> {
        let inner = literal.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        Chunks { rest: inner.unwrap_or_default() }
    }

    /// Appends everything that is left to `beginning`.
    pub fn after(mut self, beginning: String) -> String {
        if beginning.is_empty() && self.left() <= CHUNK {
            return self.next().unwrap_or_default();
        }
        let mut text = beginning;
        // Reserved at once: growth by doubling takes up to three times the size of the text.
        text.reserve_exact(self.left());
        self.for_each(|chunk| text.push_str(&chunk));
        text
    }

    /// The number of bytes of the literal that are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }
}

impl Iterator for Chunks<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.rest.is_empty() {
            return None;
        }
        let (chunk, rest) = self.rest.split_at(cut(self.rest));
        self.rest = rest;
        Some(unescape(chunk).into_owned())
    }
}

/// Decodes a string of a line in the line's own memory. `place`: the string with its quotes.
pub fn decoded_in_place(line: String, place: Range<usize>) -> String {
    let mut bytes = line.into_bytes();
    let (mut from, mut to, end) = (place.start + 1, 0, place.end - 1);
    while from < end {
        // Perhaps the window ends inside a character. It is so long that a chunk never does.
        let window = bytes[from..end.min(from + 2 * CHUNK)].utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let length = cut(window);
        let chunk = unescape(&window[..length]).into_owned();
        bytes[to..to + chunk.len()].copy_from_slice(chunk.as_bytes());
        (from, to) = (from + length, to + chunk.len());
    }
    bytes.truncate(to);
    String::from_utf8(bytes).unwrap_or_default()
}

const ESCAPE: usize = r"\ud83d\ude00".len();

/// The end of the first chunk. Never inside a character, an escape or a surrogate pair.
fn cut(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.len() <= CHUNK {
        return bytes.len();
    }
    // A position near the end nearly always has no escape around it.
    let is_outside = |at: &usize| !bytes[at - ESCAPE..*at].contains(&b'\\');
    if let Some(at) = (CHUNK / 2..CHUNK).rev().find(is_outside) {
        return text.ceil_char_boundary(at);
    }
    let mut at = 0;
    while at < bytes.len() && at < CHUNK {
        at += match (bytes[at], bytes.get(at + 1)) {
            (b'\\', Some(b'u')) => {
                let high = bytes.get(at + 2..at + 4).is_some_and(begins_pair);
                if high && bytes.get(at + 6..at + 8) == Some(b"\\u") { 12 } else { 6 }
            }
            (b'\\', _) => 2,
            _ => 1,
        };
    }
    text.ceil_char_boundary(at.min(bytes.len()))
}

#[derive(Clone, Debug, Default)]
pub struct SplitPair {
    /// The escape of the first half, if the last piece ended with it.
    first: String,
}

impl SplitPair {
    /// `literal`: a string without its quotes. The first half of a pair at its end waits for the next piece.
    pub fn join<'a>(&mut self, literal: &'a str) -> Cow<'a, str> {
        if literal.is_empty() {
            return Cow::Borrowed("");
        }
        let (text, last) = literal.split_at(literal.len() - first_half(literal));
        let first = std::mem::replace(&mut self.first, last.to_owned());
        if first.is_empty() { unescape(text) } else { unescape(&(first + text)).into_owned().into() }
    }

    /// The text of a half that no other follows.
    pub fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.first).is_empty() { "" } else { "\u{fffd}" }
    }
}

/// The length of the escape of a pair's first half at the end of a string without its quotes, or 0.
fn first_half(literal: &str) -> usize {
    const ESCAPE: usize = r"\ud83d".len();
    let Some((before, [b'\\', b'u', digits @ ..])) = literal.as_bytes().split_last_chunk::<ESCAPE>() else { return 0 };
    let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    if begins_pair(digits) && backslashes.is_multiple_of(2) { ESCAPE } else { 0 }
}

/// Whether an escape with these digits is the first half of a surrogate pair.
fn begins_pair(digits: &[u8]) -> bool {
    matches!(digits, [b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..])
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Chunks, SplitPair, decoded_in_place, unescape};
    use crate::json::scan::literal_len;
    use proptest::prelude::*;

    #[test]
    fn chunks_join_to_the_whole_wherever_they_are_cut() {
        for shift in 0..14 {
            let text = "x".repeat(CHUNK - 7 + shift) + "é\u{1f600}\n\"\\ end " + &"ü".repeat(CHUNK);
            let literal =
                serde_json::to_string(&text).unwrap().replace('\u{1f600}', "\\ud83d\\ude00").replace('é', "\\u00e9");
            let chunks: Vec<String> = Chunks::new(&literal).collect();
            assert!(chunks.len() > 1);
            assert_eq!(chunks.concat(), text);
            let line = format!(r#"{{"é":{literal}}}"#);
            assert_eq!(decoded_in_place(line.clone(), 6..line.len() - 1), text);
        }
    }

    #[test]
    fn a_text_full_of_escapes_is_cut_between_them() {
        for literal in
            [r"\n".repeat(CHUNK), r"\ud83d\ude00".repeat(CHUNK / 4), "x".to_owned() + &r"\u00e9".repeat(CHUNK)]
        {
            let literal = format!("\"{literal}\"");
            let chunks: Vec<String> = Chunks::new(&literal).collect();
            assert!(chunks.len() > 1);
            assert_eq!(chunks.concat(), serde_json::from_str::<String>(&literal).unwrap());
        }
    }

    fn joined(literals: &[&str]) -> String {
        let mut pair = SplitPair::default();
        let mut text = String::new();
        for literal in literals {
            text += &pair.join(&literal[1..literal.len() - 1]);
        }
        text + pair.finish()
    }

    #[test]
    fn a_text_cut_at_any_unit_of_utf_16_joins_to_the_whole() {
        let text = "a\\\u{1f600}\\ud83d\u{1f600}\"é\\";
        let units: Vec<u16> = text.encode_utf16().collect();
        let literal = |units: &[u16]| {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            format!("\"{escaped}\"")
        };
        for (first, second) in (0..=units.len()).flat_map(|a| (a..=units.len()).map(move |b| (a, b))) {
            let pieces = [&units[..first], &units[first..second], &units[second..]].map(literal);
            assert_eq!(joined(&pieces.each_ref().map(String::as_str)), text, "{first} {second}");
        }
    }

    #[test]
    fn only_half_a_pair_is_replaced() {
        for (pieces, text) in [
            (&[r#""a\ud83d""#, r#""b""#][..], "a\u{fffd}b"),
            (&[r#""a\ud83d""#, r#""""#, r#""\ude00""#], "a\u{1f600}"),
            (&[r#""\uD83D\ud83d""#, r#""\uDE00\ude00""#], "\u{fffd}\u{1f600}\u{fffd}"),
            (&[r#""\\ud83d""#, r#""\ude00""#], "\\ud83d\u{fffd}"),
            (&[r#""\ud83d""#], "\u{fffd}"),
        ] {
            assert_eq!(joined(pieces), text, "{pieces:?}");
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

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_text_is_unchanged_after_a_round_trip(text in "[ -~é\u{1f600}\n\u{1}\"\\\\]{0,40}") {
            let literal = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(literal_len(&literal), literal.len());
            prop_assert_eq!(unescape(&literal[1..literal.len() - 1]), text);
        }
    }
}
