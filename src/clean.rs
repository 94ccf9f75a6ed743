//! Removes escape sequences from an agent's text, so that it is safe for a terminal. Keeps state between pieces,
//! because a sequence may be split anywhere.

use std::borrow::Cow;
use std::fmt::Write;

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
    Escape,
    Intermediate,
    Csi,
    /// In a control string (OSC, DCS, SOS, PM, APC), until its terminator or a newline.
    ControlString,
    StringEscape,
}

impl Cleaner {
    pub fn push<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        if self.is_in_text() && safe(piece) == piece.len() {
            return Cow::Borrowed(piece);
        }
        let mut out = String::with_capacity(piece.len());
        let mut rest = piece;
        loop {
            if self.is_in_text() {
                let (text, after) = rest.split_at(safe(rest));
                out.push_str(text);
                rest = after;
            }
            let Some(c) = rest.chars().next() else { break };
            self.push_char(c, &mut out);
            rest = &rest[c.len_utf8()..];
        }
        Cow::Owned(out)
    }

    /// Returns the part that was held back, and resets the cleaner for another text.
    pub fn finish(&mut self) -> &'static str {
        let after_cr = self.after_cr;
        *self = Self::default();
        if after_cr { "\n" } else { "" }
    }

    fn is_in_text(&self) -> bool {
        self.state == State::Text && !self.after_cr
    }

    fn push_char(&mut self, c: char, out: &mut String) {
        if std::mem::take(&mut self.after_cr) && c != '\n' {
            // A lone CR would let the text after it overwrite the line.
            out.push('\n');
        }
        self.state = match (self.state, c) {
            (State::Text, _) => return self.text(c, out),
            // A newline ends any sequence: an open one must not swallow the rest of the output.
            (_, '\n') => {
                out.push('\n');
                State::Text
            }
            (State::Escape, '[') => State::Csi,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::ControlString,
            (State::Escape | State::Intermediate, ' '..='/') => State::Intermediate,
            (State::Escape | State::Csi | State::Intermediate, '\u{1b}') => State::Escape,
            (State::Escape | State::Intermediate, _) => State::Text,
            (State::Csi, '@'..='~') => State::Text,
            (State::Csi, ' '..='?') => State::Csi,
            (State::Csi, _) => State::Text,
            (State::ControlString | State::StringEscape, '\u{7}' | '\u{9c}') => State::Text,
            (State::ControlString, '\u{1b}') => State::StringEscape,
            (State::StringEscape, '\\') => State::Text,
            (State::StringEscape, '[') => State::Csi,
            (State::StringEscape, ']') => State::ControlString,
            (State::ControlString | State::StringEscape, _) => State::ControlString,
        };
    }

    fn text(&mut self, c: char, out: &mut String) {
        match c {
            '\u{1b}' => self.state = State::Escape,
            '\u{9b}' => self.state = State::Csi,
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.state = State::ControlString,
            '\n' | '\t' => out.push(c),
            '\r' => self.after_cr = true,
            '\0'..='\u{1f}' => out.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => out.push('\u{2421}'),
            '\u{80}'..='\u{9f}' => out.push('\u{fffd}'),
            '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\u{feff}' | '\u{e0000}'..='\u{e007f}' => {}
            _ if is_bidi_control(c) => out.push_str(&format!("<U+{:04X}>", u32::from(c))),
            _ => out.push(c),
        }
    }
}

/// The length of the beginning of a text that needs no change.
fn safe(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(n) = bytes[from..].iter().position(|byte| LEADS[usize::from(*byte)]) {
        let at = from + n;
        let changes = text[at..].chars().next().is_some_and(|c| !stays(c));
        if changes {
            return at;
        }
        from = text.ceil_char_boundary(at + 1);
    }
    text.len()
}

/// The first bytes of the characters that may need a change.
const LEADS: [bool; 256] = {
    let (mut leads, mut byte) = ([false; 256], 0);
    while byte < 256 {
        // The last ones: U+0080 on; U+061C; U+200E on; U+FEFF; U+E0000 on.
        leads[byte] = matches!(byte, 0..=8 | 0xb..=0x1f | 0x7f | 0xc2 | 0xd8 | 0xe2 | 0xef | 0xf3);
        byte += 1;
    }
    leads
};

fn stays(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}')
        && !is_bidi_control(c)
}

pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub fn whole(text: &str) -> Cow<'_, str> {
    let mut cleaner = Cleaner::default();
    let clean = cleaner.push(text);
    match cleaner.finish() {
        "" => clean,
        end => Cow::Owned(clean.into_owned() + end),
    }
}

/// A text for approval: nothing in it acts on a terminal, looks like something else, or is left out. Control, format
/// and bidirectional characters and unusual blanks become `\u{1b}`; a backslash that would look like the beginning of
/// such an escape becomes one too. So the text can be turned back. `tabs`: whether tabs stay.
pub fn escaped(text: &str, tabs: bool) -> Cow<'_, str> {
    let is_plain = |c: char| c == '\n' || (c == '\t' && tabs) || !is_deceptive(c);
    if text.chars().all(is_plain) && !text.contains("\\u{") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match c {
            '\\' if text[at..].starts_with("\\u{") => out.push_str("\\u{5c}"),
            c if is_plain(c) => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// Whether a character is invisible, acts on a terminal, or looks like a blank.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'
            | '\u{891}' | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

pub fn one_line(text: &str) -> String {
    whole(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The last `bytes` of a text, from the beginning of a character.
pub fn last_bytes(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// Characters that act on a terminal become escapes, which bash, zsh and ksh read.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    if !word.chars().any(is_deceptive) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            c if is_deceptive(c) => c.to_string().bytes().for_each(|byte| _ = write!(out, "\\{byte:03o}")),
            c => out.push(c),
        }
    }
    out + "'"
}

#[cfg(test)]
mod tests {
    use super::{Cleaner, escaped, last_bytes, safe, shell_word, whole};

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

    /// The table of first bytes and the two rules for characters agree.
    #[test]
    fn every_character_is_handled_alike_alone_and_in_a_text() {
        for c in '\0'..=char::MAX {
            let (mut letter, mut clean) = ([0; 4], String::new());
            Cleaner::default().push_char(c, &mut clean);
            let text: &str = c.encode_utf8(&mut letter);
            assert_eq!(safe(text) == text.len(), clean == text, "{c:?}");
        }
    }

    fn unescaped(text: &str) -> String {
        let mut parts = text.split("\\u{");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (code, rest) = part.split_once('}').unwrap();
            out.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
            out.push_str(rest);
        }
        out
    }

    proptest::proptest! {
        #[test]
        fn an_escaped_text_can_be_turned_back(
            text in "([a-z ;|&\\\\{}u0-9\n\t]|\\\\u\\{1b\\}|\u{1b}\\];|\u{7}|\u{9b}|\u{202e}|\u{200b}|\u{e0041}|\u{a0}|.){0,40}",
            tabs in proptest::bool::ANY,
        ) {
            let shown = escaped(&text, tabs);
            proptest::prop_assert_eq!(unescaped(&shown), text.clone());
            let acts = |c: char| super::is_deceptive(c) && c != '\n' && !(c == '\t' && tabs);
            proptest::prop_assert!(!shown.chars().any(acts));
        }
    }

    #[test]
    fn what_could_deceive_is_shown_as_an_escape() {
        for (text, shown) in [
            ("ls \u{1b}];touch pwned;\u{7}", "ls \\u{1b}];touch pwned;\\u{7}"),
            ("a\u{9b}2Kb\u{202e}c\rd", "a\\u{9b}2Kb\\u{202e}c\\u{d}d"),
            ("printf '\\u{1b}'", "printf '\\u{5c}u{1b}'"),
            ("printf '\\x1b' \\u00e9", "printf '\\x1b' \\u00e9"),
            ("one\ntwo é 漢", "one\ntwo é 漢"),
        ] {
            assert_eq!(escaped(text, false), shown);
        }
        assert_eq!((escaped("\t", false).as_ref(), escaped("\t", true).as_ref()), ("\\u{9}", "\t"));
    }

    #[test]
    fn every_split_gives_the_same() {
        for (text, clean) in CASES {
            for cut in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let mut cleaner = Cleaner::default();
                let joined = cleaner.push(&text[..cut]) + cleaner.push(&text[cut..]);
                assert_eq!(joined, *clean, "{text:?} at {cut}");
            }
        }
    }

    #[test]
    fn the_end_of_a_text_is_as_long_as_it_may_be() {
        for (text, end) in [("a\nb", "a\nb"), ("aaaa\nbb", "a\nbb"), ("aaaaaa", "aaaa"), ("aaéé", "éé"), ("éée", "ée")]
        {
            assert_eq!(last_bytes(text, 4), end);
        }
    }

    #[test]
    fn a_word_of_a_shell_acts_on_no_terminal() {
        for (word, quoted) in [
            ("/a/b-c_1.d", "/a/b-c_1.d"),
            ("/a b", "'/a b'"),
            ("/it's", r"'/it'\''s'"),
            ("/a\u{1b}[2J'\\\u{9b}", r"$'/a\033[2J\'\\\302\233'"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
