//! The agent's stdout as lines. A thread waits for a line and hands the lines to the loop, which takes every line that
//! was read with it, and gives them back. So only one of the two has them, and a line is copied only if it came in
//! several reads.

use crate::agent::Line;
use crate::io::lines::{Framed, LineReader};
use std::borrow::Cow;
use std::io::PipeReader;

/// The lines of the agent's stdout up to the sentinel.
pub(crate) struct AgentLines {
    reader: LineReader<PipeReader>,
    sentinel: Box<[u8]>,
    /// The next line, if it does not lie in the reader's buffer.
    ahead: Option<Framed<'static>>,
    /// Holds a blank line back: the sentinel begins with an LF, so it counts only if another line follows.
    blank: bool,
    ended: bool,
}

impl AgentLines {
    pub(super) fn new(pipe: PipeReader, limit: usize, sentinel: &[u8]) -> AgentLines {
        let reader = LineReader::new(pipe, limit);
        AgentLines { reader, sentinel: sentinel.into(), ahead: None, blank: false, ended: false }
    }

    /// `false`: the output has ended.
    pub(super) fn wait(&mut self) -> bool {
        while !self.has_next() && !self.ended {
            if self.reader.is_empty() {
                self.ended = !self.reader.fill();
            } else {
                self.ahead = self.reader.next().map(Framed::into_owned);
                self.ended = self.ahead.is_none();
            }
        }
        !self.ended
    }

    /// Holds back a blank line, and ends at the sentinel.
    pub(crate) fn has_next(&mut self) -> bool {
        if !self.blank && self.is_next(b"") {
            self.blank = true;
            self.skip();
        }
        self.ended |= is_next(self.ahead.as_ref(), &mut self.reader, &self.sentinel);
        !self.ended && (self.ahead.is_some() || self.reader.has_line())
    }

    /// Never waits. An owned text can be kept without a copy.
    pub(crate) fn next(&mut self) -> Option<Line<'_>> {
        if !self.has_next() {
            return None;
        }
        if self.blank {
            match self.is_next(b"") {
                true => self.skip(),
                false => self.blank = false,
            }
            return Some(Line::Text("".into()));
        }
        let framed = match self.ahead.take() {
            Some(framed) => framed,
            None => self.reader.next()?,
        };
        Some(match framed {
            Framed::Line(line) => Line::Text(text(line)),
            Framed::Rest(line) => Line::Text(text(line.into())),
            Framed::TooLong(_) => Line::TooLong,
        })
    }

    fn is_next(&mut self, text: &[u8]) -> bool {
        is_next(self.ahead.as_ref(), &mut self.reader, text)
    }

    fn skip(&mut self) {
        if self.ahead.take().is_none() {
            self.reader.next();
        }
    }
}

impl std::fmt::Debug for AgentLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentLines").finish_non_exhaustive()
    }
}

fn is_next(ahead: Option<&Framed<'_>>, reader: &mut LineReader<PipeReader>, text: &[u8]) -> bool {
    match ahead {
        Some(Framed::Line(line)) => **line == *text,
        Some(Framed::Rest(_) | Framed::TooLong(_)) => false,
        None => reader.peek() == Some(text),
    }
}

/// Copies only what is not UTF-8. The check goes word by word, that of `from_utf8_lossy` byte by byte.
fn text(line: Cow<'_, [u8]>) -> Cow<'_, str> {
    let broken = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match line {
        Cow::Borrowed(line) => std::str::from_utf8(line).map_or_else(|_| broken(line).into(), Cow::Borrowed),
        Cow::Owned(line) => String::from_utf8(line).unwrap_or_else(|error| broken(error.as_bytes())).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::AgentLines;
    use crate::agent::Line;
    use crate::io::lines::READ_BYTES;
    use std::borrow::Cow;
    use std::io::{Write, pipe};
    use std::thread;

    const END: &[u8] = b"END";
    const LIMIT: usize = 4 * READ_BYTES;

    /// Each line with whether it was copied out of the buffer.
    fn all(output: Vec<u8>) -> Vec<(Line<'static>, bool)> {
        let (reader, mut writer) = pipe().unwrap();
        let agent = thread::spawn(move || writer.write_all(&output).unwrap());
        let (mut lines, mut all) = (AgentLines::new(reader, LIMIT, END), Vec::new());
        while lines.wait() {
            while let Some(line) = lines.next() {
                all.push(match line {
                    Line::Text(Cow::Borrowed(text)) => (Line::Text(text.to_owned().into()), false),
                    Line::Text(Cow::Owned(text)) => (Line::Text(text.into()), true),
                    Line::TooLong => (Line::TooLong, false),
                });
            }
            assert!(!lines.has_next(), "a line is left");
        }
        agent.join().unwrap();
        all
    }

    fn texts(output: &[u8]) -> Vec<String> {
        let text = |(line, _)| match line {
            Line::Text(text) => text.into_owned(),
            Line::TooLong => "too long".to_owned(),
        };
        all(output.to_vec()).into_iter().map(text).collect()
    }

    #[test]
    fn blank_lines_count_and_the_sentinel_and_its_lf_do_not() {
        assert_eq!(texts(b"a\n\n\nb\n\n\nEND\nc\n"), ["a", "", "", "b", ""]);
        assert_eq!(texts(b"\n\nEND\n"), [""]);
        assert_eq!(texts(b"unfinished\nEND\n"), ["unfinished"]);
        assert_eq!(texts(b"no\n\nsentinel"), ["no", "", "sentinel"]);
        assert_eq!(texts(&[&b"\n".repeat(300_000), &b"\nEND\n"[..]].concat()).len(), 300_000);
    }

    #[test]
    fn a_sentinel_and_a_blank_line_are_seen_over_the_end_of_the_buffer() {
        for first in READ_BYTES - 8..READ_BYTES + 2 {
            let output = [&vec![b'x'; first], &b"\n\nb\n\nEND\nc\n"[..]].concat();
            assert_eq!(texts(&output)[1..], ["", "b"], "{first}");
        }
    }

    #[test]
    fn a_broken_character_stays_in_its_line() {
        assert_eq!(
            texts(b"a\xe2\x82\n\n\xff\xffb\n\xc3\xa9\nW\xef\x86\n\x89In\n"),
            ["a\u{fffd}", "", "\u{fffd}\u{fffd}b", "\u{e9}", "W\u{fffd}", "\u{fffd}In"]
        );
        let broken = [&vec![b'x'; 2 * READ_BYTES], &b"\xff\n"[..]].concat();
        assert_eq!(texts(&broken), ["x".repeat(2 * READ_BYTES) + "\u{fffd}"]);
    }

    #[test]
    fn only_a_line_of_several_reads_is_copied_and_one_beyond_the_limit_is_skipped() {
        let line = |bytes: usize| [vec![b'x'; bytes], vec![b'\n']].concat();
        let long = all([line(3 * READ_BYTES), line(10), line(LIMIT + 1), line(20)].concat());
        let sizes = long.iter().map(|(line, owned)| match line {
            Line::Text(text) => (text.len(), *owned),
            Line::TooLong => (0, false),
        });
        let sizes: Vec<_> = sizes.collect();
        assert_eq!((sizes.len(), sizes[0], sizes[1].0, sizes[2].0, sizes[3].0), (4, (3 * READ_BYTES, true), 10, 0, 20));
        let small = all(line(100).repeat(10_000));
        let copied = small.iter().filter(|(_, owned)| *owned).count();
        assert!(small.len() == 10_000 && copied <= 2 + 10_000 * 101 / 4096, "{copied} copies");
    }
}
