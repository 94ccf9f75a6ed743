//! What the protocol promises for every run, whatever happens in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Frame, Outcome};

const KINDS: [&str; 5] = ["confirm", "select", "text", "secret", "file_path"];
const CATEGORIES: [&str; 12] =
    ["read", "edit", "delete", "move", "search", "execute", "fetch", "think", "agent", "mcp", "mode", "other"];
const RESOLUTIONS: [&str; 7] = ["answered", "declined", "timeout", "input_closed", "headless", "policy", "withdrawn"];

/// What readers that know Unicode also take for the end of a line.
const LINE_ENDS: [char; 8] = ['\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{85}', '\u{2028}', '\u{2029}'];

/// The exit code that belongs to a failure code.
pub(crate) fn exit_of(code: &str) -> i32 {
    match code {
        "agent_error"
        | "agent_exited"
        | "agent_protocol_error"
        | "session_not_found"
        | "model_not_found"
        | "context_exceeded"
        | "limit_reached"
        | "refused"
        | "rate_limited"
        | "provider_unavailable" => 1,
        "usage" | "invalid_config" | "invalid_request" => 2,
        "unsupported_version" | "invalid_message" | "no_start" => 3,
        "agent_not_found" | "agent_start_failed" | "auth_required" => 4,
        "timeout" | "idle_timeout" | "start_timeout" | "question_timeout" => 5,
        "input_closed" | "question_declined" | "denied" => 6,
        "internal_error" | "resource_exhausted" => 70,
        other => panic!("no such failure code: {other}"),
    }
}

impl Outcome {
    pub(crate) fn check_invariants(&self) {
        assert!(!self.frames.is_empty(), "no frame at all");
        check_envelopes(&self.frames);
        check_order(&self.frames);
        check_sizes(&self.frames);
        check_replies(&self.frames);
        check_questions(&self.frames);
        check_messages(&self.frames);
        check_artifacts(&self.frames);
        self.frames.iter().filter(|f| f.kind() == "run.progress").for_each(check_progress);
        check_terminal(self.terminal(), self.frames[0].kind() == "run.started");
        self.check_exit();
        assert!(self.left.is_empty(), "processes are left: {:?}", self.left);
    }

    fn check_exit(&self) {
        assert_eq!(self.signal, None, "the process died of a signal");
        let terminal = self.terminal();
        let has_start = self.frames[0].kind() == "run.started";
        if terminal.kind() != "run.failed" {
            assert_eq!(self.exit_code, Some(0), "{}", terminal.raw);
            // Without a start, the warnings that were held go to stderr.
            assert!(self.stderr.is_empty() || !has_start, "stderr: {}", self.stderr);
            return;
        }
        let code = terminal.text("code");
        assert_eq!(self.exit_code, Some(exit_of(code)), "{}", terminal.raw);
        let head = format!("spektacular: {code}: ");
        let lines: Vec<&str> = self.stderr.lines().collect();
        let count = lines.iter().filter(|l| l.starts_with(&head)).count();
        assert_eq!(count, 1, "one line beginning with {head:?} on stderr: {:?}", self.stderr);
        assert!(self.stderr.ends_with('\n'), "stderr: {:?}", self.stderr);
        assert!(lines.len() == 1 || !has_start, "stderr: {:?}", self.stderr);
    }
}

fn check_envelopes(frames: &[Frame]) {
    let run_id = &frames[0]["run_id"];
    assert!(run_id.as_str().is_some_and(|id| !id.is_empty()), "{}", frames[0].raw);
    for (number, frame) in frames.iter().enumerate() {
        let raw = &frame.raw;
        assert_eq!(frame["v"], "1", "{raw}");
        assert_eq!(frame["id"], format!("msg_{}", number + 1), "{raw}");
        assert_eq!(&frame["run_id"], run_id, "{raw}");
        assert!(is_timestamp(frame["ts"].as_str().unwrap_or("")), "{raw}");
        assert!(frame["payload"].is_object(), "{raw}");
        assert!(!raw.contains(LINE_ENDS), "not one line for every reader: {raw:?}");
        if let Some(reply) = frame.get("reply_to") {
            assert!(reply.is_string(), "{raw}");
        }
    }
}

/// `YYYY-MM-DDTHH:MM:SS.mmmZ`.
fn is_timestamp(text: &str) -> bool {
    let shape = "dddd-dd-ddTdd:dd:dd.dddZ";
    text.len() == shape.len()
        && text.chars().zip(shape.chars()).all(|(c, s)| if s == 'd' { c.is_ascii_digit() } else { c == s })
}

fn check_order(frames: &[Frame]) {
    let first = frames[0].kind();
    assert!(matches!(first, "run.started" | "run.failed" | "run.cancelled"), "first frame: {}", frames[0].raw);
    for (number, frame) in frames.iter().enumerate() {
        let middle = matches!(frame.kind(), "run.progress" | "run.question" | "run.artifact");
        let fits = match number {
            _ if number == frames.len() - 1 => frame.is_terminal(),
            0 => first == "run.started",
            _ => middle,
        };
        assert!(fits, "frame {} of {} is out of place: {}", number + 1, frames.len(), frame.raw);
    }
}

fn check_sizes(frames: &[Frame]) {
    let max = frames[0]["payload"]["config"]["max_frame_bytes"].as_u64().unwrap_or(256 * 1024) as usize;
    for frame in frames {
        let limit = if frame.kind() == "run.completed" { max * 16 } else { max };
        assert!(frame.raw.len() <= limit, "a frame of {} bytes, {limit} allowed", frame.raw.len());
    }
}

/// Only a frame that an inbound message directly caused says so.
fn check_replies(frames: &[Frame]) {
    for (number, frame) in frames.iter().enumerate().filter(|(_, f)| f.get("reply_to").is_some()) {
        let fits = match frame.kind() {
            "run.started" => true,
            "run.question" => frame["payload"]["attempt"] != 1,
            "run.failed" | "run.cancelled" => number == 0,
            _ => match frame.text("kind") {
                "question_resolved" => matches!(frame.text("resolution"), "answered" | "declined"),
                "status" => frame.text("status") == "cancelling",
                kind => kind == "warning",
            },
        };
        assert!(fits, "this frame has no reply_to: {}", frame.raw);
    }
}

/// A message ends once, and all have ended when the run completes.
fn check_messages(frames: &[Frame]) {
    let mut done: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for frame in frames.iter().filter(|f| f.is_progress("text") || f.is_progress("reasoning")) {
        let key = (frame.text("kind"), frame.text("message_id"));
        let before = done.insert(key, frame["payload"]["done"] == true);
        assert_ne!(before, Some(true), "a piece after the end of its message: {}", frame.raw);
    }
    if frames.last().is_some_and(|f| f.kind() == "run.completed") {
        assert!(done.values().all(|d| *d), "a message never ended: {done:?}");
    }
}

/// Every question is resolved exactly once, before the end, and asked again only after a bad answer.
fn check_questions(frames: &[Frame]) {
    let mut open: BTreeMap<String, u64> = BTreeMap::new();
    let mut closed = BTreeSet::new();
    let headless = frames[0]["payload"]["config"]["interactive"] == false;
    let mut cancelling = false;
    for frame in frames {
        let raw = &frame.raw;
        let id = frame.text("question_id").to_owned();
        if frame.is_progress("status") && frame.text("status") == "cancelling" {
            cancelling = true;
        } else if frame.kind() == "run.question" {
            assert!(!headless, "a question in a headless run: {raw}");
            assert!(!cancelling, "a question after the cancel: {raw}");
            assert!(!closed.contains(&id), "asked after its end: {raw}");
            check_question(frame.payload(), raw);
            let before = open.insert(id, frame["payload"]["attempt"].as_u64().unwrap_or(0)).unwrap_or(0);
            assert_eq!(frame["payload"]["attempt"], before + 1, "{raw}");
        } else if frame.is_progress("question_resolved") {
            let asked = open.remove(&id).is_some();
            let silent = matches!(frame.text("resolution"), "policy" | "headless");
            assert!(asked != silent, "resolved without being asked, or the other way round: {raw}");
            assert!(closed.insert(id), "resolved twice: {raw}");
        } else if frame.is_terminal() {
            assert!(open.is_empty(), "questions still open at the end: {open:?}");
        }
    }
}

/// The fields of a run.question.
fn check_question(payload: &Value, raw: &str) {
    let object = payload.as_object().expect("object");
    let id = payload["question_id"].as_str().unwrap_or("");
    let mut chars = id.chars();
    assert!(chars.next().is_some_and(|c| c.is_ascii_lowercase()), "{raw}");
    assert!(chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{raw}");
    assert!(matches!(payload["purpose"].as_str(), Some("permission" | "clarification" | "input")), "{raw}");
    let kind = payload["kind"].as_str().unwrap_or("");
    assert!(KINDS.contains(&kind), "{raw}");
    assert!(payload["text"].as_str().is_some_and(|t| !t.is_empty()), "{raw}");
    assert!(payload["required"].is_boolean(), "{raw}");
    assert!(payload["timeout_s"].is_number(), "{raw}");
    let attempt = payload["attempt"].as_u64().unwrap_or(0);
    assert!(attempt >= 1, "{raw}");
    if attempt > 1 {
        assert!(payload["error"].as_str().is_some_and(|e| !e.is_empty()), "{raw}");
    }
    if let Some(header) = present(object, "header") {
        assert!(header.as_str().is_some_and(|h| h.chars().count() <= 12), "{raw}");
    }
    if let Some(validation) = present(object, "validation") {
        assert!(validation.is_object(), "{raw}");
    }
    if let Some(group) = present(object, "group_id") {
        assert!(group.is_string() && payload["group_size"].as_u64().is_some_and(|n| n >= 1), "{raw}");
    }
    if kind == "select" {
        check_options(&payload["options"], raw);
    } else {
        assert!(present(object, "options").is_none(), "{raw}");
    }
    if payload["purpose"] == "permission" {
        assert_eq!(kind, "select", "{raw}");
        assert_eq!(payload["default"], "deny", "{raw}");
        check_subject(&payload["subject"], raw);
        let values: Vec<&str> = list(&payload["options"]).iter().filter_map(|o| o["value"].as_str()).collect();
        assert!(values.contains(&"deny"), "{raw}");
        assert!(values.iter().all(|v| ["allow_once", "allow_always", "deny"].contains(v)), "{raw}");
    }
}

fn present<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|v| !v.is_null())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn check_options(options: &Value, raw: &str) {
    assert!(!list(options).is_empty(), "{raw}");
    for key in ["value", "label"] {
        let all: BTreeSet<&str> = list(options).iter().filter_map(|o| o[key].as_str()).collect();
        assert_eq!(all.len(), list(options).len(), "each {key} is a string and unique: {raw}");
    }
}

fn check_subject(subject: &Value, raw: &str) {
    assert!(CATEGORIES.contains(&subject["category"].as_str().unwrap_or("")), "{raw}");
    assert!(subject["title"].is_string() && subject["locations"].is_array(), "{raw}");
    assert!(subject.get("detail").is_some(), "{raw}");
}

fn check_artifacts(frames: &[Frame]) {
    let mut seen = BTreeSet::new();
    for frame in frames.iter().filter(|f| f.kind() == "run.artifact") {
        let raw = &frame.raw;
        assert!(matches!(frame.text("action"), "created" | "modified" | "deleted"), "{raw}");
        assert_eq!(frame.text("kind"), "file", "{raw}");
        assert!(!frame.text("artifact_id").is_empty() && !frame.text("path").is_empty(), "{raw}");
        assert!(is_count(&frame["payload"]["size_bytes"]), "{raw}");
        assert!(seen.insert((frame.text("path"), frame.text("action"))), "reported twice: {raw}");
    }
    let told = list(&frames[frames.len() - 1]["payload"]["artifacts"]);
    let told = told.iter().map(|a| (a["path"].as_str().unwrap_or(""), a["action"].as_str().unwrap_or("")));
    assert_eq!(told.collect::<BTreeSet<_>>(), seen, "the last frame's artifacts");
}

/// The fields that each kind of progress has.
fn check_progress(frame: &Frame) {
    let (payload, raw) = (frame.payload(), &frame.raw);
    assert!(payload["kind"].is_string() && payload["text"].is_string(), "{raw}");
    let fits = match frame.text("kind") {
        "status" => {
            ["starting", "running", "waiting_for_input", "retrying", "cancelling"].contains(&frame.text("status"))
        }
        "session" => has_keys(payload, &["session_id", "agent_version", "model", "capabilities"]),
        "warning" => !frame.text("code").is_empty(),
        "question_resolved" => check_resolved(payload),
        "heartbeat" => payload["idle_s"].is_number() && ["agent", "input"].contains(&frame.text("waiting_on")),
        "text" | "reasoning" => payload["message_id"].is_string() && payload["done"].is_boolean(),
        "tool" => {
            payload["call_id"].is_string()
                && CATEGORIES.contains(&frame.text("category"))
                && ["started", "completed", "failed", "denied"].contains(&frame.text("state"))
                && payload["locations"].is_array()
        }
        "plan" => payload["entries"].is_array(),
        "usage" => check_usage(&payload["usage"]),
        _ => true,
    };
    assert!(fits, "fields of this kind: {raw}");
}

fn check_resolved(payload: &Value) -> bool {
    payload["question_id"].is_string()
        && payload["used_default"].is_boolean()
        && RESOLUTIONS.contains(&payload["resolution"].as_str().unwrap_or(""))
}

fn check_usage(usage: &Value) -> bool {
    has_keys(usage, &["input_tokens", "output_tokens", "cached_input_tokens", "cost_usd"])
}

fn has_keys(value: &Value, keys: &[&str]) -> bool {
    keys.iter().all(|k| value.get(k).is_some())
}

fn is_count(value: &Value) -> bool {
    value.is_null() || value.is_u64()
}

/// How many were left without an answer, and the first of them.
fn is_tally(tally: &Value, categories: &[&str]) -> bool {
    let first = list(&tally["first"]);
    let fits =
        |left: &Value| left["category"].as_str().is_some_and(|c| categories.contains(&c)) && left["text"].is_string();
    tally["count"].as_u64().is_some_and(|count| first.len() as u64 == count.min(20)) && first.iter().all(fits)
}

fn check_terminal(frame: &Frame, started: bool) {
    let (payload, raw) = (frame.payload(), &frame.raw);
    let common = ["session_id", "artifacts", "usage", "duration_ms", "metadata", "completion_detected", "agent_exit"];
    assert!(has_keys(payload, &common), "a common key is missing: {raw}");
    if started {
        assert!(payload["artifacts"].is_array() && check_usage(&payload["usage"]), "{raw}");
        assert!(payload["duration_ms"].is_number() && payload["completion_detected"].is_boolean(), "{raw}");
    }
    assert!(list(&payload["artifacts"]).iter().all(|a| has_keys(a, &["path", "action"])), "{raw}");
    let exit = &payload["agent_exit"];
    assert!(exit.is_null() || has_keys(exit, &["code", "signal"]), "{raw}");
    let (keys, fits) = match frame.kind() {
        "run.completed" => (
            &["text", "structured_output", "stop_reason"][..],
            ["end_turn", "max_tokens", "refusal", "other"].contains(&frame.text("stop_reason"))
                && is_tally(&payload["denied"], &CATEGORIES)
                && is_tally(&payload["unanswered"], &KINDS),
        ),
        "run.failed" => (
            &["code", "message", "retryable", "detail"][..],
            payload["retryable"].is_boolean()
                && !frame.text("message").is_empty()
                && (payload["detail"].is_null() || payload["detail"].is_object()),
        ),
        _ => (&["reason", "source"][..], ["orchestrator", "signal", "terminal"].contains(&frame.text("source"))),
    };
    assert!(has_keys(payload, keys) && fits, "a key of its own is missing or wrong: {raw}");
}
