//! One run, built frame by frame.

use super::Room;
use super::chart::{Bar, Lane, Thinned, Used};
use super::html::{Clipped, block, grouped, json, line, money, span, text};
use super::value::{list_of, readable, str_of, time_of};
use serde_json::Value;
use std::collections::HashMap;

/// The maximum number of files and phases that the page lists.
const LISTED: usize = 1_000;
/// The maximum length of a frame about usage, in bytes. Only the last one is kept, so it takes no room of the page.
const USAGE_BYTES: usize = 4 << 10;

#[derive(Debug, Default)]
pub(super) struct RunView {
    pub(super) run_id: String,
    pub(super) prompt: Option<Clipped>,
    /// The payload of run.started.
    pub(super) started: Value,
    /// The last frame about the agent's session.
    pub(super) session: Value,
    /// The type and the payload of the terminal frame.
    pub(super) end: Option<(String, Value)>,
    pub(super) plan: Vec<Value>,
    /// The last frame of each phase, in order.
    pub(super) phases: Vec<Value>,
    pub(super) files: Vec<Value>,
    pub(super) entries: Vec<TimelineEntry>,
    pub(super) bars: Thinned<Bar>,
    pub(super) used: Thinned<Used>,
    pub(super) usage: Value,
    pub(super) calls: u64,
    pub(super) questions: u64,
    pub(super) warnings: u64,
    /// The time of the first frame, in milliseconds since 1970.
    pub(super) began: Option<i64>,
    /// The time of the last frame, in milliseconds since the first.
    pub(super) last: u64,
    /// The open entry of each call, message and question, by its id.
    pub(super) open: HashMap<(Of, String), usize>,
}

/// The subject of an entry that several frames make up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Of {
    Call,
    Message,
    Question,
}

/// An entry of the timeline. Its texts are HTML, except for `said`.
#[derive(Debug, Default)]
pub(super) struct TimelineEntry {
    /// In milliseconds since the first frame.
    pub(super) at: u64,
    pub(super) class: String,
    pub(super) mark: String,
    pub(super) title: String,
    pub(super) facts: Vec<String>,
    pub(super) body: String,
    /// A message, which arrives in pieces.
    pub(super) said: Clipped,
    /// Whether a sub-agent did it.
    pub(super) nested: bool,
}

impl RunView {
    pub(super) fn new(prompt: Option<String>) -> RunView {
        RunView { prompt: prompt.map(|prompt| Clipped::new(&prompt)), ..RunView::default() }
    }

    /// A frame, or a message to the run. `size`: its length, in bytes.
    pub(super) fn message(&mut self, kind: &str, frame: &Value, size: usize, room: &mut Room) {
        if let Some(at) = time_of(frame).filter(|_| !kind.starts_with("run.input") && kind != "run.cancel") {
            let began = *self.began.get_or_insert(at);
            self.last = self.last.max(u64::try_from(at - began).unwrap_or_default());
        }
        if self.run_id.is_empty() {
            self.run_id = str_of(frame, "run_id").to_owned();
        }
        let payload = &frame["payload"];
        match kind {
            "run.started" => self.started = room.copy_single(payload, size),
            "run.progress" => self.progress(payload, size, room),
            "run.question" => self.question(payload, room),
            "run.artifact" => {
                if self.files.len() < LISTED {
                    self.files.push(room.copy(payload, size));
                }
            }
            "run.completed" | "run.failed" | "run.cancelled" => {
                self.end = Some((kind.to_owned(), room.copy_single(payload, size)));
            }
            "run.input" => self.input(payload, room),
            "run.cancel" => {
                let title = format!("Cancel requested. {}", str_of(payload, "reason"));
                self.row("cancel", "cancel", &title, payload, room);
            }
            other => {
                let title = format!("{} {}", other, str_of(payload, "text"));
                let body = json("Payload", payload);
                self.add(None, TimelineEntry { body, ..self.entry("unknown", "unknown", &title, payload) }, room);
            }
        }
    }

    fn progress(&mut self, payload: &Value, size: usize, room: &mut Room) {
        let said = str_of(payload, "text");
        match str_of(payload, "kind") {
            "status" => match str_of(payload, "status") {
                // The entries around it show the same.
                "waiting_for_input" => {}
                "running" if self.entries.len() > 1 => {}
                _ => self.row("status", "status", said, payload, room),
            },
            "session" => self.session = room.copy_single(payload, size),
            "warning" => {
                self.warnings += 1;
                let entry = self.entry("warning", "warning", said, payload);
                let facts = vec![line(str_of(payload, "code"))];
                self.add(None, TimelineEntry { facts, ..entry }, room);
            }
            "question_resolved" => self.resolved(payload, room),
            // That nothing happened, and the names of commands that nobody called, are not worth a row.
            "heartbeat" | "commands" => {}
            kind @ ("text" | "reasoning") => self.said(kind, payload, room),
            "tool" => self.tool(payload, room),
            kind @ ("plan" | "todo") => {
                let entries = list_of(payload, "entries");
                let done = entries.iter().filter(|entry| entry["status"] == "completed").count();
                let title = format!("{said}: {done} of {} done", entries.len());
                if (kind == "plan" || self.plan.is_empty()) && room.grow(size) {
                    self.plan = entries.to_vec();
                }
                let body = super::rows::plan(entries);
                self.add(None, TimelineEntry { body, ..self.entry("steps", kind, &title, payload) }, room);
            }
            "phase" => self.phase(payload, size, room),
            "usage" if size <= USAGE_BYTES => self.usage(payload),
            "usage" => room.omitted += 1,
            "turn" => self.turn(payload, room),
            "prompt" => self.row("prompt", "prompt", said, payload, room),
            // Every turn has a checkpoint; only a rewind changes files.
            "checkpoint" if matches!(str_of(payload, "state"), "taken" | "complete") => {}
            "checkpoint" => self.row("status", "rewind", said, payload, room),
            unknown => {
                let body = json("Payload", payload);
                let entry = self.entry("unknown", unknown, said, payload);
                self.add(None, TimelineEntry { body, ..entry }, room);
            }
        }
    }

    fn said(&mut self, kind: &str, payload: &Value, room: &mut Room) {
        let piece = str_of(payload, "text");
        let id = (Of::Message, str_of(payload, "message_id").to_owned());
        let at = self.open.get(&id).copied().or_else(|| {
            let mark = if kind == "text" { "agent" } else { "thought" };
            let entry = TimelineEntry { title: String::new(), ..self.entry(kind, mark, "", payload) };
            self.add(Some(id.clone()), entry, room)
        });
        let Some(entry) = at.and_then(|at| self.entries.get_mut(at)) else { return };
        if room.grow(piece.len().min(super::html::TEXT_BYTES)) {
            entry.said.push(piece);
        } else {
            room.omitted += 1;
        }
        if payload["withdrawn"] == true {
            entry.facts.push("taken back".into());
        }
        if payload["done"] == true {
            self.open.remove(&id);
        }
    }

    fn phase(&mut self, payload: &Value, size: usize, room: &mut Room) {
        match self.phases.iter().position(|phase| phase["phase"] == payload["phase"]) {
            Some(at) if room.grow(size) => self.phases[at] = payload.clone(),
            None if self.phases.len() < LISTED => self.phases.push(room.copy(payload, size)),
            Some(_) => room.omitted += 1,
            None => {}
        }
        self.row("phase", "phase", str_of(payload, "text"), payload, room);
    }

    fn usage(&mut self, payload: &Value) {
        let usage = &payload["usage"];
        let count = |key: &str| usage[key].as_u64();
        if let (None, None) = (count("input_tokens"), count("output_tokens")) {
            return;
        }
        let tokens = count("input_tokens").unwrap_or_default() + count("output_tokens").unwrap_or_default();
        self.used.push(Used { at: self.last, tokens, cost: usage["cost_usd"].as_f64() });
        self.usage = usage.clone();
    }

    fn turn(&mut self, payload: &Value, room: &mut Room) {
        let title = format!("Turn {}: {}", payload["turn"], str_of(payload, "outcome"));
        let mut entry = self.entry("turn", "turn", &title, payload);
        entry.facts = spent(&payload["usage"]);
        let failure = &payload["failure"];
        if failure.is_object() {
            let message = format!("{}: {}", str_of(failure, "code"), str_of(failure, "message"));
            entry.body = format!("<p>{}</p>", text(&message));
        }
        entry.body += &json("Structured output", &payload["structured_output"]);
        self.add(None, entry, room);
    }

    fn input(&mut self, payload: &Value, room: &mut Room) {
        if let Some(prompt) = payload["prompt"].as_str() {
            self.further_prompt(prompt, room);
        } else if payload["end"] == true {
            self.row("prompt", "prompt", "The end of the conversation", payload, room);
        } else {
            self.answer(payload, room);
        }
    }

    pub(super) fn further_prompt(&mut self, prompt: &str, room: &mut Room) {
        let body = block("Prompt", "said", &Clipped::new(prompt));
        let entry = self.entry("prompt", "prompt", "A further prompt", &Value::Null);
        self.add(None, TimelineEntry { body, ..entry }, room);
    }

    pub(super) fn entry(&self, class: &str, mark: &str, title: &str, payload: &Value) -> TimelineEntry {
        let nested = payload["parent_call_id"].is_string();
        TimelineEntry {
            at: self.last,
            class: class.into(),
            mark: line(mark),
            title: line(title),
            nested,
            ..TimelineEntry::default()
        }
    }

    fn row(&mut self, class: &str, mark: &str, title: &str, payload: &Value, room: &mut Room) {
        self.add(None, self.entry(class, mark, title, payload), room);
    }

    /// `open`: the entry's id, if further frames change it.
    pub(super) fn add(&mut self, open: Option<(Of, String)>, entry: TimelineEntry, room: &mut Room) -> Option<usize> {
        let id = open.as_ref().map_or(0, |(_, id)| id.len());
        let fits = room.take(entry.title.len() + entry.body.len() + id);
        fits.then(|| {
            let at = self.entries.len();
            self.entries.push(entry);
            self.open.extend(open.map(|id| (id, at)));
            at
        })
    }

    /// The span ends now.
    pub(super) fn bar(&mut self, from: u64, lane: Lane) {
        self.bars.push(Bar { from, to: self.last, lane });
    }
}

pub(super) fn spent(usage: &Value) -> Vec<String> {
    let tokens = |key: &str, name: &str| Some(format!("{} {name}", grouped(usage[key].as_u64()?)));
    let cost = usage["cost_usd"].as_f64().filter(|cost| *cost > 0.0).map(money);
    tokens("input_tokens", "in").into_iter().chain(tokens("output_tokens", "out")).chain(cost).collect()
}

pub(super) fn took(payload: &Value) -> Option<String> {
    payload["duration_ms"].as_u64().map(span)
}

pub(super) fn shown(value: &Value) -> String {
    text(&readable(value))
}
