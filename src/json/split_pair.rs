//! The pieces of a text that was cut inside a surrogate pair, as programs do that count in UTF-16.

use super::object::Raw;
use super::scan::unescape;
use std::borrow::Cow;

/// Joins the two halves of a surrogate pair that two pieces of a text have.
#[derive(Clone, Debug, Default)]
pub struct SplitPair {
    /// The escape of the first half, if the last piece ended with it.
    first: String,
}

impl SplitPair {
    /// The text of the next piece. The first half of a pair at its end waits for the piece after it. `None`: the value is
    /// not a string.
    pub fn join<'a>(&mut self, piece: Raw<'a>) -> Option<Cow<'a, str>> {
        let literal = piece.literal()?;
        let (text, last) = literal.split_at(literal.len() - first_half(literal));
        if literal.is_empty() {
            return Some(Cow::Borrowed(""));
        }
        let first = std::mem::replace(&mut self.first, last.to_owned());
        Some(if first.is_empty() { unescape(text) } else { unescape(&(first + text)).into_owned().into() })
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
    let is_first = matches!(digits, [b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', _, _]);
    let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    if is_first && backslashes.is_multiple_of(2) { ESCAPE } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::SplitPair;
    use crate::json::Raw;
    use serde_json::value::RawValue;

    fn joined(literals: &[&str]) -> String {
        let mut pair = SplitPair::default();
        let mut text = String::new();
        for literal in literals {
            let raw: &RawValue = serde_json::from_str(literal).unwrap();
            text += &pair.join(Raw::of(raw).unwrap()).unwrap();
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
}
