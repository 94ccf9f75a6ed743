//! A memory of an agent's calls whose size does not grow with the run: the calls that finished last, so that a late
//! message about one is not taken for a new call, and facts about those that came last.

use super::hash::{Rehash, hash};
use std::collections::{HashMap, VecDeque};

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

/// The number of keys that a [`RecentMap`] holds.
const KEYS: usize = 1024;

/// Values by key, of the keys that came last: an agent may never end what it begins.
#[derive(Debug)]
pub(super) struct RecentMap<V> {
    values: HashMap<u64, V, Rehash>,
    /// The keys, oldest first.
    order: VecDeque<u64>,
}

impl<V> Default for RecentMap<V> {
    fn default() -> RecentMap<V> {
        RecentMap { values: HashMap::default(), order: VecDeque::new() }
    }
}

impl<V> RecentMap<V> {
    /// Sets a value. Forgets the oldest key if there are too many.
    pub(super) fn insert(&mut self, key: &str, value: V) {
        let key = hash(key);
        if self.values.insert(key, value).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > KEYS {
            let oldest = self.order.pop_front();
            oldest.map(|oldest| self.values.remove(&oldest));
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&V> {
        if self.values.is_empty() { None } else { self.values.get(&hash(key)) }
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<V> {
        if self.values.is_empty() {
            return None;
        }
        let key = hash(key);
        let value = self.values.remove(&key)?;
        self.order.retain(|known| *known != key);
        Some(value)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{CALLS, KEYS, Recent, RecentMap};

    #[test]
    fn only_the_last_calls_are_remembered() {
        let mut recent = Recent::default();
        (0..3 * CALLS).for_each(|call| recent.add(&call.to_string()));
        assert_eq!(recent.hashes.len(), CALLS);
        assert!((2 * CALLS..3 * CALLS).all(|call| recent.contains(&call.to_string())));
        assert!(!(0..2 * CALLS).any(|call| recent.contains(&call.to_string())));
    }

    #[test]
    fn a_map_holds_the_last_keys() {
        let mut map = RecentMap::default();
        for key in 0..3 * KEYS {
            map.insert(&key.to_string(), key);
            map.insert(&key.to_string(), key + 1);
        }
        assert_eq!((map.len(), map.order.len()), (KEYS, KEYS));
        assert_eq!(map.get(&(3 * KEYS - 1).to_string()), Some(&(3 * KEYS)));
        assert_eq!(map.get("0"), None);
        for key in 0..3 * KEYS {
            map.remove(&key.to_string());
        }
        assert_eq!((map.len(), map.order.len()), (0, 0));
    }
}
