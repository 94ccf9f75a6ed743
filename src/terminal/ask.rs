//! Questions as numbered lists, one at a time, and typed lines as answers.

use crate::clean::{one_line, whole};
use crate::protocol::inbound::{Inbound, Message};
use crate::protocol::outbound::Question;
use crate::protocol::question::{Answer, Given, Input, Kind};
use serde_json::value::to_raw_value;
use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Instant;

/// The questions that wait for a person; the first is the one that is asked.
#[derive(Default)]
pub(super) struct Asking {
    waiting: VecDeque<Question>,
    /// Since when the prompt is there: what was typed before it is no answer to it.
    since: Option<Instant>,
    /// Whether the cursor stands behind a prompt.
    prompted: bool,
}

impl Asking {
    /// Takes a question; what to show now.
    pub(super) fn ask(&mut self, question: &Question) -> String {
        match self.waiting.iter_mut().find(|waiting| waiting.question_id == question.question_id) {
            Some(waiting) => *waiting = question.clone(),
            None => self.waiting.push_back(question.clone()),
        }
        let is_first = self.waiting.front().is_some_and(|first| first.question_id == question.question_id);
        if is_first { self.prompt() } else { String::new() }
    }

    /// Whether the cursor stands behind a prompt; it does not any more.
    pub(super) fn take_prompted(&mut self) -> bool {
        std::mem::take(&mut self.prompted)
    }

    /// The cursor still stands behind the prompt.
    pub(super) fn set_prompted(&mut self) {
        self.prompted = true;
    }

    /// A question is over.
    pub(super) fn resolved(&mut self, id: &str) {
        self.waiting.retain(|question| question.question_id != id);
    }

    /// The question that is asked now, if there is one.
    pub(super) fn prompt(&mut self) -> String {
        let Some(question) = self.waiting.front() else { return String::new() };
        self.since = Some(Instant::now());
        self.prompted = true;
        let ask = &question.ask;
        let mut out = String::new();
        if let Some(error) = &question.error {
            let _ = writeln!(out, "! {}", one_line(&error.0));
        }
        let header = Some(one_line(&ask.header)).filter(|header| !header.is_empty());
        let header = header.map(|header| format!("[{header}] ")).unwrap_or_default();
        let _ = writeln!(out, "? {header}{}", whole(&ask.text).trim_end());
        let detail = question.subject.as_ref().map(|subject| whole(&subject.detail.0)).unwrap_or_default();
        let lines: Vec<&str> = detail.lines().collect();
        let hidden = lines.len().saturating_sub(DETAIL_HEAD + DETAIL_TAIL);
        for (at, line) in lines.iter().enumerate() {
            match at {
                _ if hidden <= 1 || at < DETAIL_HEAD || at >= DETAIL_HEAD + hidden => {
                    let _ = writeln!(out, "    {line}");
                }
                DETAIL_HEAD => {
                    let _ = writeln!(out, "    ... {hidden} more lines ...");
                }
                _ => {}
            }
        }
        let hint = match &ask.kind {
            Kind::Confirm => "yes or no".into(),
            Kind::Select { choices, multiple, allow_other } => {
                for (at, choice) in choices.as_slice().iter().enumerate() {
                    let more = choice.description.as_deref().map(|d| format!(" - {}", one_line(d))).unwrap_or_default();
                    let _ = writeln!(out, "  {}. {}{more}", at + 1, one_line(&choice.label));
                }
                let number = if *multiple { "numbers, such as 1,3" } else { "a number" };
                if *allow_other { format!("{number}, or your own text") } else { number.to_owned() }
            }
            Kind::Text | Kind::Secret => "a text".into(),
            Kind::FilePath => "a path".into(),
        };
        let default = ask.default.as_ref().map(|default| format!(", Enter for {}", shown(default))).unwrap_or_default();
        let _ = write!(out, "Answer with {hint}{default}: ");
        out
    }

    /// What a typed line answers.
    pub(super) fn typed(&mut self, line: &str, read: Instant) -> Option<Inbound> {
        if self.since.is_none_or(|since| read < since) {
            return None;
        }
        self.prompted = false;
        let question = self.waiting.front()?;
        let text = line.trim();
        let ask = &question.ask;
        let value = match (&ask.kind, text, &ask.default) {
            (_, "", Some(default)) => to_raw_value(default),
            (Kind::Select { multiple: true, .. }, _, _) if is_numbers(text) => {
                to_raw_value(&text.split(',').map(str::trim).collect::<Vec<_>>())
            }
            (Kind::Text | Kind::Secret | Kind::FilePath, ..) => to_raw_value(line),
            _ => to_raw_value(text),
        };
        let given = value.ok().map(Given::Value);
        let input = Input { question_id: Some(question.question_id.clone()), given, message: None };
        Some(Inbound { id: None, run_id: None, message: Message::Input(input) })
    }
}

/// Lines of a permission's detail that are shown: of its beginning, and of its end. What is left out is said.
const DETAIL_HEAD: usize = 20;
const DETAIL_TAIL: usize = 10;

fn is_numbers(text: &str) -> bool {
    text.split(',').all(|part| !part.trim().is_empty() && part.trim().bytes().all(|b| b.is_ascii_digit()))
}

fn shown(default: &Answer) -> String {
    match default {
        Answer::Bool(true) => "yes".into(),
        Answer::Bool(false) => "no".into(),
        Answer::One(text) | Answer::Text(text) => one_line(text),
        Answer::Many(texts) => one_line(&texts.join(", ")),
        Answer::Null => "nothing".into(),
    }
}
