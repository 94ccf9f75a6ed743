//! The marker `<!--BLOCKED: REASON-->` in the agent's text, outside code fences and perhaps split over pieces. It is
//! removed from the text. A marker without a reason is text.

use crate::agent::text::FinalAnswer;
use crate::agent::{MessageKey, TurnOver};
use crate::markers::Cutter;
use crate::protocol::outbound::Text;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct BlockedText {
    cutters: BTreeMap<MessageKey, BlockedCutter>,
    /// The first reason.
    pub(super) reason: Option<String>,
}

impl BlockedText {
    pub(super) fn cut(&mut self, message: MessageKey, piece: &Text, done: bool) -> Text {
        let cutter = self.cutters.entry(message).or_default();
        let piece = cutter.push(piece.unredacted(), done);
        if done {
            let reason = self.cutters.remove(&message).and_then(|cutter| cutter.reason);
            self.keep(reason);
        }
        piece.into()
    }

    pub(super) fn withdraw(&mut self, message: MessageKey) {
        self.cutters.remove(&message);
    }

    pub(super) fn finish(&mut self) -> Vec<(MessageKey, Text)> {
        let mut rests = Vec::new();
        for (message, mut cutter) in std::mem::take(&mut self.cutters) {
            let rest = cutter.push("", true);
            self.keep(cutter.reason);
            rests.extend((!rest.is_empty()).then(|| (message, rest.into())));
        }
        rests
    }

    /// The end of a turn, whose answer usually repeats the last message, without markers.
    pub(super) fn end(&mut self, over: TurnOver) -> TurnOver {
        let TurnOver::Completed { mut answer, structured, stop } = over else { return over };
        let (text, reason) = cut(answer.clone().into_text().unredacted());
        if reason.is_some() {
            self.keep(reason);
            answer = FinalAnswer::from(text);
        }
        TurnOver::Completed { answer, structured, stop }
    }

    fn keep(&mut self, reason: Option<String>) {
        self.reason = self.reason.take().or(reason);
    }
}

#[derive(Debug)]
struct BlockedCutter {
    cutter: Cutter,
    reason: Option<String>,
}

/// The maximum length of a marker, in bytes. A longer one is text.
const LONGEST: usize = 4 << 10;

impl Default for BlockedCutter {
    fn default() -> BlockedCutter {
        BlockedCutter { cutter: Cutter::new("<!--BLOCKED:", LONGEST), reason: None }
    }
}

impl BlockedCutter {
    /// Returns the text that is certainly not part of a marker. `done`: the piece ends the message.
    fn push(&mut self, piece: &str, done: bool) -> String {
        let first = &mut self.reason;
        let mut take = |reason: &str| {
            let is_reason = !reason.trim().is_empty();
            if is_reason {
                first.get_or_insert_with(|| reason.trim().to_owned());
            }
            is_reason
        };
        self.cutter.push(piece, done, &mut take).unwrap_or_else(|| piece.to_owned())
    }
}

fn cut(text: &str) -> (String, Option<String>) {
    let mut cutter = BlockedCutter::default();
    let rest = cutter.push(text, true);
    (rest, cutter.reason)
}

#[cfg(test)]
mod tests {
    use super::{BlockedCutter, BlockedText, LONGEST, cut};
    use crate::agent::text::FinalAnswer;
    use crate::agent::{MessageKey, TurnOver};
    use crate::protocol::words::StopReason;

    const MARKER: &str = "<!--BLOCKED: the key\nis missing -->";

    #[test]
    fn only_markers_with_a_reason_outside_fences_are_cut() {
        let reason = Some("the key\nis missing".to_owned());
        for (text, rest, found) in [
            (format!("a {MARKER} b"), "a  b".to_owned(), &reason),
            (format!("```\n{MARKER}\n```\n"), format!("```\n{MARKER}\n```\n"), &None),
            (format!("```\n{MARKER}\n```\n{MARKER}"), format!("```\n{MARKER}\n```\n"), &reason),
            ("<!--BLOCKED:  -->x".into(), "<!--BLOCKED:  -->x".into(), &None),
            ("<!-- BLOCKED: x -->".into(), "<!-- BLOCKED: x -->".into(), &None),
            ("a < b <!--BLOCKED: x".into(), "a < b <!--BLOCKED: x".into(), &None),
            (format!("{MARKER}<!--BLOCKED: second-->"), String::new(), &reason),
            (format!("<<!--{MARKER}é"), "<<!--é".into(), &reason),
        ] {
            assert_eq!(cut(&text), (rest, found.clone()), "{text}");
        }
    }

    #[test]
    fn every_split_gives_the_same() {
        let text = format!("é<{MARKER}y\n```\n{MARKER}\n```<!--BLOCKED:");
        let whole = cut(&text);
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let mut cutter = BlockedCutter::default();
            let joined = [cutter.push(&text[..at], false), cutter.push(&text[at..], true)].concat();
            assert_eq!((joined, cutter.reason), whole);
        }
        let mut cutter = BlockedCutter::default();
        let mut joined: String = text.chars().map(|c| cutter.push(c.encode_utf8(&mut [0; 4]), false)).collect();
        joined.push_str(&cutter.push("", true));
        assert_eq!((joined, cutter.reason), whole);
    }

    #[test]
    fn a_marker_that_is_too_long_is_text() {
        let long = format!("<!--BLOCKED: {}-->", "é".repeat(LONGEST));
        assert_eq!(cut(&long), (long.clone(), None));
        let (rest, reason) = cut(&format!("{}{MARKER}", "<!--BLOCKED: ".repeat(LONGEST)));
        assert!(reason.is_some() && rest.ends_with("<!--BLOCKED: ") && rest.len() > LONGEST);
    }

    #[test]
    fn the_marker_is_cut_from_messages_and_from_the_answer() {
        let mut blocked = BlockedText::default();
        let pieces = [("I can", false), ("not.<!--BLOCKED: no", false), (" key-->", true)];
        let shown = pieces.map(|(piece, done)| blocked.cut(MessageKey(1), &piece.into(), done).shown().to_owned());
        assert_eq!((shown.concat().as_str(), blocked.reason.as_deref()), ("I cannot.", Some("no key")));
        let answer = FinalAnswer::from("I cannot.<!--BLOCKED: another-->".to_owned());
        let done = TurnOver::Completed { answer, structured: None, stop: StopReason::EndTurn };
        let TurnOver::Completed { answer, .. } = blocked.end(done) else { panic!("another end") };
        assert!(!answer.is_cut() && answer.into_text().shown() == "I cannot.");
        assert_eq!(blocked.reason.as_deref(), Some("no key"));
    }

    #[test]
    fn a_withdrawn_message_does_not_block_and_an_open_one_ends_with_the_process() {
        let mut blocked = BlockedText::default();
        blocked.cut(MessageKey(1), &"<!--BLOCKED: a-->".into(), false);
        blocked.withdraw(MessageKey(1));
        assert_eq!(blocked.cut(MessageKey(2), &"<!--BLOCKED: b".into(), false).shown(), "");
        let rests: Vec<_> = blocked.finish().into_iter().map(|(key, rest)| (key, rest.shown().to_owned())).collect();
        assert_eq!(rests, [(MessageKey(2), "<!--BLOCKED: b".to_owned())]);
        assert_eq!(blocked.reason, None);
    }
}
