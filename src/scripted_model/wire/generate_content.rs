//! The API of Google: generateContent and streamGenerateContent.

use super::{ModelAnswer, RequestPurpose, StreamStep, WireFormat, class, list, plain, unnamed};
use crate::scripted_model::scenario::HttpRefusal;
use crate::scripted_model::tools::{AgentCall, UsualTools};
use serde_json::{Map, Value, json};

pub(super) struct GenerateContent;

impl WireFormat for GenerateContent {
    fn asked(&self, path: &str, body: &Value) -> RequestPurpose {
        let stream = match path.rsplit(':').next() {
            Some("streamGenerateContent") => true,
            Some("generateContent") => false,
            Some("countTokens") => return RequestPurpose::Fixed(json!({"totalTokens": 100})),
            _ => return RequestPurpose::Unknown,
        };
        // Checks and summaries come without functions.
        if list(&body["tools"]).iter().any(|tool| tool.get("functionDeclarations").is_some()) {
            return RequestPurpose::Conversation { stream };
        }
        RequestPurpose::Aside { stream, answer: fitting(body) }
    }

    fn steps(&self, answer: &ModelAnswer<'_>) -> Vec<StreamStep> {
        let reply = &answer.reply;
        let mut steps = Vec::new();
        let thought = |piece: &str| json!({"text": piece, "thought": true});
        answer.pieces(&mut steps, &reply.think, |piece| unnamed(&part(answer, &[thought(piece)])));
        answer.pieces(&mut steps, &reply.say, |piece| unnamed(&part(answer, &[json!({"text": piece})])));
        answer.after_text(&mut steps);
        steps.push(StreamStep::Event(unnamed(&last(answer, calls(answer)))));
        steps
    }

    fn whole(&self, answer: &ModelAnswer<'_>) -> Value {
        let text = json!({"text": answer.reply.say.concat()});
        last(answer, [vec![text], calls(answer)].concat())
    }

    fn error(&self, refusal: &HttpRefusal) -> Value {
        let words = ["INVALID_ARGUMENT", "UNAUTHENTICATED", "NOT_FOUND", "RESOURCE_EXHAUSTED", "INTERNAL"];
        let status = class(refusal, words);
        let wait = refusal.retry_after.iter().map(
            |seconds| json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")}),
        );
        let details: Vec<Value> = wait.collect();
        json!({"error": {"code": refusal.status, "message": refusal.message, "status": status, "details": details}})
    }

    fn texts(&self, body: &Value) -> Vec<String> {
        list(&body["contents"]).iter().map(|content| plain(&content["parts"])).collect()
    }

    fn tool_results(&self, body: &Value) -> Vec<String> {
        let parts = list(&body["contents"]).iter().flat_map(|content| list(&content["parts"]));
        parts.filter_map(|part| part.get("functionResponse")).map(|result| result["response"].to_string()).collect()
    }

    fn usual(&self) -> UsualTools {
        ["run_shell_command", "write_file"]
    }
}

/// An object that fits the request's schema, or a word.
fn fitting(body: &Value) -> String {
    let config = &body["generationConfig"];
    let wanted =
        ["responseJsonSchema", "responseSchema"].iter().find_map(|name| config[name]["properties"].as_object());
    let value = |name: &str| if name == "next_speaker" { json!("user") } else { json!("ok") };
    let given = |wanted: &Map<String, Value>| wanted.keys().map(|name| (name.clone(), value(name))).collect();
    wanted.map_or_else(|| "ok".into(), |wanted| Value::Object(given(wanted)).to_string())
}

fn calls(answer: &ModelAnswer<'_>) -> Vec<Value> {
    let one = |call: &AgentCall| json!({"functionCall": {"name": call.name, "args": call.fields()}, "thoughtSignature": "c3R1Yg=="});
    answer.calls.iter().map(one).collect()
}

fn part(answer: &ModelAnswer<'_>, parts: &[Value]) -> Value {
    json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}], "modelVersion": "stub",
        "responseId": format!("response_{}", answer.number)})
}

/// The tool calls, the reason for the end and the counts come in one last piece.
fn last(answer: &ModelAnswer<'_>, parts: Vec<Value>) -> Value {
    let usage = &answer.reply.usage;
    let input = usage.input + usage.cached;
    let mut last = part(answer, &parts);
    last["candidates"][0]["finishReason"] = json!("STOP");
    last["usageMetadata"] = json!({"promptTokenCount": input, "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output, "totalTokenCount": input + usage.output});
    last
}
