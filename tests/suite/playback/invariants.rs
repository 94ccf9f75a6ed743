//! What holds for the frames of every run, whatever happens in it.

use super::world::{Frame, World};
use serde_json::Value;
use spektacular::agent::Line;
use spektacular::protocol::limits;
use spektacular::protocol::words::Source;
use spektacular::run::{Event, Method, Origin};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

type Checked = Result<(), String>;

macro_rules! hold {
    ($condition:expr, $($why:tt)*) => { if !$condition { return Err(format!($($why)*)); } };
}

const TERMINAL: [&str; 3] = ["run.completed", "run.failed", "run.cancelled"];

/// The exit code that belongs to a terminal frame, by the protocol's table.
fn exit_code(terminal: &Value) -> Option<u8> {
    if terminal["type"] != "run.failed" {
        return Some(0);
    }
    Some(match terminal["payload"]["code"].as_str()? {
        "agent_error" | "agent_exited" | "agent_protocol_error" | "session_not_found" | "model_not_found" => 1,
        "context_exceeded" | "limit_reached" | "refused" | "rate_limited" | "provider_unavailable" => 1,
        "usage" | "invalid_config" | "invalid_request" => 2,
        "unsupported_version" | "invalid_message" | "no_start" => 3,
        "agent_not_found" | "agent_start_failed" | "auth_required" => 4,
        "timeout" | "idle_timeout" | "start_timeout" | "question_timeout" => 5,
        "input_closed" | "question_declined" | "denied" => 6,
        "internal_error" | "resource_exhausted" => 70,
        _ => return None,
    })
}

/// Everything that can be said of the frames and the exit code alone.
pub(crate) fn frames(frames: &[Frame], code: Option<u8>) -> Checked {
    let terminal = &frames.last().ok_or("there is no frame")?.value;
    envelopes(frames)?;
    questions(frames)?;
    messages_and_calls(frames)?;
    hold!(code.is_some() && code == exit_code(terminal), "exit code {code:?} does not fit {terminal}");
    Ok(())
}

fn envelopes(frames: &[Frame]) -> Checked {
    let last = frames.len() - 1;
    for (at, Frame { line, value }) in frames.iter().enumerate() {
        hold!(value["id"] == format!("msg_{}", at + 1), "ids have a gap: {line}");
        hold!(value["v"] == "1" && value["run_id"] == frames[0].value["run_id"], "a wrong envelope: {line}");
        hold!(value["payload"].is_object(), "the payload is no object: {line}");
        let ends = line.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
        hold!(line.ends_with('\n') && ends == 1, "not one line: {line:?}");
        let kind = value["type"].as_str().unwrap_or_default();
        let factor = if kind == "run.completed" { limits::COMPLETED_FACTOR } else { 1 };
        hold!(line.len() <= limits::FRAME_BYTES * factor, "a frame is too long: {} bytes", line.len());
        hold!(TERMINAL.contains(&kind) == (at == last), "exactly one terminal frame, the last: {line}");
        let first = kind == "run.started" || (at == last && kind != "run.completed");
        hold!(at > 0 || first, "the first frame is neither run.started nor a refusal: {line}");
        hold!(at == 0 || kind != "run.started", "run.started comes twice: {line}");
        if kind == "run.progress" {
            hold!(value["payload"]["text"].is_string(), "a progress without text: {line}");
            let many = ["text", "reasoning"].contains(&value["payload"]["kind"].as_str().unwrap_or_default());
            let text = value["payload"]["text"].as_str().unwrap_or_default();
            hold!(many || !text.contains(['\n', '\r']), "more than one line for a person: {line}");
        }
    }
    Ok(())
}

/// Every question is resolved exactly once, and only asked again while it is open.
fn questions(frames: &[Frame]) -> Checked {
    let (mut open, mut closed, mut cancelling) = (BTreeMap::new(), BTreeSet::new(), false);
    for Frame { line, value } in frames {
        let payload = &value["payload"];
        let id = payload["question_id"].as_str().unwrap_or_default();
        cancelling |= payload["status"] == "cancelling";
        if value["type"] == "run.question" {
            hold!(!cancelling, "a question after the cancel: {line}");
            hold!(!closed.contains(id), "asked again after its end: {line}");
            let attempt = payload["attempt"].as_u64().unwrap_or_default();
            let before = open.insert(id, attempt).unwrap_or_default();
            hold!(attempt == before + 1, "attempt {attempt} after {before}: {line}");
        } else if payload["kind"] == "question_resolved" {
            let silent = payload["resolution"] == "policy" || payload["resolution"] == "headless";
            hold!(open.remove(id).is_some() != silent, "resolved but not asked, or the other way round: {line}");
            hold!(closed.insert(id), "resolved twice: {line}");
        }
    }
    hold!(open.is_empty(), "questions are open at the end: {open:?}");
    Ok(())
}

/// The questions that wait for an answer.
pub(crate) fn open_questions(frames: &[Frame]) -> BTreeSet<&str> {
    let mut open = BTreeSet::new();
    for Frame { value, .. } in frames {
        let id = value["payload"]["question_id"].as_str().unwrap_or_default();
        match value["type"] == "run.question" {
            true => drop(open.insert(id)),
            false => drop(open.remove(id)),
        }
    }
    open
}

/// A message ends once; a tool call begins and ends at most once, in this order.
fn messages_and_calls(frames: &[Frame]) -> Checked {
    let (mut messages, mut calls) = (BTreeMap::new(), BTreeMap::new());
    for Frame { line, value } in frames {
        let payload = &value["payload"];
        if let Some(id) = payload["message_id"].as_str().filter(|_| value["type"] == "run.progress") {
            let done = payload["done"] == true;
            hold!(messages.insert(id, done) != Some(true), "a piece after the end of its message: {line}");
        }
        if let Some(id) = payload["call_id"].as_str() {
            let started = payload["state"] == "started";
            let before = calls.insert(id, started);
            hold!(if started { before.is_none() } else { before == Some(true) }, "a call out of order: {line}");
        }
    }
    let completed = frames.last().is_some_and(|frame| frame.value["type"] == "run.completed");
    hold!(!completed || messages.values().all(|done| *done), "a message never ended: {messages:?}");
    Ok(())
}

/// The same, and what can be said of a simulated run: it is deaf after its end, and it was stopped in time.
pub(crate) fn world(world: &mut World) -> Checked {
    frames(&world.frames, world.run().exit_code())?;
    in_time(world)?;
    deaf(world)
}

/// From the first rung of the ladder to the last kill it is 3 s; after a result the agent first has 2 s to leave.
fn in_time(world: &mut World) -> Checked {
    let stopping = world.run().stopping();
    let machine = world.machine();
    let Some((at, _)) = machine.stops.iter().find(|(_, method)| *method == Method::Kill) else { return Ok(()) };
    let by_itself = machine.closed.map(|closed| closed + Duration::from_secs(5));
    let due = stopping.map_or(by_itself, |stopping| Some(stopping + Duration::from_secs(3)));
    hold!(due.is_some_and(|due| *at <= due), "killed at {at:?}, due at {due:?}");
    Ok(())
}

/// After the end nothing has an effect.
fn deaf(world: &mut World) -> Checked {
    let later = [
        Event::Line(Line::Text("{\"type\":\"result\",\"is_error\":false,\"result\":\"late\"}".into())),
        Event::Line(Line::TooLong),
        Event::Cancel(Origin::default(), None, Source::Orchestrator),
        Event::Cancel(Origin::default(), None, Source::Signal),
        Event::Malformed(Origin::default()),
        Event::Unsupported(Origin::default()),
        Event::InputEnded,
        Event::OutputLost,
        Event::Spawned,
        Event::Tick,
    ];
    let (code, due) = (world.run().exit_code(), world.run().next_deadline());
    hold!(due.is_none(), "the run waits for {due:?} after its end");
    for (at, event) in later.into_iter().enumerate() {
        let traces = world.traces();
        world.step(event);
        hold!(world.traces() == traces, "event {at} after the end has an effect");
    }
    hold!(world.run().exit_code() == code, "the exit code changed after the end");
    Ok(())
}
