//! Fast hashes of an agent's texts and names. An agent that makes two of them fall together confuses only itself.

use std::hash::{BuildHasher, Hasher, RandomState};

/// An odd number without a pattern in its bits: of the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes all bits of a word: both halves of a product.
fn fold(word: u64) -> u64 {
    let product = u128::from(word) * u128::from(FACTOR);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of a text that comes in pieces. It does not depend on where they were cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TextHash {
    state: u64,
    /// The bytes that do not fill a word yet, the first one lowest.
    rest: u64,
    bytes: usize,
}

impl TextHash {
    #[inline]
    pub(super) fn push(&mut self, piece: &str) {
        let mut bytes = piece.as_bytes();
        let missing = self.bytes.wrapping_neg() % 8;
        if let Some((head, after)) = bytes.split_at_checked(missing) {
            head.iter().for_each(|byte| self.byte(*byte));
            let (words, rest) = after.as_chunks();
            words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
            self.bytes += 8 * words.len();
            bytes = rest;
        }
        bytes.iter().for_each(|byte| self.byte(*byte));
    }

    /// The number of bytes so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn finish(&self) -> u64 {
        fold(fold(self.state ^ self.rest) ^ self.bytes as u64)
    }

    fn byte(&mut self, byte: u8) {
        let at = self.bytes % 8;
        self.rest |= u64::from(byte) << (8 * at);
        self.bytes += 1;
        if at == 7 {
            let word = std::mem::take(&mut self.rest);
            self.word(word);
        }
    }

    fn word(&mut self, word: u64) {
        // Without the sum, a word equal to the state would make both disappear.
        self.state = fold(self.state ^ word).wrapping_add(word);
    }
}

pub(super) fn hash(name: &str) -> u64 {
    let mut hash = TextHash::default();
    hash.push(name);
    hash.finish()
}

/// Hashes the keys of a map that are hashes themselves. Its secret keeps an agent from choosing keys that share a place
/// in the map.
#[derive(Clone, Debug)]
pub(crate) struct Rehash(u64);

impl Default for Rehash {
    fn default() -> Rehash {
        Rehash(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Rehash {
    type Hasher = Rehashed;

    fn build_hasher(&self) -> Rehashed {
        Rehashed(self.0)
    }
}

/// A [`Rehash`] at work.
#[derive(Debug)]
pub(crate) struct Rehashed(u64);

impl Hasher for Rehashed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = fold(self.0 ^ key);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Rehash, TextHash, hash};
    use std::collections::HashSet;
    use std::hash::BuildHasher;

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

    #[test]
    fn names_that_are_alike_have_different_hashes() {
        let names = (0..100_000).map(|number| format!("call_{number}"));
        let zeros = (0..100).map(|count| "\0".repeat(count));
        let hashes: HashSet<u64> = names.chain(zeros).map(|name| hash(&name)).collect();
        assert_eq!(hashes.len(), 100_100);
        let places: HashSet<u64> = (0..1000).map(|key: u64| Rehash::default().hash_one(key << 40)).collect();
        assert_eq!(places.len(), 1000);
    }
}
