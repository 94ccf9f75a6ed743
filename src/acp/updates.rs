//! Frames of a run, and the agent's own session, as updates of a session.

use crate::agent::stored::{StoredEdit, StoredPart, StoredTool};
use crate::json::{Object, Raw};
use crate::protocol::words::ToolState;
use serde_json::{Value, json};
use std::path::Path;

/// A path for the client, which takes only absolute ones.
fn absolute(path: &str, cwd: &str) -> String {
    Path::new(cwd).join(path).to_string_lossy().into_owned()
}

pub(super) fn location(place: &Object<'_>, cwd: &str) -> Option<Value> {
    let path = absolute(&place.string("path")?, cwd);
    Some(match place.count("line") {
        Some(line) => json!({"path": path, "line": line}),
        None => json!({"path": path}),
    })
}

pub(super) fn tool_kind(category: &str) -> &str {
    match category {
        "read" | "edit" | "delete" | "move" | "search" | "execute" | "fetch" | "think" => category,
        "agent" => "think",
        "mode" => "switch_mode",
        _ => "other",
    }
}

/// `None`: the piece has no text.
pub(super) fn chunk(kind: &str, text: &str, message: &str) -> Option<Value> {
    let content = json!({"type": "text", "text": text});
    (!text.is_empty()).then(|| json!({"sessionUpdate": kind, "content": content, "messageId": message}))
}

/// `is_new`: the client does not know the call yet.
pub(super) fn tool(frame: &Object<'_>, call: &str, cwd: &str, is_new: bool) -> Value {
    let field = |name: &str| frame.string(name);
    let state = field("state").unwrap_or_default();
    let status = match state.as_str() {
        "started" => "in_progress",
        "completed" => "completed",
        _ => "failed",
    };
    let category = field("category").unwrap_or_default();
    let title = field("text").unwrap_or_default();
    let title = ToolState::from_word(&state).map_or(title.as_str(), |state| state.title(&title).0);
    let mut update = json!({
        "sessionUpdate": if is_new { "tool_call" } else { "tool_call_update" },
        "toolCallId": call, "title": title,
        "kind": tool_kind(&category), "status": status,
    });
    let locations: Vec<Value> = frame.objects("locations").filter_map(|place| location(&place, cwd)).collect();
    if !locations.is_empty() {
        update["locations"] = json!(locations);
    }
    if let Some(name) = field("name") {
        update["name"] = json!(name);
    }
    if let Some(input) = frame.raw("input") {
        update["rawInput"] = value(input);
    }
    if state != "started" {
        let content = content(frame, &category, cwd);
        if !content.is_empty() {
            update["content"] = json!(content);
        }
        let mut facts = json!({"state": state});
        for name in ["output", "exit_code", "duration_ms", "truncated"] {
            if let Some(raw) = frame.raw(name) {
                facts[name] = value(raw);
            }
        }
        update["rawOutput"] = facts;
    }
    if let Some(parent) = field("parent_call_id") {
        // The ids of calls begin with the number of their run.
        let run = call.split_once(':').map_or("", |(run, _)| run);
        update["_meta"] = json!({"spektacular": {"parentCallId": format!("{run}:{parent}")}});
    }
    update
}

pub(super) fn value(raw: Raw<'_>) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// The changes of a tool, or else its output.
fn content(frame: &Object<'_>, category: &str, cwd: &str) -> Vec<Value> {
    let diff = frame.objects("diff").filter_map(|diff| {
        let path = absolute(&diff.string("path")?, cwd);
        let new = diff.string("new").unwrap_or_default();
        Some(json!({"type": "diff", "path": path, "oldText": diff.string("old"), "newText": new}))
    });
    let mut content: Vec<Value> = diff.collect();
    if let Some(output) = frame.string("output").filter(|output| !output.is_empty() && content.is_empty()) {
        let text = if category == "execute" { fenced("", &output) } else { output };
        content.push(json!({"type": "content", "content": {"type": "text", "text": text}}));
    }
    content
}

/// The words before the path of a changed file that its diff makes needless.
const CHANGES: [&str; 6] = ["file", "add", "create", "update", "edit", "write"];

/// Of these, what creates the file.
const CREATIONS: [&str; 3] = ["add", "create", "write"];

/// The diffs in the detail of a permission, and the lines that no diff says.
pub(super) fn changes(detail: &str, cwd: &str) -> (Vec<Value>, String) {
    let (mut diffs, mut rest) = (Vec::new(), String::new());
    let mut head: Option<&str> = None;
    let mut hunk: (Option<String>, String) = (None, String::new());
    let mut end = |head: Option<&str>, hunk: &mut (Option<String>, String)| {
        let (old, new) = std::mem::take(hunk);
        let said = head.and_then(|head| head.split_once(' '));
        if let Some((what, path)) = said.filter(|_| old.is_some() || !new.is_empty()) {
            let old = old.or_else(|| (!CREATIONS.contains(&what)).then(String::new));
            diffs.push(json!({"type": "diff", "path": absolute(path, cwd), "oldText": old, "newText": new}));
        }
    };
    let mut lines = detail.lines().peekable();
    while let Some(line) = lines.next() {
        let text = line.get(1..).unwrap_or_default();
        // The lines of a unified diff that name its file, which the line before them does too.
        let of_file = |line: &str, sign: &str| {
            let named = line.strip_prefix(sign).map(|name| name.split_once('\t').map_or(name, |(name, _)| name));
            named.is_some() && named == head.and_then(|head| head.split_once(' ')).map(|(_, path)| path)
        };
        if of_file(line, "--- ") && lines.peek().is_some_and(|next| of_file(next, "+++ ")) {
            lines.next();
            continue;
        }
        let sign = line.chars().next().filter(|_| head.is_some());
        match sign {
            Some(sign @ ('+' | '-' | ' ')) => {
                let (old, new) = &mut hunk;
                if sign != '+' {
                    old.get_or_insert_default().extend([text, "\n"]);
                }
                if sign != '-' {
                    new.extend([text, "\n"]);
                }
            }
            Some('@') => end(head, &mut hunk),
            _ => {
                let begins = |line: &&str| line.starts_with(['+', '-', ' ', '@']);
                let is_head = line.split_once(' ').is_some_and(|(_, path)| Path::new(path).is_absolute());
                if is_head || head.is_none() {
                    end(head, &mut hunk);
                    head = is_head.then_some(line);
                }
                let is_said = is_head
                    && lines.peek().is_some_and(begins)
                    && line.split_once(' ').is_some_and(|(what, _)| CHANGES.contains(&what));
                if !is_said {
                    rest.extend([line, "\n"]);
                }
            }
        }
    }
    end(head, &mut hunk);
    (diffs, rest)
}

/// A text as a block of Markdown in this language, with a fence that the text does not contain.
pub(super) fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

pub(super) fn plan(frame: &Object<'_>) -> Value {
    let entry = |entry: Object<'_>| {
        let status = entry.string("status").unwrap_or_else(|| "pending".into());
        json!({"content": entry.string("text").unwrap_or_default(), "priority": "medium", "status": status})
    };
    json!({"sessionUpdate": "plan", "entries": frame.objects("entries").map(entry).collect::<Vec<_>>()})
}

/// The agent's own session as the updates that session/load replays.
pub(super) fn of_stored(parts: &[StoredPart], cwd: &str) -> Vec<Value> {
    let update = |(number, part): (usize, &StoredPart)| {
        let id = format!("own:{number}");
        match part {
            StoredPart::Prompt(text) => chunk("user_message_chunk", text, &id),
            StoredPart::Text(text) => chunk("agent_message_chunk", text, &id),
            StoredPart::Reasoning(text) => chunk("agent_thought_chunk", text, &id),
            StoredPart::Tool(call) => of_call(call, &id, cwd),
        }
    };
    parts.iter().enumerate().filter_map(update).collect()
}

/// A call in the form of a frame, as an update. A call whose end is not stored was cut off.
fn of_call(call: &StoredTool, id: &str, cwd: &str) -> Option<Value> {
    let edit = |StoredEdit { path, old, new }: &StoredEdit| json!({"path": path, "old": old, "new": new});
    let mut frame = json!({
        "text": call.title,
        "name": call.name,
        "category": call.category.word(),
        "state": if call.succeeded == Some(true) { "completed" } else { "failed" },
        "locations": call.paths.iter().map(|path| json!({"path": path})).collect::<Vec<_>>(),
        "output": call.output,
        "diff": call.edits.iter().map(edit).collect::<Vec<_>>(),
    });
    if !call.input.is_null() {
        frame["input"] = call.input.clone();
    }
    if let Some(code) = call.exit_code {
        frame["exit_code"] = json!(code);
    }
    Object::parse(&frame.to_string()).map(|frame| tool(&frame, id, cwd, true))
}

/// The cost of a session, in US dollars, since this process opened it. A run reports its own cost.
#[derive(Default)]
pub(super) struct SessionCost {
    earlier_runs: f64,
    this_run: f64,
}

impl SessionCost {
    pub(super) fn begin_run(&mut self) {
        self.earlier_runs += std::mem::take(&mut self.this_run);
    }

    /// Takes the cost of the run so far. Returns that of the session, without the errors of its sums.
    fn at(&mut self, this_run: f64) -> f64 {
        self.this_run = this_run;
        ((self.earlier_runs + this_run) * 1e9).round() / 1e9
    }
}

/// The tokens in the model's context, and its size, 0 if unknown, with the session's cost. `None`: their number is unknown.
pub(super) fn usage(frame: &Object<'_>, cost: &mut SessionCost) -> Option<Value> {
    let usage = frame.object("usage")?;
    let (used, size) = (usage.count("context_tokens")?, usage.count("context_window").unwrap_or_default());
    let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": size});
    if let Some(amount) = usage.number("cost_usd") {
        update["cost"] = json!({"amount": cost.at(amount), "currency": "USD"});
    }
    Some(update)
}

#[cfg(test)]
mod tests {
    use super::{changes, fenced, tool};
    use crate::json::Object;

    #[test]
    fn a_fence_is_longer_than_any_in_the_output() {
        assert_eq!(fenced("", "a"), "```\na\n```");
        assert_eq!(fenced("sh", "```\nb\n"), "````sh\n```\nb\n````");
    }

    #[test]
    fn paths_are_absolute_and_changes_replace_the_output() {
        let frame = r#"{"kind":"tool","text":"Write a","category":"edit","state":"completed","locations":[{"path":"a","line":3}],
            "output":"ok","diff":[{"path":"a","old":null,"new":"x"},{"path":"/b","old":"y","new":""}],"exit_code":null}"#;
        let update = tool(&Object::parse(frame).unwrap(), "1:c", "/w", false);
        assert_eq!(update["locations"][0]["path"], "/w/a");
        assert_eq!(update["content"][0]["path"], "/w/a");
        assert_eq!(update["content"][1]["path"], "/b");
        assert!(update["content"].as_array().unwrap().iter().all(|part| part["type"] == "diff"));
        assert_eq!(update["status"], "completed");
    }

    #[test]
    fn the_detail_of_an_edit_becomes_diffs_and_nothing_of_it_is_lost() {
        let detail = "file /w/a\n--- /w/a\n+++ /w/a\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n@@\n+x\nadd /w/b\n+all\ndelete /w/c\n-gone\nupdate /w/d\nNo line changes.\nreplace_all: true";
        let (diffs, rest) = changes(detail, "/w");
        let diff = |path: &str, old: Option<&str>, new: &str| serde_json::json!({"type": "diff", "path": path, "oldText": old, "newText": new});
        let wanted = [
            diff("/w/a", Some("same\nold\n"), "same\nnew\n"),
            diff("/w/a", Some(""), "x\n"),
            diff("/w/b", None, "all\n"),
            diff("/w/c", Some("gone\n"), ""),
        ];
        assert_eq!(diffs, wanted);
        assert_eq!(rest, "delete /w/c\nupdate /w/d\nNo line changes.\nreplace_all: true\n");
        assert_eq!(changes("+no file", "/w"), (vec![], "+no file\n".to_owned()));
    }

    #[test]
    fn usage_is_the_context_in_use() {
        let mut cost = super::SessionCost::default();
        let mut usage = |text: &str| super::usage(&Object::parse(text).unwrap(), &mut cost);
        let known = r#"{"usage":{"input_tokens":900,"output_tokens":9,"cost_usd":0.5,"context_tokens":120,"context_window":1000}}"#;
        let update = usage(known).unwrap();
        assert_eq!(
            (&update["used"], &update["size"], &update["cost"]["amount"]),
            (&120.into(), &1000.into(), &0.5.into())
        );
        assert!(usage(r#"{"usage":{"input_tokens":900,"output_tokens":9,"context_tokens":null}}"#).is_none());
        cost.begin_run();
        assert_eq!([cost.at(0.1), cost.at(0.2)], [0.6, 0.7], "of the session");
    }
}
