//! The agent's own session as the updates that session/load replays.

use super::updates;
use crate::agent::stored::{StoredEdit, StoredPart, StoredTool};
use crate::json::Object;
use serde_json::{Value, json};

pub(super) fn updates(parts: &[StoredPart], cwd: &str) -> Vec<Value> {
    let update = |(number, part): (usize, &StoredPart)| {
        let id = format!("own:{number}");
        match part {
            StoredPart::Prompt(text) => updates::chunk("user_message_chunk", text, &id),
            StoredPart::Text(text) => updates::chunk("agent_message_chunk", text, &id),
            StoredPart::Reasoning(text) => updates::chunk("agent_thought_chunk", text, &id),
            StoredPart::Tool(tool) => of_tool(tool, &id, cwd),
        }
    };
    parts.iter().enumerate().filter_map(update).collect()
}

/// A call in the form of a frame, as an update. A call whose end is not stored was cut off.
fn of_tool(tool: &StoredTool, id: &str, cwd: &str) -> Option<Value> {
    let edit = |StoredEdit { path, old, new }: &StoredEdit| json!({"path": path, "old": old, "new": new});
    let mut frame = json!({
        "text": tool.title,
        "name": tool.name,
        "category": tool.category.word(),
        "state": if tool.succeeded == Some(true) { "completed" } else { "failed" },
        "locations": tool.paths.iter().map(|path| json!({"path": path})).collect::<Vec<_>>(),
        "output": tool.output,
        "diff": tool.edits.iter().map(edit).collect::<Vec<_>>(),
    });
    if !tool.input.is_null() {
        frame["input"] = tool.input.clone();
    }
    if let Some(code) = tool.exit_code {
        frame["exit_code"] = json!(code);
    }
    Object::parse(&frame.to_string()).map(|frame| updates::tool(&frame, id, cwd, true))
}
