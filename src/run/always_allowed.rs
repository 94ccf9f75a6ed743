//! The answers "always". Only the run knows them, because an agent that knew them would stop asking.

use crate::protocol::limits::REMEMBERED;
use crate::protocol::scope::Scope;
use std::collections::BTreeSet;

/// The scopes that are allowed for the rest of the run.
#[derive(Debug, Default)]
pub struct AlwaysAllowed(BTreeSet<Scope>);

impl AlwaysAllowed {
    /// Remembers a scope, unless [`REMEMBERED`] scopes are already remembered. Requests of further scopes are asked
    /// about again.
    pub(super) fn add(&mut self, scope: &Scope) {
        if self.0.len() < REMEMBERED {
            self.0.insert(scope.clone());
        }
    }

    /// Whether requests of this scope are allowed.
    pub(super) fn covers(&self, scope: Option<&Scope>) -> bool {
        scope.is_some_and(|scope| self.0.contains(scope))
    }
}

#[cfg(test)]
mod tests {
    use super::AlwaysAllowed;
    use crate::protocol::limits::REMEMBERED;
    use crate::protocol::scope::Scope;
    use crate::protocol::words::Category;

    #[test]
    fn the_number_of_remembered_scopes_is_limited() {
        let mut granted = AlwaysAllowed::default();
        let command = |number: usize| Scope::of_request(Category::Execute, None, Some(&number.to_string()));
        (0..=REMEMBERED).filter_map(command).for_each(|scope| granted.add(&scope));
        assert!(granted.covers(command(REMEMBERED - 1).as_ref()));
        assert!(!granted.covers(command(REMEMBERED).as_ref()));
        assert!(!granted.covers(None));
    }
}
