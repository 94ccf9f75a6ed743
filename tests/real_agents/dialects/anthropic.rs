//! Anthropic's Messages API, for Claude Code.

use serde_json::{Value, json};

use super::{Answer, Asked, Dialect, Step, list, named, options, plain};
use crate::scenario::{Call, Refusal};

pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn asked(&self, path: &str, body: &Value) -> Asked {
        let stream = body["stream"] == true;
        match path {
            // Requests for titles and probes, for example, name no tools.
            "/v1/messages" if !list(&body["tools"]).is_empty() => Asked::Conversation { stream },
            "/v1/messages" => Asked::Aside { stream, answer: "ok".into() },
            "/v1/messages/count_tokens" => Asked::Fixed(json!({"input_tokens": body.to_string().len() / 4 + 1})),
            _ => Asked::Unknown,
        }
    }

    fn steps(&self, answer: &Answer<'_>) -> Vec<Step> {
        let reply = &answer.reply;
        let mut steps = vec![event(&json!({"type": "message_start", "message": envelope(answer)}))];
        let mut index = 0;
        if !reply.think.is_empty() {
            steps.push(start(index, &json!({"type": "thinking", "thinking": "", "signature": ""})));
            let delta = |piece: &str| json!({"type": "thinking_delta", "thinking": piece});
            answer.pieces(&mut steps, &reply.think, |piece| named(&block_delta(index, &delta(piece))));
            let signature = json!({"type": "signature_delta", "signature": "c3R1Yg=="});
            steps.push(event(&block_delta(index, &signature)));
            steps.push(stop(index));
            index += 1;
        }
        if !reply.say.is_empty() {
            steps.push(start(index, &json!({"type": "text", "text": ""})));
            let delta = |piece: &str| json!({"type": "text_delta", "text": piece});
            answer.pieces(&mut steps, &reply.say, |piece| named(&block_delta(index, &delta(piece))));
            answer.after_text(&mut steps);
            steps.push(stop(index));
            index += 1;
        }
        for (id, call) in answer.calls() {
            let (name, input) = tool(call, answer);
            steps.push(start(index, &json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
            let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
            steps.push(event(&block_delta(index, &delta)));
            steps.push(stop(index));
            index += 1;
        }
        let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
        let usage = json!({"output_tokens": reply.usage.output});
        steps.push(event(&json!({"type": "message_delta", "delta": delta, "usage": usage})));
        steps.push(event(&json!({"type": "message_stop"})));
        steps
    }

    fn whole(&self, answer: &Answer<'_>) -> Value {
        let mut content = Vec::new();
        if !answer.reply.say.is_empty() {
            content.push(json!({"type": "text", "text": answer.reply.say.concat()}));
        }
        content.extend(answer.calls().map(|(id, call)| {
            let (name, input) = tool(call, answer);
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }));
        let mut message = envelope(answer);
        message["content"] = json!(content);
        message["stop_reason"] = json!(stop_reason(answer));
        message["usage"]["output_tokens"] = json!(answer.reply.usage.output);
        message
    }

    fn error(&self, refusal: &Refusal) -> Value {
        let class = match refusal.status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            _ => "api_error",
        };
        json!({"type": "error", "error": {"type": class, "message": refusal.message}})
    }

    fn texts(&self, body: &Value) -> Vec<String> {
        list(&body["messages"]).iter().map(|message| plain(&message["content"])).collect()
    }

    fn tool_results(&self, body: &Value) -> Vec<String> {
        let blocks = list(&body["messages"]).iter().flat_map(|message| list(&message["content"]));
        blocks.filter(|block| block["type"] == "tool_result").map(|block| plain(&block["content"])).collect()
    }
}

fn tool<'a>(call: &'a Call, answer: &Answer<'_>) -> (&'a str, Value) {
    match call {
        Call::Shell(command) | Call::Try(command) => ("Bash", json!({"command": command, "description": "Run it"})),
        Call::Read(path) => ("Read", json!({"file_path": answer.cwd.join(path)})),
        Call::Search(word) => ("Bash", json!({"command": format!("grep -rn {word}"), "description": "Search"})),
        Call::Write { path, content } => ("Write", json!({"file_path": answer.cwd.join(path), "content": content})),
        Call::Edit { path, old, new } => {
            ("Edit", json!({"file_path": answer.cwd.join(path), "old_string": old, "new_string": new}))
        }
        Call::Ask(questions) => {
            let one = questions.iter().map(|q| {
                json!({"question": q.question, "header": q.header, "multiSelect": q.multiple, "options": options(q)})
            });
            ("AskUserQuestion", json!({"questions": one.collect::<Vec<_>>()}))
        }
        Call::Tool { name, input } => (name, input.clone()),
        Call::Offered(_) | Call::Result(_) | Call::Badge(_) => unreachable!("it has its name by now"),
    }
}

fn event(event: &Value) -> Step {
    Step::Event(named(event))
}

fn start(index: usize, block: &Value) -> Step {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn block_delta(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: usize) -> Step {
    event(&json!({"type": "content_block_stop", "index": index}))
}

fn stop_reason(answer: &Answer<'_>) -> &'static str {
    if answer.reply.calls.is_empty() { "end_turn" } else { "tool_use" }
}

fn envelope(answer: &Answer<'_>) -> Value {
    let usage = &answer.reply.usage;
    json!({"id": format!("msg_{}", answer.number), "type": "message", "role": "assistant", "model": answer.model(),
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": usage.input, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached, "output_tokens": 1}})
}
