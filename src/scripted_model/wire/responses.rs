//! The Responses API of OpenAI.

use super::{ModelAnswer, RequestPurpose, StreamStep, WireFormat, event, list, named, plain};
use crate::scripted_model::tools::{AgentCall, CallInput, UsualTools};
use serde_json::{Value, json};

pub(super) struct Responses;

impl WireFormat for Responses {
    fn asked(&self, path: &str, _body: &Value) -> RequestPurpose {
        if path == "/v1/responses" { RequestPurpose::Conversation { stream: true } } else { RequestPurpose::Unknown }
    }

    fn steps(&self, answer: &ModelAnswer<'_>) -> Vec<StreamStep> {
        let reply = &answer.reply;
        let mut steps = vec![event(&json!({"type": "response.created", "response": response(answer, "in_progress")}))];
        if !reply.think.is_empty() {
            let id = format!("rs_{}", answer.number);
            let item = json!({"type": "reasoning", "id": id, "summary": []});
            steps.push(event(&json!({"type": "response.output_item.added", "output_index": 0, "item": item})));
            let part = json!({"type": "response.reasoning_summary_part.added", "item_id": id, "summary_index": 0});
            steps.push(event(&part));
            answer.pieces(&mut steps, &reply.think, |piece| {
                named(&json!({"type": "response.reasoning_summary_text.delta", "item_id": id, "summary_index": 0,
                    "delta": piece}))
            });
            let summary = json!([{"type": "summary_text", "text": reply.think.concat()}]);
            steps.push(done(&json!({"type": "reasoning", "id": id, "summary": summary})));
        }
        if !reply.say.is_empty() {
            let id = format!("msg_{}", answer.number);
            let item = json!({"type": "message", "id": id, "role": "assistant", "content": []});
            steps.push(event(&json!({"type": "response.output_item.added", "output_index": 0, "item": item})));
            answer.pieces(&mut steps, &reply.say, |piece| {
                named(&json!({"type": "response.output_text.delta", "item_id": id, "output_index": 0,
                    "content_index": 0, "delta": piece}))
            });
            answer.after_text(&mut steps);
            steps.push(done(&message(answer)));
        }
        steps.extend(answer.calls().map(|(id, call)| done(&tool(&id, call))));
        steps.push(event(&json!({"type": "response.completed", "response": self.whole(answer)})));
        steps
    }

    fn whole(&self, answer: &ModelAnswer<'_>) -> Value {
        let usage = &answer.reply.usage;
        let mut output: Vec<Value> = answer.calls().map(|(id, call)| tool(&id, call)).collect();
        if !answer.reply.say.is_empty() {
            output.insert(0, message(answer));
        }
        let input = usage.input + usage.cached;
        let mut response = response(answer, "completed");
        response["output"] = json!(output);
        response["usage"] = json!({
            "input_tokens": input, "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + usage.output});
        response
    }

    fn texts(&self, body: &Value) -> Vec<String> {
        list(&body["input"]).iter().map(|item| plain(&item["content"])).collect()
    }

    fn tool_results(&self, body: &Value) -> Vec<String> {
        let results = ["function_call_output", "custom_tool_call_output"];
        let items = list(&body["input"]).iter();
        let items = items.filter(|item| item["type"].as_str().is_some_and(|kind| results.contains(&kind)));
        items.map(|item| plain(&item["output"])).collect()
    }

    fn usual(&self) -> UsualTools {
        ["exec_command", "apply_patch"]
    }
}

/// A call as an item. A tool of an MCP server is in a namespace.
fn tool(id: &str, call: &AgentCall) -> Value {
    match &call.input {
        CallInput::Text(text) => {
            json!({"type": "custom_tool_call", "id": id, "call_id": id, "name": call.name, "input": text})
        }
        CallInput::Fields(input) => {
            let (server, tool) = call.name.rsplit_once("__").unwrap_or(("", &call.name));
            let mut item = json!({"type": "function_call", "id": id, "call_id": id, "name": tool,
                "arguments": input.to_string()});
            if !server.is_empty() {
                item["namespace"] = json!(server);
            }
            item
        }
    }
}

fn message(answer: &ModelAnswer<'_>) -> Value {
    let content = json!([{"type": "output_text", "text": answer.reply.say.concat(), "annotations": []}]);
    json!({"type": "message", "id": format!("msg_{}", answer.number), "role": "assistant", "content": content})
}

fn response(answer: &ModelAnswer<'_>, status: &str) -> Value {
    json!({"id": format!("resp_{}", answer.number), "model": answer.model(), "status": status})
}

fn done(item: &Value) -> StreamStep {
    event(&json!({"type": "response.output_item.done", "output_index": 0, "item": item}))
}
