//! The agent's messages: their ids, their redaction across pieces, and the frames that show them.

use super::text_markers::{CompletionMarker, Finder, QuestionCutter, cut};
use super::tool_calls::ENTRY_BYTES;
use crate::agent::MessageKey;
use crate::agent::text::Fingerprint;
use crate::json::{encoded_bytes, fitting};
use crate::protocol::outbound::{CallId, MessageId, Progress, ProgressKind, Text};
use crate::protocol::question::Asks;
use crate::protocol::words::Level;
use crate::redact::{Generation, Redactor, Stream};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The number of bytes in a frame that are reserved for everything except a message's text: the envelope, with a run_id
/// of up to 128 characters.
const ENVELOPE_BYTES: usize = 512;

/// The maximum size of one byte of text as JSON, in bytes.
const ESCAPED: usize = 6;

#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) count: u64,
    /// The unfinished messages. Never contains a message that arrived in one piece.
    open: BTreeMap<MessageKey, Message>,
    /// The size of all unfinished messages, in bytes.
    pub(super) kept: usize,
    /// The last complete message of the agent itself: its number, and a fingerprint of its text.
    last: Option<(u64, Fingerprint)>,
}

#[derive(Debug, Default)]
struct Message {
    head: Head,
    /// The markers in a message of the agent itself. They count once the message is complete.
    heard: Option<Heard>,
    stream: Stream,
    /// Redacted text that waits until the message is complete or a frame is full.
    waiting: String,
    /// The redactor's generation when the beginning of `waiting` was redacted.
    since: Generation,
    /// The length of `waiting` as JSON, in bytes.
    waiting_bytes: usize,
    print: Fingerprint,
    emitted: bool,
    /// The message's share of [`Messages::kept`].
    kept: usize,
}

#[derive(Debug, Default)]
struct Head {
    number: u64,
    reasoning: bool,
    /// The id of the tool call whose sub-agent speaks.
    parent: Option<CallId>,
}

#[derive(Debug, Default)]
struct Heard {
    cutter: QuestionCutter,
    asks: Asks,
    finder: Finder,
}

pub(super) struct Piece {
    pub(super) text: Text,
    pub(super) done: bool,
    pub(super) reasoning: bool,
    /// Whether the agent itself speaks to its user: false for thoughts and for sub-agents.
    pub(super) own: bool,
    pub(super) parent: Option<CallId>,
}

pub(super) struct Rules<'a> {
    pub(super) level: Level,
    pub(super) frame_bytes: usize,
    pub(super) redactor: &'a Redactor,
    pub(super) completion: &'a CompletionMarker,
    pub(super) question_markers: bool,
    pub(super) cuts_markers: bool,
    /// The number of bytes that may be kept.
    pub(super) room: usize,
}

impl Rules<'_> {
    fn want(&self, reasoning: bool) -> bool {
        self.level >= if reasoning { Level::Full } else { Level::Normal }
    }

    fn budget(&self) -> usize {
        self.frame_bytes.saturating_sub(ENVELOPE_BYTES)
    }
}

#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) asks: Asks,
    pub(super) completion: bool,
}

impl Messages {
    /// Creates an empty list that continues the numbers of earlier parts.
    pub(super) fn after(count: u64) -> Messages {
        Messages { count, ..Messages::default() }
    }

    /// Returns the markers of the message once it is complete.
    pub(super) fn piece(
        &mut self,
        key: MessageKey,
        piece: Piece,
        rules: &Rules<'_>,
        out: &mut dyn FnMut(Progress),
    ) -> Marks {
        if !piece.done {
            let count = &mut self.count;
            let message = self.open.entry(key).or_insert_with(|| {
                *count += 1;
                let head = Head { number: *count, reasoning: piece.reasoning, parent: piece.parent };
                Message { head, heard: piece.own.then(Heard::default), ..Message::default() }
            });
            self.kept -= message.kept;
            message.push(&piece.text, false, rules, out);
            message.kept = ENTRY_BYTES + message.size();
            self.kept += message.kept;
            return Marks::default();
        }
        match self.take(key) {
            Some(mut message) => {
                message.push(&piece.text, true, rules, out);
                self.close(message, rules)
            }
            None => self.whole(piece, rules, out),
        }
    }

    fn take(&mut self, key: MessageKey) -> Option<Message> {
        let message = self.open.remove(&key)?;
        self.kept -= message.kept;
        Some(message)
    }

    fn whole(&mut self, piece: Piece, rules: &Rules<'_>, out: &mut dyn FnMut(Progress)) -> Marks {
        self.count += 1;
        let head = Head { number: self.count, reasoning: piece.reasoning, parent: piece.parent };
        let (mut text, mut found) = (piece.text, Marks::default());
        if piece.own {
            self.last = Some((self.count, Fingerprint::of(text.unredacted())));
            found.completion = rules.completion.is_in(&text);
            if rules.question_markers
                && let Cow::Owned(rest) = cut(&text, &mut found.asks)
                && rules.cuts_markers
            {
                text = rest;
            }
        }
        if rules.want(piece.reasoning) {
            let text = text.into_redacted(rules.redactor);
            let bytes = if text.len() <= rules.budget() / ESCAPED { text.len() } else { encoded_bytes(&text) };
            head.emit_pieces(text, bytes, true, rules.redactor.generation(), rules.budget(), out);
        }
        found
    }

    fn close(&mut self, message: Message, rules: &Rules<'_>) -> Marks {
        let Some(mut heard) = message.heard else { return Marks::default() };
        self.last = Some((message.head.number, message.print));
        Marks { asks: heard.asks, completion: heard.finder.finish(rules.completion) }
    }

    /// Withdraws a message. Returns the progress that reports it, if a piece was emitted.
    pub(super) fn withdraw(&mut self, key: MessageKey) -> Option<Progress> {
        let message = self.take(key)?;
        message.emitted.then(|| message.head.progress(Text::default(), true, true))
    }

    /// Ends the unfinished messages in the order in which they began.
    pub(super) fn finish(&mut self, rules: &Rules<'_>, out: &mut dyn FnMut(Progress)) -> Marks {
        let mut open: Vec<Message> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_by_key(|message| message.head.number);
        self.kept = 0;
        let mut all = Marks::default();
        for mut message in open {
            message.push(&Text::default(), true, rules, out);
            let found = self.close(message, rules);
            all.asks.append(found.asks);
            all.completion |= found.completion;
        }
        all
    }

    /// The id of the last message, if it has this text.
    pub(super) fn id_of(&self, print: &Fingerprint) -> Option<MessageId> {
        self.last.as_ref().filter(|(_, last)| last == print).map(|(number, _)| MessageId::Said(*number))
    }
}

impl Message {
    fn size(&self) -> usize {
        let markers = self.heard.as_ref().map_or(0, |heard| heard.cutter.held_bytes());
        self.waiting.len() + self.stream.held() + markers
    }

    fn push(&mut self, said: &Text, done: bool, rules: &Rules<'_>, out: &mut dyn FnMut(Progress)) {
        self.print.push(said.unredacted());
        let mut text = Cow::Borrowed(said);
        if let Some(heard) = &mut self.heard {
            heard.finder.push(rules.completion, said.unredacted());
            if rules.question_markers {
                let rest = heard.cutter.push(said, done, &mut heard.asks);
                text = if rules.cuts_markers { rest } else { text };
            }
        }
        if !rules.want(self.head.reasoning) {
            return;
        }
        if self.waiting.is_empty() {
            self.since = rules.redactor.generation();
        }
        let clean = text.release_through(&mut self.stream, rules.redactor);
        self.waiting_bytes += encoded_bytes(&clean);
        self.waiting.push_str(&clean);
        if done {
            let rest = self.stream.finish(rules.redactor);
            self.waiting_bytes += encoded_bytes(&rest);
            self.waiting.push_str(&rest);
        }
        let budget = rules.budget();
        // A message is emitted when it is complete. Full frames of a long message, and text beyond the budget, are
        // emitted earlier.
        let all = done || rules.level == Level::Full || self.waiting.len() > rules.room;
        if !all && self.waiting_bytes <= budget {
            return;
        }
        let (text, bytes) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.waiting_bytes));
        let (text, rest) = if all { (text, String::new()) } else { last_part(text, budget) };
        self.waiting_bytes = encoded_bytes(&rest);
        self.waiting = rest;
        let emitted = !text.is_empty();
        self.head.emit_pieces(text, bytes, done, self.since, budget, out);
        // A complete message needs a last piece, even an empty one.
        if done && !emitted && self.emitted {
            out(self.head.progress(Text::default(), true, false));
        }
        self.emitted |= emitted;
    }
}

impl Head {
    /// Emits a text that has `bytes` bytes as JSON, in as many pieces as needed. `done`: the last one ends the message.
    /// `since`: the redactor's generation when the text was redacted.
    fn emit_pieces(
        &self,
        text: String,
        bytes: usize,
        done: bool,
        since: Generation,
        budget: usize,
        out: &mut dyn FnMut(Progress),
    ) {
        if text.is_empty() {
            return;
        }
        if bytes <= budget {
            return out(self.progress(Text::clean_since(text, since), done, false));
        }
        let mut parts = split(&text, budget).peekable();
        while let Some(part) = parts.next() {
            let part = Text::clean_since(part.to_owned(), since);
            out(self.progress(part, done && parts.peek().is_none(), false));
        }
    }

    fn progress(&self, text: Text, done: bool, withdrawn: bool) -> Progress {
        let message_id = MessageId::Said(self.number);
        let about = if self.reasoning {
            ProgressKind::Reasoning { message_id, done, withdrawn }
        } else {
            ProgressKind::Text { message_id, done, withdrawn }
        };
        Progress { text, parent_call_id: self.parent, about, truncated: false }
    }
}

/// Separates the last piece of [`split`], which is not full.
fn last_part(mut text: String, budget: usize) -> (String, String) {
    let last = split(&text, budget).last().map_or(0, str::len);
    let rest = text.split_off(text.len() - last);
    (text, rest)
}

/// The pieces of a text, each at most `budget` bytes as JSON.
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

#[cfg(test)]
mod tests {
    use super::super::text_markers::CompletionMarker;
    use super::{Messages, Piece, Rules, split};
    use crate::agent::MessageKey;
    use crate::protocol::words::Level;
    use crate::redact::Redactor;

    /// The lengths of the pieces at level normal, of a message that comes as `count` pieces, each of them `text`.
    fn lengths(text: &str, count: usize, frame_bytes: usize) -> Vec<usize> {
        lengths_in(text, count, frame_bytes, usize::MAX)
    }

    fn lengths_in(text: &str, count: usize, frame_bytes: usize, room: usize) -> Vec<usize> {
        let (mut messages, redactor) = (Messages::default(), Redactor::new());
        let completion = CompletionMarker::new("done");
        let rules = Rules {
            level: Level::Normal,
            frame_bytes,
            redactor: &redactor,
            completion: &completion,
            question_markers: true,
            cuts_markers: true,
            room,
        };
        let mut lengths = Vec::new();
        for at in 1..=count {
            let piece = Piece { text: text.into(), done: at == count, reasoning: false, own: true, parent: None };
            messages.piece(MessageKey(1), piece, &rules, &mut |progress| lengths.push(progress.text.size()));
        }
        lengths
    }

    #[test]
    fn a_message_in_small_pieces_fills_its_frames() {
        assert_eq!(lengths("0123456789", 100_000, 16_384), [vec![15_872; 63], vec![64]].concat());
        // This character takes six bytes as JSON.
        assert_eq!(lengths("\u{1}", 100_000, 16_384), [vec![2645; 37], vec![2135]].concat());
    }

    /// In quadratic time this would take hours.
    #[test]
    fn a_long_message_in_small_pieces_takes_linear_time() {
        assert_eq!(lengths("0123456789", 500_000, 64 << 20), [5_000_000]);
    }

    #[test]
    fn a_message_does_not_wait_where_there_is_no_room() {
        assert_eq!(lengths_in("0123456789", 10, 16_384, 50), [60, 40]);
        assert_eq!(lengths_in("0123456789", 10, 16_384, 100), [100]);
    }

    /// In quadratic time this would take minutes.
    #[test]
    fn a_long_message_in_one_piece_takes_linear_time() {
        assert_eq!(lengths(&"x".repeat(64 << 20), 1, 16 << 10).len(), 4229);
    }

    #[test]
    fn pieces_fit_and_join() {
        let text = "aé\u{1b}\"\n".repeat(500);
        for budget in [6, 7, 50, 1000] {
            let pieces: Vec<&str> = split(&text, budget).collect();
            assert_eq!(pieces.concat(), text);
            let longest = pieces.iter().map(|p| crate::json::to_line(p).len() - 2).max().unwrap();
            assert!(longest <= budget, "{longest} > {budget}");
        }
    }
}
