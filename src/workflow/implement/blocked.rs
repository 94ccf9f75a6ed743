//! The marker `<!--BLOCKED: REASON-->` in the agent's text, outside code fences and perhaps split over pieces. It is
//! removed from the text. A marker without a reason is text.

use crate::run::Fences;

const BEGIN: &str = "<!--BLOCKED:";
const END: &str = "-->";
/// The maximum length of a marker, in bytes. A longer one is text.
const LONGEST: usize = 4 << 10;

/// Removes the markers from one message that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct BlockedCutter {
    /// Text that may begin a marker.
    held: String,
    /// The length of the held text that has been searched for the end of a marker.
    searched: usize,
    fences: Fences,
    /// The first reason.
    pub(super) reason: Option<String>,
}

impl BlockedCutter {
    /// Adds a piece. Returns the text that is certainly not part of a marker.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut text = std::mem::take(&mut self.held);
        text.push_str(piece);
        let (mut rest, mut out) = (text.as_str(), String::with_capacity(text.len()));
        loop {
            let (before, marker) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
            self.say(before, &mut out);
            if marker.is_empty() {
                return out;
            }
            let may_be = !self.fences.open() && (marker.starts_with(BEGIN) || BEGIN.starts_with(marker));
            let from = self.searched.max(BEGIN.len()).min(marker.len());
            let end =
                marker[marker.floor_char_boundary(from)..].find(END).map(|at| marker.floor_char_boundary(from) + at);
            match end.filter(|end| may_be && *end <= LONGEST) {
                Some(end) if !marker[BEGIN.len()..end].trim().is_empty() => {
                    self.reason.get_or_insert_with(|| marker[BEGIN.len()..end].trim().to_owned());
                    rest = &marker[end + END.len()..];
                }
                None if may_be && marker.len() <= LONGEST => {
                    self.searched = marker.len().saturating_sub(END.len());
                    self.held = marker.to_owned();
                    return out;
                }
                Some(_) | None => {
                    self.say("<", &mut out);
                    rest = &marker[1..];
                }
            }
            self.searched = 0;
        }
    }

    /// The rest of the text at the end of the message.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    fn say(&mut self, text: &str, out: &mut String) {
        self.fences.see(text);
        out.push_str(text);
    }
}

/// A whole text without its markers, and the first reason.
pub(super) fn cut(text: &str) -> (String, Option<String>) {
    let mut cutter = BlockedCutter::default();
    let mut rest = cutter.push(text);
    rest.push_str(&cutter.finish());
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
            let joined = [cutter.push(&text[..at]), cutter.push(&text[at..]), cutter.finish()].concat();
            assert_eq!((joined, cutter.reason), whole);
        }
        let mut cutter = BlockedCutter::default();
        let mut joined: String = text.chars().map(|c| cutter.push(c.encode_utf8(&mut [0; 4]))).collect();
        joined.push_str(&cutter.finish());
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
