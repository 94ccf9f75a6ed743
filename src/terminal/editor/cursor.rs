//! The cursor of a text that is typed, and the earlier texts.

use super::{AGAIN_CHARS, AnswerEnd, Editor};

const HISTORY: usize = 100;

#[derive(Debug, Default)]
pub(super) struct History {
    texts: Vec<String>,
    /// The text that the arrow keys brought back, and the unfinished text that it replaced.
    recalled: Option<(usize, String)>,
}

/// A key that moves the cursor, or that depends on its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    Delete,
}

impl Editor {
    /// The text before and behind the cursor, cut to the part around it.
    pub(in crate::terminal) fn around(&self) -> (String, String) {
        let from = self.text.len().saturating_sub(AGAIN_CHARS);
        let from = (from..self.text.len()).find(|at| self.text[*at] & 0xc0 != 0x80).unwrap_or(from);
        let behind: Vec<u8> = self.behind.iter().rev().take(AGAIN_CHARS).copied().collect();
        let end = (0..=behind.len()).rev().find(|at| std::str::from_utf8(&behind[..*at]).is_ok()).unwrap_or_default();
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (lossy(&self.text[from..]), lossy(&behind[..end]))
    }

    pub(in crate::terminal) fn clear(&mut self) {
        let history = self.history.take().map(|history| History { recalled: None, ..history });
        *self = Editor { history, ..Editor::default() };
    }

    pub(super) fn whole(&self) -> String {
        let all: Vec<u8> = self.text.iter().chain(self.behind.iter().rev()).copied().collect();
        String::from_utf8_lossy(&all).into_owned()
    }

    pub(super) fn move_cursor(&mut self, wanted: Move) {
        if self.history.is_none() {
            return;
        }
        match wanted {
            Move::Left => self.back_to(self.last_char()),
            Move::Right => self.forward(self.next_char()),
            Move::WordLeft => self.back_to(self.last_word()),
            Move::WordRight => self.forward(self.next_word()),
            Move::Home => self.back_to(self.last_line_begins()),
            Move::End => self.forward(self.rest_of_line()),
            Move::Delete => self.behind.truncate(self.behind.len() - self.next_char()),
            Move::Up if self.last_line_begins() > 0 => {
                let column = self.column();
                self.back_to(self.last_line_begins() - 1);
                self.back_to(self.last_line_begins());
                self.put_at_column(column);
            }
            Move::Down if self.rest_of_line() < self.behind.len() => {
                let column = self.column();
                self.forward(self.rest_of_line() + 1);
                self.put_at_column(column);
            }
            Move::Up => self.recall(|at| at.checked_sub(1)),
            Move::Down => self.recall(|at| at.checked_add(1)),
        }
    }

    /// Puts the text from this place on behind the cursor.
    fn back_to(&mut self, length: usize) {
        self.behind.extend(self.text.drain(length..).rev());
        self.echoed = self.echoed.min(length);
    }

    fn forward(&mut self, bytes: usize) {
        let from = self.behind.len() - bytes;
        self.text.extend(self.behind.drain(from..).rev());
    }

    /// The bytes of the character behind the cursor.
    fn next_char(&self) -> usize {
        let mut behind = self.behind.iter().rev();
        usize::from(behind.next().is_some()) + behind.take_while(|byte| **byte & 0xc0 == 0x80).count()
    }

    /// The bytes up to the end of the next word.
    fn next_word(&self) -> usize {
        let is_blank = |byte: &&u8| byte.is_ascii_whitespace();
        let blanks = self.behind.iter().rev().take_while(is_blank).count();
        blanks + self.behind.iter().rev().skip(blanks).take_while(|byte| !is_blank(byte)).count()
    }

    /// The bytes behind the cursor in its line.
    pub(super) fn rest_of_line(&self) -> usize {
        self.behind.iter().rev().take_while(|byte| **byte != b'\n').count()
    }

    /// The characters before the cursor in its line.
    fn column(&self) -> usize {
        self.text[self.last_line_begins()..].iter().filter(|byte| **byte & 0xc0 != 0x80).count()
    }

    /// Moves the cursor from the beginning of its line to this column, or to the end of a shorter line.
    fn put_at_column(&mut self, column: usize) {
        for _ in 0..column {
            if self.rest_of_line() > 0 {
                self.forward(self.next_char());
            }
        }
    }

    /// `next`: the place that follows a place in the history.
    fn recall(&mut self, next: impl Fn(usize) -> Option<usize>) {
        let text = self.whole();
        let Some(History { texts, recalled }) = &mut self.history else { return };
        let at = recalled.as_ref().map_or(texts.len(), |(at, _)| *at);
        let Some(to) = next(at).filter(|to| *to <= texts.len()) else { return };
        let draft = recalled.take().map_or(text, |(_, draft)| draft);
        let text = if let Some(text) = texts.get(to) {
            *recalled = Some((to, draft));
            text.clone()
        } else {
            draft
        };
        (self.text, self.behind, self.echoed) = (text.into_bytes(), Vec::new(), 0);
    }

    pub(super) fn remember(&mut self, end: &AnswerEnd) {
        if let (Some(History { texts, .. }), AnswerEnd::Text(text)) = (&mut self.history, end)
            && !text.trim().is_empty()
            && texts.last() != Some(text)
        {
            texts.drain(..(texts.len() + 1).saturating_sub(HISTORY));
            texts.push(text.clone());
        }
    }
}

/// `sequence`: without the escape character.
pub(super) fn move_of(sequence: &[u8]) -> Option<Move> {
    Some(match sequence {
        b"[D" | b"OD" => Move::Left,
        b"[C" | b"OC" => Move::Right,
        b"[A" | b"OA" => Move::Up,
        b"[B" | b"OB" => Move::Down,
        b"[H" | b"OH" | b"[1~" | b"[7~" => Move::Home,
        b"[F" | b"OF" | b"[4~" | b"[8~" => Move::End,
        b"[3~" => Move::Delete,
        b"b" | b"[1;3D" | b"[1;5D" => Move::WordLeft,
        b"f" | b"[1;3C" | b"[1;5C" => Move::WordRight,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{AnswerEnd, Editor};
    use crate::terminal::editor::Face;

    const FACE: Face = Face { visible: true, indent: 2, width: 20 };

    #[test]
    fn a_cursor_moves_and_earlier_texts_return() {
        let mut editor = Editor::with_history();
        for (keys, meant) in [
            ("two\u{1b}[H one \u{1b}[D\u{1b}[C\u{1b}[F!", " one two!"),
            ("aéc\u{1b}[D\u{1b}[D\u{1b}[3~b", "abc"),
            ("one two\u{1b}b\u{b}\u{1b}b\u{1b}f!", "one! "),
            ("ab\u{1b}\rc\u{1b}[A!\u{1b}[B?", "a!b\nc?"),
            ("\u{10}\u{10}\u{10}", "one! "),
            ("new\u{1b}[A\u{1b}[A\u{1b}[B\u{1b}[B er", "new er"),
            ("ab\u{1b}[D\u{4}", "a"),
        ] {
            let end = editor.press_keys(format!("{keys}\r").as_bytes(), FACE).end;
            assert_eq!(end, Some(AnswerEnd::Text(meant.into())), "{keys:?}");
        }
        assert_eq!(editor.press_keys(b"x\x1b[D\x1b[C\x7f\x04", FACE).end, Some(AnswerEnd::Declined));
        editor.press_keys("日本\u{1b}[D".as_bytes(), FACE);
        assert_eq!(editor.around(), ("日".into(), "本".into()));
    }
}
