//! Decodes a long string in chunks, so that memory never holds both a line of many megabytes and its decoded text.

use super::scan::unescape;
use std::ops::Range;

/// The size of a chunk, in bytes of the literal.
const CHUNK: usize = 64 << 10;

/// The decoded chunks of a JSON string literal.
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    rest: &'a str,
}

impl<'a> Chunks<'a> {
    /// Begins to decode. `literal`: the JSON string, with its quotes.
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

/// The length of the longest escape: a surrogate pair.
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
                let high = bytes
                    .get(at + 2..at + 4)
                    .is_some_and(|h| matches!(h, [b'd' | b'D', b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B']));
                if high && bytes.get(at + 6..at + 8) == Some(b"\\u") { 12 } else { 6 }
            }
            (b'\\', _) => 2,
            _ => 1,
        };
    }
    text.ceil_char_boundary(at.min(bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Chunks, decoded_in_place};

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
}
