//! What Claude Code's tools are, in the protocol's words.

use super::shown;
use crate::agent::At;
use crate::agent::json::Object;
use crate::protocol::words::Category;
use std::path::PathBuf;

/// What kind of tool a name stands for.
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

/// The one input that says what a call is about.
fn gist(input: &Object<'_>) -> Option<String> {
    const TELLING: [&str; 9] =
        ["command", "file_path", "notebook_path", "pattern", "url", "query", "description", "skill", "path"];
    TELLING.iter().find_map(|name| input.str(name))
}

/// A title: the tool and what it is about, in one line.
pub(super) fn title(name: &str, input: Option<&Object<'_>>) -> String {
    let gist = input.and_then(gist).unwrap_or_default();
    let line = gist.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    // Not cut here: half a secret would not be found any more.
    if line.is_empty() { name.to_owned() } else { format!("{name}: {line}") }
}

/// The file a call works on.
pub(super) fn locations(input: Option<&Object<'_>>) -> Vec<At> {
    let path = input.and_then(|i| i.str("file_path").or_else(|| i.str("notebook_path")).or_else(|| i.str("path")));
    let line = input.and_then(|i| i.count("offset")).filter(|line| *line > 0);
    path.map(|path| At { path: PathBuf::from(path), line }).into_iter().collect()
}

/// What exactly a call would do: the command, the change of the file, else the whole input.
pub(super) fn detail(name: &str, input: &Object<'_>, raw: &str) -> String {
    let prefixed = |sign: char, text: String| text.lines().map(|l| format!("{sign}{l}\n")).collect::<String>();
    match name {
        "Bash" => input.str("command").unwrap_or_default(),
        "Write" => prefixed('+', input.str("content").unwrap_or_default()),
        "Edit" => {
            let old = prefixed('-', input.str("old_string").unwrap_or_default());
            old + &prefixed('+', input.str("new_string").unwrap_or_default())
        }
        "WebFetch" => input.str("url").unwrap_or_default(),
        _ => raw.to_owned(),
    }
}

/// What a tool gave: a string, or the texts among its blocks.
pub(super) fn output(block: &Object<'_>) -> Option<String> {
    let content = block.raw("content")?;
    if content.get().starts_with('"') {
        return Some(shown(content));
    }
    let texts: Vec<String> = block.objects("content").iter().filter_map(|part| part.str("text")).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}
