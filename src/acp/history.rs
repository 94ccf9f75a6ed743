//! The history of a session: the updates that session/load replays. The pieces of a message become one update.

use crate::json::to_line;
use serde_json::{Value, json};

const KINDS: [&str; 6] =
    ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"];
/// The bytes that wait in memory before they are stored within a turn.
const HELD_BYTES: usize = 256 << 10;

/// The updates that are not stored yet.
#[derive(Debug, Default)]
pub(super) struct UpdateHistory {
    /// Whole updates, a line each.
    lines: String,
    /// The message to which the next piece may belong: its kind, its id, and its text.
    message: Option<(String, String, String)>,
}

impl UpdateHistory {
    pub(super) fn add(&mut self, update: &Value) {
        let field = |name: &str| update[name].as_str().unwrap_or_default();
        let kind = field("sessionUpdate");
        if !KINDS.contains(&kind) {
            return;
        }
        let (id, text) = (field("messageId"), update["content"]["text"].as_str());
        match (&mut self.message, text.filter(|_| kind.ends_with("_chunk"))) {
            (Some((of, same, said)), Some(text)) if of == kind && same == id => said.push_str(text),
            (_, Some(text)) => {
                self.end_message();
                self.message = Some((kind.to_owned(), id.to_owned(), text.to_owned()));
            }
            (_, None) => {
                self.end_message();
                self.push(update);
            }
        }
    }

    fn push(&mut self, update: &Value) {
        self.lines.push_str(&to_line(update));
        self.lines.push('\n');
    }

    fn end_message(&mut self) {
        if let Some((kind, id, text)) = self.message.take() {
            let content = json!({"type": "text", "text": text});
            self.push(&json!({"sessionUpdate": kind, "content": content, "messageId": id}));
        }
    }

    pub(super) fn is_large(&self) -> bool {
        self.lines.len() + self.message.as_ref().map_or(0, |(.., text)| text.len()) > HELD_BYTES
    }

    pub(super) fn take(&mut self) -> String {
        self.end_message();
        std::mem::take(&mut self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::UpdateHistory;
    use crate::acp::updates::chunk;
    use serde_json::{Value, json};

    #[test]
    fn pieces_of_a_message_are_one_update_and_passing_facts_none() {
        let mut history = UpdateHistory::default();
        for (kind, text, id) in [("user_message_chunk", "Go", "1"), ("agent_message_chunk", "a ", "2")] {
            history.add(&chunk(kind, text, id).unwrap());
        }
        history.add(&chunk("agent_message_chunk", "heron", "2").unwrap());
        history.add(&json!({"sessionUpdate": "usage_update", "used": 1, "size": 0}));
        history.add(&json!({"sessionUpdate": "tool_call", "toolCallId": "1:c", "title": "t"}));
        history.add(&chunk("agent_message_chunk", "Done", "3").unwrap());
        let lines = history.take();
        let texts = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["content"]["text"].clone());
        assert_eq!(texts.collect::<Vec<_>>(), [json!("Go"), json!("a heron"), Value::Null, json!("Done")]);
        assert_eq!(history.take(), "");
    }
}
