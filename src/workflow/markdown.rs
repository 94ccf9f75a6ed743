//! The lines of a Markdown file with the elements that the two formats need: fences, headings and list items. One pass,
//! in linear time. A line knows its place in the text, so that an edit can change that line alone.

use super::violation::{Rule, Violations};
use crate::clean::is_bidi_control;
use std::borrow::Cow;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextLine<'a> {
    /// The line's number, from 1.
    pub number: usize,
    /// The text without trailing blanks and without the line end.
    pub text: &'a str,
    /// The line's place in the text, including the line end. The first line does not include a BOM.
    pub at: Range<usize>,
    pub place: FencePlace<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FencePlace<'a> {
    Outside,
    /// The line opens a fence with this info string.
    Opens(&'a str),
    Inside,
    Closes,
}

/// A heading of the form `## Text`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heading<'a> {
    /// The level, 1 to 6.
    pub level: usize,
    /// The text, without surrounding blanks and without a closing row of `#`. May be empty.
    pub text: &'a str,
}

#[derive(Clone, Copy)]
struct Fence {
    with: u8,
    length: usize,
    opened: usize,
}

/// The lines of a text. Adds violations of the rules about characters and fences, which hold for every line.
pub(crate) fn lines<'a>(text: &'a str, found: &mut Violations) -> Vec<TextLine<'a>> {
    let mut lines = Vec::new();
    let mut at = text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len();
    let mut fence: Option<Fence> = None;
    for whole in text[at..].split_inclusive('\n') {
        let number = lines.len() + 1;
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.chars().any(is_control) {
            found.at(number, Rule::ControlCharacter, "Remove the control characters from this line.");
        }
        let line = line.trim_end_matches([' ', '\t']);
        let place = match fence {
            None => match opening(line) {
                Some((with, length, info)) => {
                    fence = Some(Fence { with, length, opened: number });
                    FencePlace::Opens(info)
                }
                None => FencePlace::Outside,
            },
            Some(open) if closes(open, line) => {
                fence = None;
                FencePlace::Closes
            }
            Some(_) => FencePlace::Inside,
        };
        lines.push(TextLine { number, text: line, at: at..at + whole.len(), place });
        at += whole.len();
    }
    if let Some(open) = fence {
        let text = "Close this fence with a line of at least as many of its characters.";
        found.at(open.opened, Rule::UnclosedFence, text);
    }
    lines
}

/// A block with this text, in a fence that the text cannot close.
pub(crate) fn fenced(info: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}{info}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Decodes a file. Adds a violation for each line that is not UTF-8.
pub(crate) fn decoded<'a>(bytes: &'a [u8], found: &mut Violations) -> Cow<'a, str> {
    let text = String::from_utf8_lossy(bytes);
    if matches!(text, Cow::Owned(_)) {
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if str::from_utf8(line).is_err() {
                found.at(at + 1, Rule::NotUtf8, "Save the file as UTF-8.");
            }
        }
    }
    text
}

fn is_control(c: char) -> bool {
    match c {
        '\t' | '\r' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => true,
        c => is_bidi_control(c),
    }
}

/// The line without its indentation. `None`: it has more than three blanks.
fn unindented(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= 3).then_some(text)
}

fn row(line: &str, of: u8) -> usize {
    line.bytes().take_while(|byte| *byte == of).count()
}

/// The fence that a line opens: its character, its length and its info string.
fn opening(line: &str) -> Option<(u8, usize, &str)> {
    let line = unindented(line)?;
    let with = *line.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = row(line, with);
    let info = line[length..].trim_matches([' ', '\t']);
    (length >= 3 && (with == b'~' || !info.contains('`'))).then_some((with, length, info))
}

fn closes(open: Fence, line: &str) -> bool {
    unindented(line).is_some_and(|line| row(line, open.with) == line.len() && line.len() >= open.length)
}

impl<'a> TextLine<'a> {
    /// Whether the line is outside every fence and opens none.
    pub(crate) fn is_outside(&self) -> bool {
        self.place == FencePlace::Outside
    }

    pub(crate) fn heading(&self) -> Option<Heading<'a>> {
        let line = Some(self.text).filter(|_| self.is_outside()).and_then(unindented)?;
        let level = row(line, b'#');
        let rest = &line[level..];
        if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
            return None;
        }
        let text = rest.trim_matches([' ', '\t']);
        let open = text.trim_end_matches('#');
        // A row of `#` closes a heading only after a blank.
        let closed = open.is_empty() || open.ends_with([' ', '\t']);
        Some(Heading { level, text: if closed { open.trim_end_matches([' ', '\t']) } else { text } })
    }

    pub(crate) fn item(&self) -> Option<&'a str> {
        Some(self.text).filter(|_| self.is_outside()).and_then(item)
    }
}

/// The text after the marker of a list item: `-`, `*`, `+`, `1.` or `1)`, after any blanks and before at least one.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let marker = line[digits..].chars().next()?;
    let is_marker = if digits == 0 { matches!(marker, '-' | '*' | '+') } else { matches!(marker, '.' | ')') };
    let rest = line[digits..].get(1..).filter(|_| is_marker)?;
    let text = rest.trim_start();
    (text.len() < rest.len()).then_some(text)
}

/// The text of a list item, without a box, an id and an opening backtick.
pub(crate) fn item_text(item: &str) -> &str {
    let item = without_box(item).unwrap_or(item);
    let item = without_id(item).unwrap_or(item);
    item.strip_prefix('`').unwrap_or(item)
}

fn without_box(item: &str) -> Option<&str> {
    let rest = ["[ ]", "[x]", "[X]"].iter().find_map(|open| item.strip_prefix(open))?;
    let text = rest.trim_start();
    (text.len() < rest.len()).then_some(text)
}

/// The text after an id of a requirement (`R1: `) or of a task (`T1.1 `).
fn without_id(item: &str) -> Option<&str> {
    let of_task = || task_id(item).map(|(_, _, rest)| rest);
    let rest = requirement_id(item).map(|(_, rest)| rest).or_else(of_task)?;
    rest.strip_prefix(' ').map(str::trim_start)
}

/// A number in an id, from 1, and the rest of the text. A number that is too large becomes the maximum.
fn number(text: &str) -> Option<(u64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 || text.starts_with('0') {
        return None;
    }
    let (digits, rest) = text.split_at(length);
    Some((digits.parse().unwrap_or(u64::MAX), rest))
}

/// The number in a requirement's id without its colon, and the rest of the text.
pub(super) fn requirement(text: &str) -> Option<(u64, &str)> {
    number(text.strip_prefix('R')?)
}

/// The number in a requirement's id, and the text after its colon.
pub(super) fn requirement_id(text: &str) -> Option<(u64, &str)> {
    let (id, rest) = requirement(text)?;
    Some((id, rest.strip_prefix(':')?))
}

/// The two numbers in a task's id, and the rest of the text.
pub(super) fn task_id(text: &str) -> Option<(u64, u64, &str)> {
    let (phase, rest) = number(text.strip_prefix('T')?)?;
    let (task, rest) = number(rest.strip_prefix('.')?)?;
    Some((phase, task, rest))
}

pub(crate) fn ends_section(heading: &Heading<'_>) -> bool {
    heading.level <= 2
}

/// Checks that there is one title, in the first line that is not blank. Returns it, and its index in `lines`.
pub(crate) fn title<'a>(lines: &[TextLine<'a>], found: &mut Violations) -> Option<(&'a str, usize)> {
    const FIRST: &str = "Begin the file with a title: # TITLE.";
    let mut titles = lines.iter().enumerate().filter_map(|(at, line)| Some((line.heading()?, at, line.number)));
    let mut titles = titles.by_ref().filter(|(heading, ..)| heading.level == 1);
    let first = titles.next();
    match (lines.iter().position(|line| !line.text.trim().is_empty()), first) {
        (None, _) => found.absent(Rule::Title, FIRST),
        (Some(at), Some((heading, title, _))) if title == at && !heading.text.is_empty() => {}
        (Some(at), _) => found.at(lines[at].number, Rule::Title, FIRST),
    }
    for (_, _, number) in titles {
        found.at(number, Rule::Title, "Make this a section heading (##): only the title has level 1.");
    }
    first.map(|(heading, at, _)| (heading.text, at))
}
