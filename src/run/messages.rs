//! What the agent says, message by message: ids, redaction over pieces, and the pieces that go out.

use crate::agent::text::Fingerprint;
use crate::protocol::json::{encoded_bytes, fitting};
use crate::protocol::outbound::{About, Progress, Text};
use crate::protocol::words::Level;
use crate::redact::{Redactor, Stream};
use std::collections::HashMap;

/// Room in a frame for everything but a message's text, in bytes: the envelope, with a run_id of up to 128 characters.
const ENVELOPE_BYTES: usize = 512;

/// The messages so far.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    count: u64,
    open: HashMap<String, Message>,
    /// The last whole message of the agent itself: its id, and a fingerprint of its text.
    last: Option<(String, Fingerprint)>,
}

#[derive(Debug)]
struct Message {
    id: String,
    reasoning: bool,
    parent: Option<String>,
    stream: Stream,
    /// Redacted text that waits until the message is whole or a frame is full.
    waiting: String,
    /// Its length as JSON, in bytes.
    waiting_bytes: usize,
    /// Of the text as the agent said it.
    print: Fingerprint,
    /// Whether pieces of it were emitted.
    emitted: bool,
}

/// One piece of a message, as a driver gives it.
pub(crate) struct Piece<'a> {
    pub(crate) key: &'a str,
    /// What is to be shown of it.
    pub(crate) text: &'a str,
    /// What the agent said, with its question markers.
    pub(crate) said: &'a str,
    pub(crate) done: bool,
    pub(crate) reasoning: bool,
    /// The id of the tool call whose sub-agent speaks.
    pub(crate) parent: Option<String>,
}

impl Messages {
    /// Numbers messages after those given out before.
    pub(crate) fn after(count: u64) -> Messages {
        Messages { count, ..Messages::default() }
    }

    /// Messages so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Takes a piece; gives the progress that is to be emitted for it.
    pub(crate) fn piece(
        &mut self,
        piece: Piece<'_>,
        level: Level,
        frame_bytes: usize,
        redactor: &Redactor,
    ) -> Vec<Progress> {
        let message = self.open.entry(piece.key.to_owned()).or_insert_with(|| {
            self.count += 1;
            Message {
                id: format!("m_{}", self.count),
                reasoning: piece.reasoning,
                parent: piece.parent.clone(),
                stream: Stream::default(),
                waiting: String::new(),
                waiting_bytes: 0,
                print: Fingerprint::default(),
                emitted: false,
            }
        });
        message.print.push(piece.said);
        let wanted = level >= if piece.reasoning { Level::Full } else { Level::Normal };
        if wanted {
            let clean = message.stream.push(redactor, piece.text);
            message.wait(&clean);
        }
        if piece.done {
            let rest = message.stream.finish(redactor);
            message.wait(&rest);
        }
        let mut out = Vec::new();
        let budget = frame_bytes.saturating_sub(ENVELOPE_BYTES);
        let all = piece.done || level == Level::Full;
        // A message goes out when it is whole. The full frames of a long one go out earlier.
        if wanted && (all || message.waiting_bytes > budget) {
            message.waiting_bytes = 0;
            let text = std::mem::take(&mut message.waiting);
            let mut parts = split(&text, budget).peekable();
            while let Some(part) = parts.next() {
                let last = parts.peek().is_none();
                if last && !all {
                    message.wait(part);
                } else {
                    out.push(message.progress(part, piece.done && last, false));
                }
            }
            // A message that is whole needs its last piece, even if nothing is left to say.
            if piece.done && out.is_empty() && message.emitted {
                out.push(message.progress("", true, false));
            }
            message.emitted |= !out.is_empty();
        }
        if piece.done {
            self.close(piece.key);
        }
        out
    }

    fn close(&mut self, key: &str) {
        let Some(message) = self.open.remove(key) else { return };
        if !message.reasoning && message.parent.is_none() {
            self.last = Some((message.id, message.print));
        }
    }

    /// Takes a message back. Gives what is to be emitted, if pieces of it were.
    pub(crate) fn withdraw(&mut self, key: &str) -> Option<Progress> {
        let message = self.open.remove(key)?;
        message.emitted.then(|| message.progress("", true, true))
    }

    /// The keys of the messages that never became whole.
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let mut open: Vec<(&String, &Message)> = self.open.iter().collect();
        open.sort_by_key(|(_, message)| message.id.clone());
        open.into_iter().map(|(key, _)| key.clone()).collect()
    }

    /// The id of the message that says this, if the last one does.
    pub(crate) fn id_of(&self, print: &Fingerprint) -> Option<String> {
        self.last.as_ref().filter(|(_, last)| last == print).map(|(id, _)| id.clone())
    }
}

impl Message {
    fn wait(&mut self, text: &str) {
        self.waiting.push_str(text);
        self.waiting_bytes += encoded_bytes(text);
    }

    fn progress(&self, text: &str, done: bool, withdrawn: bool) -> Progress {
        let message_id = self.id.clone();
        let about = if self.reasoning {
            About::Reasoning { message_id, done, withdrawn }
        } else {
            About::Text { message_id, done, withdrawn }
        };
        Progress { text: Text::from(text), parent_call_id: self.parent.clone(), about, truncated: false }
    }
}

/// Pieces of a text, each at most `budget` bytes long once it is JSON.
fn split(text: &str, budget: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let (piece, after) = rest.split_at(fitting(rest, budget).max(first));
        rest = after;
        Some(piece)
    })
}

/// Looks for a marker in a text that comes in pieces.
#[derive(Debug)]
pub(crate) struct Finder {
    marker: String,
    tail: String,
    pub(crate) found: bool,
}

impl Finder {
    pub(crate) fn new(marker: &str) -> Finder {
        Finder { marker: marker.to_owned(), tail: String::new(), found: false }
    }

    /// Takes a piece; `done` ends the message it belongs to.
    pub(crate) fn piece(&mut self, piece: &str, done: bool) {
        if self.found {
            return;
        }
        let keep = self.marker.len().saturating_sub(1);
        // Only the beginning of a piece can complete what the tail began.
        let head = &piece[..piece.floor_char_boundary(keep)];
        self.tail.push_str(head);
        self.found = piece.contains(&self.marker) || self.tail.contains(&self.marker);
        if piece.len() > head.len() {
            self.tail.clear();
            self.tail.push_str(&piece[piece.ceil_char_boundary(piece.len().saturating_sub(keep))..]);
        } else {
            let cut = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(keep));
            self.tail.drain(..cut);
        }
        if done {
            self.tail.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Finder, Messages, Piece, split};
    use crate::protocol::words::Level;
    use crate::redact::Redactor;

    /// The lengths of the pieces at level normal, of a message that comes as `count` pieces, each of them `text`.
    fn lengths(text: &str, count: usize, frame_bytes: usize) -> Vec<usize> {
        let (mut messages, redactor) = (Messages::default(), Redactor::new());
        let mut piece = |at| {
            let piece = Piece { key: "k", text, said: text, done: at == count, reasoning: false, parent: None };
            messages.piece(piece, Level::Normal, frame_bytes, &redactor)
        };
        (1..=count).flat_map(&mut piece).map(|progress| progress.text.size()).collect()
    }

    #[test]
    fn a_message_in_small_pieces_fills_its_frames() {
        assert_eq!(lengths("0123456789", 100_000, 16_384), [vec![15_872; 63], vec![64]].concat());
        // This character takes six bytes as JSON.
        assert_eq!(lengths("\u{1}", 100_000, 16_384), [vec![2645; 37], vec![2135]].concat());
    }

    /// In quadratic time this would take hours.
    #[test]
    fn a_long_message_in_small_pieces_takes_time_by_its_length() {
        assert_eq!(lengths("0123456789", 500_000, 64 << 20), [5_000_000]);
    }

    #[test]
    fn pieces_fit_and_join() {
        let text = "aé\u{1b}\"\n".repeat(500);
        for budget in [6, 7, 50, 1000] {
            let pieces: Vec<&str> = split(&text, budget).collect();
            assert_eq!(pieces.concat(), text);
            let longest = pieces.iter().map(|p| crate::protocol::json::to_line(p).len() - 2).max().unwrap();
            assert!(longest <= budget, "{longest} > {budget}");
        }
    }

    #[test]
    fn a_marker_is_found_over_any_split() {
        let text = "before <promise>COMPLETE</promise> after";
        for first in 0..text.len() {
            for second in first..text.len() {
                let mut finder = Finder::new("<promise>COMPLETE</promise>");
                finder.piece(&text[..first], false);
                finder.piece(&text[first..second], false);
                finder.piece(&text[second..], false);
                assert!(finder.found, "{first} {second}");
            }
        }
        let mut apart = Finder::new("ab");
        apart.piece("a", true);
        apart.piece("b", true);
        assert!(!apart.found);
    }
}
