//! Counts the questions of a run that nobody answered, and keeps the first ones for the last frame.

use super::open_questions::Resolved;
use crate::protocol::limits::LEFT_LISTED;
use crate::protocol::outbound::{Left, Tally, Text, Unattended};
use crate::protocol::question::DENY;
use crate::protocol::words::Resolution;

impl Unattended {
    /// Counts a resolved question if nobody answered it. `text`: its subject, in one short line.
    pub(super) fn count(&mut self, resolved: &Resolved, text: &str) {
        match resolved.resolution {
            Resolution::Headless | Resolution::Timeout | Resolution::InputClosed => {}
            // Somebody answered, a policy decided, or the agent withdrew the question.
            Resolution::Answered | Resolution::Declined | Resolution::Policy | Resolution::Withdrawn => return,
        }
        match &resolved.ask.subject {
            Some(subject) if resolved.value == Some(DENY) => self.denied.add(subject.category.word(), text),
            Some(_) => {}
            None => self.unanswered.add(resolved.ask.kind.word().word(), text),
        }
    }
}

impl Tally {
    fn add(&mut self, category: &'static str, text: &str) {
        self.count += 1;
        if self.first.len() < LEFT_LISTED {
            self.first.push(Left { category, text: Text::from(text) });
        }
    }
}
