//! The agent's requests that wait for the user.

use super::ask::AcpRequest;
use crate::agent::AskKey;
use std::collections::{BTreeMap, BTreeSet};

/// The open requests, with an index by the tool call that each is about. An agent may leave many open, and every end of
/// a tool call searches for its own.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    requests: BTreeMap<AskKey, AcpRequest>,
    by_call: BTreeSet<(String, AskKey)>,
}

impl OpenRequests {
    /// A later request with the same key replaces an earlier one.
    pub(super) fn insert(&mut self, key: AskKey, request: AcpRequest) {
        self.remove(&key);
        if let Some(call) = request.call() {
            self.by_call.insert((call.to_owned(), key.clone()));
        }
        self.requests.insert(key, request);
    }

    pub(super) fn remove(&mut self, key: &AskKey) -> Option<AcpRequest> {
        let request = self.requests.remove(key)?;
        if let Some(call) = request.call() {
            self.by_call.remove(&(call.to_owned(), key.clone()));
        }
        Some(request)
    }

    pub(super) fn take_of(&mut self, call: &str) -> Vec<AskKey> {
        if self.by_call.is_empty() {
            return Vec::new();
        }
        let first = (call.to_owned(), AskKey(String::new()));
        let of_call = self.by_call.range(first..).take_while(|(of, _)| of == call);
        let keys: Vec<AskKey> = of_call.map(|(_, key)| key.clone()).collect();
        for key in &keys {
            self.remove(key);
        }
        keys
    }

    pub(super) fn take_all(&mut self) -> BTreeMap<AskKey, AcpRequest> {
        self.by_call.clear();
        std::mem::take(&mut self.requests)
    }
}

#[cfg(test)]
mod tests {
    use super::{AcpRequest, AskKey, OpenRequests};

    #[test]
    fn a_call_takes_only_its_own_requests() {
        let key = |name: &str| AskKey(name.into());
        let about = |call: &str| AcpRequest::Permission { call: call.into(), once: None, reject: None };
        let mut pending = OpenRequests::default();
        for (name, call) in [("1", "a"), ("2", "ab"), ("3", "a"), ("4", "b"), ("5", "a"), ("4", "c")] {
            pending.insert(key(name), about(call));
        }
        assert!(pending.remove(&key("3")).is_some() && pending.remove(&key("3")).is_none());
        assert_eq!(pending.take_of("a"), [key("1"), key("5")]);
        assert!(pending.take_of("a").is_empty() && pending.take_of("b").is_empty());
        assert_eq!(pending.take_all().into_keys().collect::<Vec<_>>(), [key("2"), key("4")]);
        assert!(pending.take_of("ab").is_empty());
    }
}
