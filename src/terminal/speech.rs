//! The agent's text in complete words, and its reasoning in complete lines.

use super::claims::Claims;
use super::width::is_ideograph;
use crate::clean::Cleaner;
use crate::protocol::ids::MessageId;
use std::collections::HashMap;

/// A longer word, in bytes, shows before it is complete.
const LONGEST_WORD: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Speech {
    messages: HashMap<MessageId, Message>,
    /// The message whose last line on stdout is unfinished.
    open: Option<MessageId>,
    last: Option<MessageId>,
    pub(super) said: bool,
    /// The lines that a workflow says itself. `None`: every line is shown.
    pub(super) claims: Option<Claims>,
}

#[derive(Debug, Default)]
struct Message {
    cleaner: Cleaner,
    /// Half a word, or half a line.
    held: String,
}

impl Speech {
    fn push_piece(&mut self, id: MessageId, piece: &str, done: bool, ends: fn(char) -> bool) -> String {
        let message = self.messages.entry(id).or_default();
        message.held.push_str(&message.cleaner.push(piece));
        let end = message.held.char_indices().rev().find(|(_, c)| ends(*c)).map_or(0, |(at, c)| at + c.len_utf8());
        let end = if done || message.held.len() - end > LONGEST_WORD { message.held.len() } else { end };
        let rest = message.held.split_off(end);
        let ready = std::mem::replace(&mut message.held, rest);
        if done {
            self.messages.remove(&id);
        }
        ready
    }

    /// Returns the part to show. `done` ends the message and its last line. `lines`: whole lines only, so that text
    /// does not disturb a person who types.
    pub(super) fn text(&mut self, id: MessageId, piece: &str, done: bool, lines: bool) -> String {
        self.last = Some(id);
        let out = self.push_piece(id, piece, done, if lines { |c| c == '\n' } else { ends_word });
        let out = self.unclaimed(id, out, done);
        self.out(id, out, done)
    }

    fn unclaimed(&mut self, id: MessageId, text: String, done: bool) -> String {
        match &mut self.claims {
            Some(claims) => claims.cut(id, &text, done),
            None => text,
        }
    }

    pub(super) fn holds(&self, id: MessageId) -> bool {
        self.messages.get(&id).is_some_and(|message| !message.held.is_empty())
    }

    /// Takes what is held back of the message that spoke last.
    pub(super) fn late(&mut self) -> String {
        let Some((id, message)) = self.last.and_then(|id| Some((id, self.messages.get_mut(&id)?))) else {
            return String::new();
        };
        let held = std::mem::take(&mut message.held);
        let held = self.unclaimed(id, held, false);
        self.out(id, held, false)
    }

    /// Puts a part of a message behind what stands on stdout.
    fn out(&mut self, id: MessageId, mut out: String, done: bool) -> String {
        if !out.is_empty() && self.open.is_some_and(|open| open != id) {
            out.insert(0, '\n');
            self.open = None;
        }
        let continues = self.open == Some(id);
        if done && !out.ends_with('\n') && (continues || !out.is_empty()) {
            out.push('\n');
        }
        if let Some(last) = out.chars().last() {
            self.said = true;
            self.open = (last != '\n').then_some(id);
        }
        out
    }

    /// Returns whole lines.
    pub(super) fn thought(&mut self, id: MessageId, piece: &str, done: bool) -> String {
        let mut out = self.push_piece(id, piece, done, |c| c == '\n');
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out
    }

    pub(super) fn withdrawn(&mut self, id: MessageId) -> String {
        self.messages.remove(&id);
        let open = self.open.take_if(|open| *open == id);
        open.map(|_| "\n".to_owned()).unwrap_or_default()
    }
}

/// A space, or a character of a script that has no spaces.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || is_ideograph(c)
}

#[cfg(test)]
mod tests {
    use super::Speech;
    use crate::protocol::ids::MessageId::Said;

    #[test]
    fn words_appear_whole_and_messages_end_their_line() {
        let mut speech = Speech::default();
        let mut said = |id, piece: &str, done| speech.text(Said(id), piece, done, false);
        assert_eq!(said(1, "Hel", false), "");
        assert_eq!(said(1, "lo wor", false), "Hello ");
        assert_eq!(said(1, "ld\u{1b}[3", false), "");
        assert_eq!(said(1, "1m!", true), "world!\n");
        assert_eq!(said(2, "漢字", false), "漢字");
        assert_eq!(said(3, "other ", false), "\nother ");
        assert_eq!(said(2, "", true), "");
        assert_eq!(said(3, "", true), "\n");
        assert_eq!(said(4, "line\n", true), "line\n");
        assert_eq!(said(5, &"x".repeat(300), false), "x".repeat(300));
    }

    #[test]
    fn thoughts_come_in_lines() {
        let mut speech = Speech::default();
        assert_eq!(speech.thought(Said(1), "one\ntw", false), "one\n");
        assert_eq!(speech.thought(Said(1), "o", true), "two\n");
        assert_eq!(speech.text(Said(2), "half a line", false, true), "");
        assert!(!speech.said);
    }
}
