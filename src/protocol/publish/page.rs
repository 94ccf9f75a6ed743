//! Parts of the reference: its sections by name, and its examples.

use super::REFERENCE;
use crate::json::{Fields, string};
use crate::protocol::form::ObjectForm;
use crate::protocol::messages::{FRAMES, MESSAGES};
use crate::protocol::words::Purpose;
use serde_json::value::RawValue;
use std::collections::HashSet;

/// A part of the reference under a heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part<'p> {
    title: &'p str,
    /// The number of `#` before the title.
    level: usize,
    /// The text with its heading, without the parts below it.
    own: &'p str,
    /// The text with its heading and the parts below it.
    whole: &'p str,
}

/// The parts of the page, in order. A line in a block of code is not a heading.
fn parts() -> Vec<Part<'static>> {
    let (mut heads, mut fenced, mut at) = (Vec::new(), false, 0);
    for line in REFERENCE.split_inclusive('\n') {
        fenced ^= line.starts_with("```");
        let level = line.bytes().take_while(|b| *b == b'#').count();
        if level > 0 && !fenced {
            heads.push((at, level, line[level..].trim()));
        }
        at += line.len();
    }
    let end = |from: usize, ends: &dyn Fn(usize) -> bool| {
        let next = heads.iter().skip(from + 1).find(|(_, level, _)| ends(*level));
        next.map_or(REFERENCE.len(), |(at, ..)| *at)
    };
    let part = |(index, (start, level, title)): (usize, &(usize, usize, &'static str))| Part {
        title,
        level: *level,
        own: REFERENCE[*start..end(index, &|_| true)].trim_end(),
        whole: REFERENCE[*start..end(index, &|next| next <= *level)].trim_end(),
    };
    heads.iter().enumerate().map(part).collect()
}

impl Part<'_> {
    /// Whether the title is this name, or lists it. Ignores case and dashes, and
    /// the title of the page.
    fn is_titled(&self, name: &str) -> bool {
        let plain = |text: &str| text.to_lowercase().replace('-', " ");
        let name = plain(name);
        self.level > 1 && (plain(self.title) == name || self.title.split(", ").any(|title| plain(title) == name))
    }

    /// Whether the title, or one of the names that it lists, is this name in the singular or plural.
    fn is_about(&self, name: &str) -> bool {
        let singular = |text: &str| text.to_lowercase().trim_end_matches('s').to_owned();
        let name = singular(name);
        let titles = self.title.split(", ").flat_map(|title| title.split(" and "));
        self.level > 1 && titles.map(singular).any(|title| title == name)
    }

    /// Whether a row of a table begins with this name.
    fn has_row(&self, name: &str) -> bool {
        let name = format!("`{name}`");
        let mut first = self.own.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        first.any(|cell| cell.contains(&name))
    }
}

/// The section with this heading, in the singular or plural, or the first one that explains the message, field, kind or code with this name.
/// `TYPE.FIELD` is the field of one message. Further sections that explain the name are listed at the end. `None`: the
/// page has no such name.
pub fn section(name: &str) -> Option<String> {
    let parts = parts();
    if let Some(part) = parts.iter().find(|part| part.is_titled(name)) {
        return Some(format!("{}\n", part.whole));
    }
    let of_message = name.rsplit_once('.').and_then(|(message, field)| {
        parts.iter().find(|part| part.is_titled(message)).filter(|part| part.has_row(field))
    });
    if let Some(part) = of_message {
        return Some(format!("{}\n", part.own));
    }
    let quoted = format!("`{name}`");
    let rows: Vec<&Part<'_>> = parts.iter().filter(|part| part.has_row(name)).collect();
    if let Some(part) = parts.iter().find(|part| part.is_about(name)) {
        let others = rows.iter().filter(|row| !part.whole.contains(row.own)).map(|row| row.title);
        return Some(format!("{}\n{}", part.whole, see_also(others)));
    }
    let mentioned = || parts.iter().filter(|part| part.own.contains(&quoted)).collect();
    let found: Vec<&Part<'_>> = if rows.is_empty() { mentioned() } else { rows };
    let (first, others) = found.split_first()?;
    Some(format!("{}\n{}", first.own, see_also(others.iter().map(|part| part.title))))
}

/// The line that lists further sections.
fn see_also(titles: impl Iterator<Item = &'static str>) -> String {
    let titles: Vec<&str> = titles.collect();
    if titles.is_empty() { String::new() } else { format!("\nSee also: {}.\n", titles.join("; ")) }
}

/// The names that lead to a section: headings, messages, kinds and fields.
pub fn section_names() -> Vec<&'static str> {
    let rows = REFERENCE.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let titles =
        parts().into_iter().filter(|part| part.level > 1).flat_map(|part| part.title.split(", ")).collect::<Vec<_>>();
    titles.into_iter().chain(rows).collect()
}

/// A message for each form of its payload, and a frame for each type, each kind and each kind of question, a permission
/// too: the examples of the reference, each as one line.
pub fn examples() -> String {
    let mut seen = HashSet::new();
    let all = blocks("json in").chain(blocks("json out"));
    let first = all.filter(|example| form_of(example).is_some_and(|form| seen.insert(form)));
    first.map(|example| one_line(example.get()) + "\n").collect()
}

/// The examples in the blocks with this tag.
fn blocks(tag: &str) -> impl Iterator<Item = Box<RawValue>> {
    let mut parts = REFERENCE.split("\n```");
    let _ = parts.next();
    // The parts alternate between the insides of blocks and the text between them.
    let inside = parts.step_by(2).filter_map(move |part| part.strip_prefix(tag)?.strip_prefix('\n'));
    inside.flat_map(|text| serde_json::Deserializer::from_str(text).into_iter().map_while(Result::ok))
}

/// The type of a message, and the form of its payload.
fn form_of(example: &RawValue) -> Option<(String, String)> {
    let fields = Fields::parse(example.get())?;
    let kind = fields.get("type").and_then(string)?;
    let payload = fields.get("payload").and_then(|raw| Fields::parse(raw.get()));
    let text = |key: &str| payload.as_ref().and_then(|payload| payload.get(key)).and_then(string);
    if FRAMES.iter().any(|frame| frame.name == kind) {
        let permission = text("purpose").filter(|purpose| purpose == Purpose::Permission.word());
        return Some((kind, permission.or_else(|| text("kind")).unwrap_or_default()));
    }
    let forms = MESSAGES.iter().find(|message| message.name == kind)?.payloads;
    let has = |key: &str| payload.as_ref().is_some_and(|payload| payload.get(key).is_some());
    let fits = |form: &&&ObjectForm| form.fields().iter().all(|field| field.optional || has(field.name));
    forms.iter().find(fits).map(|form| (kind, form.name.to_owned()))
}

/// JSON without blanks between its parts.
fn one_line(json: &str) -> String {
    let (mut quoted, mut escaped) = (false, false);
    let keep = |c: &char| {
        quoted ^= *c == '"' && !escaped;
        escaped = quoted && *c == '\\' && !escaped;
        quoted || !c.is_whitespace()
    };
    json.chars().filter(keep).collect()
}
