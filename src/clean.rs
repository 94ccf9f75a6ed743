//! Text of an agent's, made safe for a terminal: no escape sequence of its own reaches the screen. The state is kept
//! over pieces, since a sequence may be split anywhere.

/// Cleans a text that comes in pieces.
#[derive(Clone, Debug, Default)]
pub struct Cleaner {
    state: State,
    /// Whether the last character was a CR, whose meaning depends on the next one.
    after_cr: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// ESC and intermediate bytes.
    Intermediate,
    /// In a control sequence, until its final byte.
    Csi,
    /// In a string (OSC, DCS, SOS, PM, APC), until its terminator or a newline.
    Text7,
    /// In a string, after ESC.
    StringEscape,
}

impl Cleaner {
    /// The safe part of a piece.
    pub fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.take(c, &mut out);
        }
        out
    }

    fn take(&mut self, c: char, out: &mut String) {
        if std::mem::take(&mut self.after_cr) && c != '\n' {
            // A lone CR would let what follows overwrite the line.
            out.push('\n');
        }
        self.state = match (self.state, c) {
            (State::Text, _) => return self.text(c, out),
            // A newline ends everything: an open sequence must not swallow the rest of the output.
            (_, '\n') => {
                out.push('\n');
                State::Text
            }
            (State::Escape, '[') => State::Csi,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Text7,
            (State::Escape | State::Intermediate, ' '..='/') => State::Intermediate,
            (State::Escape | State::Csi | State::Intermediate, '\u{1b}') => State::Escape,
            (State::Escape | State::Intermediate, _) => State::Text,
            (State::Csi, '@'..='~') => State::Text,
            (State::Csi, ' '..='?') => State::Csi,
            (State::Csi, _) => State::Text,
            (State::Text7 | State::StringEscape, '\u{7}' | '\u{9c}') => State::Text,
            (State::Text7, '\u{1b}') => State::StringEscape,
            (State::StringEscape, '\\') => State::Text,
            (State::StringEscape, '[') => State::Csi,
            (State::StringEscape, ']') => State::Text7,
            (State::Text7 | State::StringEscape, _) => State::Text7,
        };
    }

    fn text(&mut self, c: char, out: &mut String) {
        match c {
            '\u{1b}' => self.state = State::Escape,
            '\u{9b}' => self.state = State::Csi,
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.state = State::Text7,
            '\n' | '\t' => out.push(c),
            '\r' => self.after_cr = true,
            '\0'..='\u{1f}' => out.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => out.push('\u{2421}'),
            '\u{80}'..='\u{9f}' => out.push('\u{fffd}'),
            '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\u{feff}' | '\u{e0000}'..='\u{e007f}' => {}
            '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                out.push_str(&format!("<U+{:04X}>", u32::from(c)));
            }
            _ => out.push(c),
        }
    }
}

/// A whole text, cleaned.
pub fn whole(text: &str) -> String {
    let mut cleaner = Cleaner::default();
    let mut out = cleaner.push(text);
    if cleaner.after_cr {
        out.push('\n');
    }
    out
}

/// A whole text in one line.
pub fn one_line(text: &str) -> String {
    whole(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Cleaner, whole};

    const CASES: &[(&str, &str)] = &[
        ("plain \u{1f468}\u{200d}\u{1f469} é\ttab\n", "plain \u{1f468}\u{200d}\u{1f469} é\ttab\n"),
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("\u{9b}31mred", "red"),
        ("\u{1b}]0;title\u{7}x", "x"),
        ("\u{1b}]52;c;aGk=\u{1b}\\x", "x"),
        ("\u{9d}52;c;aGk=\u{9c}x", "x"),
        ("\u{1b}Pq#0\u{1b}\\x", "x"),
        ("\u{1b}_apc\u{1b}\\x\u{1b}^pm\u{1b}\\y\u{1b}Xsos\u{1b}\\z", "xyz"),
        ("\u{1b}]0;never ended\nnext", "\nnext"),
        ("\u{1b}[12\nnext", "\nnext"),
        ("\u{1b}cx", "x"),
        ("\u{1b}(Bx", "x"),
        ("a\rb", "a\nb"),
        ("a\r\nb", "a\nb"),
        ("a\u{8}b\u{7}\u{0}", "a\u{2408}b\u{2407}\u{2400}"),
        ("\u{7f}\u{85}", "\u{2421}\u{fffd}"),
        ("\u{202e}evil\u{2066}", "<U+202E>evil<U+2066>"),
        ("\u{feff}a\u{e0041}b\u{2028}c", "ab\nc"),
        ("\u{1b}\u{1b}[1mx", "x"),
    ];

    #[test]
    fn nothing_dangerous_is_left() {
        for (text, clean) in CASES {
            assert_eq!(whole(text), *clean, "{text:?}");
        }
    }

    #[test]
    fn every_split_gives_the_same() {
        for (text, clean) in CASES {
            for cut in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let mut cleaner = Cleaner::default();
                let joined = cleaner.push(&text[..cut]) + &cleaner.push(&text[cut..]);
                assert_eq!(joined, *clean, "{text:?} at {cut}");
            }
        }
    }
}
