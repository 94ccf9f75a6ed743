//! Answers that were given before the questions came: on the command line, or in a file. They become the same messages
//! that an orchestrator sends.

use crate::protocol::inbound::{Inbound, Message};
use crate::protocol::json::Fields;
use crate::protocol::outbound::Question;
use crate::protocol::question::{Ask, Given, Input, Kind, check};
use crate::protocol::words::Purpose;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{HashMap, HashSet, VecDeque};

/// Answers by what they answer: a question's id, header, text, kind or purpose, in any case.
///
/// A key goes for every question that it fits, and the key that says most goes first. Several answers with one key are
/// given in their order, and the last of them for all that follow. One question gets one answer: if that does not fit,
/// the question is as open as it was.
#[derive(Debug, Default)]
pub struct Script {
    answers: HashMap<String, VecDeque<Planned>>,
    /// The keys that fitted a question.
    used: HashSet<String>,
    due: VecDeque<Inbound>,
}

#[derive(Clone, Debug)]
enum Planned {
    /// As it was typed.
    Typed(String),
    /// The payload of a run.input, but for the question's id.
    Payload(Box<RawValue>),
}

impl Script {
    /// Whether there are no answers at all.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Reads an object of answers: each a value, or an object with what a run.input may give.
    ///
    /// # Errors
    /// What is wrong, in words that hold nothing of the text.
    pub fn read(text: &str) -> Result<Script, String> {
        let fields = Fields::parse(text).ok_or("The file must hold one JSON object: {\"KEY\": ANSWER}.")?;
        let mut script = Script::default();
        for (at, (key, raw)) in fields.iter().enumerate() {
            let payload = match raw.get().starts_with('{') {
                true => Some(raw.to_owned()),
                false => RawValue::from_string(format!("{{\"value\":{raw}}}")).ok(),
            };
            let usable = |raw: &RawValue| Input::parse(Some(raw)).is_some_and(|input| input.given.is_some());
            let Some(payload) = payload.filter(|raw| usable(raw)) else {
                let what = "must be a value, or an object with one of `value`, `value_from` and `declined: true`";
                return Err(format!("Answer {} {what}.", at + 1));
            };
            if script.answers.insert(name(key), [Planned::Payload(payload)].into()).is_some() {
                return Err(format!("Answer {} has a key that was there before.", at + 1));
            }
        }
        Ok(script)
    }

    /// Adds answers as they were typed. They go before those that are there for the same key.
    pub fn add_typed(&mut self, answers: Vec<(String, String)>) {
        let mut typed: HashMap<String, VecDeque<Planned>> = HashMap::new();
        for (key, value) in answers {
            typed.entry(name(&key)).or_default().push_back(Planned::Typed(value));
        }
        self.answers.extend(typed);
    }

    /// A question is asked.
    pub(super) fn see(&mut self, question: &Question) {
        // What is asked again had its answer.
        let planned = if question.attempt == 1 { self.take(question) } else { None };
        let Some(planned) = planned else { return };
        let input = match planned {
            Planned::Typed(text) => {
                let given = typed(&question.ask, &text).map(Given::Value);
                Some(Input { question_id: None, given, message: None })
            }
            Planned::Payload(raw) => Input::parse(Some(&raw)),
        };
        if let Some(input) = input {
            let question_id = Some(question.question_id.clone());
            let message = Message::Input(Input { question_id, ..input });
            self.due.push_back(Inbound { id: None, run_id: None, message });
        }
    }

    /// How many keys fitted no question.
    pub(super) fn unused(&self) -> usize {
        self.answers.len() - self.used.len()
    }

    /// The next answer that is to be given.
    pub(super) fn next(&mut self) -> Option<Inbound> {
        self.due.pop_front()
    }

    fn take(&mut self, question: &Question) -> Option<Planned> {
        let ask = &question.ask;
        let permission = ask.purpose == Purpose::Permission;
        let keys: &[&str] = match permission {
            // Its words can be the agent's: no answer to something else was meant to allow anything.
            true => &[&question.question_id, ask.purpose.word()],
            false => &[&question.question_id, &ask.header, &ask.text, ask.kind.word().word(), ask.purpose.word()],
        };
        let mut keys = keys.iter().map(|key| name(key)).filter(|key| !key.is_empty());
        let found = keys.find(|key| self.answers.contains_key(key))?;
        self.used.insert(found.clone());
        let answers = self.answers.get_mut(&found)?;
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    }
}

/// Keys are compared without case and without blanks around them.
fn name(key: &str) -> String {
    key.trim().to_lowercase()
}

/// A typed answer as a value: `a,b` is several options where several may be chosen and each of them is one.
fn typed(ask: &Ask, text: &str) -> Option<Box<RawValue>> {
    let whole = to_raw_value(text).ok();
    let Kind::Select { choices, multiple: true, .. } = &ask.kind else { return whole };
    let parts = to_raw_value(&text.split(',').map(str::trim).collect::<Vec<_>>()).ok();
    let kind = Kind::Select { choices: choices.clone(), multiple: true, allow_other: false };
    let options_only = Ask { kind, ..ask.clone() };
    parts.filter(|parts| check(&options_only, parts, None).is_ok()).or(whole)
}
