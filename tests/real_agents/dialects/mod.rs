//! The APIs of the models: the form of a scenario's reply, and the place of the conversation in a request.

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod gemini;
pub(crate) mod responses;

use std::path::Path;

use serde_json::{Value, json};

use crate::scenario::{Call, Question, Refusal, Reply};
use crate::support::list;

/// The purpose of a request.
pub(crate) enum Asked {
    /// A request of the conversation. True: the agent asks for a stream.
    Conversation { stream: bool },
    /// A request outside the conversation: a title, a summary, a check.
    Aside { stream: bool, answer: String },
    /// A small request whose answer is always the same.
    Fixed(Value),
    /// An unknown path.
    Unknown,
}

/// The API of a model provider.
pub(crate) trait Dialect: Sync {
    /// The purpose of a POST to this path, without its query.
    fn asked(&self, path: &str, body: &Value) -> Asked;

    /// The answer as a stream.
    fn steps(&self, answer: &Answer<'_>) -> Vec<Step>;

    /// The answer in one piece, for a request without a stream.
    fn whole(&self, answer: &Answer<'_>) -> Value;

    /// The body of an HTTP error.
    fn error(&self, refusal: &Refusal) -> Value;

    /// The texts of a request's messages.
    fn texts(&self, body: &Value) -> Vec<String>;

    /// The results of the tools in a request.
    fn tool_results(&self, body: &Value) -> Vec<String>;
}

/// A part of a stream.
pub(crate) enum Step {
    Pause,
    /// An encoded event.
    Event(String),
    /// Silence forever.
    Hang,
}

/// A reply that is being translated for an API.
pub(crate) struct Answer<'a> {
    pub(crate) reply: Reply,
    /// Makes ids unique within the model.
    pub(crate) number: usize,
    pub(crate) body: &'a Value,
    /// The agent's working directory.
    pub(crate) cwd: &'a Path,
}

impl Answer<'_> {
    /// One event per piece, each after the pause.
    fn pieces(&self, steps: &mut Vec<Step>, pieces: &[String], event: impl Fn(&str) -> String) {
        for piece in pieces {
            if self.reply.pause_ms > 0 {
                steps.push(Step::Pause);
            }
            steps.push(Step::Event(event(piece)));
        }
    }

    /// The position after the text, where a reply may fall silent.
    fn after_text(&self, steps: &mut Vec<Step>) {
        if self.reply.hang {
            steps.push(Step::Hang);
        }
    }

    /// The tool calls, each with an id.
    fn calls(&self) -> impl Iterator<Item = (String, &Call)> {
        self.reply.calls.iter().enumerate().map(|(i, call)| (format!("call_{}_{i}", self.number), call))
    }

    fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or("stub")
    }
}

/// An event named by its type.
fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("type"))
}

/// An event without a name.
fn unnamed(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// The body of an HTTP error of both of OpenAI's APIs.
fn openai_error(refusal: &Refusal) -> Value {
    let class = match refusal.status {
        400 | 404 => "invalid_request_error",
        401 => "invalid_api_key",
        429 => "rate_limit_exceeded",
        _ => "server_error",
    };
    json!({"error": {"type": class, "code": class, "message": refusal.message}})
}

/// The options of a question, as most tools want them.
fn options(question: &Question) -> Value {
    question.options.iter().map(|label| json!({"label": label, "description": format!("To choose {label}.")})).collect()
}

/// All text in a message's content or a tool's result, which is a string or a list of blocks.
fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(|block| plain(&block["text"]) + &plain(&block["content"])).collect(),
        _ => String::new(),
    }
}
