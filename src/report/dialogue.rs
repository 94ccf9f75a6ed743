//! A recording: the dialogue between this program and the agent, line by line.

use super::Room;
use super::html::{Clipped, block, json, line, span};
use super::value::{list_of, readable, str_of};
use crate::json::bounded;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct AgentDialogue {
    pub(super) driver: String,
    pub(super) facts: String,
    pub(super) entries: Vec<String>,
    /// The time of the last line, in milliseconds since the start.
    pub(super) last_ms: u64,
    pub(super) lines: u64,
    pub(super) end: Option<String>,
}

impl AgentDialogue {
    pub(super) fn new(header: &Value) -> AgentDialogue {
        let mut facts = String::new();
        let argv = list_of(header, "argv").iter().map(readable).collect::<Vec<_>>().join(" ");
        for (name, value) in [("Version", str_of(header, "agent_version")), ("Directory", str_of(header, "cwd"))] {
            if !value.is_empty() {
                facts += &format!("<div><dt>{name}</dt><dd>{}</dd></div>", line(value));
            }
        }
        if !argv.is_empty() {
            facts += &format!("<div><dt>Command line</dt><dd><code>{}</code></dd></div>", line(&argv));
        }
        let driver = str_of(header, "driver").to_owned();
        AgentDialogue { driver, facts, entries: Vec::new(), last_ms: 0, lines: 0, end: None }
    }

    pub(super) fn moment(&mut self, value: &Value, room: &mut Room) {
        let at = value["at_ms"].as_f64().map_or(self.last_ms, |ms| ms.max(0.0) as u64);
        (self.last_ms, self.lines) = (at, self.lines + 1);
        let said = [("host", "→ agent"), ("agent", "← agent"), ("stderr", "stderr"), ("note", "note")];
        let found = said.into_iter().find_map(|(key, name)| Some((key, name, value[key].as_str()?)));
        let (class, who, title, body) = match found {
            Some((key, who, text)) => match bounded(text.as_bytes(), 2, super::VALUES) {
                Ok(parsed @ Value::Object(_)) => (key, who, subject(&parsed), json("JSON", &parsed)),
                Ok(_) | Err(_) if text.len() > 120 => (key, who, line(text), block("Text", "", &Clipped::new(text))),
                Ok(_) | Err(_) => (key, who, line(text), String::new()),
            },
            None => {
                let title = event(value);
                if !value["exit"].is_null() || !value["signal"].is_null() {
                    self.end = Some(title.clone());
                }
                ("process", "process", title, String::new())
            }
        };
        let head = format!("<span class=mark>{who}</span><span class=line><span class=title>{title}</span></span>");
        let entry = super::rows::row(Some(at), &format!("d-{class}"), &head, &body, false);
        if room.take(entry.len()) {
            self.entries.push(entry);
        }
    }

    pub(super) fn duration(&self) -> String {
        span(self.last_ms)
    }
}

fn event(value: &Value) -> String {
    if value["host_eof"] == true {
        "The agent's stdin was closed".to_owned()
    } else if !value["exit"].is_null() {
        format!("The process exited with code {}", line(&value["exit"].to_string()))
    } else if !value["signal"].is_null() {
        format!("Signal {} ended the process", line(&value["signal"].to_string()))
    } else if value["spawn"].is_array() {
        format!("Started {}", line(&readable(&value["spawn"])))
    } else {
        line(&value.to_string())
    }
}

fn subject(value: &Value) -> String {
    let words = ["method", "type", "subtype"].map(|key| str_of(value, key));
    let inner = ["item", "event", "request", "params", "message"].map(|key| str_of(&value[key], "type"));
    let words: Vec<&str> = words.into_iter().chain(inner).filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [] if !value["result"].is_null() => "result".into(),
        [] if !value["error"].is_null() => "error".into(),
        [] => "message".into(),
        words => line(&words.join(" · ")),
    }
}
