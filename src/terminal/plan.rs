//! The lines of the agent's plan, and of the files that it changed.

use super::TerminalPeer;
use super::screen::Ink;
use crate::clean::one_line;
use crate::protocol::outbound::{Artifact, PlanEntry};
use crate::protocol::words::{Action, PlanStatus};
use std::fmt::Write;

impl TerminalPeer {
    /// Shows only the changed entries of a plan that was shown before.
    pub(super) fn plan(&mut self, entries: &[PlanEntry]) -> String {
        let old = std::mem::replace(&mut self.plan, entries.to_vec());
        let same = old.len() == entries.len() && old.iter().zip(entries).all(|(old, new)| old.text == new.text);
        let mut lines = String::new();
        let before = old.iter().filter(|_| same).map(|old| Some(old.status)).chain(std::iter::repeat(None));
        for (entry, _) in entries.iter().zip(before).filter(|(entry, before)| *before != Some(entry.status)) {
            let text = one_line(entry.text.shown());
            let _ = match entry.status {
                PlanStatus::Pending => writeln!(lines, "  [ ] {text}"),
                PlanStatus::InProgress => writeln!(lines, "  {}", self.look.paint(Ink::Bold, &format!("[>] {text}"))),
                PlanStatus::Completed => writeln!(lines, "  {} {text}", self.look.paint(Ink::Green, "[x]")),
            };
        }
        lines
    }

    pub(super) fn artifact(&self, artifact: &Artifact) -> String {
        let (ink, sign) = match artifact.action {
            Action::Created => (Ink::Green, "+"),
            Action::Modified => (Ink::Yellow, "~"),
            Action::Deleted => (Ink::Red, "-"),
        };
        format!("{} {}\n", self.look.paint(ink, sign), one_line(artifact.path.shown()))
    }
}
