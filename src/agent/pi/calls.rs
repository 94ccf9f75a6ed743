//! pi's tools in the protocol's terms, and the requests of its extensions: permissions, which ours asks for, and the
//! questions of others.

use crate::agent::reply::NO_USER;
use crate::agent::{Reply, tool_input};
use crate::json::{Object, Raw, to_line};
use crate::protocol::outbound::Place;
use crate::protocol::question::{Answer, Ask, Choice, Choices, Kind, Subject};
use crate::protocol::scope::Scope;
use crate::protocol::words::{Category, Purpose};
use serde_json::{Value, json};

/// The files that the call of a tool works on. pi resolves some paths in a way of its own, so that they are left out, as if
/// they were outside the working directory.
pub(super) fn locations(name: &str, input: &Object<'_>) -> Vec<Place> {
    let is_plain = |path: &str| !path.starts_with(['~', '@']) && path.is_ascii() && !path.starts_with("file:");
    let leaves = name == "find" && input.str("pattern").is_some_and(|pattern| pattern.contains(".."));
    let mut places = tool_input::locations(Some(input));
    if places.is_empty() && tool_input::category(name) == Category::Search {
        places.push(Place { path: ".".into(), line: None });
    }
    places.retain(|place| is_plain(place.path.unredacted()) && !leaves);
    places
}

fn permission(name: &str, raw: Raw<'_>) -> Option<Ask> {
    let (category, input) = (tool_input::category(name), raw.object()?);
    let (title, detail) = (tool_input::title(name, Some(&input)), tool_input::detail(name, &input, raw.get()));
    let (text, scope) = (format!("Allow {title}?"), Scope::of_request(category, Some(name), Some(raw.get())));
    Some(Ask::permission(Subject::new(category, title, locations(name, &input), detail), text, scope))
}

#[derive(Debug)]
pub(super) enum PiRequest {
    /// Permission for the call with this id.
    Permission(String),
    Confirm,
    /// A choice or a text.
    Value,
}

/// A request for permission, as our extension sends it.
pub(super) struct GateRequest {
    pub(super) call: String,
    pub(super) tool: String,
    pub(super) creates: bool,
    /// `None`: nobody can see what the call is about.
    pub(super) ask: Option<Ask>,
}

impl GateRequest {
    pub(super) fn read(request: &Object<'_>) -> Option<GateRequest> {
        let text = request.string("placeholder")?;
        let message = Object::parse(&text)?;
        let tool = message.string("tool")?;
        let ask = permission(&tool, message.raw("input")?);
        Some(GateRequest { call: message.string("call")?, creates: message.bool("creates") == Some(true), ask, tool })
    }
}

/// Reads the question of another extension. `None`: it needs no answer.
pub(super) fn question(method: &str, request: &Object<'_>) -> Option<(PiRequest, Ask)> {
    let text = |name: &str| request.string(name).unwrap_or_default();
    let (pending, kind) = match method {
        "confirm" => (PiRequest::Confirm, Kind::Confirm),
        "input" | "editor" => (PiRequest::Value, Kind::Text),
        "select" => {
            let labels = request.array("options").filter_map(Raw::string);
            let choices = Choices::new(labels.map(|label| Choice::labelled(label, None)))?;
            (PiRequest::Value, Kind::Select { choices, multiple: false, allow_other: false })
        }
        _ => return None,
    };
    let words = ["title", "message", "placeholder", "prefill"].map(text).into_iter().filter(|text| !text.is_empty());
    Some((pending, Ask::new(Purpose::Clarification, kind, "", words.collect::<Vec<_>>().join("\n"))))
}

impl PiRequest {
    pub(super) fn respond(&self, id: &str, replies: &[Reply]) -> String {
        match (self, replies.first()) {
            (PiRequest::Permission(_), reply) => {
                let text = match reply {
                    Some(Reply::Allowed) => ALLOWED.to_owned(),
                    Some(Reply::AllowedWith(input)) => format!("{{\"allowed\":true,\"input\":{input}}}"),
                    Some(Reply::NoUser) => to_line(&json!({"reason": NO_USER})),
                    Some(Reply::Denied(Some(said)) | Reply::Declined(Some(said))) => {
                        to_line(&json!({"reason": said.unredacted()}))
                    }
                    Some(Reply::Denied(None) | Reply::Declined(None) | Reply::Answer(_)) | None => "{}".to_owned(),
                };
                respond(id, "value", json!(text))
            }
            (PiRequest::Confirm, Some(Reply::Answer(Answer::Bool(yes)))) => respond(id, "confirmed", json!(yes)),
            (PiRequest::Value, Some(reply @ Reply::Answer(_))) => respond(id, "value", json!(reply.spoken())),
            (PiRequest::Confirm | PiRequest::Value, _) => cancelled(id),
        }
    }
}

pub(super) const ALLOWED: &str = "{\"allowed\":true}";

pub(super) fn cancelled(id: &str) -> String {
    respond(id, "cancelled", json!(true))
}

pub(super) fn respond(id: &str, field: &str, value: Value) -> String {
    to_line(&json!({"type": "extension_ui_response", "id": id, field: value}))
}
