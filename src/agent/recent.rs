//! A bounded memory of an agent's calls: the calls that finished last, so that a late message about one is not taken
//! for a new call, and facts about the most recent calls.

use super::text::hash;
use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};

/// The number of keys that a [`Recent`] holds.
const CALLS: usize = 256;

/// The last keys, such as those of the calls that finished last, as hashes.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<u64>);

impl Recent {
    pub(super) fn add(&mut self, key: &str) {
        if self.0.len() == CALLS {
            self.0.pop_front();
        }
        self.0.push_back(hash(key));
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.0.contains(&hash(key))
    }

    /// Removes the key once. Returns whether it was there.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        let key = hash(key);
        self.0.iter().position(|known| *known == key).and_then(|at| self.0.remove(at)).is_some()
    }
}

/// The number of keys that a [`RecentMap`] holds.
const KEYS: usize = 1024;

/// Values of the most recent keys. Older keys are dropped, because an agent may never end a call that it began.
#[derive(Debug)]
pub(super) struct RecentMap<V> {
    values: BTreeMap<u64, V>,
    /// The keys, oldest first.
    order: VecDeque<u64>,
}

impl<V> Default for RecentMap<V> {
    fn default() -> RecentMap<V> {
        RecentMap { values: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<V> RecentMap<V> {
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

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        self.values.get_mut(&hash(key))
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

/// The items that an agent has begun and not ended, in the order of their keys, with their total size.
#[derive(Debug)]
pub(super) struct OpenMap<V, K = String> {
    values: BTreeMap<K, (V, usize)>,
    bytes: usize,
}

/// The approximate size of an entry without its texts, in bytes.
const ENTRY_BYTES: usize = 256;

impl<V, K> Default for OpenMap<V, K> {
    fn default() -> OpenMap<V, K> {
        OpenMap { values: BTreeMap::new(), bytes: 0 }
    }
}

impl<V, K: Ord> OpenMap<V, K> {
    /// `texts`: the size of the texts in the value and in its key, in bytes.
    pub(super) fn insert(&mut self, key: K, value: V, texts: usize) {
        self.remove(&key);
        let bytes = ENTRY_BYTES + texts;
        self.bytes += bytes;
        self.values.insert(key, (value, bytes));
    }

    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (value, bytes) = self.values.remove(key)?;
        self.bytes -= bytes;
        Some(value)
    }

    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.values.get(key).map(|(value, _)| value)
    }

    pub(super) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.values.get_mut(key).map(|(value, _)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.values.iter().map(|(key, (value, _))| (key, value))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.values_mut().map(|(value, _)| value)
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(&K, &V) -> bool) {
        self.values.retain(|key, (value, _)| is_kept(key, value));
        self.bytes = self.values.values().map(|(_, bytes)| bytes).sum();
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (K, V)> + use<V, K> {
        self.bytes = 0;
        std::mem::take(&mut self.values).into_iter().map(|(key, (value, _))| (key, value))
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{CALLS, ENTRY_BYTES, KEYS, OpenMap, Recent, RecentMap};

    #[test]
    fn the_size_of_open_calls_returns_to_zero() {
        let mut map: OpenMap<i32> = OpenMap::default();
        map.insert("a".into(), 1, 11);
        map.insert("a".into(), 2, 21);
        map.insert("b/1".into(), 3, 3);
        assert_eq!((map.bytes(), map.get("a")), (2 * ENTRY_BYTES + 24, Some(&2)));
        map.retain(|key, _| !key.starts_with("b/"));
        assert_eq!(map.bytes(), ENTRY_BYTES + 21);
        assert_eq!((map.remove("a"), map.remove("a"), map.bytes()), (Some(2), None, 0));
    }

    #[test]
    fn only_the_last_calls_are_remembered() {
        let mut recent = Recent::default();
        (0..3 * CALLS).for_each(|call| recent.add(&call.to_string()));
        assert_eq!(recent.0.len(), CALLS);
        assert!((2 * CALLS..3 * CALLS).all(|call| recent.contains(&call.to_string())));
        assert!(!(0..2 * CALLS).any(|call| recent.contains(&call.to_string())));
        let last = (3 * CALLS - 1).to_string();
        recent.add(&last);
        assert!(recent.remove(&last) && recent.remove(&last) && !recent.remove(&last));
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
