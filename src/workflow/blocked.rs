//! The marker `<!--BLOCKED: REASON-->` in the agent's text, outside code fences and perhaps split over pieces. It is
//! removed from the text. A marker without a reason is text.

use crate::markers::Cutter;

/// Removes the markers from one message that arrives in pieces.
#[derive(Debug)]
pub(super) struct BlockedCutter {
    cutter: Cutter,
    pub(super) reason: Option<String>,
}

/// The maximum length of a marker, in bytes. A longer one is text.
const LONGEST: usize = 4 << 10;

impl Default for BlockedCutter {
    fn default() -> BlockedCutter {
        BlockedCutter { cutter: Cutter::new("<!--BLOCKED:", LONGEST), reason: None }
    }
}

impl BlockedCutter {
    /// Adds a piece. Returns the text that is certainly not part of a marker. `done`: the piece ends the message.
    pub(super) fn push(&mut self, piece: &str, done: bool) -> String {
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

/// A whole text without its markers, and the first reason.
pub(super) fn cut(text: &str) -> (String, Option<String>) {
    let mut cutter = BlockedCutter::default();
    let rest = cutter.push(text, true);
    (rest, cutter.reason)
}

#[cfg(test)]
mod tests {
    use super::{BlockedCutter, LONGEST, cut};

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
}
