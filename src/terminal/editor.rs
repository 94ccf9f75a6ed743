//! The text that a person types as an answer or a prompt, key by key. Pure: it turns keys into a text and into the echo
//! of it. A line-editing library does not fit: those own the terminal and block until Enter, while here one loop also
//! waits for the agent, whose output appears above the line that is being typed.
//!
//! The terminal itself cuts a line at 4,096 bytes and ends an answer at the first line break of a pasted text, so its
//! line mode is off while a question is open. A paste comes between two marks (bracketed paste) and never ends the
//! answer. Where a terminal sends no marks, a line break with more keys right behind it belongs to the text.

mod cursor;

use super::width;
use crate::clean::is_bidi_control;
use crate::protocol::limits::PROMPT_BYTES;
use cursor::{History, Move, move_of};

const CTRL_A: u8 = 1;
const CTRL_B: u8 = 2;
const CTRL_D: u8 = 4;
const CTRL_E: u8 = 5;
const CTRL_F: u8 = 6;
const CTRL_H: u8 = 8;
const CTRL_K: u8 = 11;
const CTRL_N: u8 = 14;
const CTRL_P: u8 = 16;
const CTRL_U: u8 = 21;
const CTRL_W: u8 = 23;
const ESCAPE: u8 = 27;
const DELETE: u8 = 127;
/// The marks around a pasted text, without their escape character.
const PASTE_BEGINS: &[u8] = b"[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// The longest escape sequence of a key. What is longer is skipped up to here.
const SEQUENCE_BYTES_MAX: usize = 32;
/// The maximum characters and lines of a text that are shown again.
const AGAIN_CHARS: usize = 1000;
const AGAIN_LINES: usize = 10;

#[derive(Debug, Default)]
pub(super) struct Editor {
    text: Vec<u8>,
    /// The text behind the cursor, its last byte first. Empty unless the cursor can move.
    behind: Vec<u8>,
    /// The earlier texts, if the cursor can move. Then the owner draws the text, and the echo means nothing.
    history: Option<History>,
    /// The bytes of `text` that were echoed.
    echoed: usize,
    /// The columns of the echo in the last line.
    columns: usize,
    keys: Keys,
    /// Whether the last byte was a CR, so that an LF right behind it means nothing.
    after_cr: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Keys {
    #[default]
    Plain,
    /// The beginning of a key's escape sequence, without the escape character.
    Sequence(Vec<u8>),
    /// A paste, with the number of bytes that may be the beginning of its end mark.
    Paste(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Face {
    pub(super) visible: bool,
    /// The columns before each line of the text.
    pub(super) indent: usize,
    pub(super) width: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeyEffect {
    pub(super) echo: String,
    /// Whether the prompt and the text must be shown again instead.
    pub(super) again: bool,
    pub(super) end: Option<AnswerEnd>,
}

pub(super) const TOO_LONG: &str = "The text is longer than 8 MiB, and was not used.";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerEnd {
    Text(String),
    /// Ctrl-D without a text.
    Declined,
    /// The text is longer than its limit. It is gone.
    TooLong,
}

impl Editor {
    pub(super) fn with_history() -> Editor {
        Editor { history: Some(History::default()), ..Editor::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.behind.is_empty()
    }

    /// `keys` arrived together. Those behind the end of the answer are dropped.
    pub(super) fn press_keys(&mut self, keys: &[u8], face: Face) -> KeyEffect {
        let mut effect = KeyEffect::default();
        for (at, key) in keys.iter().enumerate() {
            let is_last = keys[at + 1..].iter().all(|key| *key == b'\n' && keys[at] == b'\r');
            effect.end = self.key(*key, is_last, face, &mut effect);
            if effect.end.is_none() && self.text.len() + self.behind.len() > PROMPT_BYTES {
                effect.end = Some(AnswerEnd::TooLong);
            }
            if effect.end.is_some() {
                break;
            }
        }
        // Nothing came right behind the escape character, so it was the key Escape.
        if self.keys == Keys::Sequence(Vec::new()) {
            self.keys = Keys::Plain;
        }
        self.echo(face, &mut effect.echo);
        if let Some(end) = &effect.end {
            self.remember(end);
            self.clear();
        }
        effect
    }

    /// Adds a text before the cursor of a text whose owner draws it.
    pub(super) fn insert(&mut self, added: &str) {
        self.text.extend_from_slice(added.as_bytes());
    }

    pub(super) fn drop_unfinished_key(&mut self) {
        (self.keys, self.after_cr) = (Keys::Plain, false);
    }

    /// The beginning of a long text is left out.
    pub(super) fn again(&self, face: Face) -> String {
        let from = self.text.len().saturating_sub(4 * AGAIN_CHARS);
        let from = (from..self.text.len()).find(|at| self.text[*at] & 0xc0 != 0x80).unwrap_or(from);
        let whole = String::from_utf8_lossy(&self.text[from..]);
        let end = whole.char_indices().rev().nth(AGAIN_CHARS).map_or(&*whole, |(at, _)| &whole[at..]);
        let end = end.rmatch_indices('\n').nth(AGAIN_LINES).map_or(end, |(at, _)| &end[at..]);
        let sign = if from > 0 || end.len() < whole.len() { "... " } else { "" };
        if !face.visible {
            return String::new();
        }
        end.trim_start_matches('\n').chars().fold(sign.to_owned(), |out, c| out + &echo_of(c, face.indent))
    }

    fn key(&mut self, key: u8, is_last: bool, face: Face, effect: &mut KeyEffect) -> Option<AnswerEnd> {
        let is_second = std::mem::replace(&mut self.after_cr, key == b'\r') && key == b'\n';
        match &mut self.keys {
            Keys::Paste(met) => {
                if key == PASTE_ENDS[*met] {
                    *met += 1;
                    if *met == PASTE_ENDS.len() {
                        self.keys = Keys::Plain;
                    }
                    return None;
                }
                let met = std::mem::take(met);
                self.text.extend_from_slice(&PASTE_ENDS[..met]);
                if key == ESCAPE {
                    self.keys = Keys::Paste(1);
                } else if !is_second {
                    self.text.push(if key == b'\r' { b'\n' } else { key });
                }
            }
            Keys::Sequence(sequence) => {
                if sequence.is_empty() && matches!(key, b'\r' | b'\n') {
                    self.keys = Keys::Plain;
                    self.text.push(b'\n');
                    return None;
                }
                sequence.push(key);
                match &**sequence {
                    PASTE_BEGINS => self.keys = Keys::Paste(0),
                    [b'[' | b'O'] => {}
                    [b'[', .., 0x20..0x40] if sequence.len() < SEQUENCE_BYTES_MAX => {}
                    whole => {
                        let wanted = move_of(whole);
                        self.keys = Keys::Plain;
                        wanted.into_iter().for_each(|wanted| self.move_cursor(wanted));
                    }
                }
            }
            Keys::Plain => match key {
                b'\r' | b'\n' if is_second => {}
                b'\r' | b'\n' if is_last => {
                    self.echo(face, &mut effect.echo);
                    return Some(AnswerEnd::Text(self.whole().trim_end_matches('\n').to_owned()));
                }
                b'\r' | b'\n' => self.text.push(b'\n'),
                CTRL_D if self.is_empty() => return Some(AnswerEnd::Declined),
                CTRL_D => self.move_cursor(Move::Delete),
                CTRL_A => self.move_cursor(Move::Home),
                CTRL_B => self.move_cursor(Move::Left),
                CTRL_E => self.move_cursor(Move::End),
                CTRL_F => self.move_cursor(Move::Right),
                CTRL_K => self.behind.truncate(self.behind.len() - self.rest_of_line()),
                CTRL_N => self.move_cursor(Move::Down),
                CTRL_P => self.move_cursor(Move::Up),
                ESCAPE => self.keys = Keys::Sequence(Vec::new()),
                CTRL_H | DELETE => self.erase(self.last_char(), face, effect),
                CTRL_W => self.erase(self.last_word(), face, effect),
                CTRL_U => self.erase(self.last_line(), face, effect),
                b'\t' | 32.. => self.text.push(key),
                _ => {}
            },
        }
        None
    }

    /// Leaves out a character that is not complete.
    fn echo(&mut self, face: Face, out: &mut String) {
        while self.echoed < self.text.len() {
            let rest = &self.text[self.echoed..];
            let (good, bad) = match std::str::from_utf8(rest) {
                Ok(good) => (good, 0),
                Err(error) => {
                    let good = std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default();
                    match error.error_len() {
                        Some(bad) => (good, bad),
                        None if good.is_empty() => return,
                        None => (good, 0),
                    }
                }
            };
            for c in good.chars().chain((bad > 0).then_some(char::REPLACEMENT_CHARACTER)) {
                let echo = echo_of(c, face.indent);
                self.columns = if c == '\n' { 0 } else { self.columns + width::columns(&echo) };
                if face.visible {
                    out.push_str(&echo);
                }
            }
            self.echoed += good.len() + bad;
        }
    }

    /// The length of the text without its last character.
    fn last_char(&self) -> usize {
        let end = self.text.len().saturating_sub(1);
        let begin = (end.saturating_sub(3)..=end).rev().find(|at| self.text.get(*at).is_some_and(|b| b & 0xc0 != 0x80));
        begin.unwrap_or(end)
    }

    /// The length of the text without its last word, or without the line break at its end.
    fn last_word(&self) -> usize {
        if self.text.last() == Some(&b'\n') {
            return self.text.len() - 1;
        }
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let line = self.last_line();
        let trailing = self.text[line..].iter().rev().take_while(|byte| is_blank(byte)).count();
        let end = self.text.len() - trailing;
        let word = self.text[line..end].iter().rev().take_while(|byte| !is_blank(byte) && **byte != b'\n').count();
        if end == line { line } else { end - word }
    }

    /// The length of the text without its last line, or without the line break at its end.
    fn last_line(&self) -> usize {
        match self.text.last() {
            Some(b'\n') => self.text.len() - 1,
            Some(_) | None => self.last_line_begins(),
        }
    }

    fn erase(&mut self, length: usize, face: Face, effect: &mut KeyEffect) {
        self.echo(face, &mut effect.echo);
        let gone = String::from_utf8_lossy(&self.text[length..]).into_owned();
        self.text.truncate(length);
        self.echoed = self.echoed.min(length);
        if gone.contains('\n') {
            let line = String::from_utf8_lossy(&self.text[self.last_line_begins()..]);
            self.columns = line.chars().map(|c| width::columns(&echo_of(c, 0))).sum();
            effect.again = face.visible;
            return;
        }
        let columns: usize = gone.chars().map(|c| width::columns(&echo_of(c, 0))).sum();
        // A backspace does not leave its row, and does not take a mark or a joined emoji from its sign.
        let is_part = gone.chars().any(width::has_no_width)
            || self.text.ends_with(width::JOINER.encode_utf8(&mut [0; 4]).as_bytes());
        effect.again |= face.visible && (is_part || face.indent + self.columns >= face.width);
        if face.visible && !effect.again {
            effect.echo.push_str(&"\u{8} \u{8}".repeat(columns));
        }
        self.columns = self.columns.saturating_sub(columns);
    }

    fn last_line_begins(&self) -> usize {
        self.text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
    }
}

/// A control character never acts.
pub(super) fn echo_of(c: char, indent: usize) -> String {
    match c {
        '\n' => format!("\n{}", " ".repeat(indent)),
        '\t' => " ".repeat(4),
        '\0'..' ' | '\u{7f}' => format!("^{}", char::from(c as u8 ^ 0x40)),
        c if c.is_control() || is_bidi_control(c) => c.escape_unicode().to_string(),
        c => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{AGAIN_CHARS, AnswerEnd, Editor, Face, KeyEffect, TOO_LONG};
    use crate::protocol::limits::PROMPT_BYTES;

    const FACE: Face = Face { visible: true, indent: 2, width: 20 };

    fn after(chunks: &[&str]) -> (Editor, KeyEffect) {
        let mut editor = Editor::default();
        let (last, earlier) = chunks.split_last().unwrap();
        for chunk in earlier {
            assert_eq!(editor.press_keys(chunk.as_bytes(), FACE).end, None, "{chunk:?}");
        }
        let effect = editor.press_keys(last.as_bytes(), FACE);
        (editor, effect)
    }

    fn text(chunks: &[&str]) -> Option<String> {
        match after(chunks).1.end {
            Some(AnswerEnd::Text(text)) => Some(text),
            Some(AnswerEnd::Declined | AnswerEnd::TooLong) | None => None,
        }
    }

    #[test]
    fn a_paste_waits_for_enter_with_all_its_lines() {
        for paste in ["\u{1b}[200~one\rtwo\r\nthree\nfour\u{1b}[201~", "one\rtwo\r\nthree\nfour"] {
            assert_eq!(after(&[paste]).1.end, None, "{paste:?}");
            assert_eq!(text(&[paste, "\r"]).as_deref(), Some("one\ntwo\nthree\nfour"));
        }
        // A paste may come in any pieces.
        let whole = "\u{1b}[200~a\r\nb\u{1b}[20c\u{4}\u{3}\u{1b}[201~!\r";
        for at in 2..whole.len() - 1 {
            let (one, two) = whole.split_at(at);
            assert_eq!(text(&[one, two]).as_deref(), Some("a\nb\u{1b}[20c\u{4}\u{3}!"), "{at}");
        }
        assert_eq!(text(&["\u{1b}[200~a\n\u{1b}[201~", "\n"]).as_deref(), Some("a"));
        assert_eq!(text(&["a\nb\n"]).as_deref(), Some("a\nb"));
    }

    #[test]
    fn keys_edit_the_text() {
        for (keys, meant) in [
            ("one\u{1b}\rtwo", "one\ntwo"),
            ("on\u{7f}\u{7f}é\u{8}x", "x"),
            ("one two  \u{17}three", "one three"),
            ("one\u{1b}\r\u{17}x", "onex"),
            ("one\u{1b}\rtwo\u{15}three", "one\nthree"),
            ("one\u{1b}\r\u{7f}two", "onetwo"),
            ("\u{1b}[A\u{1b}[1;5C\u{1b}OPa\u{1}\u{1b}fb\tc", "ab\tc"),
            ("\u{7f}\u{15}\u{17}a\u{4}", "a"),
            ("日本\u{7f}", "日"),
        ] {
            assert_eq!(text(&[keys, "\r"]).as_deref(), Some(meant), "{keys:?}");
        }
        assert_eq!(text(&["\u{1b}", "y", "\r"]).as_deref(), Some("y"));
        assert_eq!(after(&["\u{4}"]).1.end, Some(AnswerEnd::Declined));
        assert_eq!(after(&["a\u{15}\u{4}"]).1.end, Some(AnswerEnd::Declined));
    }

    #[test]
    fn the_echo_shows_each_character_once_and_lets_none_act() {
        let echo = |chunks: &[&str]| after(chunks).1.echo;
        assert_eq!(echo(&["aé"]), "aé");
        assert_eq!(echo(&["\u{1b}[200~a\u{1b}[2J\u{9b}\u{202e}\tb\nc"]), "a^[[2J\\u{9b}\\u{202e}    b\n  c");
        assert_eq!(echo(&["a日", "\u{7f}"]), "\u{8} \u{8}\u{8} \u{8}");
        let mut editor = Editor::default();
        let echoes = "é".as_bytes().iter().map(|byte| editor.press_keys(&[*byte], FACE).echo).collect::<Vec<_>>();
        assert_eq!(echoes, ["", "é"]);
        let hidden = Face { visible: false, ..FACE };
        assert_eq!(Editor::default().press_keys(b"secret\x7f\x1b\rx", hidden).echo, "");
        for (keys, again) in [("x", false), ("one\u{1b}\r", true), (&*"x".repeat(30), true)] {
            assert_eq!(after(&[keys, "\u{7f}"]).1.again, again, "{keys:?}");
        }
        assert_eq!(after(&["one\u{1b}\rtwo"]).0.again(FACE), "one\n  two");
        let long = after(&[&"line\u{1b}\r".repeat(5000)]).0.again(FACE);
        assert!(long.starts_with("... line") && long.len() < 200, "{long}");
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        let again = after(&[&("\u{1f600}".repeat(AGAIN_CHARS + 1) + "a")]).0.again(FACE);
        assert!(again.starts_with("... \u{1f600}"), "{again}");
        let mut latin = Editor::default();
        latin.press_keys(&vec![0xe9; 2 * AGAIN_CHARS], FACE);
        assert!(latin.again(FACE).starts_with("... \u{fffd}"), "{}", latin.again(FACE));
    }

    #[test]
    fn a_text_has_a_limit() {
        let mut editor = Editor::default();
        assert!(TOO_LONG.contains(&format!("{} MiB", PROMPT_BYTES >> 20)), "{TOO_LONG}");
        assert_eq!(editor.press_keys(&vec![b'x'; PROMPT_BYTES + 1], FACE).end, Some(AnswerEnd::TooLong));
        assert_eq!(editor.press_keys(b"y\r", FACE).end, Some(AnswerEnd::Text("y".into())));
    }
}
