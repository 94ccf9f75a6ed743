//! The tools of agents that name them and report their whole inputs: categories, titles and details in the protocol's terms.
//! The names are those of Claude Code and of pi.

use super::detail::{join, rest, with_rest};
use super::edits;
use crate::json::{Object, Raw};
use crate::protocol::question::Place;
use crate::protocol::words::Category;

pub(super) fn category(name: &str) -> Category {
    match name {
        // Monitor runs a command of the model's, and codemode a script.
        "Bash" | "BashOutput" | "KillShell" | "Monitor" | "bash" | "powershell" | "codemode" => Category::Execute,
        "Read" | "NotebookRead" | "read" => Category::Read,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" | "write" | "edit" => Category::Edit,
        "Glob" | "Grep" | "LS" | "grep" | "find" | "ls" => Category::Search,
        "WebFetch" | "WebSearch" => Category::Fetch,
        "Task" | "Agent" => Category::Agent,
        "ExitPlanMode" | "EnterPlanMode" => Category::Mode,
        _ if name.starts_with("mcp__") => Category::Mcp,
        _ => Category::Other,
    }
}

pub(super) fn title(name: &str, input: Option<&Object<'_>>) -> String {
    const TELLING: [&str; 9] =
        ["command", "file_path", "notebook_path", "pattern", "url", "query", "description", "skill", "path"];
    let about = input.and_then(|input| TELLING.iter().find_map(|name| input.str(name)));
    let own = name.strip_prefix("mcp__").and_then(|own| own.split_once("__"));
    match own {
        Some((server, tool)) => super::title(Category::Mcp, server, tool),
        None => super::title(category(name), name, &about.unwrap_or_default()),
    }
}

pub(super) fn locations(input: Option<&Object<'_>>) -> Vec<Place> {
    let Some(input) = input else { return Vec::new() };
    let line = input.count("offset").filter(|line| *line > 0);
    let paths = input.raws(["file_path", "notebook_path", "path"]).into_iter().flatten().filter_map(Raw::string);
    paths.map(|path| Place { path: path.into(), line }).collect()
}

/// The exact action: the command or the change to the file with the other fields of the input, or else the whole input.
pub(super) fn detail(name: &str, input: &Object<'_>, raw: &str) -> String {
    let field = |name: &str| input.string(name).unwrap_or_default();
    let prefixed = |sign: &str, name: &str| edits::signed(sign, &input.str(name).unwrap_or_default());
    // The question shows the file as its location.
    let (action, shown): (String, &[&str]) = match name {
        "Bash" | "bash" | "powershell" => (field("command"), &["command"]),
        "codemode" => (field("code"), &["code"]),
        "Write" | "write" => (prefixed("+", "content"), &["file_path", "path", "content"]),
        "edit" => return changes(input).unwrap_or_else(|| raw.to_owned()),
        "Edit" => {
            let note = edits::unseen(&field("old_string"), &field("new_string")).unwrap_or_default();
            let change = prefixed("-", "old_string") + &prefixed("+", "new_string") + note;
            (change, &["file_path", "old_string", "new_string"])
        }
        "WebFetch" => (field("url"), &["url"]),
        _ => return raw.to_owned(),
    };
    with_rest(&action, input, shown)
}

/// The changes of pi's `edit`, with the other fields of its input. `None`: one of them has another form.
fn changes(input: &Object<'_>) -> Option<String> {
    let change = |edit: Object<'_>| {
        let (old, new) = (edit.string("oldText")?, edit.string("newText")?);
        (edit.iter().count() == 2).then(|| edits::replaced(&old, &new))
    };
    let all: Option<String> = input.array("edits").map(|raw| change(raw.object()?)).collect();
    Some(join(&all?, rest(input, |name, _| matches!(name, "path" | "edits"))))
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
