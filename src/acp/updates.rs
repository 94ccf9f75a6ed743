//! Frames of a run as updates of a session.

use crate::json::{Object, Raw};
use crate::protocol::words::ToolState;
use serde_json::{Value, json};
use std::path::Path;

/// A path for the client, which takes only absolute ones.
pub(super) fn absolute(path: &str, cwd: &str) -> String {
    Path::new(cwd).join(path).to_string_lossy().into_owned()
}

pub(super) fn location(place: &Object<'_>, cwd: &str) -> Option<Value> {
    let path = absolute(&place.string("path")?, cwd);
    Some(match place.count("line") {
        Some(line) => json!({"path": path, "line": line}),
        None => json!({"path": path}),
    })
}

/// The protocol's kind for a category of tool.
pub(super) fn tool_kind(category: &str) -> &'static str {
    match category {
        "read" => "read",
        "edit" => "edit",
        "delete" => "delete",
        "move" => "move",
        "search" => "search",
        "execute" => "execute",
        "fetch" => "fetch",
        "think" | "agent" => "think",
        "mode" => "switch_mode",
        _ => "other",
    }
}

/// A piece of a message. `None`: it has no text.
pub(super) fn chunk(kind: &str, text: &str, message: &str) -> Option<Value> {
    let content = json!({"type": "text", "text": text});
    (!text.is_empty()).then(|| json!({"sessionUpdate": kind, "content": content, "messageId": message}))
}

/// A progress frame about a tool. `is_new`: the client does not know the call yet.
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
    let title = ToolState::from_word(&state).map_or(title.as_str(), |state| state.title(&title));
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
        update["_meta"] = json!({"spektacular": {"parentCallId": parent}});
    }
    update
}

/// The value of a raw JSON text.
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

/// The tokens that were used. `None`: their number is unknown. The size of the model's context is not known to a run: 0.
pub(super) fn usage(frame: &Object<'_>) -> Option<Value> {
    let usage = frame.object("usage")?;
    let count = |name: &str| usage.count(name);
    let used = count("input_tokens")? + count("output_tokens")?;
    let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": 0});
    if let Some(amount) = usage.number("cost_usd") {
        update["cost"] = json!({"amount": amount, "currency": "USD"});
    }
    Some(update)
}

pub(super) fn notice(text: &str) -> Value {
    json!({"sessionUpdate": "notice", "severity": "warning", "title": text})
}

#[cfg(test)]
mod tests {
    use super::{fenced, tool};
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
}
