//! The agent's stderr, made safe to show: without escape sequences, and redacted even across line ends.

use crate::clean::{Cleaner, last_bytes, whole};
use crate::protocol::limits::STDERR_TAIL_BYTES;
use crate::redact::{Redactor, Stream};

/// The length, in bytes, from which a line is returned before its end: the longest line that is read.
const LINE_BYTES: usize = 8 * STDERR_TAIL_BYTES;

/// Cleans and redacts text, and returns it in lines. A line may be held back, because a secret can span line ends. A long
/// line is returned in several.
#[derive(Default)]
pub(crate) struct StderrLines {
    cleaner: Cleaner,
    stream: Stream,
    rest: String,
}

impl StderrLines {
    /// Takes a line with its LF, or a part of one, and returns the lines that are now complete.
    pub(crate) fn push(&mut self, redactor: &Redactor, text: &str) -> Vec<String> {
        let clean = self.cleaner.push(text);
        let seen = self.stream.push(redactor, &clean);
        let start = self.rest.len();
        self.rest.push_str(&seen);
        // The start has no line end. If secrets hide every line end, the line must not grow forever.
        let end = match seen.rfind('\n') {
            Some(at) => start + at + 1,
            None if self.rest.len() > LINE_BYTES => self.rest.len(),
            None => return Vec::new(),
        };
        self.rest.drain(..end).collect::<String>().lines().map(str::to_owned).collect()
    }

    pub(crate) fn finish(&mut self, redactor: &Redactor) -> Vec<String> {
        let seen = self.stream.finish(redactor);
        self.rest.push_str(&seen);
        std::mem::take(&mut self.rest).lines().map(str::to_owned).collect()
    }
}

/// The tail of a stderr for a failure: cleaned and redacted first, then cut at the beginning of a line.
pub(crate) fn tail(text: &str, redactor: &Redactor) -> String {
    last_bytes(&redactor.redact(&whole(text)), STDERR_TAIL_BYTES).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{LINE_BYTES, StderrLines, tail};
    use crate::redact::Redactor;

    #[test]
    fn a_secret_is_hidden_wherever_the_tail_is_cut() {
        let secret = "hunter2-Zq7731/x+y";
        let mut redactor = Redactor::new();
        assert!(redactor.add(secret));
        for before in 0..40 {
            let text = "x".repeat(before) + secret + &"y".repeat(8192 - 20) + "\n";
            let tail = tail(&text, &redactor);
            assert!(tail.len() <= 8192 && tail.ends_with("yyy\n") && !tail.contains(&secret[9..]), "{before}");
        }
    }

    #[test]
    fn a_key_over_many_lines_is_redacted() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA1234567890\nabcdefghijklmnop\n-----END RSA PRIVATE KEY-----";
        let (mut lines, redactor) = (StderrLines::default(), Redactor::new());
        let mut seen: Vec<String> = key.split_inclusive('\n').flat_map(|line| lines.push(&redactor, line)).collect();
        seen.extend(lines.push(&redactor, "\n\u{1b}[31mafter\u{1b}[0m\n"));
        seen.extend(lines.finish(&redactor));
        assert_eq!(seen, ["[redacted]", "after"]);
    }

    #[test]
    fn lines_that_all_end_inside_a_secret_are_returned_in_parts() {
        let line = "-----END RSA PRIVATE KEY----------BEGIN RSA PRIVATE KEY-----\n";
        let (mut lines, redactor) = (StderrLines::default(), Redactor::new());
        let seen: Vec<String> = (0..20_000).flat_map(|_| lines.push(&redactor, line)).collect();
        assert!(seen.len() > 1 && seen.iter().all(|line| line.len() < LINE_BYTES + 100), "{} lines", seen.len());
    }
}
