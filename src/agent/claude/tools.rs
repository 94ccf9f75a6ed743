//! Claude Code's tools: which calls are open, and their categories, titles and details in the protocol's terms.

use crate::agent::detail::with_rest;
use crate::agent::edits;
use crate::agent::recent::RecentMap;
use crate::json::{Object, Raw};
use crate::protocol::outbound::FileEdit;
use crate::protocol::question::Place;
use crate::protocol::text::Text;
use crate::protocol::words::Category;

/// The most recent open tool calls, with the facts that are needed to handle their results.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The calls whose results are handled in a special way, by their ids.
    special: RecentMap<CallKind>,
    /// The calls that were denied: their results are not failures of the tool.
    denied: RecentMap<()>,
}

/// The handling of a call's result.
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
    fn from_tool(tool: &str) -> CallKind {
        match tool {
            "AskUserQuestion" | "StructuredOutput" | "TodoWrite" => CallKind::Hidden,
            "Write" | "Edit" | "MultiEdit" => CallKind::File,
            "NotebookEdit" => CallKind::Notebook,
            _ => CallKind::Other,
        }
    }
}

impl Calls {
    /// Notes a new call. `is_own`: whether the tool is ours, whose calls appear only as questions.
    pub(super) fn begin(&mut self, call: &str, tool: &str, is_own: bool) {
        match if is_own { CallKind::Hidden } else { CallKind::from_tool(tool) } {
            // A repeated id names a new call.
            CallKind::Other => drop(self.special.remove(call)),
            kind @ (CallKind::Hidden | CallKind::File | CallKind::Notebook) => self.special.insert(call, kind),
        }
    }

    pub(super) fn deny(&mut self, call: Option<String>) {
        if let Some(call) = call {
            self.denied.insert(&call, ());
        }
    }

    /// Forgets a call. Returns how its result is handled, and whether it was denied.
    pub(super) fn end(&mut self, call: &str) -> (CallKind, bool) {
        (self.special.remove(call).unwrap_or(CallKind::Other), self.denied.remove(call).is_some())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.special.len() + self.denied.len()
    }
}

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

/// The title of a call, with the input that best describes it.
pub(super) fn title(name: &str, input: Option<&Object<'_>>) -> String {
    const TELLING: [&str; 9] =
        ["command", "file_path", "notebook_path", "pattern", "url", "query", "description", "skill", "path"];
    let about = input.and_then(|input| TELLING.iter().find_map(|name| input.str(name)));
    let own = name.strip_prefix("mcp__").and_then(|own| own.split_once("__"));
    match own {
        Some((server, tool)) => crate::agent::title(Category::Mcp, server, tool),
        None => crate::agent::title(category(name), name, &about.unwrap_or_default()),
    }
}

/// The files that a call works on.
pub(super) fn locations(input: Option<&Object<'_>>) -> Vec<Place> {
    let Some(input) = input else { return Vec::new() };
    let line = input.count("offset").filter(|line| *line > 0);
    let paths = input.raws(["file_path", "notebook_path", "path"]).into_iter().flatten().filter_map(Raw::string);
    paths.map(|path| Place { path: path.into(), line }).collect()
}

/// The exact action: the command or the change to the file with the other fields of the input, or else the whole input.
pub(super) fn detail(name: &str, input: &Object<'_>, raw: &str) -> String {
    let field = |name: &str| input.string(name).unwrap_or_default();
    let prefixed = |sign: char, name: &str| edits::signed(sign, &input.str(name).unwrap_or_default());
    // The question shows the file as its location.
    let (action, shown): (String, &[&str]) = match name {
        "Bash" => (field("command"), &["command"]),
        "Write" => (prefixed('+', "content"), &["file_path", "content"]),
        "Edit" => {
            let note = edits::unseen(&field("old_string"), &field("new_string")).unwrap_or_default();
            let change = prefixed('-', "old_string") + &prefixed('+', "new_string") + note;
            (change, &["file_path", "old_string", "new_string"])
        }
        "WebFetch" => (field("url"), &["url"]),
        _ => return raw.to_owned(),
    };
    with_rest(&action, input, shown)
}

/// The exit code of a failed command, which is the first line of its output.
pub(super) fn exit_code(block: &Object<'_>) -> Option<i64> {
    block.str("content")?.strip_prefix("Exit code ")?.lines().next()?.trim().parse().ok()
}

/// Whether the result is that of a command that exited with 0: it neither runs on in the background, nor has a code that
/// Claude Code takes for a success, such as 1 of `grep`.
pub(super) fn is_success(result: &Object<'_>) -> bool {
    let told = |name: &str| result.raw(name).is_some_and(|raw| raw.get() != "null");
    told("stdout")
        && result.bool("interrupted") == Some(false)
        && !told("returnCodeInterpretation")
        && !told("backgroundTaskId")
}

/// The changes that the result of an edit reports.
pub(super) fn edit(result: &Object<'_>) -> Option<FileEdit> {
    let path = result.string("filePath")?;
    let mut lines = String::new();
    for hunk in result.objects("structuredPatch") {
        let count = |name: &str| hunk.count(name).unwrap_or_default();
        let (old, new) = ((count("oldStart"), count("oldLines")), (count("newStart"), count("newLines")));
        lines.push_str(&edits::header(old, new));
        hunk.array("lines").filter_map(Raw::str).for_each(|line| lines.extend([&*line, "\n"]));
    }
    // A created file has no patch.
    if lines.is_empty() && result.is("type", "create") {
        lines = edits::signed('+', &result.str("content").unwrap_or_default());
    }
    FileEdit::new(path, lines)
}

/// A tool's output: a string, or the texts in its content blocks.
pub(super) fn output(block: &Object<'_>) -> Option<Text> {
    let content = block.raw("content")?;
    if content.is_string() {
        return content.string().map(Text::from);
    }
    block.texts("content").map(Text::from)
}

#[cfg(test)]
mod tests {
    use super::detail;
    use crate::json::Object;
    use serde_json::json;

    #[test]
    fn a_permission_shows_every_field_of_its_input() {
        let bash = json!({"command": "npm test", "description": "Run the tests", "run_in_background": true,
            "dangerouslyDisableSandbox": true});
        let edit = json!({"file_path": "/a", "old_string": "1", "new_string": "2", "replace_all": true});
        for (tool, input, wanted) in [
            ("Bash", bash, "npm test\nrun_in_background: true\ndangerouslyDisableSandbox: true"),
            ("Bash", json!({"command": "npm test", "description": "d"}), "npm test"),
            ("Edit", edit, "-1\n+2\nreplace_all: true"),
            ("Write", json!({"file_path": "/a", "content": "1", "mode": 511}), "+1\nmode: 511"),
            ("WebFetch", json!({"url": "http://a", "prompt": "Read it."}), "http://a\nprompt: \"Read it.\""),
            ("Task", json!({"prompt": "p"}), "{\"prompt\":\"p\"}"),
        ] {
            let raw = input.to_string();
            assert_eq!(detail(tool, &Object::parse(&raw).unwrap(), &raw), wanted);
        }
    }
}
