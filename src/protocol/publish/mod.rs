//! The protocol in forms for other programs and other languages: JSON Schema, TypeScript, Python, examples, and the
//! sections of the reference. The files are committed; `tests/suite/protocol/published` generates them from the declarations.

use super::outbound::ProtocolVersion;
use super::words::word_enums;

pub const REFERENCE: &str = include_str!("../reference.md");

/// A message for each form of its payload, and a frame for each type, each kind and each kind of question, a permission
/// too: the examples of the reference, each as one line.
pub const EXAMPLES: &str = include_str!("examples.jsonl");

word_enums! {
    pub enum Language {
        TypeScript = "ts",
        Python = "python",
    }

    /// A client to copy into a project.
    pub enum Client {
        TypeScript = "ts",
        Python = "python",
        PythonAsyncio = "python-asyncio",
    }
}

/// The last line before the types in the file of types for Python. The clients have the same imports.
const PYTHON_IMPORTS_END: &str = "    NotRequired = Optional\n";

impl Client {
    /// One file: the client, and the types of [`Language::types`].
    pub fn file(self) -> String {
        match self {
            Client::TypeScript => [include_str!("clients/spektacular.ts"), "\n", Language::TypeScript.types()].concat(),
            Client::Python => with_types(include_str!("clients/spektacular.py")),
            Client::PythonAsyncio => with_types(include_str!("clients/spektacular_asyncio.py")),
        }
    }
}

fn with_types(client: &str) -> String {
    let types = Language::Python.types();
    let (_, types) = types.split_once(PYTHON_IMPORTS_END).unwrap_or(("", types));
    [client, "\n", types].concat()
}

impl Language {
    /// One file with a type for each message, frame and object.
    pub fn types(self) -> &'static str {
        match self {
            Language::TypeScript => include_str!("clients/spektacular-types.ts"),
            Language::Python => include_str!("clients/spektacular_types.py"),
        }
    }
}

/// For instance `1.1`.
pub fn version() -> String {
    let ProtocolVersion { v, minor, .. } = ProtocolVersion::OURS;
    format!("{v}.{minor}")
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MessageSet {
    #[default]
    All,
    Inbound,
    Outbound,
    Type(String),
}

/// The treatment of what this version does not know in a frame. A message of a client may never contain it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownParts {
    /// Later minor versions may send it.
    #[default]
    Allowed,
    /// This version does not send it.
    Refused,
}

/// The beginning of each definition. Only their first lines are indented by exactly four blanks.
const BEGIN: &str = "\n    \"";
const END: &str = "\n  }\n}\n";

/// The schema of some messages: the definitions in the published file that its root reaches.
pub fn schema(scope: &MessageSet, unknown: UnknownParts) -> String {
    let file = match unknown {
        UnknownParts::Allowed => include_str!("schema.json"),
        UnknownParts::Refused => include_str!("schema_strict.json"),
    };
    let root = match scope {
        MessageSet::All => return file.to_owned(),
        MessageSet::Inbound => "Message".to_owned(),
        MessageSet::Outbound => "Frame".to_owned(),
        MessageSet::Type(kind) => kind.replace('.', ""),
    };
    let (head, rest) = file.split_once("\"anyOf\"").unwrap_or_default();
    let (_, definitions) = rest.split_once(",\n").unwrap_or_default();
    let mut texts = definitions.trim_end_matches(END).split(BEGIN);
    let open = texts.next().unwrap_or_default();
    let definitions: Vec<(&str, &str)> =
        texts.filter_map(|text| Some((text.split_once('"')?.0, text.trim_end_matches(',')))).collect();
    let named = |name: &str| definitions.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut reached: Vec<&(&str, &str)> = named(&root).into_iter().collect();
    let mut at = 0;
    while let Some((_, text)) = reached.get(at) {
        let names = text.split("#/$defs/").skip(1).filter_map(|rest| rest.split('"').next());
        for found in names.filter_map(named) {
            if !reached.contains(&found) {
                reached.push(found);
            }
        }
        at += 1;
    }
    let root = reached.first().map(|(name, _)| *name).unwrap_or_default();
    let texts: Vec<&str> = reached.iter().map(|(_, text)| *text).collect();
    format!("{head}\"$ref\": \"#/$defs/{root}\",\n{open}{BEGIN}{}{END}", texts.join(&format!(",{BEGIN}")))
}

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

/// In order. A line in a block of code is not a heading.
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
    /// Whether the title is this name, or lists it. Ignores case and dashes, and the title of the page.
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

/// The section with this heading, in the singular or plural, or the first one that explains the message, field, kind or
/// code with this name. `TYPE.FIELD` is the row of one message's field. Further sections that explain the name are
/// listed at the end. `None`: the page has no such name.
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
