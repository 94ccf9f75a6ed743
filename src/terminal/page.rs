//! The agent's Markdown as a terminal can show it: headings and strong text bold, code coloured, lines wrapped between
//! words. Decided word by word, because the text arrives word by word. Tables and code blocks stay as they are.

use super::width;

const BOLD: (&str, &str) = ("\u{1b}[1m", "\u{1b}[22m");
const CODE: (&str, &str) = ("\u{1b}[36m", "\u{1b}[39m");
/// The indentation of a code block without a fence, in blanks.
const CODE_INDENT: usize = 4;
/// The length of the longest heading marker.
const LOWEST_HEADING: usize = 6;

/// The kind of the line that is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Row {
    /// A paragraph or a list's entry.
    #[default]
    Text,
    Heading,
    /// A row of a table, or a line of code.
    Verbatim,
}

/// The state of a message between two pieces of it.
#[derive(Debug, Default)]
pub(super) struct Page {
    row: Row,
    /// Whether the line has a word already.
    begun: bool,
    /// Columns used of the line.
    column: usize,
    /// The blanks at the beginning of each continuation line.
    indent: usize,
    /// Blanks before the next word. A wrapped line drops them.
    blanks: usize,
    /// The character of the open code block's fence.
    fence: Option<char>,
    strong: bool,
    code: bool,
    /// Whether the sequences of the open styles are in force.
    on: bool,
}

impl Page {
    /// Turns a piece of text into text for a terminal of this width. A piece ends between two words, or within a word
    /// that is longer than any line. The result closes the styles that it opens.
    pub(super) fn push(&mut self, piece: &str, width: usize) -> String {
        let mut out = String::with_capacity(piece.len() + 16);
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            let blank = is_blank(first);
            let run =
                if first == '\n' { 1 } else { rest.find(|c| c == '\n' || is_blank(c) != blank).unwrap_or(rest.len()) };
            match first {
                '\n' => self.end_line(&mut out),
                _ if blank => self.blanks += run,
                _ => self.word(&rest[..run], width, &mut out),
            }
            rest = &rest[run..];
        }
        self.switch(false, &mut out);
        out
    }

    /// Lines of our own stand below: the text continues in a new line.
    pub(super) fn interrupted(&mut self) {
        (self.column, self.blanks) = (0, 0);
    }

    /// The message is over.
    pub(super) fn end(&mut self) {
        *self = Page::default();
    }

    /// Switches the open styles on or off.
    fn switch(&mut self, on: bool, out: &mut String) {
        if std::mem::replace(&mut self.on, on) == on {
            return;
        }
        let sign = |style: (&'static str, &'static str)| if on { style.0 } else { style.1 };
        if self.strong || self.row == Row::Heading {
            out.push_str(sign(BOLD));
        }
        if self.code {
            out.push_str(sign(CODE));
        }
    }

    fn end_line(&mut self, out: &mut String) {
        self.switch(false, out);
        // Strong text ends with its paragraph, and code with its line: a marker without its pair must not style the rest.
        let strong = self.strong && self.begun;
        *self = Page { fence: self.fence, strong, ..Page::default() };
        out.push('\n');
    }

    fn word(&mut self, word: &str, width: usize, out: &mut String) {
        if !std::mem::replace(&mut self.begun, true) {
            self.row = self.row_of(word);
            match self.row {
                Row::Heading => return self.blanks = 0,
                Row::Text if is_list_marker(word) => self.indent = self.blanks + word.len() + 1,
                Row::Text | Row::Verbatim => {}
            }
        } else if self.row == Row::Heading && self.column == 0 {
            // The marker is dropped, and so is the blank after it.
            self.blanks = 0;
        }
        self.switch(true, out);
        if self.row == Row::Verbatim {
            out.push_str(&" ".repeat(std::mem::take(&mut self.blanks)));
            return out.push_str(word);
        }
        let mut styled = String::new();
        let columns = self.style(word, &mut styled);
        if self.column > self.indent && self.column + self.blanks + columns > width {
            out.push('\n');
            (self.blanks, self.column) = (self.indent, 0);
        }
        self.column += self.blanks + columns;
        out.push_str(&" ".repeat(std::mem::take(&mut self.blanks)));
        out.push_str(&styled);
    }

    /// The kind of a line, by its first word.
    fn row_of(&mut self, word: &str) -> Row {
        let fence = ['`', '~'].into_iter().find(|c| word.chars().take_while(|found| found == c).count() >= 3);
        match (self.fence, fence) {
            (Some(open), Some(found)) if open == found => self.fence = None,
            (None, Some(found)) => self.fence = Some(found),
            (Some(_), _) => {}
            (None, None) if word.starts_with('|') || self.blanks >= CODE_INDENT => {}
            (None, None) if word.len() <= LOWEST_HEADING && word.bytes().all(|b| b == b'#') => return Row::Heading,
            (None, None) => return Row::Text,
        }
        Row::Verbatim
    }

    /// Adds a word without its markers, styled. Returns its columns.
    fn style(&mut self, word: &str, out: &mut String) -> usize {
        let (mut columns, mut before, mut rest) = (0, None, word);
        while let Some(c) = rest.chars().next() {
            let after = |length: usize| rest[length..].chars().next();
            let outside = |near: Option<char>| near.is_none_or(|c| !c.is_alphanumeric());
            let strong = !self.code && rest.starts_with("**");
            let opens = strong && !self.strong && outside(before) && after(2).is_some_and(|c| c != '*');
            let closes = strong && self.strong && before.is_some() && outside(after(2));
            let length = if c == '`' && after(1) != Some('`') && before != Some('`') {
                self.code = !self.code;
                out.push_str(if self.code { CODE.0 } else { CODE.1 });
                1
            } else if opens || closes {
                self.strong = opens;
                if self.row != Row::Heading {
                    out.push_str(if opens { BOLD.0 } else { BOLD.1 });
                }
                2
            } else {
                out.push(c);
                columns += width::columns(c.encode_utf8(&mut [0; 4]));
                c.len_utf8()
            };
            before = Some(c);
            rest = &rest[length..];
        }
        columns
    }
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

/// A bullet, or a number with a dot or a parenthesis.
fn is_list_marker(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']).unwrap_or_default();
    matches!(word, "-" | "*" | "+") || !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::Page;

    /// The text on a page of this width, with `<b>` and `<c>` for its styles.
    fn shown(text: &str, width: usize) -> String {
        let words = text.split_inclusive([' ', '\n']);
        let (mut page, mut out) = (Page::default(), String::new());
        words.for_each(|word| out.push_str(&page.push(word, width)));
        // Every piece closes its styles.
        let out = out.replace("\u{1b}[22m\u{1b}[1m", "").replace("\u{1b}[39m\u{1b}[36m", "");
        let signs = [("\u{1b}[1m", "<b>"), ("\u{1b}[22m", "</b>"), ("\u{1b}[36m", "<c>"), ("\u{1b}[39m", "</c>")];
        signs.iter().fold(out, |out, (from, to)| out.replace(from, to))
    }

    #[test]
    fn headings_strong_text_and_code_are_styled_without_their_markers() {
        for (text, expected) in [
            ("## The plan\nNext", "<b>The plan</b>\nNext"),
            ("a **strong text** here", "a <b>strong text</b> here"),
            ("run `cargo test` now", "run <c>cargo test</c> now"),
            ("**`x`**, then", "<b><c>x</c></b>, then"),
            ("2 ** 3 and a**b", "2 ** 3 and a**b"),
            ("a `b\nc", "a <c>b</c>\nc"),
            ("a **b\n\nc", "a <b>b</b>\n\nc"),
            ("```sh\n# no **heading**\n```\n# one", "```sh\n# no **heading**\n```\n<b>one</b>"),
            ("| a | `b` |\n", "| a | `b` |\n"),
            ("    let x = `y`;\n", "    let x = `y`;\n"),
            ("#hash and #1\n", "#hash and #1\n"),
            ("``literal``", "``literal``"),
        ] {
            assert_eq!(shown(text, 80), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_wrap_between_words_and_lists_keep_their_indent() {
        assert_eq!(shown("one two three four", 9), "one two\nthree\nfour");
        assert_eq!(shown("- one two three\n  - four five", 11), "- one two\n  three\n  - four\n    five");
        assert_eq!(shown("10. one two", 8), "10. one\n    two");
        assert_eq!(shown("averyverylongword x", 5), "averyverylongword\nx");
        assert_eq!(shown("| a table stays as it is |", 5), "| a table stays as it is |");
        assert_eq!(shown("漢字 漢字 漢字", 9), "漢字 漢字\n漢字");
    }
}
