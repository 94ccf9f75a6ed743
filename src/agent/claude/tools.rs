//! Maps Claude Code's tools to the protocol's categories, titles and details.

use crate::agent::At;
use crate::agent::json::Object;
use crate::protocol::words::Category;
use std::path::PathBuf;

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

/// The input that best describes a call.
fn gist(input: &Object<'_>) -> Option<String> {
    const TELLING: [&str; 9] =
        ["command", "file_path", "notebook_path", "pattern", "url", "query", "description", "skill", "path"];
    TELLING.iter().find_map(|name| input.string(name))
}

/// The tool and the input that describes the call.
pub(super) fn title(name: &str, input: Option<&Object<'_>>) -> String {
    crate::agent::title(name, &input.and_then(gist).unwrap_or_default())
}

/// The file that a call works on.
pub(super) fn locations(input: Option<&Object<'_>>) -> Vec<At> {
    let path =
        input.and_then(|i| i.string("file_path").or_else(|| i.string("notebook_path")).or_else(|| i.string("path")));
    let line = input.and_then(|i| i.count("offset")).filter(|line| *line > 0);
    path.map(|path| At { path: PathBuf::from(path), line }).into_iter().collect()
}

/// The exact action: the command, the change to the file, or else the whole input.
pub(super) fn detail(name: &str, input: &Object<'_>, raw: &str) -> String {
    let prefixed = |sign: char, text: String| text.lines().map(|l| format!("{sign}{l}\n")).collect::<String>();
    match name {
        "Bash" => input.string("command").unwrap_or_default(),
        "Write" => prefixed('+', input.string("content").unwrap_or_default()),
        "Edit" => {
            let old = prefixed('-', input.string("old_string").unwrap_or_default());
            old + &prefixed('+', input.string("new_string").unwrap_or_default())
        }
        "WebFetch" => input.string("url").unwrap_or_default(),
        _ => raw.to_owned(),
    }
}

/// A tool's output: a string, or the texts in its content blocks.
pub(super) fn output(block: &Object<'_>) -> Option<String> {
    let content = block.raw("content")?;
    if content.get().starts_with('"') {
        return content.string();
    }
    let texts: Vec<String> = block.objects("content").filter_map(|part| part.string("text")).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}
