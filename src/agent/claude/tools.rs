//! Claude Code's tools: which calls are open, and their results.

use crate::agent::edits;
use crate::agent::recent::RecentMap;
use crate::json::{Object, Raw};
use crate::protocol::outbound::FileEdit;

#[derive(Debug, Default)]
pub(super) struct Calls {
    special: RecentMap<CallKind>,
    /// The results of denied calls are not failures of the tool.
    denied: RecentMap<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// The call is not shown as a tool.
    Hidden,
    File,
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
    /// `is_own`: whether the tool is ours, whose calls appear only as questions.
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

    /// Returns the way to handle its result, and whether it was denied.
    pub(super) fn end(&mut self, call: &str) -> (CallKind, bool) {
        (self.special.remove(call).unwrap_or(CallKind::Other), self.denied.remove(call).is_some())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.special.len() + self.denied.len()
    }
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
        lines = edits::signed("+", &result.str("content").unwrap_or_default());
    }
    FileEdit::new(path, lines)
}

pub(super) fn output(block: &Object<'_>) -> Option<String> {
    block.string("content").or_else(|| block.texts("content"))
}
