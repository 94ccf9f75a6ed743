//! Unknown fields of messages and unknown environment variables. They are ignored, and a warning names them.

use crate::redact::Redactor;
use crate::suggest::shown;

/// The maximum number of names in one warning, which then fits into the smallest frame.
const NAMED: usize = 50;
const WORKFLOW: &str = "workflow.";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownNames {
    /// The first names, each with the known name that was probably meant.
    named: Vec<(String, Option<String>)>,
    more: usize,
    /// A known name that has no effect here, and the commands that use it.
    unused: Option<(&'static str, &'static str)>,
}

impl UnknownNames {
    /// `meant`: the known name that was probably meant. Only counts the name if the list is full.
    pub fn add(&mut self, name: &str, meant: impl FnOnce() -> Option<String>) {
        if self.named.iter().any(|(named, _)| named == name) {
            return;
        }
        if self.named.len() < NAMED {
            self.named.push((name.to_owned(), meant()));
        } else {
            self.more += 1;
        }
    }

    /// `users`: the commands that use it.
    pub fn add_unused(&mut self, name: &'static str, users: &'static str) {
        self.unused = Some((name, users));
    }

    pub fn append(&mut self, other: UnknownNames) {
        let room = NAMED.saturating_sub(self.named.len());
        self.more += other.more + other.named.len().saturating_sub(room);
        self.named.extend(other.named.into_iter().take(room));
    }

    /// `what`: the noun for one name. `None`: all names are known.
    pub fn warning(&self, what: &str, of: &str, redactor: &Redactor) -> Option<String> {
        match (self.listed(what, of, redactor), self.unused) {
            (listed, None) => listed,
            (None, Some((name, users))) => Some(format!("Ignored the {what} {name}{of}: only {users} use it")),
            (Some(listed), Some((name, users))) => {
                Some(format!("{listed}; and the {what} {name}, which only {users} use"))
            }
        }
    }

    fn listed(&self, what: &str, of: &str, redactor: &Redactor) -> Option<String> {
        let count = match self.named.len() + self.more {
            0 => return None,
            1 => format!("an unknown {what}"),
            count => format!("{count} unknown {what}s"),
        };
        let meant = |meant: &String| format!(" (did you mean {meant}?)");
        let one = |(name, near): &(String, Option<String>)| {
            // The object in front is ours and takes nothing from the length of the name.
            let (object, name) = name.split_at(if name.starts_with(WORKFLOW) { WORKFLOW.len() } else { 0 });
            format!("{object}{}{}", shown(name, redactor), near.as_ref().map(meant).unwrap_or_default())
        };
        let names = self.named.iter().map(one).collect::<Vec<_>>().join(", ");
        let more = if self.more == 0 { String::new() } else { format!(", and {} more", self.more) };
        Some(format!("Ignored {count}{of}: {names}{more}"))
    }
}

#[cfg(test)]
mod tests {
    use super::UnknownNames;
    use crate::redact::Redactor;
    use crate::suggest::nearest;

    fn warning(names: &[&str]) -> Option<String> {
        let mut unknown = UnknownNames::default();
        for name in names {
            unknown.add(name, || nearest(name, ["model", "timeout_s"].into_iter()).map(str::to_owned));
        }
        unknown.warning("field", " of run.start", &Redactor::new())
    }

    #[test]
    fn a_warning_names_each_field() {
        assert_eq!(warning(&[]), None);
        let long = format!("Ignored an unknown field of run.start: {}", "x".repeat(64));
        let rows: [(&[&str], &str); 7] = [
            (&["modle"], "Ignored an unknown field of run.start: modle (did you mean model?)"),
            (&["zzz", "zzz"], "Ignored an unknown field of run.start: zzz"),
            (&["a b"], "Ignored an unknown field of run.start: a?b"),
            (&["a-b", "c.d"], "Ignored 2 unknown fields of run.start: a-b, c.d"),
            (&["timeout-s"], "Ignored an unknown field of run.start: timeout-s (did you mean timeout_s?)"),
            (&["timeout", ""], "Ignored 2 unknown fields of run.start: timeout (did you mean timeout_s?), \"\""),
            (&[&"x".repeat(65)], &long),
        ];
        for (names, wanted) in rows {
            assert_eq!(warning(names).as_deref(), Some(wanted));
        }
    }

    #[test]
    fn a_warning_stays_short_whatever_the_number() {
        let names: Vec<String> = (0..10_000).map(|n| format!("{n:0>64}")).collect();
        let text = warning(&names.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert!(text.len() < 6000 && text.ends_with(", and 9950 more"), "{}", text.len());
    }
}
