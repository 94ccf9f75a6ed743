//! A list with a limit, which counts dropped elements, and the removal of duplicates in linear time.

use std::collections::HashSet;
use std::hash::Hash;
use std::ops::{Deref, DerefMut};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited<T, const LIMIT: usize> {
    kept: Vec<T>,
    dropped: usize,
}

impl<T, const LIMIT: usize> Limited<T, LIMIT> {
    /// Adds up the dropped elements.
    pub fn append(&mut self, more: Self) {
        self.dropped += more.dropped;
        self.extend(more);
    }

    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// The elements, to be changed in place or cut further.
    pub(super) fn elements_mut(&mut self) -> &mut Vec<T> {
        &mut self.kept
    }

    /// `one` and `many`: the noun for an element; `of`: the owner of the list. `None`: nothing was dropped.
    pub fn warning(&self, one: &str, many: &str, of: &str) -> Option<String> {
        let noun = if self.dropped == 1 { one } else { many };
        (self.dropped > 0).then(|| format!("Dropped {} {noun} of {of}: the limit is {LIMIT}", self.dropped))
    }
}

impl<T, const LIMIT: usize> Default for Limited<T, LIMIT> {
    fn default() -> Self {
        Limited { kept: Vec::new(), dropped: 0 }
    }
}

impl<T, const LIMIT: usize> Extend<T> for Limited<T, LIMIT> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, more: I) {
        for one in more {
            if self.kept.len() < LIMIT {
                self.kept.push(one);
            } else {
                self.dropped += 1;
            }
        }
    }
}

impl<T, const LIMIT: usize> FromIterator<T> for Limited<T, LIMIT> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut limited = Limited::default();
        limited.extend(all);
        limited
    }
}

impl<T, const LIMIT: usize> IntoIterator for Limited<T, LIMIT> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

impl<T, const LIMIT: usize> Deref for Limited<T, LIMIT> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.kept
    }
}

impl<T, const LIMIT: usize> DerefMut for Limited<T, LIMIT> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.kept
    }
}

/// For each element, whether it is kept. An element that shares a key with an earlier kept element is dropped.
pub(super) fn unique<'a, T, K: Eq + Hash>(all: &'a [T], keys: impl Fn(&'a T) -> (K, K)) -> Vec<bool> {
    let (mut first, mut second) = (HashSet::new(), HashSet::new());
    let is_new = |one| {
        let (a, b) = keys(one);
        let new = !first.contains(&a) && !second.contains(&b);
        new && first.insert(a) && second.insert(b)
    };
    all.iter().map(is_new).collect()
}

#[cfg(test)]
mod tests {
    use super::{Limited, unique};
    use std::cell::Cell;
    use std::hash::{Hash, Hasher};

    #[test]
    fn elements_beyond_the_limit_are_counted() {
        let mut few: Limited<u8, 3> = [1, 2, 3].into_iter().collect();
        assert_eq!((&few[..], few.warning("byte", "bytes", "a word")), (&[1, 2, 3][..], None));
        few.extend([4]);
        assert_eq!(few.warning("byte", "bytes", "a word").as_deref(), Some("Dropped 1 byte of a word: the limit is 3"));
        few.extend([5]);
        assert_eq!(few.dropped(), 2);
        assert_eq!(
            few.warning("byte", "bytes", "a word").as_deref(),
            Some("Dropped 2 bytes of a word: the limit is 3")
        );
        assert_eq!(few.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn an_element_that_shares_either_key_with_a_kept_one_is_dropped() {
        let all = [("a", "A"), ("b", "A"), ("a", "C"), ("b", "C"), ("d", "D")];
        assert_eq!(unique(&all, |one| *one), [true, false, false, true, true]);
    }

    struct Counted<'c>(usize, &'c Cell<usize>);
    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }
    impl Eq for Counted<'_> {}
    impl Hash for Counted<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.1.set(self.1.get() + 1);
            self.0.hash(state);
        }
    }

    #[test]
    fn twice_the_elements_cost_about_twice_the_work() {
        let work = |count: usize| {
            let looks = Cell::new(0);
            let all: Vec<usize> = (0..count).collect();
            let new = unique(&all, |one| (Counted(*one, &looks), Counted(*one, &looks)));
            assert!(new.into_iter().all(|new| new));
            looks.get()
        };
        let (once, twice) = (work(10_000), work(20_000));
        assert!(twice < 3 * once, "{once} looks, then {twice}");
    }
}
