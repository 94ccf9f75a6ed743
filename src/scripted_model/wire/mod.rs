//! The APIs of the providers: the form of a reply, and the place of the conversation in a request.

mod chat_completions;
mod generate_content;
mod messages;
mod responses;

use super::scenario::{HttpRefusal, ModelReply};
use super::tools::{AgentCall, CallInput, UsualTools};
use crate::agent::endpoint::Wire;
use serde_json::{Value, json};

pub(super) enum RequestPurpose {
    /// True: the agent asks for a stream.
    Conversation { stream: bool },
    /// Outside the conversation: a title, a summary, a check.
    Aside { stream: bool, answer: String },
    /// A small request whose answer is always the same.
    Fixed(Value),
    /// An unknown path.
    Unknown,
}

pub(super) trait WireFormat: Sync {
    /// `path`: without its query.
    fn asked(&self, path: &str, body: &Value) -> RequestPurpose;

    fn steps(&self, answer: &ModelAnswer<'_>) -> Vec<StreamStep>;

    /// For a request without a stream.
    fn whole(&self, answer: &ModelAnswer<'_>) -> Value;

    /// By default as in the APIs of OpenAI.
    fn error(&self, refusal: &HttpRefusal) -> Value {
        let class = class(refusal, OPENAI_ERRORS);
        json!({"error": {"type": class, "code": class, "message": refusal.message}})
    }

    fn texts(&self, body: &Value) -> Vec<String> {
        list(&body["messages"]).iter().map(|message| plain(&message["content"])).collect()
    }

    fn tool_results(&self, body: &Value) -> Vec<String>;

    fn usual(&self) -> UsualTools;
}

impl Wire {
    pub(super) fn format(self) -> &'static dyn WireFormat {
        match self {
            Wire::Messages => &messages::MessagesFormat,
            Wire::Responses => &responses::Responses,
            Wire::ChatCompletions => &chat_completions::ChatCompletions,
            Wire::GenerateContent => &generate_content::GenerateContent,
        }
    }

    pub fn texts(self, body: &Value) -> Vec<String> {
        self.format().texts(body)
    }

    pub fn tool_results(self, body: &Value) -> Vec<String> {
        self.format().tool_results(body)
    }
}

pub(super) enum StreamStep {
    Pause,
    /// Encoded.
    Event(String),
    Hang,
    Cut,
}

pub(super) struct ModelAnswer<'a> {
    pub(super) reply: ModelReply,
    pub(super) calls: Vec<AgentCall>,
    /// Makes ids unique within the model.
    pub(super) number: usize,
    pub(super) body: &'a Value,
}

impl ModelAnswer<'_> {
    /// One event per piece, each after the pause.
    fn pieces(&self, steps: &mut Vec<StreamStep>, pieces: &[String], event: impl Fn(&str) -> String) {
        for piece in pieces {
            if self.reply.pause_ms > 0 {
                steps.push(StreamStep::Pause);
            }
            steps.push(StreamStep::Event(event(piece)));
        }
    }

    /// The position after the text, where a reply may fall silent or break off.
    fn after_text(&self, steps: &mut Vec<StreamStep>) {
        steps.extend(self.reply.hang.then_some(StreamStep::Hang));
        steps.extend(self.reply.cut.then_some(StreamStep::Cut));
    }

    fn calls(&self) -> impl Iterator<Item = (String, &AgentCall)> {
        self.calls.iter().enumerate().map(|(i, call)| (format!("call_{}_{i}", self.number), call))
    }

    fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or("stub")
    }
}

impl AgentCall {
    /// The input, for an API whose tools have no other one.
    fn fields(&self) -> Value {
        match &self.input {
            CallInput::Fields(fields) => fields.clone(),
            CallInput::Text(text) => json!({"input": text}),
        }
    }
}

fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

fn event(event: &Value) -> StreamStep {
    StreamStep::Event(named(event))
}

fn unnamed(event: &Value) -> String {
    format!("data: {event}\n\n")
}

const OPENAI_ERRORS: [&str; 5] =
    ["invalid_request_error", "invalid_api_key", "invalid_request_error", "rate_limit_exceeded", "server_error"];

/// The class of an HTTP error in the words of an API: for 400, 401, 404, 429, and all others.
fn class<'a>(refusal: &'a HttpRefusal, [invalid, login, missing, busy, other]: [&'a str; 5]) -> &'a str {
    if let Some(class) = &refusal.class {
        return class;
    }
    match refusal.status {
        400 => invalid,
        401 => login,
        404 => missing,
        429 => busy,
        _ => other,
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// All text in a message's content or a tool's result, which is a string or a list of blocks.
fn plain(content: &Value) -> String {
    let block = |block: &Value| plain(&block["text"]) + &plain(&block["content"]);
    content.as_str().map_or_else(|| list(content).iter().map(block).collect(), str::to_owned)
}
