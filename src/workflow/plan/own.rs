//! The lines in a plan that only this program writes: the state of a phase, and the digest of the specification.

use super::Digest;
use crate::protocol::words::word_enums;
use crate::workflow::markdown::TextLine;
use std::fmt;

const OPEN: &str = "<!-- spektacular:";
const CLOSE: &str = " -->";
const TIME_BYTES_MAX: usize = 40;

word_enums! {
    pub enum State {
        InProgress = "in_progress",
        Passed = "passed",
        /// The attempts at the phase have failed, or the final check reopened it.
        Failed = "failed",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLine {
    pub state: State,
    pub attempts: u32,
    /// The time, such as `2026-02-20T10:00:00.000Z`.
    pub at: String,
}

impl StateLine {
    pub(super) fn parse(line: &str) -> Option<StateLine> {
        let [state, attempts, at] = words(line)?[..] else { return None };
        let state = State::from_word(state)?;
        let attempts =
            attempts.strip_prefix("attempts=").filter(|number| number.bytes().all(|b| b.is_ascii_digit()))?;
        let at = at.strip_prefix("at=")?;
        let fits = |b: u8| b.is_ascii_digit() || matches!(b, b'T' | b'Z' | b':' | b'.' | b'+' | b'-');
        let is_time = (1..=TIME_BYTES_MAX).contains(&at.len()) && at.bytes().all(fits);
        Some(StateLine { state, attempts: attempts.parse().ok()?, at: is_time.then(|| at.to_owned())? })
    }
}

impl fmt::Display for StateLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{OPEN} {} attempts={} at={}{CLOSE}", self.state.word(), self.attempts, self.at)
    }
}

pub(super) fn digest(line: &str) -> Option<Digest> {
    let [spec] = words(line)?[..] else { return None };
    Digest::parse(spec.strip_prefix("spec=")?)
}

pub(super) fn digest_line(digest: &Digest) -> String {
    format!("{OPEN} spec={digest}{CLOSE}")
}

fn words(line: &str) -> Option<Vec<&str>> {
    let inside = line.strip_prefix(OPEN)?.strip_suffix(CLOSE)?.strip_prefix(' ')?;
    Some(inside.split(' ').collect())
}

/// Whether a line begins like one of this program's own lines.
pub(super) fn is_own(line: &TextLine<'_>) -> bool {
    line.is_outside() && line.text.starts_with(OPEN)
}

#[cfg(test)]
mod tests {
    use super::{State, StateLine, digest, digest_line};
    use crate::workflow::plan::Digest;

    #[test]
    fn a_state_line_is_read_back_unchanged() {
        for state in State::ALL.iter().copied() {
            let line = StateLine { state, attempts: 2, at: "2026-02-20T10:00:00.000Z".into() };
            assert_eq!(StateLine::parse(&line.to_string()), Some(line));
        }
        let text = "<!-- spektacular: in_progress attempts=1 at=2026-02-20T10:00:00Z -->";
        assert_eq!(StateLine::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn other_lines_are_not_state_lines() {
        for text in [
            "<!-- spektacular: done attempts=1 at=2026 -->",
            "<!-- spektacular: passed attempts=+1 at=2026 -->",
            "<!-- spektacular: passed attempts= at=2026 -->",
            "<!-- spektacular: passed attempts=99999999999 at=2026 -->",
            "<!-- spektacular: passed attempts=1 at= -->",
            "<!-- spektacular: passed attempts=1 at=now -->",
            "<!-- spektacular: passed attempts=1 -->",
            "<!-- spektacular: passed attempts=1 at=2026 --> x",
            "<!-- spektacular:passed attempts=1 at=2026 -->",
            "<!-- spektacular:  passed attempts=1 at=2026 -->",
            " <!-- spektacular: passed attempts=1 at=2026 -->",
            "<!-- spektacular: -->",
            "<!-- spektacular:",
        ] {
            assert_eq!(StateLine::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_digest_line_is_read_back_unchanged() {
        let known = Digest::of(b"x");
        assert_eq!(digest(&digest_line(&known)), Some(known));
        assert_eq!(digest("<!-- spektacular: spec=123 -->"), None);
    }
}
