//! The sections of the reference by name.

use super::REFERENCE;

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

    /// The heading, and the first row of a table that begins with this name, with the head of its table.
    fn row(&self, name: &str) -> Option<String> {
        let name = format!("`{name}`");
        let lines: Vec<&str> = self.own.lines().collect();
        let first = |line: &&str| Some(line.strip_prefix("| ")?.split(" | ").next()?.contains(&name));
        let at = lines.iter().position(|line| first(line) == Some(true))?;
        let table = lines[..at].iter().rposition(|line| !line.starts_with('|'))? + 1;
        let head = lines[table..at].iter().take(2).map(|line| format!("{line}\n")).collect::<String>();
        Some(format!("{}\n\n{head}{}\n", lines[0], lines[at]))
    }
}

/// The section with this heading, in the singular or plural, or the first one that explains the message, field, kind or code with this name.
/// `TYPE.FIELD` is the row of one message's field. Further sections that explain the name are listed at the end. `None`: the
/// page has no such name.
pub fn section(name: &str) -> Option<String> {
    let parts = parts();
    if let Some(part) = parts.iter().find(|part| part.is_titled(name)) {
        return Some(format!("{}\n", part.whole));
    }
    let of_message = name
        .rsplit_once('.')
        .and_then(|(message, field)| parts.iter().find(|part| part.is_titled(message))?.row(field));
    if of_message.is_some() {
        return of_message;
    }
    let quoted = format!("`{name}`");
    let rows: Vec<&Part<'_>> = parts.iter().filter(|part| part.row(name).is_some()).collect();
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
