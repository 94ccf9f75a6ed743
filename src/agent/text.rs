//! An agent's long texts: their fingerprints and hashes, and the final answer. An agent that makes two hashes fall
//! together confuses only itself.

use crate::json::Chunks;
use crate::protocol::text::{Json, Text};
use serde_json::value::RawValue;
use std::hash::{DefaultHasher, Hasher};

/// A fingerprint, by which texts are compared without being kept, whatever the pieces in which they come.
#[derive(Clone, Debug, Default)]
pub struct Fingerprint {
    hasher: DefaultHasher,
    bytes: usize,
}

impl Fingerprint {
    pub fn of(text: &str) -> Fingerprint {
        let mut print = Fingerprint::default();
        print.push(text);
        print
    }

    pub fn push(&mut self, piece: &str) {
        self.hasher.write(piece.as_bytes());
        self.bytes += piece.len();
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl PartialEq for Fingerprint {
    fn eq(&self, other: &Fingerprint) -> bool {
        self.bytes == other.bytes && self.hasher.finish() == other.hasher.finish()
    }
}

pub(super) fn hash(text: &str) -> u64 {
    Fingerprint::of(text).hasher.finish()
}

/// The final answer: as much text as a frame can hold, and the fingerprint of all of it.
#[derive(Clone, Debug, Default)]
pub struct FinalAnswer {
    text: String,
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

    pub fn replace(&mut self, text: &str, limit: usize) {
        self.text.clear();
        self.print = Fingerprint::default();
        self.push(text, limit);
    }

    /// Keeps at most `limit` bytes of the text.
    pub fn push(&mut self, piece: &str, limit: usize) {
        let room = if self.is_cut() { 0 } else { limit.saturating_sub(self.text.len()) };
        self.print.push(piece);
        self.text.push_str(&piece[..piece.floor_char_boundary(room)]);
    }

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

    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

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
    use super::Fingerprint;

    /// The standard library does not promise it.
    #[test]
    fn a_fingerprint_does_not_depend_on_the_pieces() {
        let text = "0123456789abcdefghijklmnopqrstuvwxyz";
        for first in 0..text.len() {
            for second in first..text.len() {
                let mut print = Fingerprint::default();
                [&text[..first], &text[first..second], &text[second..]].iter().for_each(|piece| print.push(piece));
                assert_eq!(print, Fingerprint::of(text), "{first} {second}");
            }
        }
        assert_ne!(Fingerprint::of("abc"), Fingerprint::of("abd"));
    }
}
