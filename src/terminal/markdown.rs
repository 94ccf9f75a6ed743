//! The agent's Markdown as a terminal can show it: headings and strong text bold, code colored, links where the terminal
//! has them, lines wrapped between words. Decided word by word, because the text arrives word by word. A table is held
//! back until it is whole. Code blocks stay as they are.

use super::table::Table;
use super::width::{self, is_breakable, is_ideograph, push_broken};

const BOLD: (&str, &str) = ("\u{1b}[1m", "\u{1b}[22m");
const CODE: (&str, &str) = ("\u{1b}[36m", "\u{1b}[39m");
const ITALIC: (&str, &str) = ("\u{1b}[3m", "\u{1b}[23m");
/// The longest link that is held back until it is complete, in bytes.
const LINK_BYTES: usize = 2048;
/// The indentation of a code block without a fence, in blanks.
const CODE_INDENT: usize = 4;
const LOWEST_HEADING: usize = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Row {
    #[default]
    Paragraph,
    /// The first line of a list's entry or of a quote.
    Entry,
    Heading,
    Table,
    /// A line of code, or a row of a table within a list.
    Verbatim,
}

/// The state of a message between two pieces of it.
#[derive(Debug, Default)]
pub(super) struct Page {
    row: Row,
    begun: bool,
    column: usize,
    /// The blanks at the beginning of each continuation line.
    indent: usize,
    /// Blanks before the next word. A wrapped line drops them.
    blanks: usize,
    /// The character of the open code block's fence.
    fence: Option<char>,
    /// Whether a list goes on. Its lines are indented, and only a fence marks code in it.
    listed: bool,
    /// The character before the next one, within a word.
    before: Option<char>,
    strong: bool,
    code: bool,
    /// Whether the sequences of the open styles are in force.
    on: bool,
    links: bool,
    /// The words of a link that is not complete yet.
    held: String,
    /// The address of the link that is being written.
    target: Option<String>,
    table: Table,
}

impl Page {
    pub(super) fn new(links: bool) -> Page {
        Page { links, ..Page::default() }
    }

    /// `piece` ends between two words, or within one longer than any line. The result closes the styles that it opens.
    pub(super) fn push(&mut self, piece: &str, width: usize) -> String {
        let mut out = String::with_capacity(piece.len() + 16);
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            let blank = is_blank(first);
            let run = if first == '\n' { 1 } else { run(rest, blank) };
            match first {
                '\n' => self.end_line(width, &mut out),
                _ if blank && self.held.is_empty() => self.blanks += run,
                _ if blank => self.held.push_str(&rest[..run]),
                _ => self.hold(&rest[..run], width, &mut out),
            }
            rest = &rest[run..];
        }
        self.switch(false, &mut out);
        out
    }

    /// `done`: the piece ends the message.
    pub(super) fn lay_out(&mut self, piece: &str, done: bool, width: usize) -> String {
        let out = self.push(piece, width);
        if done { out + &self.end(width) } else { out }
    }

    /// Lines of our own stand below: the text continues in a new line.
    pub(super) fn interrupted(&mut self) {
        (self.column, self.blanks) = (0, 0);
    }

    /// Returns the table at the end of the message.
    pub(super) fn end(&mut self, width: usize) -> String {
        let rest = self.table.take(width);
        *self = Page::new(self.links);
        rest
    }

    /// Takes the rows of the table that is not whole yet.
    pub(super) fn rows(&mut self, width: usize) -> String {
        self.table.take_rows(width)
    }

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
        if let Some(target) = &self.target {
            // All words of a link have the same id.
            let id = target.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            let (id, target) = if on { (format!("id={id}"), target.as_str()) } else { (String::new(), "") };
            out.push_str(&format!("\u{1b}]8;{id};{target}\u{1b}\\"));
        }
    }

    /// Holds a word back while it may belong to a link.
    fn hold(&mut self, word: &str, width: usize, out: &mut String) {
        let verbatim = self.fence.is_some() || self.code || word.starts_with('|');
        let is_raw = matches!(self.row, Row::Table | Row::Verbatim);
        let verbatim = verbatim || if self.begun { is_raw } else { self.is_code() };
        if self.held.is_empty() && (!self.links || verbatim || !word.contains('[')) {
            return self.word(word, width, out);
        }
        self.held.push_str(word);
        if !is_unfinished_link(&self.held) || self.held.len() > LINK_BYTES {
            self.release(width, out);
        }
    }

    fn release(&mut self, width: usize, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        let Some([mut before, text, target, mut after]) = link(&held) else { return self.words(&held, width, out) };
        let mut text = text.to_owned();
        if let (Some(outer), Some(rest)) = (before.strip_suffix("**"), after.strip_prefix("**")) {
            (before, text, after) = (outer, format!("**{text}**"), rest);
        }
        self.words(before, width, out);
        self.switch(false, out);
        self.target = Some(target.to_owned());
        self.words(&text, width, out);
        self.switch(false, out);
        self.target = None;
        self.words(after, width, out);
    }

    fn words(&mut self, text: &str, width: usize, out: &mut String) {
        for part in text.split_inclusive(is_blank) {
            let word = part.trim_end_matches(is_blank);
            if !word.is_empty() {
                self.word(word, width, out);
            }
            self.blanks += part.len() - word.len();
        }
    }

    fn end_line(&mut self, width: usize, out: &mut String) {
        self.release(width, out);
        self.switch(false, out);
        // Strong text ends with its paragraph, and code with its line: a marker without its pair must not style the rest.
        let strong = self.strong && self.begun;
        if self.begun && self.row == Row::Table {
            self.table.end_row();
        } else {
            out.push_str(&self.table.take(width));
            out.push('\n');
        }
        if self.table.is_full() {
            out.push_str(&self.table.take(width));
        }
        let table = std::mem::take(&mut self.table);
        *self = Page { fence: self.fence, listed: self.listed, strong, table, ..Page::new(self.links) };
    }

    fn word(&mut self, word: &str, width: usize, out: &mut String) {
        if !std::mem::replace(&mut self.begun, true) {
            self.row = self.row_of(word);
            if self.row != Row::Table {
                out.push_str(&self.table.take(width));
            }
            self.strong &= self.row == Row::Paragraph;
            match self.row {
                Row::Heading => return self.blanks = 0,
                Row::Entry => self.indent = self.blanks + word.len() + 1,
                Row::Paragraph if self.listed => self.indent = self.blanks,
                Row::Paragraph | Row::Table | Row::Verbatim => {}
            }
        } else if self.row == Row::Heading && self.column == 0 {
            // The marker is dropped, and so is the blank after it.
            self.blanks = 0;
        }
        if self.row == Row::Table {
            self.table.push(&" ".repeat(std::mem::take(&mut self.blanks)));
            return self.table.push(word);
        }
        if self.row == Row::Verbatim {
            out.push_str(&" ".repeat(std::mem::take(&mut self.blanks)));
            return out.push_str(word);
        }
        let mut styled = String::new();
        // A link begins at its words, not at the blank before them.
        self.switch(true, if self.target.is_some() { &mut styled } else { out });
        let columns = self.style(word, &mut styled);
        if self.column > self.indent && self.column + self.blanks + columns > width {
            out.push('\n');
            (self.blanks, self.column) = (self.indent, 0);
        }
        self.column += self.blanks;
        out.push_str(&" ".repeat(std::mem::take(&mut self.blanks)));
        if self.target.is_none() && is_breakable(word, self.indent, columns, width) {
            self.column = push_broken(&styled, &" ".repeat(self.indent), self.column, width, out);
        } else {
            self.column += columns;
            out.push_str(&styled);
        }
    }

    fn row_of(&mut self, word: &str) -> Row {
        let fence = ['`', '~'].into_iter().find(|c| word.chars().take_while(|found| found == c).count() >= 3);
        match (self.fence, fence) {
            (Some(open), Some(found)) if open == found => self.fence = None,
            (None, Some(found)) => self.fence = Some(found),
            (Some(_), _) => {}
            (None, None) if word.starts_with('|') && self.blanks == 0 => {
                // A line without an indent ends the list above it.
                self.listed = false;
                return Row::Table;
            }
            (None, None) if word.starts_with('|') && !self.listed && !self.is_code() => return Row::Table,
            (None, None) if word.starts_with('|') || self.is_code() => {}
            (None, None) => {
                self.listed = is_list_marker(word) || self.listed && self.blanks > 0;
                return match word {
                    ">" => Row::Entry,
                    _ if is_list_marker(word) => Row::Entry,
                    _ if word.len() <= LOWEST_HEADING && word.bytes().all(|b| b == b'#') => Row::Heading,
                    _ => Row::Paragraph,
                };
            }
        }
        Row::Verbatim
    }

    /// Whether a line that begins here is a line of a code block without a fence.
    fn is_code(&self) -> bool {
        self.blanks >= CODE_INDENT && !self.listed
    }

    /// Returns the columns of the word without its markers.
    fn style(&mut self, word: &str, out: &mut String) -> usize {
        let (mut columns, mut rest) = (width::columns(word), word);
        // A piece may begin within a word.
        let mut before = self.before.filter(|_| self.blanks == 0);
        while let Some(c) = rest.chars().next() {
            let after = |length: usize| rest[length..].chars().next();
            // No blanks part the words of some scripts.
            let outside = |near: Option<char>| near.is_none_or(|c| !c.is_alphanumeric() || is_ideograph(c));
            let strong = !self.code && rest.starts_with("**");
            let opens = strong && !self.strong && outside(before) && after(2).is_some_and(|c| c != '*');
            let closes = strong && self.strong && before.is_some() && outside(after(2));
            let emphasized = emphasized(rest).filter(|_| !self.code && before.is_none_or(|c| "([{\"'".contains(c)));
            if let Some(text) = emphasized {
                out.extend([ITALIC.0, text, ITALIC.1]);
                columns -= 2;
                before = Some('*');
                rest = &rest[text.len() + 2..];
                continue;
            }
            let marker = if c == '`' && after(1) != Some('`') && before != Some('`') {
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
                0
            };
            columns -= marker;
            let length = marker.max(c.len_utf8());
            before = Some(c);
            rest = &rest[length..];
        }
        self.before = before;
        columns
    }
}

/// An emphasis of several words keeps its stars: one alone is often a glob or a pointer, without a pair.
fn emphasized(word: &str) -> Option<&str> {
    let (text, after) = word.strip_prefix('*')?.split_once('*')?;
    let is_text =
        text.starts_with(char::is_alphanumeric) && text.ends_with(char::is_alphanumeric) && !text.contains('`');
    (is_text && after.chars().next().is_none_or(|c| ".,;:!?)]}\"'".contains(c))).then_some(text)
}

fn is_unfinished_link(text: &str) -> bool {
    match text.split_once('[').map(|(_, link)| link.split_once(']')) {
        Some(Some((_, after))) => after.starts_with('(') && !after.contains(')'),
        Some(None) => true,
        None => false,
    }
}

/// Before the link, its words, its address, and after it. `None` too if the words look like another address.
fn link(text: &str) -> Option<[&str; 4]> {
    let (before, rest) = text.split_once('[')?;
    let is_other = before.ends_with('!') || before.matches('`').count() % 2 == 1;
    let (words, rest) = rest.split_once("](")?;
    let (target, after) = rest.split_once(')')?;
    let is_web = target.starts_with("https://") || target.starts_with("http://");
    let is_plain = target.bytes().all(|b| b.is_ascii_graphic() && b != b'(');
    let is_honest = words == target || !(words.contains("//") || words.contains("www."));
    let fits = !is_other && is_web && is_plain && is_honest && !words.is_empty() && !words.contains(['[', ']']);
    fits.then_some([before, words, target, after])
}

/// The length of the blanks or of the word at the beginning of a text. A word ends after an ideograph.
fn run(text: &str, blank: bool) -> usize {
    let mut ends = text.char_indices().skip_while(|(_, c)| *c != '\n' && is_blank(*c) == blank && !is_ideograph(*c));
    let end = ends.next().map(|(at, c)| at + if is_ideograph(c) && !blank { c.len_utf8() } else { 0 });
    end.unwrap_or(text.len())
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
        shown_on(Page::default(), text, width)
    }

    fn shown_on(mut page: Page, text: &str, width: usize) -> String {
        let words = text.split_inclusive([' ', '\n']);
        let mut out = String::new();
        words.for_each(|word| out.push_str(&page.push(word, width)));
        out.push_str(&page.end(width));
        // Every piece closes its styles.
        let out = out.replace("\u{1b}[22m\u{1b}[1m", "").replace("\u{1b}[39m\u{1b}[36m", "");
        let out = out.replace("\u{1b}[3m", "<i>").replace("\u{1b}[23m", "</i>");
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
            ("it is *not*, (*never*) `*so*`", "it is <i>not</i>, (<i>never</i>) <c>*so*</c>"),
            ("*.rs, a/*b*/ and *args, *two words*", "*.rs, a/*b*/ and *args, *two words*"),
            ("a `b\nc", "a <c>b</c>\nc"),
            ("a **b\n\nc", "a <b>b</b>\n\nc"),
            ("```sh\n# no **heading**\n```\n# one", "```sh\n# no **heading**\n```\n<b>one</b>"),
            ("| a | `b` |\n", "| a | `b` |\n"),
            ("    let x = `y`;\n", "    let x = `y`;\n"),
            ("#hash and #1\n", "#hash and #1\n"),
            ("``literal``", "``literal``"),
            ("a **b\n- c\n- **d**", "a <b>b</b>\n- c\n- <b>d</b>"),
            ("a **b\n# c", "a <b>b</b>\n<b>c</b>"),
            ("这是**重要**的文字", "这是<b>重要</b>的文字"),
            ("- a\n\n    **b**\n\n    c\nd\n\n    **e**", "- a\n\n    <b>b</b>\n\n    c\nd\n\n    **e**"),
        ] {
            assert_eq!(shown(text, 80), expected, "{text:?}");
        }
    }

    #[test]
    fn a_table_is_laid_out_when_it_is_whole() {
        let (rows, table) = ("|a|b|\n|-|-|\n|one|**2**|\n", "| a   | b     |\n|-----|-------|\n| one | **2** |\n");
        for (before, after) in
            [("", ""), ("x\n\n", "\ny"), ("", "y"), ("# T\n", "\n|alone|\n"), ("", "```\n|a|\n```\n")]
        {
            let heading = before.replace("# T", "<b>T</b>");
            assert_eq!(shown(&format!("{before}{rows}{after}"), 80), format!("{heading}{table}{after}"));
        }
        assert_eq!(shown("- a\n  |a|b|\n  |-|-|\n", 80), "- a\n  |a|b|\n  |-|-|\n");
        for list in ["- a\n", "- a\n\n", "1. a\n   b\n\n"] {
            assert_eq!(shown(&format!("{list}{rows}"), 80), format!("{list}{table}"), "behind a list");
        }
        let mut page = Page::default();
        assert_eq!(page.push(rows, 80), "");
        assert_eq!((page.rows(80), page.end(80)), (table.to_owned(), String::new()));
        let long = "|a|\n|-|\n".to_owned() + &"|x|\n".repeat(30_000);
        assert!(page.push(&long, 80).len() > 60_000, "a long table is not held back");
    }

    #[test]
    fn a_piece_may_end_within_a_word() {
        let mut page = Page::default();
        let out: String = ["**重", "要", "** and **wo", "rd** end"].map(|piece| page.push(piece, 80)).concat();
        let out = out.replace("\u{1b}[22m\u{1b}[1m", "");
        assert_eq!(out, "\u{1b}[1m重要\u{1b}[22m and \u{1b}[1mword\u{1b}[22m end");
    }

    #[test]
    fn links_show_their_words_if_the_terminal_supports_links() {
        let linked = |text: &str| {
            let shown = shown_on(Page::new(true), &format!("{text}\n"), 40);
            let ids = regex_lite::Regex::new("\u{1b}]8;id=[0-9]+;([^\u{1b}]+)\u{1b}.").unwrap();
            let shown = ids.replace_all(&shown, "<$1>").replace("\u{1b}]8;;\u{1b}\\", "</>");
            let signs = [("\u{1b}[1m", "<b>"), ("\u{1b}[22m", "</b>"), ("\u{1b}[36m", "<c>"), ("\u{1b}[39m", "</c>")];
            signs.iter().fold(shown, |out, (from, to)| out.replace(from, to)).trim_end().to_owned()
        };
        for (text, expected) in [
            ("see [docs](https://a.b/c).", "see <https://a.b/c>docs</>."),
            ("see [the long docs](https://a.b) now", "see <https://a.b>the long docs</> now"),
            ("(**[x](http://a)**)", "(<http://a><b>x</b></>)"),
            ("[ ] open, [x] done, a[0] and [1, 2]", "[ ] open, [x] done, a[0] and [1, 2]"),
            ("[a](src/lib.rs) ![b](https://a)", "[a](src/lib.rs) ![b](https://a)"),
            ("[https://good](https://evil)", "[https://good](https://evil)"),
            ("[unfinished words", "[unfinished words"),
            ("`[a](https://b)`", "<c>[a](https://b)</c>"),
            ("| [a](https://b) |", "| [a](https://b) |"),
        ] {
            assert_eq!(linked(text), expected, "{text}");
        }
        let wrapped = shown_on(Page::new(true), "one two [three four](https://a) five\n", 12);
        let plain =
            regex_lite::Regex::new("\u{1b}]8;[^\u{1b}]*\u{1b}.").unwrap().replace_all(&wrapped, "").into_owned();
        assert_eq!(plain, "one two\nthree four\nfive\n");
        assert_eq!(shown("see [docs](https://a.b/c).\n", 80), "see [docs](https://a.b/c).\n");
    }

    #[test]
    fn lines_wrap_between_words_and_lists_keep_their_indent() {
        assert_eq!(shown("one two three four", 9), "one two\nthree\nfour");
        assert_eq!(shown("- one two three\n  - four five", 11), "- one two\n  three\n  - four\n    five");
        assert_eq!(shown("10. one two", 8), "10. one\n    two");
        assert_eq!(shown("> a quote", 7), "> a\n  quote");
        assert_eq!(shown("averyverylongword x", 5), "averyverylongword\nx");
        assert_eq!(shown("| no table stays as it is |", 5), "| no table stays as it is |");
        assert_eq!(shown("漢字 漢字 漢字", 9), "漢字 漢字\n漢字");
        assert_eq!(
            shown("- a\n  - b\n    1. one two\n       three four", 14),
            "- a\n  - b\n    1. one two\n       three\n       four"
        );
        assert_eq!(shown("- 漢字漢字漢字 word", 8), "- 漢字漢\n  字漢字\n  word");
        // A word that is longer than a line keeps the indent; a path or an address stays whole.
        assert_eq!(shown("- an averyverylongword x", 8), "- an\n  averyv\n  erylon\n  gword\n  x");
        assert_eq!(shown("- **averylongword**", 8), "- <b>averyl\n  ongwor\n  d</b>");
        assert_eq!(shown("- see a/very/long/path x", 8), "- see\n  a/very/long/path\n  x");
    }
}
