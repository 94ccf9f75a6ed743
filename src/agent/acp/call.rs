//! A tool call as far as it is known, and the file changes in its content.

use super::profile::Profile;
use crate::agent::detail::rest;
use crate::agent::shell::{self, FilesSeen};
use crate::agent::{edits, title};
use crate::json::{Object, Raw};
use crate::paths::absolute;
use crate::protocol::outbound::{Place, Text};
use crate::protocol::question::file_line;
use crate::protocol::words::{Action, Category};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Keeps its title, input and locations until it is over.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) name: Option<String>,
    /// The agent's whole title. For a shell command, this is the command.
    pub(super) text: String,
    pub(super) category: Option<Category>,
    /// The MCP server whose name begins the tool's name.
    pub(super) server: Option<String>,
    pub(super) locations: Vec<Place>,
    named: Vec<String>,
    pub(super) diffs: Vec<(String, String)>,
    pub(super) diffs_are_lost: bool,
    /// The input of the call, verbatim, if short and not empty.
    pub(super) input: String,
    pub(super) input_is_lost: bool,
    /// Whether the input is that of a permission request, which may describe the call in another way.
    pub(super) input_is_asked: bool,
    pub(super) asked: bool,
    pub(super) reported_input: Option<u64>,
    pub(super) shown: bool,
    pub(super) retitled: bool,
    /// Whether it calls our own tool, which shows only as its questions.
    pub(super) own: bool,
    pub(super) look: Option<FilesSeen>,
}

/// The maximum size of a kept input, and of kept diffs, in bytes. Longer ones are lost.
pub(super) const INPUT_BYTES: usize = 64 << 10;
/// The maximum size of a title that is reported again with new locations or sent back to the model, in bytes.
pub(super) const LABEL_BYTES: usize = 1024;

/// The beginning of the title that Gemini CLI gives to a call that writes a file.
const WRITING: &str = "Writing to ";

impl Call {
    /// Whether this stands for a call of a tool that OpenCode does not offer, or of one with a bad input. OpenCode reports
    /// it as completed.
    pub(super) fn is_refused(&self) -> bool {
        let input = || Object::parse(&self.input);
        matches!(self.text.as_str(), "invalid" | "Invalid Tool")
            && input().is_some_and(|input| input.str("tool").is_some() && input.str("error").is_some())
    }

    /// An action concerns each file that a part of its messages names.
    pub(super) fn take_places(&mut self, about: &Object<'_>, cwd: &Path) {
        let is_here = |path: &str| path.is_empty() || Path::new(path) == cwd;
        let place = |at: Object<'_>| {
            let path = at.string("path").filter(|path| !is_here(path))?;
            Some(Place { path: path.into(), line: at.count("line").filter(|line| *line > 0) })
        };
        let told: Vec<Place> = about.objects("locations").filter_map(place).collect();
        let diffs = Diff::texts(about);
        let mut changed = !told.is_empty();
        if changed {
            self.locations = told;
        }
        let mut named: Vec<String> = diffs.iter().map(|(path, _)| path.clone()).collect();
        if !diffs.is_empty() {
            self.diffs_are_lost = diffs.iter().map(|(_, text)| text.len()).sum::<usize>() > INPUT_BYTES;
            self.diffs = if self.diffs_are_lost { Vec::new() } else { diffs };
        }
        let acts_on_files = self.category().changes_files() || self.category() == Category::Read;
        named.extend(Some(about).filter(|_| acts_on_files).into_iter().flat_map(files));
        if !named.is_empty() {
            self.named = named;
        }
        if changed || !self.named.is_empty() {
            let mut known: HashSet<PathBuf> =
                self.locations.iter().map(|at| absolute(cwd, Path::new(at.path.unredacted()))).collect();
            let more = self.named.iter().filter(|path| !is_here(path) && known.insert(absolute(cwd, Path::new(path))));
            let more: Vec<Place> = more.map(|path| Place { path: path.as_str().into(), line: None }).collect();
            changed |= !more.is_empty();
            self.locations.extend(more);
        }
        // The title may include the location. Reporting a long title repeatedly costs too much.
        self.retitled |= changed && self.text.len() <= LABEL_BYTES;
    }

    /// Serves a command that only looks at files, and whose input names the folder in which it runs.
    pub(super) fn take_look(&mut self, cwd: &Path) {
        let is_known = |name: &str| PROSE.contains(&name) || matches!(name, "command" | "cwd" | "workdir");
        let input = Object::parse(&self.input).filter(|input| input.iter().all(|(name, _)| is_known(&name)));
        let folder = |input: &Object<'_>| input.string("workdir").or_else(|| input.string("cwd"));
        let look =
            |input: Object<'_>| shell::look(&input.string("command")?, &absolute(cwd, Path::new(&folder(&input)?)));
        self.look = input.filter(|_| self.category == Some(Category::Execute)).and_then(look);
        if let Some(look) = &self.look {
            self.locations.clone_from(&look.places);
        }
    }

    /// Names files by their paths, other work by the input that best describes it, or else uses the agent's words.
    pub(super) fn title(&self) -> String {
        if let Some(look) = &self.look {
            return look.title.clone();
        }
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

    fn mcp_title(&self, text: &str, name: &str) -> String {
        let named = self.server.as_ref().and_then(|server| Some((&**server, name.strip_prefix(&**server)?.get(1..)?)));
        // Gemini CLI's words.
        let told = || text.strip_suffix(" MCP Server)")?.split_once(" (").map(|(tool, server)| (server, tool));
        match named.or_else(told) {
            Some((server, tool)) => title(Category::Mcp, server, tool),
            None => title(Category::Mcp, name, text),
        }
    }

    pub(super) fn tool_name<'a>(&'a self, id: &'a str, profile: &Profile) -> Option<&'a str> {
        // The name may contain the separator too. After it, the agent repeats the name, unless its provider gave an id.
        let parts = || id.match_indices("__").map(|(at, separator)| (&id[..at], &id[at + separator.len()..]));
        let in_id = || parts().find(|(name, rest)| rest.starts_with(name)).or_else(|| id.rsplit_once("__"));
        let in_id = profile.ids_name_tools.then(in_id).flatten().map(|(name, _)| name);
        in_id.or(self.name.as_deref())
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

    pub(super) fn size(&self) -> usize {
        let places: usize = self.locations.iter().map(|place| place.path.size()).sum();
        let changes: usize = self.diffs.iter().map(|(path, text)| path.len() + text.len()).sum();
        let named: usize = self.named.iter().map(String::len).sum();
        self.name.as_ref().map_or(0, String::len) + self.text.len() + self.input.len() + places + changes + named
    }

    pub(super) fn category(&self) -> Category {
        self.look.as_ref().map(|look| look.category).or(self.category).unwrap_or(Category::Other)
    }
}

/// Inputs that state no action: the model's description and the time limit.
pub(super) const PROSE: &[&str] = &["description", "timeout"];

pub(super) fn texts<'a>(about: &Object<'a>) -> impl Iterator<Item = String> + use<'a> {
    about.objects("content").filter_map(|part| part.object("content")?.string("text"))
}

#[derive(Debug)]
pub(super) struct Diff<'a> {
    pub(super) path: Text,
    pub(super) action: Action,
    old: Option<Raw<'a>>,
    new: Option<Raw<'a>>,
    meta: Option<Object<'a>>,
}

impl<'a> Diff<'a> {
    pub(super) fn all(about: &Object<'a>) -> Vec<Diff<'a>> {
        about.objects("content").filter(|part| part.is("type", "diff")).filter_map(|part| Diff::read(&part)).collect()
    }

    pub(super) fn texts(about: &Object<'a>) -> Vec<(String, String)> {
        Diff::all(about).iter().map(|diff| (diff.path.unredacted().to_owned(), diff.text())).collect()
    }

    fn read(part: &Object<'a>) -> Option<Diff<'a>> {
        let old = part.raw("oldText");
        let meta = part.object("_meta");
        let action = match meta.as_ref().and_then(|meta| meta.string("kind")).as_deref() {
            Some("add") => Action::Created,
            Some("modify") => Action::Modified,
            Some("delete") => Action::Deleted,
            _ if old.is_none_or(|old| old.get() == "\"\"") => Action::Created,
            _ => Action::Modified,
        };
        Some(Diff { path: part.string("path")?.into(), action, old, new: part.raw("newText"), meta })
    }

    pub(super) fn hunks(&self) -> String {
        let text = |raw: Option<Raw<'a>>| raw.and_then(Raw::str).unwrap_or_default();
        edits::between(&text(self.old), &text(self.new))
    }

    /// The change as somebody approves it: its file, and the removed and the added lines.
    fn text(&self) -> String {
        let what = match self.action {
            Action::Created => "add",
            Action::Modified => "update",
            Action::Deleted => "delete",
        };
        let text = |raw: Option<Raw<'a>>| raw.and_then(Raw::str).unwrap_or_default();
        let mut out = file_line(what, self.path.unredacted()) + &edits::replaced(&text(self.old), &text(self.new));
        let facts = self.meta.iter().flat_map(|meta| rest(meta, |name, _| name == "kind"));
        facts.for_each(|fact| out.extend([&fact, "\n"]));
        out
    }
}

const FILES: [&str; 5] = ["filepath", "filePath", "file_path", "path", "movePath"];

fn files(about: &Object<'_>) -> Vec<String> {
    let Some(input) = about.object("rawInput") else { return Vec::new() };
    let listed: Vec<Object<'_>> = input.objects("files").collect();
    // Where the files are listed, another field has all their names in one text.
    let objects = if listed.is_empty() { std::slice::from_ref(&input) } else { &listed[..] };
    let fields = objects.iter().flat_map(|object| FILES.iter().filter_map(|name| object.string(name)));
    let diff = input.str("diff").unwrap_or_default();
    fields.chain(edits::files(&diff).into_iter().map(str::to_owned)).collect()
}
