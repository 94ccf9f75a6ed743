//! Claude Code's tools: which calls are open, and their categories, titles and details in the protocol's terms.

use super::asking;
use crate::agent::At;
use crate::agent::json::Object;
use crate::protocol::words::Category;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// The tool calls that are not over. Keeps only what their results need.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The calls of tools whose results are handled in a special way, by their ids.
    special: HashMap<String, CallKind>,
    /// The calls that were denied: their results are not failures of the tool.
    denied: HashSet<String>,
}

/// How the result of a call is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// The call is not shown as a tool.
    Hidden,
    /// The result names the changed file.
    File,
    /// The result names the changed notebook.
    Notebook,
    Other,
}

impl CallKind {
    fn of(tool: &str) -> CallKind {
        match tool {
            "AskUserQuestion" | "StructuredOutput" | "TodoWrite" | asking::TOOL => CallKind::Hidden,
            "Write" | "Edit" | "MultiEdit" => CallKind::File,
            "NotebookEdit" => CallKind::Notebook,
            _ => CallKind::Other,
        }
    }
}

impl Calls {
    pub(super) fn begin(&mut self, call: &str, tool: &str) {
        match CallKind::of(tool) {
            CallKind::Other if self.special.is_empty() => {}
            // An id that is used again names another call.
            CallKind::Other => drop(self.special.remove(call)),
            kind => drop(self.special.insert(call.to_owned(), kind)),
        }
    }

    pub(super) fn deny(&mut self, call: Option<String>) {
        self.denied.extend(call);
    }

    /// Forgets a call. Returns how its result is handled, and whether it was denied.
    pub(super) fn end(&mut self, call: &str) -> (CallKind, bool) {
        let kind = if self.special.is_empty() { None } else { self.special.remove(call) };
        (kind.unwrap_or(CallKind::Other), !self.denied.is_empty() && self.denied.remove(call))
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.special.is_empty() && self.denied.is_empty()
    }
}

/// The category of a tool.
pub(super) fn category(name: &str) -> Category {
    match name {
        // Monitor runs a command of the model's.
        "Bash" | "BashOutput" | "KillShell" | "Monitor" => Category::Execute,
        "Read" | "NotebookRead" => Category::Read,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => Category::Edit,
        "Glob" | "Grep" | "LS" => Category::Search,
        "WebFetch" | "WebSearch" => Category::Fetch,
        "Task" | "Agent" => Category::Agent,
        "ExitPlanMode" | "EnterPlanMode" => Category::Mode,
        _ if name.starts_with("mcp__") => Category::Mcp,
        _ => Category::Other,
    }
}

/// The tool and the input that best describes the call.
pub(super) fn title(name: &str, input: Option<&Object<'_>>) -> String {
    const TELLING: [&str; 9] =
        ["command", "file_path", "notebook_path", "pattern", "url", "query", "description", "skill", "path"];
    let about = input.and_then(|input| TELLING.iter().find_map(|name| input.str(name)));
    crate::agent::title(name, &about.unwrap_or_default())
}

/// The file that a call works on.
pub(super) fn locations(input: Option<&Object<'_>>) -> Vec<At> {
    let Some(input) = input else { return Vec::new() };
    let path = ["file_path", "notebook_path", "path"].iter().find_map(|name| input.string(name));
    let line = || input.count("offset").filter(|line| *line > 0);
    path.map(|path| At { path: PathBuf::from(path), line: line() }).into_iter().collect()
}

/// The exact action: the command, the change to the file, or the whole input.
pub(super) fn detail(name: &str, input: &Object<'_>, raw: &str) -> String {
    let prefixed = |sign: char, field: &str| {
        let text = input.str(field).unwrap_or_default();
        text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>()
    };
    match name {
        "Bash" => input.string("command").unwrap_or_default(),
        "Write" => prefixed('+', "content"),
        "Edit" => prefixed('-', "old_string") + &prefixed('+', "new_string"),
        "WebFetch" => input.string("url").unwrap_or_default(),
        _ => raw.to_owned(),
    }
}

/// A tool's output: a string, or the texts in its content blocks.
pub(super) fn output(block: &Object<'_>) -> Option<String> {
    let content = block.raw("content")?;
    if content.is_string() {
        return content.string();
    }
    let texts: Vec<String> = block.objects("content").filter_map(|part| part.string("text")).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}
