//! The Gemini API, for Gemini CLI.

use serde_json::{Map, Value, json};

use super::{Answer, Asked, Dialect, Step, list, options, plain, unnamed};
use crate::scenario::{Call, Refusal};

pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn asked(&self, path: &str, body: &Value) -> Asked {
        let stream = match path.rsplit(':').next() {
            Some("streamGenerateContent") => true,
            Some("generateContent") => false,
            Some("countTokens") => return Asked::Fixed(json!({"totalTokens": 100})),
            _ => return Asked::Unknown,
        };
        // Checks and summaries come without functions.
        if list(&body["tools"]).iter().any(|tool| tool.get("functionDeclarations").is_some()) {
            return Asked::Conversation { stream };
        }
        Asked::Aside { stream, answer: fitting(body) }
    }

    fn steps(&self, answer: &Answer<'_>) -> Vec<Step> {
        let reply = &answer.reply;
        let mut steps = Vec::new();
        let thought = |piece: &str| json!({"text": piece, "thought": true});
        answer.pieces(&mut steps, &reply.think, |piece| unnamed(&part(answer, &[thought(piece)])));
        answer.pieces(&mut steps, &reply.say, |piece| unnamed(&part(answer, &[json!({"text": piece})])));
        answer.after_text(&mut steps);
        steps.push(Step::Event(unnamed(&last(answer, calls(answer)))));
        steps
    }

    fn whole(&self, answer: &Answer<'_>) -> Value {
        let text = json!({"text": answer.reply.say.concat()});
        last(answer, [vec![text], calls(answer)].concat())
    }

    fn error(&self, refusal: &Refusal) -> Value {
        let status = match refusal.status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            _ => "INTERNAL",
        };
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

fn calls(answer: &Answer<'_>) -> Vec<Value> {
    let one = |(name, args): (&str, Value)| json!({"functionCall": {"name": name, "args": args}, "thoughtSignature": "c3R1Yg=="});
    answer.reply.calls.iter().map(|call| one(tool(call, answer))).collect()
}

fn tool<'a>(call: &'a Call, answer: &Answer<'_>) -> (&'a str, Value) {
    match call {
        Call::Shell(command) | Call::Try(command) => {
            ("run_shell_command", json!({"command": command, "description": "Run it"}))
        }
        Call::Read(path) => ("read_file", json!({"file_path": answer.cwd.join(path)})),
        Call::Search(word) => ("grep_search", json!({"pattern": word})),
        Call::Write { path, content } => {
            ("write_file", json!({"file_path": answer.cwd.join(path), "content": content}))
        }
        Call::Edit { path, old, new } => (
            "replace",
            json!({"file_path": answer.cwd.join(path), "old_string": old, "new_string": new, "instruction": "Replace it"}),
        ),
        Call::Ask(questions) => {
            let one = questions.iter().map(|q| {
                json!({"question": q.question, "header": q.header, "type": "choice", "multiSelect": q.multiple,
                    "options": options(q)})
            });
            ("ask_user", json!({"questions": one.collect::<Vec<_>>()}))
        }
        Call::Tool { name, input } => (name, input.clone()),
        Call::Offered(_) | Call::Result(_) | Call::Badge(_) => unreachable!("it has its name by now"),
    }
}

fn part(answer: &Answer<'_>, parts: &[Value]) -> Value {
    json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}], "modelVersion": "stub",
        "responseId": format!("response_{}", answer.number)})
}

/// The tool calls, the reason for the end and the counts come in one last piece.
fn last(answer: &Answer<'_>, parts: Vec<Value>) -> Value {
    let usage = &answer.reply.usage;
    let input = usage.input + usage.cached;
    let mut last = part(answer, &parts);
    last["candidates"][0]["finishReason"] = json!("STOP");
    last["usageMetadata"] = json!({"promptTokenCount": input, "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output, "totalTokenCount": input + usage.output});
    last
}
