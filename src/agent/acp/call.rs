//! A tool call as far as it is known, and the file changes in its content.

use crate::agent::{edits, title};
use crate::json::{Object, Raw};
use crate::protocol::outbound::{Place, Text};
use crate::protocol::words::{Action, Category};

/// A tool call. Keeps its title, input and locations until it is over.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// The tool's name, if the agent reports it.
    pub(super) name: Option<String>,
    /// The agent's whole title. For a shell command, this is the command.
    pub(super) text: String,
    pub(super) category: Option<Category>,
    /// The MCP server whose name begins the tool's name.
    pub(super) server: Option<String>,
    pub(super) locations: Vec<Place>,
    /// The input of the call, verbatim, if short and not empty.
    pub(super) input: String,
    /// Whether the last input was too long to keep.
    pub(super) input_is_lost: bool,
    /// Whether the input is that of a permission request, which may describe the call in another way.
    pub(super) input_is_asked: bool,
    /// The hash of the last reported input.
    pub(super) reported_input: Option<u64>,
    pub(super) shown: bool,
    /// Whether the title changed since the last report.
    pub(super) retitled: bool,
    /// Whether it calls our own tool, which shows only as its questions.
    pub(super) own: bool,
}

/// The maximum size of a kept input, in bytes.
pub(super) const INPUT_BYTES: usize = 64 << 10;
/// The maximum size of a title that is reported again with new locations or sent back to the model, in bytes.
pub(super) const LABEL_BYTES: usize = 1024;

/// The beginning of the title that Gemini CLI gives to a call that writes a file.
const WRITING: &str = "Writing to ";

impl Call {
    /// The title: of files by their paths, of other work by the input that best describes it, or else in the agent's
    /// words.
    pub(super) fn title(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        let text = Some(self.text.trim()).filter(|text| *text != name).unwrap_or_default();
        let category = self.category();
        let told = |fields: &[&str]| {
            let input = Object::parse(&self.input)?;
            fields.iter().find_map(|name| input.string(name))
        };
        let subject = match (category, &self.locations[..]) {
            (Category::Read | Category::Edit | Category::Delete | Category::Move, [one]) => {
                Some(one.path.unredacted().to_owned())
            }
            (Category::Read | Category::Edit | Category::Delete | Category::Move, [_, _, ..]) => {
                Some(format!("{} files", self.locations.len()))
            }
            (Category::Execute, _) => told(&["command"]),
            (Category::Search | Category::Fetch, _) => told(&["pattern", "url", "query"]),
            (Category::Mcp, _) => return self.mcp_title(text, name),
            (Category::Read | Category::Edit | Category::Delete | Category::Move, [])
            | (Category::Think | Category::Agent | Category::Mode | Category::Other, _) => None,
        };
        let (tool, text) = match text.strip_prefix(WRITING).filter(|_| category == Category::Edit) {
            Some(file) => ("write", file),
            None => (name, text),
        };
        title(category, tool, subject.as_deref().unwrap_or(text))
    }

    /// The server and its tool.
    fn mcp_title(&self, text: &str, name: &str) -> String {
        let named = self.server.as_ref().and_then(|server| Some((&**server, name.strip_prefix(&**server)?.get(1..)?)));
        // Gemini CLI's words.
        let told = || text.strip_suffix(" MCP Server)")?.split_once(" (").map(|(tool, server)| (server, tool));
        match named.or_else(told) {
            Some((server, tool)) => title(Category::Mcp, server, tool),
            None => title(Category::Mcp, name, text),
        }
    }

    /// A short name for the call, for the agent's model.
    pub(super) fn label(&self) -> String {
        let title = self.title();
        if title.len() <= LABEL_BYTES {
            title
        } else {
            self.name.clone().unwrap_or_else(|| "the last tool call".into())
        }
    }

    /// The size of its texts, in bytes.
    pub(super) fn size(&self) -> usize {
        let places: usize = self.locations.iter().map(|place| place.path.size()).sum();
        self.name.as_ref().map_or(0, String::len) + self.text.len() + self.input.len() + places
    }

    pub(super) fn category(&self) -> Category {
        self.category.unwrap_or(Category::Other)
    }

    /// The input of the call without the model's description.
    pub(super) fn identity(&self) -> String {
        Object::parse(&self.input).map(|input| input.without(PROSE)).unwrap_or_default()
    }
}

/// Inputs that do not change what a call does: the model's description and the time limit.
pub(super) const PROSE: &[&str] = &["description", "timeout"];

/// The texts in the content of a tool call.
pub(super) fn texts<'a>(about: &Object<'a>) -> impl Iterator<Item = String> + use<'a> {
    about.objects("content").filter_map(|part| part.object("content")?.string("text"))
}

/// A change to a file.
#[derive(Debug)]
pub(super) struct Diff<'a> {
    pub(super) path: Text,
    pub(super) action: Action,
    old: Option<Raw<'a>>,
    new: Option<Raw<'a>>,
}

impl<'a> Diff<'a> {
    /// The changes in the content of a tool call.
    pub(super) fn all(about: &Object<'a>) -> Vec<Diff<'a>> {
        about.objects("content").filter(|part| part.is("type", "diff")).filter_map(|part| Diff::read(&part)).collect()
    }

    fn read(part: &Object<'a>) -> Option<Diff<'a>> {
        let old = part.raw("oldText");
        let action = match part.object("_meta").and_then(|meta| meta.string("kind")).as_deref() {
            Some("add") => Action::Created,
            Some("modify") => Action::Modified,
            Some("delete") => Action::Deleted,
            _ if old.is_none_or(|old| old.get() == "\"\"") => Action::Created,
            _ => Action::Modified,
        };
        Some(Diff { path: part.string("path")?.into(), action, old, new: part.raw("newText") })
    }

    /// The changes, with their surroundings.
    pub(super) fn hunks(&self) -> String {
        let text = |raw: Option<Raw<'a>>| raw.and_then(Raw::str).unwrap_or_default();
        edits::between(&text(self.old), &text(self.new))
    }

    /// The removed and the added lines, without the equal lines before and after.
    pub(super) fn text(&self) -> String {
        let (old, new) =
            (self.old.and_then(Raw::string).unwrap_or_default(), self.new.and_then(Raw::string).unwrap_or_default());
        let (mut old, mut new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        (old, new) = (old.split_off(same), new.split_off(same));
        let same = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        old.truncate(old.len() - same);
        new.truncate(new.len() - same);
        let signed =
            |sign: char, lines: Vec<&str>| lines.iter().map(|line| format!("{sign}{line}\n")).collect::<String>();
        signed('-', old) + &signed('+', new)
    }
}
