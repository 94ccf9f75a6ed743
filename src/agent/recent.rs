//! Remembers which tool calls finished last, so that a late message about one is not taken for a new call. Its size does
//! not grow with the run.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The number of calls that are remembered.
const CALLS: usize = 256;

/// The calls that finished last, as hashes of their keys.
#[derive(Debug, Default)]
pub(super) struct Recent {
    hashes: Vec<u64>,
    /// The place of the oldest hash, once there are [`CALLS`].
    oldest: usize,
}

impl Recent {
    /// Adds a call.
    pub(super) fn add(&mut self, key: &str) {
        if self.hashes.len() < CALLS {
            self.hashes.push(hash(key));
        } else {
            self.hashes[self.oldest] = hash(key);
            self.oldest = (self.oldest + 1) % CALLS;
        }
    }

    /// Whether the call is one of them.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.hashes.contains(&hash(key))
    }
}

fn hash(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{CALLS, Recent};

    #[test]
    fn only_the_last_calls_are_remembered() {
        let mut recent = Recent::default();
        (0..3 * CALLS).for_each(|call| recent.add(&call.to_string()));
        assert_eq!(recent.hashes.len(), CALLS);
        assert!((2 * CALLS..3 * CALLS).all(|call| recent.contains(&call.to_string())));
        assert!(!(0..2 * CALLS).any(|call| recent.contains(&call.to_string())));
    }
}
