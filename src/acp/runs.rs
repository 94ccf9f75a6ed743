//! The messages for a run, and the end of its turns.

use super::refusal::RequestError;
use crate::json::{Object, to_line};
use crate::protocol::limits::INBOUND_LINE_BYTES;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) fn message(kind: &str, payload: &Value) -> String {
    to_line(&json!({"v": "1", "type": kind, "payload": payload}))
}

/// The id of the messages that begin a turn, by which a run's warning about one of them names it.
pub(super) const PROMPT: &str = "prompt";

/// The id of the messages that give the agent a prompt while it works.
pub(super) const STEER: &str = "steer";

/// `None`: a run takes no message of this length.
pub(super) fn named_message(id: &str, kind: &str, payload: &Value) -> Option<String> {
    let line = to_line(&json!({"v": "1", "id": id, "type": kind, "payload": payload}));
    (line.len() <= INBOUND_LINE_BYTES).then_some(line)
}

/// Whether a warning of a run says that it did not take a message. `is_prompt`: the message began the turn.
pub(super) fn is_ignored(code: &str, is_prompt: bool) -> bool {
    match code {
        // Such a message has no id. Only a prompt can be too long or too deep.
        "malformed_message" | "prompt_refused" => true,
        "invalid_answer" | "unknown_type" | "unknown_run" | "unknown_question" | "duplicate_start" => is_prompt,
        _ => false,
    }
}

/// The payload of a prompt: of run.start if it has more fields, or else of run.input.
pub(super) fn prompt(mut fields: Value, text: &str, images: &[String]) -> Value {
    fields["prompt"] = json!(text);
    if !images.is_empty() {
        fields["images"] = json!(images);
    }
    fields
}

#[derive(Debug)]
pub(super) enum RunOutcome {
    Stopped(PromptResult),
    Failed(RequestError),
}

#[derive(Debug, Serialize)]
pub(super) struct PromptResult {
    #[serde(rename = "_meta", skip_serializing_if = "About::is_empty")]
    about: About,
    #[serde(rename = "stopReason")]
    reason: &'static str,
}

/// The facts about a turn that the protocol has no field for. Kept as JSON, because the values of a structured result take
/// many times their length in memory.
#[derive(Debug, Default, Serialize)]
struct About {
    spektacular: BTreeMap<&'static str, Box<RawValue>>,
}

impl About {
    fn is_empty(&self) -> bool {
        self.spektacular.is_empty()
    }

    fn of(frame: &Object<'_>, names: &[&'static str]) -> About {
        let fact = |name: &&'static str| Some((*name, frame.raw(name)?.value().to_owned()));
        About { spektacular: names.iter().filter_map(fact).collect() }
    }
}

impl PromptResult {
    pub(super) fn of(reason: &'static str) -> PromptResult {
        PromptResult { about: About::default(), reason }
    }
}

impl RunOutcome {
    pub(super) fn cancelled() -> RunOutcome {
        RunOutcome::Stopped(PromptResult::of("cancelled"))
    }

    pub(super) fn of_turn(frame: &Object<'_>) -> RunOutcome {
        match (frame.string("outcome").as_deref(), frame.object("failure")) {
            (Some("cancelled"), _) => RunOutcome::cancelled(),
            (_, Some(failure)) => RunOutcome::of_failure(&failure),
            _ => RunOutcome::of_end(frame),
        }
    }

    pub(super) fn of_run(kind: &str, payload: &Object<'_>) -> RunOutcome {
        match kind {
            "run.completed" => RunOutcome::of_end(payload),
            "run.cancelled" => RunOutcome::cancelled(),
            _ => RunOutcome::of_failure(payload),
        }
    }

    fn of_end(frame: &Object<'_>) -> RunOutcome {
        let about = About::of(frame, &["usage", "structured_output", "denied", "unanswered"]);
        RunOutcome::Stopped(PromptResult { about, reason: stop_reason(frame) })
    }

    fn of_failure(failure: &Object<'_>) -> RunOutcome {
        let reason = match failure.string("code").as_deref() {
            Some("limit_reached") => "max_turn_requests",
            Some("refused") => "refusal",
            Some("context_exceeded") => "max_tokens",
            _ => return RunOutcome::Failed(RequestError::failure(failure)),
        };
        RunOutcome::Stopped(PromptResult { about: About::of(failure, &["code", "message"]), reason })
    }
}

fn stop_reason(frame: &Object<'_>) -> &'static str {
    match frame.string("stop_reason").as_deref() {
        Some("max_tokens") => "max_tokens",
        Some("refusal") => "refusal",
        _ => "end_turn",
    }
}
