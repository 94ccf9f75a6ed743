//! The messages for a run, and the end of its turns.

use super::refusal::RequestError;
use super::updates::value;
use crate::json::{Object, to_line};
use serde_json::{Value, json};

/// A message for a run.
pub(super) fn message(kind: &str, payload: &Value) -> String {
    to_line(&json!({"v": "1", "type": kind, "payload": payload}))
}

/// The payload of a prompt: of run.start if it has more fields, or else of run.input.
pub(super) fn prompt(mut fields: Value, text: &str, images: &[String]) -> Value {
    fields["prompt"] = json!(text);
    if !images.is_empty() {
        fields["images"] = json!(images);
    }
    fields
}

/// The end of a turn.
#[derive(Debug, PartialEq)]
pub(super) enum RunOutcome {
    /// The turn ended with this stop reason. The value: more about the turn.
    Stopped(&'static str, Value),
    Failed(RequestError),
}

impl RunOutcome {
    pub(super) fn cancelled() -> RunOutcome {
        RunOutcome::Stopped("cancelled", Value::Null)
    }

    /// The end of a turn, from the progress message that reports it.
    pub(super) fn of_turn(frame: &Object<'_>) -> RunOutcome {
        match (frame.string("outcome").as_deref(), frame.object("failure")) {
            (Some("cancelled"), _) => RunOutcome::cancelled(),
            (_, Some(failure)) => RunOutcome::of_failure(&failure),
            _ => RunOutcome::Stopped(stop_reason(frame), about(frame)),
        }
    }

    /// The end of a run, from its terminal frame.
    pub(super) fn of_run(kind: &str, payload: &Object<'_>) -> RunOutcome {
        match kind {
            "run.completed" => RunOutcome::Stopped(stop_reason(payload), about(payload)),
            "run.cancelled" => RunOutcome::cancelled(),
            _ => RunOutcome::of_failure(payload),
        }
    }

    fn of_failure(failure: &Object<'_>) -> RunOutcome {
        let reason = match failure.string("code").as_deref() {
            Some("limit_reached") => "max_turn_requests",
            Some("refused") => "refusal",
            Some("context_exceeded") => "max_tokens",
            _ => return RunOutcome::Failed(RequestError::failure(failure)),
        };
        let named = |name: &str| failure.raw(name).map(value).unwrap_or_default();
        RunOutcome::Stopped(reason, json!({"code": named("code"), "message": named("message")}))
    }

    /// The result of the prompt.
    pub(super) fn result(reason: &str, about: &Value) -> Value {
        match about.as_object().is_some_and(|about| !about.is_empty()) {
            true => json!({"stopReason": reason, "_meta": {"spektacular": about}}),
            false => json!({"stopReason": reason}),
        }
    }
}

fn stop_reason(frame: &Object<'_>) -> &'static str {
    match frame.string("stop_reason").as_deref() {
        Some("max_tokens") => "max_tokens",
        Some("refusal") => "refusal",
        _ => "end_turn",
    }
}

/// The facts about a turn that the protocol has no field for.
fn about(frame: &Object<'_>) -> Value {
    let names = ["usage", "structured_output", "denied", "unanswered"];
    let facts = names.into_iter().filter_map(|name| Some((name.to_owned(), value(frame.raw(name)?))));
    Value::Object(facts.collect())
}
