//! How the bodies of frames are written as JSON.

use super::fields::ShownText;
use super::outbound::{About, Body, Outcome, Progress, Question, Started, Terminal};
use super::question::Kind;
use super::request::Settings;
use crate::failure::{Code, Failure};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

macro_rules! entries {
    ($map:ident; $($key:literal: $value:expr),* $(,)?) => {{ $($map.serialize_entry($key, $value)?;)* }};
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Body::Started(body) => body.serialize(serializer),
            Body::Progress(body) => body.serialize(serializer),
            Body::Question(body) => body.serialize(serializer),
            Body::Artifact(body) => body.serialize(serializer),
            Body::Terminal(body) => body.serialize(serializer),
        }
    }
}

/// The resolved fields of run.start that run.started shows.
struct Config<'a>(&'a Settings, ShownText<'a>);

impl Serialize for Config<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Config(settings, text) = self;
        let mut map = serializer.serialize_map(None)?;
        settings.show(&mut map, text)?;
        map.end()
    }
}

impl Serialize for Started {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
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
            "agent": &Agent { name: &self.agent, display_name: &self.display_name, version: None },
            "config": &Config(&self.settings, ShownText { cwd: &self.cwd, agent_args: &self.agent_args }),
            "protocol": &Protocol { v: "1", minor: 0, spektacular: env!("CARGO_PKG_VERSION") },
            "capabilities": &self.capabilities);
        match &self.metadata {
            Some(metadata) => map.serialize_entry("metadata", metadata)?,
            None => map.serialize_entry("metadata", &EmptyObject {})?,
        }
        truncated(&mut map, self.truncated)?;
        map.end()
    }
}

#[derive(Serialize)]
struct EmptyObject {}

fn truncated<M: SerializeMap>(map: &mut M, truncated: bool) -> Result<(), M::Error> {
    if truncated { map.serialize_entry("truncated", &true) } else { Ok(()) }
}

impl Serialize for Progress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let kind = match &self.about {
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
        entries!(map; "kind": kind, "text": &self.text);
        self.about.fields(&mut map)?;
        if let Some(parent) = &self.parent_call_id {
            map.serialize_entry("parent_call_id", parent)?;
        }
        truncated(&mut map, self.truncated)?;
        map.end()
    }
}

impl About {
    fn fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            About::Status(status) => entries!(map; "status": status),
            About::Session { session_id, agent_version, model, capabilities } => entries!(map;
                "session_id": session_id, "agent_version": agent_version, "model": model,
                "capabilities": capabilities),
            About::Warning(code) => entries!(map; "code": code),
            About::Resolved { question_id, resolution, used_default, permission, what: _ } => {
                entries!(map; "question_id": question_id, "resolution": resolution, "used_default": used_default);
                if let Some((subject, value)) = permission {
                    entries!(map; "subject": subject, "value": value);
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
                entries!(map; "call_id": call_id, "category": category, "state": state, "locations": locations);
                if let Some(output) = output {
                    map.serialize_entry("output", output)?;
                }
            }
            About::Plan(entries) => entries!(map; "entries": entries),
            About::Usage(usage) => entries!(map; "usage": usage),
        }
        Ok(())
    }
}

impl Serialize for Question {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ask = &self.ask;
        let mut map = serializer.serialize_map(None)?;
        entries!(map;
            "question_id": &self.question_id, "group_id": &self.group_id, "group_size": &self.group_size,
            "purpose": &ask.purpose, "kind": &ask.kind.word(), "header": &ask.header, "text": &ask.text);
        if let Kind::Select { choices, multiple, allow_other } = &ask.kind {
            entries!(map; "options": choices, "multiple": multiple, "allow_other": allow_other);
        }
        if let Some(default) = &ask.default {
            map.serialize_entry("default", default)?;
        }
        entries!(map; "validation": &ask.validation, "required": &ask.required, "timeout_s": &self.timeout_s,
            "attempt": &self.attempt);
        if let Some(error) = &self.error {
            map.serialize_entry("error", error)?;
        }
        if let Some(subject) = &self.subject {
            map.serialize_entry("subject", subject)?;
        }
        truncated(&mut map, self.truncated)?;
        map.end()
    }
}

impl Serialize for Terminal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.outcome {
            Outcome::Completed { text, message_id, text_cut, structured_output, stop_reason } => entries!(map;
                "text": text, "message_id": &message_id.as_ref().filter(|_| *text_cut),
                "structured_output": structured_output, "stop_reason": stop_reason,
                "denied": &self.unattended.denied, "unanswered": &self.unattended.unanswered),
            Outcome::Failed(failure) => entries!(map;
                "code": failure.code.name(), "message": &failure.message, "retryable": &failure.retryable,
                "detail": &Detail(failure)),
            Outcome::Cancelled { reason, source } => entries!(map; "reason": reason, "source": source),
        }
        entries!(map;
            "session_id": &self.session_id, "artifacts": &self.artifacts, "usage": &self.usage,
            "duration_ms": &self.duration_ms);
        match &self.metadata {
            Some(metadata) => map.serialize_entry("metadata", metadata)?,
            None => map.serialize_entry("metadata", &EmptyObject {})?,
        }
        entries!(map; "completion_detected": &self.completion_detected, "agent_exit": &self.agent_exit);
        truncated(&mut map, self.truncated)?;
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
