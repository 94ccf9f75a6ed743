//! The Messages API of Anthropic.

use super::{ModelAnswer, RequestPurpose, StreamStep, WireFormat, class, event, list, named, plain};
use crate::scripted_model::scenario::HttpRefusal;
use crate::scripted_model::tools::UsualTools;
use serde_json::{Value, json};

pub(super) struct MessagesFormat;

impl WireFormat for MessagesFormat {
    fn asked(&self, path: &str, body: &Value) -> RequestPurpose {
        let stream = body["stream"] == true;
        match path {
            // Requests for titles and probes, for example, name no tools.
            "/v1/messages" if !list(&body["tools"]).is_empty() => RequestPurpose::Conversation { stream },
            "/v1/messages" => RequestPurpose::Aside { stream, answer: "ok".into() },
            "/v1/messages/count_tokens" => {
                RequestPurpose::Fixed(json!({"input_tokens": body.to_string().len() / 4 + 1}))
            }
            _ => RequestPurpose::Unknown,
        }
    }

    fn steps(&self, answer: &ModelAnswer<'_>) -> Vec<StreamStep> {
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
            steps.push(start(index, &json!({"type": "tool_use", "id": id, "name": call.name, "input": {}})));
            let delta = json!({"type": "input_json_delta", "partial_json": call.fields().to_string()});
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

    fn whole(&self, answer: &ModelAnswer<'_>) -> Value {
        let mut content = Vec::new();
        if !answer.reply.say.is_empty() {
            content.push(json!({"type": "text", "text": answer.reply.say.concat()}));
        }
        let calls = answer.calls();
        content.extend(
            calls.map(|(id, call)| json!({"type": "tool_use", "id": id, "name": call.name, "input": call.fields()})),
        );
        let mut message = envelope(answer);
        message["content"] = json!(content);
        message["stop_reason"] = json!(stop_reason(answer));
        message["usage"]["output_tokens"] = json!(answer.reply.usage.output);
        message
    }

    fn error(&self, refusal: &HttpRefusal) -> Value {
        let words =
            ["invalid_request_error", "authentication_error", "not_found_error", "rate_limit_error", "api_error"];
        let class = class(refusal, words);
        json!({"type": "error", "error": {"type": class, "message": refusal.message}})
    }

    fn tool_results(&self, body: &Value) -> Vec<String> {
        let blocks = list(&body["messages"]).iter().flat_map(|message| list(&message["content"]));
        blocks.filter(|block| block["type"] == "tool_result").map(|block| plain(&block["content"])).collect()
    }

    fn usual(&self) -> UsualTools {
        ["Bash", "Write"]
    }
}

fn start(index: usize, block: &Value) -> StreamStep {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn block_delta(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: usize) -> StreamStep {
    event(&json!({"type": "content_block_stop", "index": index}))
}

fn stop_reason(answer: &ModelAnswer<'_>) -> &'static str {
    if answer.calls.is_empty() { "end_turn" } else { "tool_use" }
}

fn envelope(answer: &ModelAnswer<'_>) -> Value {
    let usage = &answer.reply.usage;
    json!({"id": format!("msg_{}", answer.number), "type": "message", "role": "assistant", "model": answer.model(),
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": usage.input, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached, "output_tokens": 1}})
}
