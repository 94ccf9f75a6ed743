//! Writes the bodies of frames as JSON.

use super::failure::{Code, Failure, PhaseFailure};
use super::fields::ShownText;
use super::ids::{CallId, MessageId, SessionId};
use super::json::{encode, put_number, put_string};
use super::outbound::{
    About, Artifact, ArtifactRef, Body, Breach, FileEdit, GaveWay, Json, Left, Outcome, PhaseReport, Place, PlanEntry,
    Progress, Question, Started, Tally, Terminal, Text, TurnReport, WorkflowEnd, WorkflowStarted,
};
use super::question::{Answer, Choice, Kind, Subject, Validation};
use super::redacted::Redacted;
use super::request::Settings;
use super::schema::Mismatch;
use super::words::{
    Action, Category, Limit, PathType, PhaseOutcome, PhaseState, PlanStatus, PromptState, Purpose, QuestionKind,
    RefusalReason, Resolution, Source, Status, StopReason, ToolState, TurnOutcome, WaitingOn, Warning, WorkflowKind,
};
use super::workflow::ShownOptions;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

impl Redacted {
    /// Appends the body as JSON.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match &**self {
            Body::Started(body) => body.put(out),
            Body::Progress(body) => body.put(out),
            Body::Question(body) => body.put(out),
            Body::Artifact(body) => body.put(out),
            Body::Terminal(body) => body.put(out),
        }
    }
}

/// A part of a redacted body, as JSON. The trait is private and only [`Redacted::write`] uses it, so that no text
/// becomes JSON before it is redacted.
trait Put {
    fn put(&self, out: &mut Vec<u8>);
}

/// Writes each of these types by one expression.
macro_rules! values {
    ($($type:ty, $it:ident, $out:ident => $write:expr;)*) => {$(
        impl Put for $type {
            fn put(&self, $out: &mut Vec<u8>) {
                let $it = self;
                $write
            }
        }
    )*};
}

values! {
    Text, it, out => put_string(it.shown(), out);
    Json, it, out => out.extend_from_slice(it.shown().get().as_bytes());
    str, it, out => put_string(it, out);
    String, it, out => put_string(it, out);
    SessionId, it, out => put_string(it, out);
    MessageId, it, out => it.write(out);
    CallId, it, out => it.write(out);
    bool, it, out => out.extend_from_slice(if *it { b"true" } else { b"false" });
    u64, it, out => put_number(*it, out);
    f64, it, out => encode(it, out);
}

impl<T: Put> Put for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Some(it) => it.put(out),
            None => out.extend_from_slice(b"null"),
        }
    }
}

impl<T: Put + ?Sized> Put for &T {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
}

impl<T: Put> Put for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_slice().put(out);
    }
}

impl Put for Answer {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Answer::Bool(answer) => answer.put(out),
            Answer::One(text) | Answer::Text(text) => text.put(out),
            Answer::Many(texts) => texts.put(out),
            Answer::Null => out.extend_from_slice(b"null"),
        }
    }
}

impl<T: Put> Put for [T] {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, it) in self.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            it.put(out);
        }
        out.push(b']');
    }
}

/// A word of the protocol's own, which needs no escape.
struct Word(&'static str);

impl Put for Word {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        out.extend_from_slice(self.0.as_bytes());
        out.push(b'"');
    }
}

/// A value of the protocol, with no free text except text that the walk redacts in place.
struct Own<'a, T>(&'a T);

impl<T: Serialize> Put for Own<'_, T> {
    fn put(&self, out: &mut Vec<u8>) {
        encode(self.0, out);
    }
}

macro_rules! words {
    ($($name:ident),*) => {$(
        impl Put for $name {
            fn put(&self, out: &mut Vec<u8>) {
                Word(self.word()).put(out);
            }
        }
    )*};
}

words!(
    Action,
    Category,
    PathType,
    PhaseOutcome,
    PhaseState,
    PlanStatus,
    PromptState,
    Purpose,
    QuestionKind,
    RefusalReason,
    Limit,
    Resolution,
    Source,
    Status,
    StopReason,
    ToolState,
    TurnOutcome,
    WaitingOn,
    Warning,
    WorkflowKind
);

macro_rules! entries {
    ($map:ident; $($key:literal: $value:expr),* $(,)?) => {
        {$( $value.put($map.key(concat!(",\"", $key, "\":"))); )*}
    };
}

/// Writes entries for the known values.
macro_rules! known {
    ($map:ident; $($key:literal: $value:expr),* $(,)?) => {
        {$( if let Some(value) = &$value { entries!($map; $key: value); } )*}
    };
}

/// A JSON object that is being written.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl Object<'_> {
    /// Begins an entry. `key` is a comma, the key in quotes and a colon.
    #[inline(always)]
    fn key(&mut self, key: &'static str) -> &mut Vec<u8> {
        let key = if std::mem::take(&mut self.empty) { &key[1..] } else { key };
        self.out.extend_from_slice(key.as_bytes());
        self.out
    }

    fn truncated(&mut self, truncated: bool) {
        if truncated {
            entries!(self; "truncated": true);
        }
    }

    /// Writes the orchestrator's metadata, or an empty object.
    fn metadata(&mut self, metadata: &Option<Json>) {
        let out = self.key(",\"metadata\":");
        match metadata {
            Some(metadata) => metadata.put(out),
            None => out.extend_from_slice(b"{}"),
        }
    }
}

/// Writes these types as an object with these fields.
macro_rules! objects {
    ($($type:ty, $it:ident, $map:ident => $body:block)*) => {$(
        impl Put for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let $it = self;
                out.push(b'{');
                let mut $map = Object { out, empty: true };
                $body
                $map.out.push(b'}');
            }
        }
    )*};
}

objects! {
    PlanEntry, it, map => { entries!(map; "text": it.text, "status": it.status); }
    Place, it, map => {
        entries!(map; "path": it.path);
        known!(map; "line": it.line);
    }
    FileEdit, it, map => {
        entries!(map; "path": it.path, "old": Own(&side(it, '-')), "new": Own(&side(it, '+')));
    }
    Subject, it, map => {
        entries!(map; "category": it.category, "title": it.title, "locations": it.locations, "detail": it.detail,
            "call_id": it.call_id);
    }
    Choice, it, map => {
        entries!(map; "value": it.value, "label": it.label);
        known!(map; "description": it.description);
    }
    Validation, it, map => {
        known!(map; "min_length": it.min_length, "max_length": it.max_length, "pattern": it.pattern,
            "pattern_checked": it.pattern_checked, "min": it.min, "max": it.max, "integer": it.integer,
            "min_selected": it.min_selected, "max_selected": it.max_selected, "must_exist": it.must_exist,
            "path_type": it.path_type);
    }
    Artifact, it, map => {
        entries!(map; "artifact_id": it.artifact_id, "path": it.path, "action": it.action, "kind": it.kind,
            "size_bytes": it.size_bytes);
        map.truncated(it.truncated);
    }
    ArtifactRef, it, map => { entries!(map; "path": it.path, "action": it.action); }
    Left, it, map => { entries!(map; "category": it.category, "text": it.text); }
    Tally, it, map => { entries!(map; "count": it.count, "first": it.first); }
    Started, it, map => {
        entries!(map;
            "agent": Own(&Agent { name: &it.agent, display_name: it.display_name.shown(), version: None }),
            "config": Own(&Config(&it.settings, ShownText { cwd: Wire(&it.cwd), agent_args: Wire(&it.agent_args) })),
            "protocol": Own(&Protocol { v: "1", minor: 1, spektacular: env!("CARGO_PKG_VERSION") }),
            "capabilities": Own(&it.capabilities));
        map.metadata(&it.metadata);
        if let Some(workflow) = &it.workflow {
            entries!(map; "workflow": **workflow);
        }
        map.truncated(it.truncated);
    }
    WorkflowStarted, it, map => {
        entries!(map; "name": it.name, "project": it.project, "target": it.target,
            "options": Own(&ShownOptions(it.name, &it.options)));
    }
    WorkflowEnd, it, map => {
        entries!(map; "name": it.name, "target": it.target, "complete": it.complete, "tasks": it.tasks,
            "violations": it.violations, "kept": it.kept, "phases": it.phases);
    }
    Mismatch, it, map => { entries!(map; "path": it.path, "text": it.text); }
    Breach, it, map => { entries!(map; "file": it.file, "line": it.line, "rule": it.rule, "text": it.text); }
    GaveWay, it, map => { entries!(map; "path": it.path, "to": it.to); }
    PhaseReport, it, map => {
        entries!(map; "id": it.id, "title": it.title, "state": it.state, "attempts": it.attempts,
            "duration_ms": it.duration_ms, "cost_usd": Own(&it.cost_usd), "files": it.files, "commit": it.commit,
            "unverified": it.unverified);
    }
    Progress, it, map => {
        let kind = match &it.about {
            About::Status(_) => "status",
            About::Session { .. } => "session",
            About::Warning(_) => "warning",
            About::Resolved { .. } => "question_resolved",
            About::Heartbeat { .. } => "heartbeat",
            About::Text { .. } => "text",
            About::Reasoning { .. } => "reasoning",
            About::Tool { .. } => "tool",
            About::Plan(_) => "plan",
            About::Todo(_) => "todo",
            About::Phase { .. } => "phase",
            About::Usage(_) => "usage",
            About::Prompt { .. } => "prompt",
            About::Turn(_) => "turn",
        };
        entries!(map; "kind": Word(kind), "text": it.text);
        it.about.put_fields(&mut map);
        known!(map; "parent_call_id": it.parent_call_id);
        map.truncated(it.truncated);
    }
    Question, it, map => {
        let ask = &it.ask;
        entries!(map;
            "question_id": it.question_id, "group_id": it.group_id, "group_size": Own(&it.group_size),
            "purpose": ask.purpose, "kind": ask.kind.word(), "header": ask.header, "text": ask.text);
        if let Kind::Select { choices, multiple, allow_other } = &ask.kind {
            entries!(map; "options": choices.as_slice(), "multiple": multiple, "allow_other": allow_other);
        }
        known!(map; "default": ask.default);
        entries!(map; "validation": ask.validation, "required": ask.required, "timeout_s": Own(&it.timeout_s),
            "attempt": Own(&it.attempt));
        known!(map; "error": it.error, "subject": ask.subject);
        map.truncated(it.truncated);
    }
    Terminal, it, map => {
        match &it.outcome {
            Outcome::Completed { text, message_id, text_cut, structured_output, stop_reason } => entries!(map;
                "text": text, "message_id": message_id.filter(|_| *text_cut),
                "structured_output": structured_output, "stop_reason": stop_reason,
                "denied": it.unattended.denied, "unanswered": it.unattended.unanswered),
            Outcome::Failed(failure) => entries!(map;
                "code": failure.code.name(), "message": failure.message, "retryable": failure.retryable,
                "detail": Detail(failure)),
            Outcome::Cancelled { reason, source } => entries!(map; "reason": reason, "source": source),
        }
        entries!(map; "session_id": it.session_id, "artifacts": it.artifacts, "usage": Own(&it.usage),
            "duration_ms": it.duration_ms);
        map.metadata(&it.metadata);
        entries!(map; "completion_detected": it.completion_detected, "agent_exit": Own(&it.agent_exit));
        known!(map; "turns": it.turns);
        if let Some(workflow) = &it.workflow {
            entries!(map; "workflow": **workflow);
        }
        map.truncated(it.truncated);
    }
}

impl About {
    fn put_fields(&self, map: &mut Object<'_>) {
        match self {
            About::Status(status) => entries!(map; "status": status),
            About::Session { session_id, agent_version, model, capabilities } => entries!(map;
                "session_id": session_id, "agent_version": agent_version, "model": model,
                "capabilities": Own(capabilities)),
            About::Warning(code) => entries!(map; "code": code),
            About::Resolved { question_id, resolution, used_default, permission, what: _ } => {
                entries!(map; "question_id": question_id, "resolution": resolution, "used_default": used_default);
                if let Some((subject, value)) = permission {
                    entries!(map; "subject": subject, "value": value);
                }
            }
            About::Heartbeat { idle_s, waiting_on } => entries!(map; "idle_s": Own(idle_s), "waiting_on": waiting_on),
            About::Text { message_id, done, withdrawn } | About::Reasoning { message_id, done, withdrawn } => {
                entries!(map; "message_id": message_id, "done": done);
                if *withdrawn {
                    entries!(map; "withdrawn": true);
                }
            }
            About::Tool { call_id, name, category, state, duration_ms, locations, input, output, facts, phase } => {
                entries!(map; "call_id": call_id, "name": Some(name).filter(|name| !name.is_empty()),
                    "category": category, "state": state, "locations": locations);
                known!(map; "duration_ms": duration_ms);
                if duration_ms.is_some() && *category == Category::Execute {
                    entries!(map; "exit_code": Own(&facts.exit_code));
                }
                known!(map; "phase": phase, "input": input, "output": output);
                if !facts.edits.is_empty() {
                    entries!(map; "diff": facts.edits);
                }
            }
            About::Plan(entries) | About::Todo(entries) => entries!(map; "entries": entries),
            About::Phase { phase, title, number, of, attempt, state } => entries!(map;
                "phase": phase, "title": title, "number": number, "of": of, "attempt": attempt, "state": state),
            About::Usage(usage) => entries!(map; "usage": Own(usage)),
            About::Prompt { number, state } => entries!(map; "prompt_id": PromptId(*number), "state": state),
            About::Turn(turn) => turn.put_fields(map),
        }
    }
}

impl TurnReport {
    fn put_fields(&self, map: &mut Object<'_>) {
        entries!(map; "turn": self.number, "outcome": self.word());
        let (mut answer, mut failed) = (None, None);
        match &self.outcome {
            Outcome::Completed { text, message_id, text_cut, structured_output, stop_reason } => {
                answer = Some((text, message_id.filter(|_| *text_cut), structured_output, stop_reason));
            }
            Outcome::Failed(failure) => failed = Some(TurnFailure(failure)),
            Outcome::Cancelled { .. } => {}
        }
        let (text, message_id, structured, stop) = match answer {
            Some((text, message_id, structured, stop)) => (Some(text), message_id, structured.as_ref(), Some(stop)),
            None => (None, None, None, None),
        };
        entries!(map; "final_text": text, "message_id": message_id, "stop_reason": stop,
            "structured_output": structured, "completion_detected": self.completion_detected,
            "usage": Own(&self.usage), "failure": failed, "denied": self.unattended.denied,
            "unanswered": self.unattended.unanswered);
    }
}

/// The id of a further prompt.
struct PromptId(u64);

impl Put for PromptId {
    fn put(&self, out: &mut Vec<u8>) {
        put_string(&format!("p_{}", self.0), out);
    }
}

/// The failure of a turn.
struct TurnFailure<'a>(&'a Failure);

impl Put for TurnFailure<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        let mut map = Object { out, empty: true };
        entries!(map; "code": self.0.code.name(), "message": self.0.message, "retryable": self.0.retryable);
        map.out.push(b'}');
    }
}

/// The agent in run.started. Its version is null, because the agent reports it later, in the session frame.
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

/// One side of a change: the lines with this sign, and those around them.
fn side(edit: &FileEdit, sign: char) -> String {
    let lines = edit.lines.shown().split_inclusive('\n');
    lines.filter_map(|line| line.strip_prefix(sign).or_else(|| line.strip_prefix(' '))).collect()
}

/// A text among the fields of run.start that run.started shows. Only this module can create one.
struct Wire<'a, T: ?Sized>(&'a T);

impl Serialize for Wire<'_, Text> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.shown())
    }
}

impl Serialize for Wire<'_, Vec<Text>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Wire))
    }
}

/// `detail` of a run.failed: an object with the known facts, or null.
struct Detail<'a>(&'a Failure);

impl Put for Detail<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        let failure = self.0;
        let unsupported = failure.code == Code::UnsupportedVersion;
        let (said, stderr) = (&failure.agent_message, &failure.stderr_tail);
        if failure.http_status.is_none()
            && said.is_none()
            && stderr.is_none()
            && !unsupported
            && failure.limit.is_none()
            && failure.reason.is_none()
            && failure.phase.is_none()
            && failure.violations.is_none()
        {
            return out.extend_from_slice(b"null");
        }
        out.push(b'{');
        let mut map = Object { out, empty: true };
        known!(map; "reason": failure.reason, "limit": failure.limit, "http_status": failure.http_status.map(u64::from));
        if unsupported {
            entries!(map; "supported": Own(&["1"]));
        }
        known!(map; "agent_message": said, "stderr_tail": stderr);
        if let Some(violations) = &failure.violations {
            entries!(map; "violations": violations.0);
        }
        if let Some(PhaseFailure { phase, attempt, command, exit_code, timed_out, output_tail }) =
            failure.phase.as_deref()
        {
            entries!(map; "phase": phase, "attempt": attempt, "command": command, "exit_code": Own(exit_code),
                "timed_out": timed_out, "output_tail": output_tail);
        }
        map.out.push(b'}');
    }
}
