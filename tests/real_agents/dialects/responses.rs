//! OpenAI's Responses API, for Codex.

use serde_json::{Value, json};

use super::{Answer, Asked, Dialect, Step, list, named, openai_error, options, plain};
use crate::scenario::{Call, Refusal};

pub(crate) struct Responses;

impl Dialect for Responses {
    fn asked(&self, path: &str, _body: &Value) -> Asked {
        if path == "/v1/responses" { Asked::Conversation { stream: true } } else { Asked::Unknown }
    }

    fn steps(&self, answer: &Answer<'_>) -> Vec<Step> {
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

    fn whole(&self, answer: &Answer<'_>) -> Value {
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

    fn error(&self, refusal: &Refusal) -> Value {
        openai_error(refusal)
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
}

/// A call as an item. A patch is plain text, not JSON.
#[track_caller]
fn tool(id: &str, call: &Call) -> Value {
    let function = |name: &str, arguments: &Value| json!({"type": "function_call", "id": id, "call_id": id, "name": name, "arguments": arguments.to_string()});
    match call {
        // The time after which the model gets the output so far.
        Call::Try(command) => function("exec_command", &json!({"cmd": command, "yield_time_ms": 30_000})),
        // As the real models do for commands that act.
        Call::Shell(command) => function(
            "exec_command",
            &json!({"cmd": command, "yield_time_ms": 30_000, "sandbox_permissions": "require_escalated",
                "justification": format!("May I run {command}?")}),
        ),
        Call::Read(path) => function("exec_command", &json!({"cmd": format!("cat {path}")})),
        Call::Search(word) => function("exec_command", &json!({"cmd": format!("grep -rn {word} .")})),
        Call::Write { path, content } => {
            let added: String = content.lines().map(|line| format!("+{line}\n")).collect();
            let patch = format!("*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n");
            json!({"type": "custom_tool_call", "id": id, "call_id": id, "name": "apply_patch", "input": patch})
        }
        Call::Edit { path, old, new } => {
            let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n");
            json!({"type": "custom_tool_call", "id": id, "call_id": id, "name": "apply_patch", "input": patch})
        }
        Call::Ask(questions) => {
            // Codex's tool lacks multiple choice and requires an id for each question.
            let one = questions.iter().enumerate().map(|(i, q)| {
                json!({"id": format!("q{i}"), "question": q.question, "header": q.header, "options": options(q)})
            });
            function("request_user_input", &json!({"questions": one.collect::<Vec<_>>()}))
        }
        Call::Tool { name, input } => {
            // The tools of MCP servers are in namespaces.
            let (server, tool) = name.rsplit_once("__").unwrap_or(("", name));
            let mut call = function(tool, input);
            if !server.is_empty() {
                call["namespace"] = json!(server);
            }
            call
        }
        Call::Offered(_) | Call::Result(_) | Call::Badge(_) => unreachable!("it has its name by now"),
    }
}

fn message(answer: &Answer<'_>) -> Value {
    let content = json!([{"type": "output_text", "text": answer.reply.say.concat(), "annotations": []}]);
    json!({"type": "message", "id": format!("msg_{}", answer.number), "role": "assistant", "content": content})
}

fn response(answer: &Answer<'_>, status: &str) -> Value {
    json!({"id": format!("resp_{}", answer.number), "model": answer.model(), "status": status})
}

fn event(event: &Value) -> Step {
    Step::Event(named(event))
}

fn done(item: &Value) -> Step {
    event(&json!({"type": "response.output_item.done", "output_index": 0, "item": item}))
}
