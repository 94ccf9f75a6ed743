//! The promises of the protocol about the frames of every run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use spektacular::protocol::limits;

use super::schema::check_frame;
use super::{Outcome, list};

pub(crate) type Checked = Result<(), String>;

/// Fails a check unless the condition holds.
macro_rules! hold {
    ($condition:expr, $($why:tt)*) => { if !$condition { return Err(format!($($why)*)); } };
}
pub(crate) use hold;

const KINDS: [&str; 5] = ["confirm", "select", "text", "secret", "file_path"];
const CATEGORIES: [&str; 12] =
    ["read", "edit", "delete", "move", "search", "execute", "fetch", "think", "agent", "mcp", "mode", "other"];
const RESOLUTIONS: [&str; 7] = ["answered", "declined", "timeout", "input_closed", "headless", "policy", "withdrawn"];

/// Characters that readers with Unicode support also treat as line ends.
const LINE_ENDS: [char; 9] = ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{85}', '\u{2028}', '\u{2029}'];

/// A frame: its line without the newline, and its JSON.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) raw: &'a str,
    pub(crate) value: &'a Value,
}

impl<'a> Seen<'a> {
    fn kind(self) -> &'a str {
        self.value["type"].as_str().unwrap_or("")
    }

    fn payload(self) -> &'a Value {
        &self.value["payload"]
    }

    /// The text at a payload's key, or "".
    fn text(self, key: &str) -> &'a str {
        self.payload()[key].as_str().unwrap_or("")
    }

    fn is_terminal(self) -> bool {
        matches!(self.kind(), "run.completed" | "run.failed" | "run.cancelled")
    }

    fn is_progress(self, kind: &str) -> bool {
        self.kind() == "run.progress" && self.text("kind") == kind
    }
}

/// The exit code of a failure code.
fn exit_of(code: &str) -> Option<i32> {
    Some(match code {
        "agent_error"
        | "agent_exited"
        | "agent_protocol_error"
        | "session_not_found"
        | "session_busy"
        | "model_not_found"
        | "context_exceeded"
        | "limit_reached"
        | "quota_exceeded"
        | "refused"
        | "rate_limited"
        | "provider_unavailable"
        | "result_invalid"
        | "verification_failed"
        | "no_progress"
        | "blocked"
        | "commit_failed" => 1,
        "usage" | "invalid_config" | "invalid_request" => 2,
        "unsupported_version" | "invalid_message" | "no_start" => 3,
        "agent_not_found" | "agent_start_failed" | "auth_required" => 4,
        "timeout" | "idle_timeout" | "start_timeout" | "question_timeout" => 5,
        "input_closed" | "question_declined" | "denied" => 6,
        "internal_error" | "resource_exhausted" => 70,
        _ => return None,
    })
}

/// Checks everything that follows from the frames and the exit code alone.
pub(crate) fn frames(frames: &[Seen<'_>], exit_code: Option<i32>) -> Checked {
    let terminal = *frames.last().ok_or("no frame at all")?;
    envelopes(frames)?;
    frames.iter().try_for_each(|frame| check_frame(frame.value))?;
    order(frames)?;
    sizes(frames)?;
    replies(frames)?;
    questions(frames)?;
    messages(frames)?;
    calls(frames)?;
    artifacts(frames)?;
    frames.iter().filter(|f| f.kind() == "run.progress").try_for_each(|f| progress(*f))?;
    end(terminal, frames[0].kind() == "run.started")?;
    let wanted = if terminal.kind() == "run.failed" { exit_of(terminal.text("code")) } else { Some(0) };
    // With --signal-exit, whose tests look at the code.
    let by_signal = terminal.kind() == "run.cancelled" && terminal.text("source") == "signal";
    let after_signal = by_signal && exit_code.is_some_and(|code| [129, 130, 143].contains(&code));
    hold!(
        wanted.is_some() && (exit_code == wanted || after_signal),
        "exit code {exit_code:?} does not fit {}",
        terminal.raw
    );
    Ok(())
}

impl Outcome {
    /// Checks the frames, the exit, stderr, and that no process is left.
    #[track_caller]
    pub(crate) fn check_invariants(&self) {
        let seen: Vec<Seen<'_>> = self.frames.iter().map(|f| Seen { raw: &f.raw, value: f }).collect();
        let checked = frames(&seen, self.exit_code).and_then(|()| self.check_end());
        // A closure would hide the caller.
        if let Err(why) = checked {
            panic!("{why}");
        }
    }

    fn check_end(&self) -> Checked {
        let (terminal, stderr) = (self.terminal(), &self.stderr);
        let has_start = self.frames[0].kind() == "run.started";
        hold!(self.signal.is_none(), "the process died of signal {:?}", self.signal);
        hold!(self.left.is_empty(), "processes are left: {:?}", self.left);
        if terminal.kind() != "run.failed" {
            // Without run.started, the held warnings go to stderr.
            hold!(stderr.is_empty() || !has_start, "stderr: {stderr}");
            return Ok(());
        }
        let head = format!("spektacular: {}: ", terminal.text("code"));
        let count = stderr.lines().filter(|l| l.starts_with(&head)).count();
        hold!(count == 1, "not one line beginning with {head:?} on stderr: {stderr:?}");
        hold!(stderr.ends_with('\n'), "stderr: {stderr:?}");
        hold!(stderr.lines().count() == 1 || !has_start, "stderr: {stderr:?}");
        Ok(())
    }
}

fn envelopes(frames: &[Seen<'_>]) -> Checked {
    let run_id = &frames[0].value["run_id"];
    hold!(run_id.as_str().is_some_and(|id| !id.is_empty()), "no run_id: {}", frames[0].raw);
    for (number, Seen { raw, value }) in frames.iter().enumerate() {
        hold!(value["v"] == "1" && value["run_id"] == *run_id, "a wrong envelope: {raw}");
        hold!(value["id"] == format!("msg_{}", number + 1), "ids have a gap: {raw}");
        hold!(is_timestamp(value["ts"].as_str().unwrap_or("")), "no time: {raw}");
        hold!(value["payload"].is_object(), "the payload is no object: {raw}");
        hold!(!has_line_end(raw), "not one line for every reader: {raw:?}");
        hold!(value.get("reply_to").is_none_or(Value::is_string), "reply_to is no text: {raw}");
    }
    Ok(())
}

fn has_line_end(raw: &str) -> bool {
    // Most frames are ASCII: a search for bytes is much faster there, and the simulated runs make many frames.
    let mut ascii = LINE_ENDS.iter().filter_map(|end| u8::try_from(*end).ok()).filter(u8::is_ascii);
    if raw.is_ascii() { ascii.any(|end| raw.as_bytes().contains(&end)) } else { raw.contains(LINE_ENDS) }
}

/// `YYYY-MM-DDTHH:MM:SS.mmmZ`.
fn is_timestamp(text: &str) -> bool {
    let shape = "dddd-dd-ddTdd:dd:dd.dddZ";
    text.len() == shape.len()
        && text.chars().zip(shape.chars()).all(|(c, s)| if s == 'd' { c.is_ascii_digit() } else { c == s })
}

fn order(frames: &[Seen<'_>]) -> Checked {
    let first = frames[0].kind();
    hold!(matches!(first, "run.started" | "run.failed" | "run.cancelled"), "first frame: {}", frames[0].raw);
    for (number, frame) in frames.iter().enumerate() {
        let middle = matches!(frame.kind(), "run.progress" | "run.question" | "run.artifact");
        let fits = match number {
            _ if number == frames.len() - 1 => frame.is_terminal(),
            0 => first == "run.started",
            _ => middle,
        };
        hold!(fits, "frame {} of {} is out of place: {}", number + 1, frames.len(), frame.raw);
    }
    Ok(())
}

fn sizes(frames: &[Seen<'_>]) -> Checked {
    let told = frames[0].payload()["config"]["max_frame_bytes"].as_u64();
    let max = told.map_or(limits::FRAME_BYTES, |told| usize::try_from(told).unwrap_or(usize::MAX));
    for frame in frames {
        let limit = if frame.kind() == "run.completed" { max * limits::COMPLETED_FACTOR } else { max };
        // The LF counts.
        hold!(frame.raw.len() < limit, "a frame of {} bytes, {limit} allowed", frame.raw.len() + 1);
    }
    Ok(())
}

/// Only a frame that an inbound message directly caused has a reply_to.
fn replies(frames: &[Seen<'_>]) -> Checked {
    for (number, frame) in frames.iter().enumerate().filter(|(_, f)| f.value.get("reply_to").is_some()) {
        let fits = match frame.kind() {
            "run.started" => true,
            "run.question" => frame.payload()["attempt"] != 1,
            "run.failed" | "run.cancelled" => number == 0,
            _ => match frame.text("kind") {
                "question_resolved" => matches!(frame.text("resolution"), "answered" | "declined"),
                "status" => frame.text("status") == "cancelling",
                "prompt" => frame.text("state") != "dropped",
                "checkpoint" => frame.text("state") == "restored",
                kind => kind == "warning",
            },
        };
        hold!(fits, "this frame has no reply_to: {}", frame.raw);
    }
    Ok(())
}

/// A message ends once, and every message has ended when the run completes.
fn messages(frames: &[Seen<'_>]) -> Checked {
    let mut done: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for frame in frames.iter().filter(|f| f.is_progress("text") || f.is_progress("reasoning")) {
        let key = (frame.text("kind"), frame.text("message_id"));
        let before = done.insert(key, frame.payload()["done"] == true);
        hold!(before != Some(true), "a piece after the end of its message: {}", frame.raw);
    }
    let completed = frames.last().is_some_and(|f| f.kind() == "run.completed");
    hold!(!completed || done.values().all(|d| *d), "a message never ended: {done:?}");
    Ok(())
}

/// A tool call starts once and then ends at most once.
fn calls(frames: &[Seen<'_>]) -> Checked {
    let mut calls = BTreeMap::new();
    for frame in frames.iter().filter(|f| f.is_progress("tool")) {
        let started = frame.text("state") == "started";
        let before = calls.insert(frame.text("call_id"), started);
        let fits = if started { before.is_none() } else { before == Some(true) };
        hold!(fits, "a call out of order: {}", frame.raw);
    }
    Ok(())
}

/// Every question is resolved exactly once, before the end, and repeated only after an invalid answer.
fn questions(frames: &[Seen<'_>]) -> Checked {
    let mut open: BTreeMap<&str, u64> = BTreeMap::new();
    let mut closed = BTreeSet::new();
    let headless = frames[0].payload()["config"]["interactive"] == false;
    let mut cancelling = false;
    for frame in frames {
        let (id, raw) = (frame.text("question_id"), frame.raw);
        if frame.is_progress("status") && frame.text("status") == "cancelling" {
            cancelling = true;
        } else if frame.is_progress("turn") {
            cancelling = false;
        } else if frame.kind() == "run.question" {
            hold!(!headless, "a question in a headless run: {raw}");
            hold!(!cancelling, "a question after the cancel: {raw}");
            hold!(!closed.contains(id), "asked after its end: {raw}");
            question(frame.payload()).map_err(|why| format!("{why}: {raw}"))?;
            let attempt = frame.payload()["attempt"].as_u64().unwrap_or(0);
            let before = open.insert(id, attempt).unwrap_or(0);
            hold!(attempt == before + 1, "attempt {attempt} after {before}: {raw}");
        } else if frame.is_progress("question_resolved") {
            let silent = matches!(frame.text("resolution"), "policy" | "headless");
            hold!(open.remove(id).is_some() != silent, "resolved but not asked, or the other way round: {raw}");
            hold!(closed.insert(id), "resolved twice: {raw}");
        }
    }
    hold!(open.is_empty(), "questions are open at the end: {open:?}");
    Ok(())
}

/// The fields of a run.question.
fn question(payload: &Value) -> Checked {
    let object = payload.as_object().ok_or("no object")?;
    let text = |key: &str| payload[key].as_str().unwrap_or("");
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let id = text("question_id");
    hold!(id.starts_with(|c: char| c.is_ascii_lowercase()) && id.chars().all(word), "question_id");
    hold!(matches!(text("purpose"), "permission" | "clarification" | "input"), "purpose");
    hold!(KINDS.contains(&text("kind")), "kind");
    hold!(!text("text").is_empty(), "text");
    hold!(payload["required"].is_boolean() && payload["timeout_s"].is_number(), "required or timeout_s");
    let attempt = payload["attempt"].as_u64().unwrap_or(0);
    hold!(attempt >= 1, "attempt");
    hold!(attempt == 1 || !text("error").is_empty(), "no error in a further attempt");
    let header = present(object, "header");
    hold!(header.is_none_or(|h| h.as_str().is_some_and(|h| h.chars().count() <= 12)), "header");
    hold!(present(object, "validation").is_none_or(Value::is_object), "validation");
    if let Some(group) = present(object, "group_id") {
        hold!(group.is_string() && payload["group_size"].as_u64().is_some_and(|n| n >= 1), "group");
    }
    if text("kind") == "select" {
        options(&payload["options"])?;
    } else {
        hold!(present(object, "options").is_none(), "options");
    }
    if text("purpose") == "permission" {
        hold!(text("kind") == "select" && text("default") == "deny", "kind or default of a permission");
        let subject = &payload["subject"];
        hold!(CATEGORIES.contains(&subject["category"].as_str().unwrap_or("")), "category");
        hold!(subject["title"].is_string() && subject["locations"].is_array(), "subject");
        hold!(subject.get("detail").is_some(), "detail");
        let values: Vec<&str> = list(&payload["options"]).iter().filter_map(|o| o["value"].as_str()).collect();
        hold!(values.contains(&"deny"), "a permission cannot be denied");
        hold!(values.iter().all(|v| ["allow_once", "allow_always", "deny"].contains(v)), "options of a permission");
    }
    Ok(())
}

fn options(options: &Value) -> Checked {
    hold!(!list(options).is_empty(), "no options");
    for key in ["value", "label"] {
        let all: BTreeSet<&str> = list(options).iter().filter_map(|o| o[key].as_str()).collect();
        hold!(all.len() == list(options).len(), "not each {key} is a string and unique");
    }
    Ok(())
}

fn present<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|v| !v.is_null())
}

fn artifacts(frames: &[Seen<'_>]) -> Checked {
    let mut seen = BTreeSet::new();
    for frame in frames.iter().filter(|f| f.kind() == "run.artifact") {
        let raw = frame.raw;
        hold!(matches!(frame.text("action"), "created" | "modified" | "deleted"), "action: {raw}");
        hold!(frame.text("kind") == "file", "kind: {raw}");
        hold!(!frame.text("artifact_id").is_empty() && !frame.text("path").is_empty(), "id or path: {raw}");
        let size = &frame.payload()["size_bytes"];
        hold!(size.is_null() || size.is_u64(), "size_bytes: {raw}");
        hold!(seen.insert((frame.text("path"), frame.text("action"))), "reported twice: {raw}");
    }
    let terminal = frames[frames.len() - 1];
    let told = list(&terminal.payload()["artifacts"]).iter();
    let told = told.map(|a| (a["path"].as_str().unwrap_or(""), a["action"].as_str().unwrap_or("")));
    let told: BTreeSet<_> = told.collect();
    let complete = if terminal.payload()["truncated"] == true { told.is_subset(&seen) } else { told == seen };
    hold!(complete, "reported were {seen:?}, but the last frame says {}", terminal.raw);
    Ok(())
}

/// The fields that each kind of progress has.
fn progress(frame: Seen<'_>) -> Checked {
    let (payload, raw) = (frame.payload(), frame.raw);
    hold!(payload["kind"].is_string() && payload["text"].is_string(), "kind or text: {raw}");
    let many_lines = ["text", "reasoning"].contains(&frame.text("kind"));
    hold!(many_lines || !frame.text("text").contains(['\n', '\r']), "more than one line for a person: {raw}");
    let fits = match frame.text("kind") {
        "status" => {
            let known = [
                "starting",
                "running",
                "waiting_for_input",
                "retrying",
                "cancelling",
                "waiting_for_prompt",
                "waiting_for_limit",
                "waiting_for_agent",
            ];
            known.contains(&frame.text("status"))
        }
        "session" => has_keys(payload, &["session_id", "agent_version", "model", "capabilities"]),
        "warning" => !frame.text("code").is_empty(),
        "question_resolved" => {
            payload["question_id"].is_string()
                && payload["used_default"].is_boolean()
                && RESOLUTIONS.contains(&frame.text("resolution"))
        }
        "heartbeat" => {
            payload["idle_s"].is_number() && ["agent", "input", "prompt"].contains(&frame.text("waiting_on"))
        }
        "text" | "reasoning" => payload["message_id"].is_string() && payload["done"].is_boolean(),
        "tool" => {
            payload["call_id"].is_string()
                && CATEGORIES.contains(&frame.text("category"))
                && ["started", "completed", "failed", "denied", "cancelled"].contains(&frame.text("state"))
                && payload["locations"].is_array()
                && payload.get("name").is_some()
                && payload["duration_ms"].is_number() == (frame.text("state") != "started")
        }
        "plan" => payload["entries"].is_array(),
        "prompt" => {
            frame.text("prompt_id").starts_with("p_") && ["queued", "sent", "dropped"].contains(&frame.text("state"))
        }
        "turn" => {
            let keys =
                ["final_text", "message_id", "stop_reason", "structured_output", "completion_detected", "failure"];
            has_keys(payload, &keys)
                && payload["turn"].is_number()
                && ["completed", "failed", "cancelled"].contains(&frame.text("outcome"))
                && is_usage(&payload["usage"])
                && is_tally(&payload["denied"], &CATEGORIES)
                && is_tally(&payload["unanswered"], &KINDS)
        }
        "usage" => is_usage(&payload["usage"]),
        _ => true,
    };
    hold!(fits, "fields of this kind: {raw}");
    Ok(())
}

fn is_usage(usage: &Value) -> bool {
    has_keys(usage, &["input_tokens", "output_tokens", "cached_input_tokens", "cost_usd"])
}

fn has_keys(value: &Value, keys: &[&str]) -> bool {
    keys.iter().all(|k| value.get(k).is_some())
}

/// Whether this is a valid tally: a count, and at most the first 20 questions or permissions.
fn is_tally(tally: &Value, categories: &[&str]) -> bool {
    let first = list(&tally["first"]);
    let fits =
        |left: &Value| left["category"].as_str().is_some_and(|c| categories.contains(&c)) && left["text"].is_string();
    tally["count"].as_u64().is_some_and(|count| first.len() as u64 == count.min(20)) && first.iter().all(fits)
}

/// The fields of the terminal frame.
fn end(frame: Seen<'_>, started: bool) -> Checked {
    let (payload, raw) = (frame.payload(), frame.raw);
    let common = ["session_id", "artifacts", "usage", "duration_ms", "metadata", "completion_detected", "agent_exit"];
    hold!(has_keys(payload, &common), "a common key is missing: {raw}");
    if started {
        hold!(payload["artifacts"].is_array() && is_usage(&payload["usage"]), "artifacts or usage: {raw}");
        let fits = payload["duration_ms"].is_number() && payload["completion_detected"].is_boolean();
        hold!(fits, "duration_ms or completion_detected: {raw}");
    }
    hold!(list(&payload["artifacts"]).iter().all(|a| has_keys(a, &["path", "action"])), "artifacts: {raw}");
    let exit = &payload["agent_exit"];
    hold!(exit.is_null() || has_keys(exit, &["code", "signal"]), "agent_exit: {raw}");
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
    hold!(has_keys(payload, keys) && fits, "a key of its own is missing or wrong: {raw}");
    Ok(())
}
