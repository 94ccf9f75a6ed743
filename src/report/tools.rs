//! The tool calls and the questions of a run.

use super::Room;
use super::chart::Lane;
use super::html::{Clipped, block, diff, json, line, span, text};
use super::run::{Of, RunView, TimelineEntry, shown, took};
use super::value::{list_of, str_of};
use crate::agent::edits::between;
use serde_json::Value;
use std::fmt::Write;

impl RunView {
    pub(super) fn tool(&mut self, payload: &Value, room: &mut Room) {
        let id = (Of::Call, str_of(payload, "call_id").to_owned());
        let category = str_of(payload, "category");
        let lane = Lane::of(category);
        let state = str_of(payload, "state");
        let known = self.open.get(&id).copied();
        if known.is_none() {
            self.calls += 1;
        }
        let at = known.or_else(|| {
            let mut entry = self.entry(&format!("tool {}", lane.class()), category, str_of(payload, "text"), payload);
            if let Some(name) = payload["name"].as_str() {
                entry.facts.push(format!("<code>{}</code>", line(name)));
            }
            self.add(Some(id.clone()), entry, room)
        });
        let Some(entry) = at.and_then(|at| self.entries.get_mut(at)) else { return };
        let body = input(payload) + &results(payload);
        if room.grow(body.len()) {
            entry.body += &body;
        } else {
            room.omitted += 1;
        }
        if state == "started" {
            return;
        }
        let from = entry.at;
        let code = payload["exit_code"].as_i64().filter(|code| *code != 0).map(|code| format!("exit {code}"));
        if state != "completed" {
            entry.class += " failed";
            entry.facts.push(format!("<b>{}</b>", line(state)));
        }
        entry.facts.extend(code.into_iter().chain(took(payload)));
        let began = payload["duration_ms"].as_u64().map_or(from, |ms| self.last.saturating_sub(ms));
        self.bar(began, lane);
        self.open.remove(&id);
    }

    pub(super) fn question(&mut self, payload: &Value, room: &mut Room) {
        let id = (Of::Question, str_of(payload, "question_id").to_owned());
        if let Some(entry) = self.open.get(&id).and_then(|at| self.entries.get_mut(*at)) {
            let again = format!("<p class=bad>Asked again: {}</p>", text(str_of(payload, "error")));
            if room.grow(again.len()) {
                entry.body += &again;
            }
            return;
        }
        self.questions += 1;
        let purpose = str_of(payload, "purpose");
        let mut entry = self.entry("question", purpose, str_of(payload, "text"), payload);
        entry.facts.push(line(str_of(payload, "kind")));
        entry.body = asked(payload);
        self.add(Some(id), entry, room);
    }

    pub(super) fn resolved(&mut self, payload: &Value, room: &mut Room) {
        let id = (Of::Question, str_of(payload, "question_id").to_owned());
        let resolution = str_of(payload, "resolution");
        let is_permission = payload["subject"].is_object();
        let value = payload["value"].as_str().filter(|_| is_permission);
        let answer = Some(&payload["value"]).filter(|value| !is_permission && !value.is_null()).map(answer_row);
        let verdict = match value {
            Some(value) => format!("{} ({resolution})", value.replace('_', " ")),
            None if payload["used_default"] == true => format!("{resolution}, by default"),
            None => resolution.to_owned(),
        };
        let class = match value {
            Some(value) if value.starts_with("allow") => "good",
            Some(_) => "bad",
            None if resolution == "answered" => "good",
            None => "",
        };
        let fact = format!("<b class=\"{class}\">{}</b>", line(&verdict));
        if let Some(at) = self.open.remove(&id) {
            let entry = &mut self.entries[at];
            let from = entry.at;
            entry.facts.extend([fact, span(self.last.saturating_sub(from))]);
            // The orchestrator's own message has shown it already.
            let answer = answer.filter(|_| resolution != "answered" || !entry.body.contains(ANSWER));
            entry.body += &answer.filter(|answer| room.grow(answer.len())).unwrap_or_default();
            return self.bar(from, Lane::Wait);
        }
        let call = (Of::Call, str_of(&payload["subject"], "call_id").to_owned());
        match self.open.get(&call).and_then(|at| self.entries.get_mut(*at)) {
            Some(entry) => entry.facts.push(fact),
            None => {
                let said = str_of(payload, "text");
                let ending = value.map_or(format!(": {resolution}"), |value| format!(": {value} ({resolution})"));
                let title = said.strip_suffix(&ending).unwrap_or(said);
                let entry = self.entry("question", "question", title, payload);
                self.add(None, TimelineEntry { facts: vec![fact], body: answer.unwrap_or_default(), ..entry }, room);
            }
        }
    }

    /// A secret is never shown.
    pub(super) fn answer(&mut self, payload: &Value, room: &mut Room) {
        let id = (Of::Question, str_of(payload, "question_id").to_owned());
        let Some(entry) = self.open.get(&id).and_then(|at| self.entries.get_mut(*at)) else { return };
        let is_secret = entry.facts.iter().any(|kind| kind == "secret");
        let value = &payload["value"];
        let html = if payload["declined"] == true {
            answer_row(&"declined".into())
        } else if value.is_null() {
            // Only question_resolved has it.
            return;
        } else if is_secret {
            answer_row(&"[redacted]".into())
        } else {
            answer_row(value)
        };
        if room.grow(html.len()) {
            entry.body += &html;
        }
    }
}

const ANSWER: &str = "<p class=answer>";

fn answer_row(value: &Value) -> String {
    format!("{ANSWER}Answer: <b>{}</b></p>", shown(value))
}

/// The command of a shell stands alone.
fn input(payload: &Value) -> String {
    let input = &payload["input"];
    let is_command = payload["category"] == "execute";
    match input["command"].as_str().filter(|_| is_command) {
        Some(command) => {
            let command = Clipped::new(command).exact();
            format!("<div class=block><div class=label>Command</div><pre class=cmd>{command}</pre></div>")
        }
        // The diff shows the same.
        None if payload["category"] == "edit" => fold("Input", &json("", input)),
        None => json("Input", input),
    }
}

fn results(payload: &Value) -> String {
    let mut html = String::new();
    for edit in list_of(payload, "diff") {
        html += &diff(str_of(edit, "path"), &between(str_of(edit, "old"), str_of(edit, "new")));
    }
    if let Some(output) = payload["output"].as_str() {
        html += &block("Output", "out", &Clipped::new(output));
    }
    if payload["truncated"] == true {
        html += "<p class=cut>The frame was cut to its limit.</p>";
    }
    html
}

fn fold(label: &str, body: &str) -> String {
    if body.is_empty() {
        String::new()
    } else {
        format!("<details class=sub><summary>{label}</summary>{body}</details>")
    }
}

fn asked(payload: &Value) -> String {
    let mut html = String::new();
    let detail = str_of(&payload["subject"], "detail");
    if !detail.trim().is_empty() {
        let detail = Clipped::new(detail).exact();
        let class = if payload["subject"]["category"] == "execute" { "cmd" } else { "" };
        let _ = write!(
            html,
            "<div class=block><div class=label>To be allowed</div><pre class=\"{class}\">{detail}</pre></div>"
        );
    }
    let options = list_of(payload, "options");
    if !options.is_empty() {
        html += "<ul class=options>";
        for option in options {
            let _ = write!(html, "<li><b>{}</b>", text(str_of(option, "label")));
            if let Some(description) = option["description"].as_str() {
                let _ = write!(html, " <span>{}</span>", text(description));
            }
            html += "</li>";
        }
        html += "</ul>";
    }
    if !payload["default"].is_null() {
        let _ = write!(html, "<p>Default: {}</p>", shown(&payload["default"]));
    }
    html + &json("Validation", &payload["validation"])
}
