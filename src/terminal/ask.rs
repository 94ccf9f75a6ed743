//! Questions as numbered lists, one at a time, and typed lines as answers.

use crate::clean::{one_line, whole};
use crate::protocol::inbound::{Inbound, Message};
use crate::protocol::outbound::Question;
use crate::protocol::question::{Answer, Given, Input, Kind};
use serde_json::value::to_raw_value;
use std::collections::VecDeque;
use std::fmt::Write;

/// The questions that wait for a person; the first is the one that is asked.
#[derive(Default)]
pub(super) struct Asking {
    waiting: VecDeque<Question>,
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

    /// A question is over.
    pub(super) fn resolved(&mut self, id: &str) {
        self.waiting.retain(|question| question.question_id != id);
    }

    /// The question that is asked now, if there is one.
    pub(super) fn prompt(&self) -> String {
        let Some(question) = self.waiting.front() else { return String::new() };
        let ask = &question.ask;
        let mut out = String::new();
        if let Some(error) = &question.error {
            let _ = writeln!(out, "! {}", one_line(&error.0));
        }
        let _ = writeln!(out, "? [{}] {}", one_line(&ask.header), whole(&ask.text).trim_end());
        let detail = question.subject.as_ref().map(|subject| whole(&subject.detail.0)).unwrap_or_default();
        for line in detail.lines().take(DETAIL_LINES) {
            let _ = writeln!(out, "    {line}");
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
    pub(super) fn typed(&mut self, line: &str) -> Option<Inbound> {
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

/// Lines of a permission's detail that are shown.
const DETAIL_LINES: usize = 20;

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
