//! Maps Claude Code's tools to the protocol's categories, titles and details.

use crate::agent::At;
use crate::agent::detail::with_rest;
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

/// The exact action: the command or the change to the file, and the other fields of the input, or else the whole input.
pub(super) fn detail(name: &str, input: &Object<'_>, raw: &str) -> String {
    let prefixed = |sign: char, text: String| text.lines().map(|l| format!("{sign}{l}\n")).collect::<String>();
    let field = |name: &str| input.string(name).unwrap_or_default();
    // The question shows the file as its location.
    let (action, shown): (String, &[&str]) = match name {
        "Bash" => (field("command"), &["command"]),
        "Write" => (prefixed('+', field("content")), &["file_path", "content"]),
        "Edit" => {
            let change = prefixed('-', field("old_string")) + &prefixed('+', field("new_string"));
            (change, &["file_path", "old_string", "new_string"])
        }
        "WebFetch" => (field("url"), &["url"]),
        _ => return raw.to_owned(),
    };
    with_rest(&action, input, shown)
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

#[cfg(test)]
mod tests {
    use super::detail;
    use crate::agent::json::Object;
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
