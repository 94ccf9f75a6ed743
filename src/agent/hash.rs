//! Hashes of an agent's texts and names. An agent that makes two of them fall together confuses only itself.

use std::hash::{DefaultHasher, Hasher};

/// The hash of a text that comes in pieces. It does not depend on where they were cut.
#[derive(Clone, Debug, Default)]
pub(super) struct TextHash {
    hasher: DefaultHasher,
    bytes: usize,
}

impl TextHash {
    pub(super) fn push(&mut self, piece: &str) {
        self.hasher.write(piece.as_bytes());
        self.bytes += piece.len();
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn finish(&self) -> u64 {
        self.hasher.finish()
    }
}

pub(super) fn hash(name: &str) -> u64 {
    let mut hash = TextHash::default();
    hash.push(name);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::{TextHash, hash};

    /// The standard library does not promise it.
    #[test]
    fn a_hash_does_not_depend_on_the_pieces() {
        let text = "0123456789abcdefghijklmnopqrstuvwxyz";
        for first in 0..text.len() {
            for second in first..text.len() {
                let mut pieces = TextHash::default();
                [&text[..first], &text[first..second], &text[second..]].iter().for_each(|piece| pieces.push(piece));
                assert_eq!((pieces.finish(), pieces.bytes()), (hash(text), text.len()), "{first} {second}");
            }
        }
    }
}
