//! Decodes an agent's long texts in chunks, so that memory never holds both a line of many megabytes and its decoded
//! text.

use super::hash::TextHash;
use super::json::unescape;
use crate::protocol::text::{Json, Text};
use serde_json::value::RawValue;

/// The number of bytes above which a JSON string literal is decoded in chunks.
pub const LONG: usize = 256 << 10;
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

    /// The part of the literal that is not decoded yet.
    pub fn remaining(&self) -> &'a str {
        self.rest
    }

    /// Resumes from [`Chunks::remaining`].
    pub fn resume(remaining: &'a str) -> Chunks<'a> {
        Chunks { rest: remaining }
    }

    /// Appends everything that is left to `beginning`.
    pub fn after(mut self, beginning: String) -> String {
        let mut text = if beginning.is_empty() { self.next().unwrap_or_default() } else { beginning };
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

/// A fingerprint, by which texts are compared without being kept.
#[derive(Clone, Debug, Default)]
pub struct Fingerprint(TextHash);

impl Fingerprint {
    /// The fingerprint of a whole text.
    pub fn of(text: &str) -> Fingerprint {
        let mut print = Fingerprint::default();
        print.push(text);
        print
    }

    /// Adds the next piece of the text.
    pub fn push(&mut self, piece: &str) {
        self.0.push(piece);
    }

    /// The text's length in bytes.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl PartialEq for Fingerprint {
    fn eq(&self, other: &Fingerprint) -> bool {
        self.bytes() == other.bytes() && self.0.finish() == other.0.finish()
    }
}

/// The final answer: as much text as a frame can hold, and the fingerprint of all of it.
#[derive(Clone, Debug, Default)]
pub struct FinalAnswer {
    /// The text, or its beginning.
    text: String,
    /// The fingerprint of the whole text.
    pub print: Fingerprint,
}

impl FinalAnswer {
    /// Keeps at most `limit` bytes of the decoded chunks.
    pub fn collect(chunks: Chunks<'_>, limit: usize) -> FinalAnswer {
        let mut answer = FinalAnswer::default();
        // Reserved at once: growth by doubling takes up to three times the size of the text.
        answer.text.reserve_exact(chunks.left().min(limit));
        for chunk in chunks {
            answer.push(&chunk, limit);
        }
        answer
    }

    /// Replaces the text. Keeps at most `limit` bytes of it.
    pub fn replace(&mut self, text: &str, limit: usize) {
        self.text.clear();
        self.print = Fingerprint::default();
        self.push(text, limit);
    }

    /// Adds the next piece. Keeps at most `limit` bytes of the text.
    pub fn push(&mut self, piece: &str, limit: usize) {
        let room = if self.is_cut() { 0 } else { limit.saturating_sub(self.text.len()) };
        self.print.push(piece);
        self.text.push_str(&piece[..piece.floor_char_boundary(room)]);
    }

    /// The text, or its beginning.
    pub fn into_text(self) -> Text {
        self.text.into()
    }

    /// The text as JSON, with or without a code fence around it. `None`: it is not valid JSON.
    pub(crate) fn json(&self) -> Option<Json> {
        let text = self.text.trim();
        let fenced = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
        let fenced = fenced.map(|text| text.strip_prefix("json").unwrap_or(text));
        RawValue::from_string(fenced.unwrap_or(text).trim().to_owned()).ok().map(Json::from)
    }

    /// Whether the text is empty or white space.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Whether the text is incomplete.
    pub fn is_cut(&self) -> bool {
        self.text.len() < self.print.bytes()
    }
}

impl From<String> for FinalAnswer {
    fn from(text: String) -> FinalAnswer {
        FinalAnswer { print: Fingerprint::of(&text), text }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Chunks, Fingerprint};

    #[test]
    fn chunks_join_to_the_whole_wherever_they_are_cut() {
        for shift in 0..14 {
            let text = "x".repeat(CHUNK - 7 + shift) + "é\u{1f600}\n\"\\ end " + &"ü".repeat(CHUNK);
            let literal =
                serde_json::to_string(&text).unwrap().replace('\u{1f600}', "\\ud83d\\ude00").replace('é', "\\u00e9");
            let chunks: Vec<String> = Chunks::new(&literal).collect();
            assert!(chunks.len() > 1);
            assert_eq!(chunks.concat(), text);
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

    #[test]
    fn a_fingerprint_does_not_depend_on_the_pieces() {
        let mut print = Fingerprint::default();
        ["a", "", "bc"].iter().for_each(|piece| print.push(piece));
        assert_eq!(print, Fingerprint::of("abc"));
        assert_ne!(print, Fingerprint::of("abd"));
    }
}
