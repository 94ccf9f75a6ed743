//! The events of the agent's last line that wait: a long text is handled in parts, so that no step of the run takes
//! long, and stdout gets each part before the next one.

use crate::agent::AgentEvent;
use std::collections::VecDeque;

/// The number of bytes above which a text is handled in parts.
const LONG: usize = 256 << 10;
/// The size of a part, in bytes.
const PART: usize = 64 << 10;

#[derive(Clone, Debug, Default)]
pub(super) struct WaitingEvents {
    events: VecDeque<AgentEvent>,
    /// The number of bytes of the first event's text that were handled.
    handled: usize,
}

impl WaitingEvents {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns an event that can be handled at once, and keeps any other.
    pub(super) fn pass(&mut self, event: AgentEvent) -> Option<AgentEvent> {
        let is_long = matches!(&event, AgentEvent::Text { piece, .. } if piece.size() > LONG);
        if self.events.is_empty() && !is_long {
            return Some(event);
        }
        self.events.push_back(event);
        None
    }

    /// Takes the next event, or the next part of a long text.
    pub(super) fn next(&mut self) -> Option<AgentEvent> {
        let event = self.events.pop_front()?;
        let AgentEvent::Text { message, piece, done, reasoning, parent } = event else { return Some(event) };
        let begin = std::mem::take(&mut self.handled);
        let end = piece.unredacted().ceil_char_boundary(begin + PART);
        let part = piece.unredacted()[begin..end].into();
        let is_last = end == piece.size();
        if !is_last {
            self.handled = end;
            self.events.push_front(AgentEvent::Text { message, piece, done, reasoning, parent });
        }
        Some(AgentEvent::Text { message, piece: part, done: done && is_last, reasoning, parent })
    }
}

#[cfg(test)]
mod tests {
    use super::{LONG, PART, WaitingEvents};
    use crate::agent::{AgentEvent, MessageKey};

    fn text(piece: &str, done: bool) -> AgentEvent {
        AgentEvent::Text { message: MessageKey(1), piece: piece.into(), done, reasoning: false, parent: None }
    }

    #[test]
    fn a_long_text_is_handled_in_parts_and_later_events_wait_for_it() {
        let mut waiting = WaitingEvents::default();
        assert!(waiting.pass(text(&"x".repeat(LONG), true)).is_some() && waiting.is_empty());
        for shift in 0..4 {
            let long = "x".repeat(shift) + &"\u{1f600}".repeat(LONG / 4);
            assert!(waiting.pass(text(&(long.clone() + "x"), true)).is_none());
            assert!(waiting.pass(text("", false)).is_none() && waiting.pass(AgentEvent::ModelCalled).is_none());
            let (mut joined, mut ends) = (String::new(), Vec::new());
            while let Some(AgentEvent::Text { piece, done, .. }) = waiting.next() {
                assert!(piece.size() < PART + 4);
                joined.push_str(piece.unredacted());
                ends.push(done);
            }
            assert!(waiting.is_empty());
            assert_eq!(joined, long + "x");
            assert_eq!(ends.iter().position(|done| *done), Some(LONG / PART), "{ends:?}");
            assert_eq!(ends.len(), LONG / PART + 2);
        }
    }
}
