//! The chat completions API of OpenAI, which many providers offer.

use super::{ModelAnswer, RequestPurpose, StreamStep, WireFormat, list, plain, unnamed};
use crate::scripted_model::tools::{AgentCall, UsualTools};
use serde_json::{Value, json};

pub(super) struct ChatCompletions;

impl WireFormat for ChatCompletions {
    fn asked(&self, path: &str, body: &Value) -> RequestPurpose {
        let stream = body["stream"] == true;
        match path {
            // Requests for titles name no tools.
            "/v1/chat/completions" if !list(&body["tools"]).is_empty() => RequestPurpose::Conversation { stream },
            "/v1/chat/completions" => RequestPurpose::Aside { stream, answer: "A title".into() },
            "/v1/models" => {
                RequestPurpose::Fixed(json!({"object": "list", "data": [{"id": "stub-model", "object": "model"}]}))
            }
            _ => RequestPurpose::Unknown,
        }
    }

    fn steps(&self, answer: &ModelAnswer<'_>) -> Vec<StreamStep> {
        let reply = &answer.reply;
        let mut steps = vec![StreamStep::Event(delta(answer, &json!({"role": "assistant", "content": ""})))];
        answer.pieces(&mut steps, &reply.think, |piece| delta(answer, &json!({"reasoning_content": piece})));
        answer.pieces(&mut steps, &reply.say, |piece| delta(answer, &json!({"content": piece})));
        answer.after_text(&mut steps);
        for (index, mut call) in calls(answer).into_iter().enumerate() {
            call["index"] = json!(index);
            steps.push(StreamStep::Event(delta(answer, &json!({"tool_calls": [call]}))));
        }
        let choice = json!({"index": 0, "delta": {}, "finish_reason": finish_reason(answer)});
        let mut last = completion(answer, "chat.completion.chunk", &choice);
        last["usage"] = usage(answer);
        steps.push(StreamStep::Event(unnamed(&last)));
        steps.push(StreamStep::Event("data: [DONE]\n\n".into()));
        steps
    }

    fn whole(&self, answer: &ModelAnswer<'_>) -> Value {
        let message = json!({"role": "assistant", "content": answer.reply.say.concat(), "tool_calls": calls(answer)});
        let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(answer)});
        let mut whole = completion(answer, "chat.completion", &choice);
        whole["usage"] = usage(answer);
        whole
    }

    fn tool_results(&self, body: &Value) -> Vec<String> {
        let messages = list(&body["messages"]).iter().filter(|message| message["role"] == "tool");
        messages.map(|message| plain(&message["content"])).collect()
    }

    fn usual(&self) -> UsualTools {
        ["bash", "write"]
    }
}

fn calls(answer: &ModelAnswer<'_>) -> Vec<Value> {
    let one = |(id, call): (String, &AgentCall)| json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": call.fields().to_string()}});
    answer.calls().map(one).collect()
}

fn finish_reason(answer: &ModelAnswer<'_>) -> &'static str {
    if answer.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(answer: &ModelAnswer<'_>) -> Value {
    let usage = &answer.reply.usage;
    let input = usage.input + usage.cached;
    json!({"prompt_tokens": input, "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens": usage.output, "total_tokens": input + usage.output})
}

fn completion(answer: &ModelAnswer<'_>, object: &str, choice: &Value) -> Value {
    json!({"id": format!("chatcmpl_{}", answer.number), "object": object, "created": 0, "model": answer.model(),
        "choices": [choice]})
}

fn delta(answer: &ModelAnswer<'_>, delta: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
    unnamed(&completion(answer, "chat.completion.chunk", &choice))
}
