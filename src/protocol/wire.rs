//! How the bodies of frames are written as JSON.

use super::fields::ShownText;
use super::outbound::{
    About, Artifact, ArtifactRef, Body, Json, Left, Outcome, Place, PlanEntry, Progress, Question, Started,
    SubjectFrame, Tally, Terminal, Text,
};
use super::question::Kind;
use super::redacted::Redacted;
use super::request::Settings;
use crate::failure::{Code, Failure};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

macro_rules! entries {
    ($map:ident; $($key:literal: $value:expr),* $(,)?) => {{ $($map.serialize_entry($key, $value)?;)* }};
}

/// A part of a redacted body. Only this module can make one, and only from a [`Redacted`]: no text becomes JSON
/// before it is redacted.
struct Wire<'a, T: ?Sized>(&'a T);

impl Serialize for Redacted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &**self {
            Body::Started(body) => Wire(&**body).serialize(serializer),
            Body::Progress(body) => Wire(&**body).serialize(serializer),
            Body::Question(body) => Wire(&**body).serialize(serializer),
            Body::Artifact(body) => Wire(&**body).serialize(serializer),
            Body::Terminal(body) => Wire(&**body).serialize(serializer),
        }
    }
}

impl Serialize for Wire<'_, Text> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.shown())
    }
}

impl Serialize for Wire<'_, Json> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.shown().serialize(serializer)
    }
}

impl<T> Serialize for Wire<'_, Option<T>>
where
    for<'b> Wire<'b, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().map(Wire).serialize(serializer)
    }
}

impl<T> Serialize for Wire<'_, Vec<T>>
where
    for<'b> Wire<'b, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Wire))
    }
}

/// Serializes these types as an object with these fields.
macro_rules! objects {
    ($($type:ty, $it:ident, $map:ident => $body:block)*) => {$(
        impl Serialize for Wire<'_, $type> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $it = self.0;
                let mut $map = serializer.serialize_map(None)?;
                $body
                $map.end()
            }
        }
    )*};
}

objects! {
    PlanEntry, it, map => { entries!(map; "text": &Wire(&it.text), "status": &it.status); }
    Place, it, map => {
        entries!(map; "path": &Wire(&it.path));
        if let Some(line) = it.line {
            map.serialize_entry("line", &line)?;
        }
    }
    SubjectFrame, it, map => {
        entries!(map; "category": &it.category, "title": &Wire(&it.title), "locations": &Wire(&it.locations),
            "detail": &Wire(&it.detail));
    }
    Artifact, it, map => {
        entries!(map; "artifact_id": &it.artifact_id, "path": &Wire(&it.path), "action": &it.action,
            "kind": &it.kind, "size_bytes": &it.size_bytes);
        truncated(&mut map, it.truncated)?;
    }
    ArtifactRef, it, map => { entries!(map; "path": &Wire(&it.path), "action": &it.action); }
    Left, it, map => { entries!(map; "category": &it.category, "text": &Wire(&it.text)); }
    Tally, it, map => { entries!(map; "count": &it.count, "first": &Wire(&it.first)); }
}

/// The resolved fields of run.start that run.started shows.
struct Config<'a>(&'a Settings, ShownText<Wire<'a, Text>, Wire<'a, Vec<Text>>>);

impl Serialize for Config<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Config(settings, text) = self;
        let mut map = serializer.serialize_map(None)?;
        settings.show(&mut map, text)?;
        map.end()
    }
}

impl Serialize for Wire<'_, Started> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = self.0;
        #[derive(Serialize)]
        struct Agent<'a> {
            name: &'a str,
            display_name: &'a str,
            version: Option<&'a str>,
        }
        #[derive(Serialize)]
        struct Protocol {
            v: &'static str,
            minor: u32,
            spektacular: &'static str,
        }
        let mut map = serializer.serialize_map(None)?;
        entries!(map;
            // The version is known only when the agent says it: the session frame has it.
            "agent": &Agent { name: &body.agent, display_name: &body.display_name, version: None },
            "config": &Config(&body.settings, ShownText { cwd: Wire(&body.cwd), agent_args: Wire(&body.agent_args) }),
            "protocol": &Protocol { v: "1", minor: 0, spektacular: env!("CARGO_PKG_VERSION") },
            "capabilities": &body.capabilities);
        match &body.metadata {
            Some(metadata) => map.serialize_entry("metadata", &Wire(metadata))?,
            None => map.serialize_entry("metadata", &EmptyObject {})?,
        }
        truncated(&mut map, body.truncated)?;
        map.end()
    }
}

#[derive(Serialize)]
struct EmptyObject {}

fn truncated<M: SerializeMap>(map: &mut M, truncated: bool) -> Result<(), M::Error> {
    if truncated { map.serialize_entry("truncated", &true) } else { Ok(()) }
}

impl Serialize for Wire<'_, Progress> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = self.0;
        let mut map = serializer.serialize_map(None)?;
        let kind = match &body.about {
            About::Status(_) => "status",
            About::Session { .. } => "session",
            About::Warning(_) => "warning",
            About::Resolved { .. } => "question_resolved",
            About::Heartbeat { .. } => "heartbeat",
            About::Text { .. } => "text",
            About::Reasoning { .. } => "reasoning",
            About::Tool { .. } => "tool",
            About::Plan(_) => "plan",
            About::Usage(_) => "usage",
        };
        entries!(map; "kind": kind, "text": &Wire(&body.text));
        body.about.fields(&mut map)?;
        if let Some(parent) = &body.parent_call_id {
            map.serialize_entry("parent_call_id", parent)?;
        }
        truncated(&mut map, body.truncated)?;
        map.end()
    }
}

impl About {
    fn fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            About::Status(status) => entries!(map; "status": status),
            About::Session { session_id, agent_version, model, capabilities } => entries!(map;
                "session_id": session_id, "agent_version": &Wire(agent_version), "model": &Wire(model),
                "capabilities": capabilities),
            About::Warning(code) => entries!(map; "code": code),
            About::Resolved { question_id, resolution, used_default, permission, what: _ } => {
                entries!(map; "question_id": question_id, "resolution": resolution, "used_default": used_default);
                if let Some((subject, value)) = permission {
                    entries!(map; "subject": &Wire(subject), "value": value);
                }
            }
            About::Heartbeat { idle_s, waiting_on } => entries!(map; "idle_s": idle_s, "waiting_on": waiting_on),
            About::Text { message_id, done, withdrawn } | About::Reasoning { message_id, done, withdrawn } => {
                entries!(map; "message_id": message_id, "done": done);
                if *withdrawn {
                    map.serialize_entry("withdrawn", &true)?;
                }
            }
            About::Tool { call_id, category, state, locations, output } => {
                entries!(map; "call_id": call_id, "category": category, "state": state, "locations": &Wire(locations));
                if let Some(output) = output {
                    map.serialize_entry("output", &Wire(output))?;
                }
            }
            About::Plan(entries) => entries!(map; "entries": &Wire(entries)),
            About::Usage(usage) => entries!(map; "usage": usage),
        }
        Ok(())
    }
}

impl Serialize for Wire<'_, Question> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = self.0;
        let ask = &body.ask;
        let mut map = serializer.serialize_map(None)?;
        entries!(map;
            "question_id": &body.question_id, "group_id": &body.group_id, "group_size": &body.group_size,
            "purpose": &ask.purpose, "kind": &ask.kind.word(), "header": &ask.header, "text": &ask.text);
        if let Kind::Select { choices, multiple, allow_other } = &ask.kind {
            entries!(map; "options": choices.as_slice(), "multiple": multiple, "allow_other": allow_other);
        }
        if let Some(default) = &ask.default {
            map.serialize_entry("default", default)?;
        }
        entries!(map; "validation": &ask.validation, "required": &ask.required, "timeout_s": &body.timeout_s,
            "attempt": &body.attempt);
        if let Some(error) = &body.error {
            map.serialize_entry("error", &Wire(error))?;
        }
        if let Some(subject) = &body.subject {
            map.serialize_entry("subject", &Wire(subject))?;
        }
        truncated(&mut map, body.truncated)?;
        map.end()
    }
}

impl Serialize for Wire<'_, Terminal> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = self.0;
        let mut map = serializer.serialize_map(None)?;
        match &body.outcome {
            Outcome::Completed { text, message_id, text_cut, structured_output, stop_reason } => entries!(map;
                "text": &Wire(text), "message_id": &message_id.as_ref().filter(|_| *text_cut),
                "structured_output": &Wire(structured_output), "stop_reason": stop_reason,
                "denied": &Wire(&body.unattended.denied),
                "unanswered": &Wire(&body.unattended.unanswered)),
            Outcome::Failed(failure) => entries!(map;
                "code": failure.code.name(), "message": &failure.message, "retryable": &failure.retryable,
                "detail": &Detail(failure)),
            Outcome::Cancelled { reason, source } => entries!(map; "reason": &Wire(reason), "source": source),
        }
        entries!(map;
            "session_id": &body.session_id, "artifacts": &Wire(&body.artifacts), "usage": &body.usage,
            "duration_ms": &body.duration_ms);
        match &body.metadata {
            Some(metadata) => map.serialize_entry("metadata", &Wire(metadata))?,
            None => map.serialize_entry("metadata", &EmptyObject {})?,
        }
        entries!(map; "completion_detected": &body.completion_detected, "agent_exit": &body.agent_exit);
        truncated(&mut map, body.truncated)?;
        map.end()
    }
}

/// `detail` of a run.failed: an object of what is known, or null.
struct Detail<'a>(&'a Failure);

impl Serialize for Detail<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let failure = self.0;
        let unsupported = failure.code == Code::UnsupportedVersion;
        let texts = [("agent_message", &failure.agent_message), ("stderr_tail", &failure.stderr_tail)];
        if failure.http_status.is_none() && texts.iter().all(|(_, text)| text.is_none()) && !unsupported {
            return serializer.serialize_none();
        }
        let mut map = serializer.serialize_map(None)?;
        if let Some(status) = failure.http_status {
            map.serialize_entry("http_status", &status)?;
        }
        if unsupported {
            map.serialize_entry("supported", &["1"])?;
        }
        for (key, text) in texts {
            if let Some(text) = text {
                map.serialize_entry(key, text)?;
            }
        }
        map.end()
    }
}
