//! A fake Codex: a shell script that asks every kind of question in sequence, and ends its turn.

use serde_json::{Value, json};

use crate::support::agent::quote;

const BEGIN: &str = r#"#!/bin/sh
out() { printf '%s\n' "$1"; }
heard() { while IFS= read -r line; do
    printf '%s\n' "$line" >>"$D/stdin"
    case "$line" in *"$1"*) return ;; esac
done; exit 0; }
heard '"initialize"'; out '{"id":1,"result":{}}'
heard '"account/read"'; out '{"id":2,"result":{"account":null,"requiresOpenaiAuth":false}}'
heard '"thread/start"'; out '{"id":3,"result":{"thread":{"id":"t"},"model":"gpt-5.5"}}'
heard '"turn/start"'; out '{"id":4,"result":{"turn":{"id":"u","status":"inProgress"}}}'
"#;

/// A fake Codex: the steps of its turn.
pub(crate) struct Codex {
    body: String,
    asked: u32,
}

impl Codex {
    pub(crate) fn new() -> Codex {
        Codex { body: BEGIN.to_owned(), asked: 0 }
    }

    fn request(mut self, method: &str, mut params: Value) -> Codex {
        let id = self.asked;
        self.asked += 1;
        let call = if method == "item/tool/call" { "callId" } else { "itemId" };
        for (name, value) in [("threadId", "t"), ("turnId", "u"), (call, "i")] {
            params[name] = json!(value);
        }
        let line = json!({"method": method, "id": id, "params": params}).to_string();
        self.body.push_str(&format!("out {}\nheard '\"id\":{id},\"result\"'\n", quote(&line)));
        self
    }

    /// Asks one question through our own tool.
    pub(crate) fn asks(self, kind: &str, question: &str, more: Value) -> Codex {
        let mut arguments = json!({"kind": kind, "question": question});
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        self.request("item/tool/call", json!({"tool": "ask_user", "arguments": arguments}))
    }

    /// Asks several questions at once.
    pub(crate) fn asks_together(self, questions: Value) -> Codex {
        self.request("item/tool/requestUserInput", json!({"questions": questions}))
    }

    /// Asks the user to fill in a form.
    pub(crate) fn asks_form(self, schema: Value) -> Codex {
        let params = json!({"serverName": "deploy", "mode": "form", "message": "Settings", "requestedSchema": schema});
        self.request("mcpServer/elicitation/request", params)
    }

    /// Requests permission for a command.
    pub(crate) fn asks_to_run(self, command: &str) -> Codex {
        let params = json!({"kind": "command", "command": command, "reason": null});
        self.request("item/commandExecution/requestApproval", params)
    }

    /// Reports the beginning and the end of an item.
    pub(crate) fn item(mut self, started: &Value, completed: &Value) -> Codex {
        for (method, item) in [("item/started", started), ("item/completed", completed)] {
            let line = json!({"method": method, "params": {"threadId": "t", "turnId": "u", "item": item}}).to_string();
            self.body.push_str(&format!("out {}\n", quote(&line)));
        }
        self
    }

    /// Continues once the log folder contains this file.
    pub(crate) fn waits_for_file(mut self, name: &str) -> Codex {
        self.body.push_str(&format!("until [ -e \"$D/{name}\" ]; do sleep 0.02; done\n"));
        self
    }

    /// Says a text and completes.
    pub(crate) fn says(mut self, text: &str) -> String {
        let message = json!({"type": "agentMessage", "id": "m", "text": text});
        let whole = json!({"method": "item/completed", "params": {"threadId": "t", "turnId": "u", "item": message}});
        let turn = json!({"id": "u", "status": "completed", "items": [message], "error": null});
        let over = json!({"method": "turn/completed", "params": {"threadId": "t", "turn": turn}});
        for line in [whole, over] {
            self.body.push_str(&format!("out {}\n", quote(&line.to_string())));
        }
        self.body + "heard '\"never\"'\n"
    }
}
