//! Answers given in advance, on the command line or in a file. They become the same messages that an orchestrator
//! sends.

use super::peer::InAdvance;
use crate::clean::one_line;
use crate::json::Fields;
use crate::protocol::inbound::{Inbound, Message};
use crate::protocol::outbound::Question;
use crate::protocol::question::{AnswerInput, Ask, Given, Kind, check};
use crate::protocol::words::{Purpose, QuestionKind};
use crate::suggest::{nearest, plain_name};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{HashMap, VecDeque};

const NAMED: usize = 20;

/// Scripted answers, keyed by a question's id, header, text, kind or purpose. Keys are compared without case.
///
/// A key applies to every question that it matches. If several keys match, the most specific one applies. Several
/// answers with one key are used in order, and the last one is reused. Each question gets one answer: if that answer
/// does not fit, the question stays open.
#[derive(Debug, Default)]
pub struct Script {
    /// The answers, by normalised key.
    answers: HashMap<String, Answers>,
    /// The answers to open questions that the run has not got yet.
    pub(super) due: VecDeque<Inbound>,
    /// The headers of the first questions.
    headers: Vec<String>,
}

#[derive(Debug, Default)]
struct Answers {
    key: String,
    used: bool,
    planned: VecDeque<Planned>,
}

#[derive(Clone, Debug)]
enum Planned {
    /// The text of the answer, as it was typed.
    Typed(String),
    /// The payload of a run.input, without the question's id.
    Payload(Box<RawValue>),
}

impl Script {
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Reads an object of answers. Each is a value, or an object with fields of a run.input. Error: a sentence that
    /// names the mistake and quotes nothing from the text.
    pub fn read(text: &str) -> Result<Script, String> {
        let fields = Fields::parse(text).ok_or("The file must hold one JSON object: {\"KEY\": ANSWER}.")?;
        let mut script = Script::default();
        for (at, (key, raw)) in fields.iter().enumerate() {
            let payload = match raw.get().starts_with('{') {
                true => Some(raw.to_owned()),
                false => RawValue::from_string(format!("{{\"value\":{raw}}}")).ok(),
            };
            let usable = |raw: &RawValue| AnswerInput::parse(raw).is_some_and(|input| input.given.is_some());
            let which =
                || plain_name(key).map_or_else(|| format!("Answer {}", at + 1), |name| format!("The answer to {name}"));
            let Some(payload) = payload.filter(|raw| usable(raw)) else {
                let what = "must be a value, or an object with one of `value`, `value_from` and `declined: true`";
                return Err(format!("{} {what}.", which()));
            };
            if script.answers.contains_key(&name(key)) {
                return Err(format!("{} has the same key as an earlier one.", which()));
            }
            script.plan(key, Planned::Payload(payload));
        }
        Ok(script)
    }

    fn plan(&mut self, key: &str, planned: Planned) {
        let new = || Answers { key: key.trim().to_owned(), ..Answers::default() };
        self.answers.entry(name(key)).or_insert_with(new).planned.push_back(planned);
    }

    /// The answers replace those from a file with the same key.
    pub fn add_typed(&mut self, answers: Vec<(String, String)>) {
        for (key, _) in &answers {
            self.answers.remove(&name(key));
        }
        for (key, value) in answers {
            self.plan(&key, Planned::Typed(value));
        }
    }

    /// Finds and queues the answer to a question that is being asked. Returns the form in which a peer may show it.
    pub(super) fn see(&mut self, question: &Question) -> Option<InAdvance> {
        let header = one_line(question.ask.header.shown());
        if !self.is_empty() && !header.is_empty() && self.headers.len() < NAMED {
            self.headers.push(header);
        }
        // A repeated question has used its answer.
        let planned = if question.attempt == 1 { self.find_answer(question) } else { None }?;
        let input = match planned {
            Planned::Typed(text) => {
                let given = typed(&question.ask, &text).map(Given::Value);
                Some(AnswerInput { given, ..AnswerInput::default() })
            }
            Planned::Payload(raw) => AnswerInput::parse(&raw),
        };
        let input = input?;
        let shown = match &input.given {
            None | Some(Given::FromEnv(_) | Given::FromFile(_)) => InAdvance::Hidden,
            Some(_) if question.ask.kind == Kind::Secret => InAdvance::Hidden,
            Some(Given::Value(value)) => InAdvance::Value(value.get().to_owned()),
            Some(Given::Declined) => InAdvance::Declined,
        };
        let question_id = Some(question.question_id.clone());
        let message = Message::Answer(AnswerInput { question_id, ..input });
        self.due.push_back(Inbound::bare(message));
        Some(shown)
    }

    /// A sentence about the keys that matched no question: the names that may be shown, the number of the others, and
    /// the key that was probably meant. `None`: every key matched.
    pub(super) fn unused(&self) -> Option<String> {
        let unused: Vec<&str> = self.answers.values().filter(|one| !one.used).map(|one| one.key.as_str()).collect();
        let mut names: Vec<String> =
            unused.iter().filter_map(|key| plain_name(key)).map(|key| key.to_string()).collect();
        names.sort_unstable();
        names.truncate(NAMED);
        let keys = if unused.len() == 1 { "answer key" } else { "answer keys" };
        let named = names.join(", ");
        let which = match (names.len(), unused.len() - names.len()) {
            (0, 0) => return None,
            (0, more) => format!("{more} {keys}"),
            (_, 0) => format!("the {keys} {named}"),
            (_, more) => format!("the {keys} {named}, and {more} more"),
        };
        let meant = if let [only] = unused[..] { self.nearest(only) } else { None };
        let hint = meant.map_or_else(
            || "`spektacular help adhoc` explains the keys of --answer.".to_owned(),
            |key| format!("Did you mean {key}?"),
        );
        Some(format!("No question matched {which}. {hint}"))
    }

    fn nearest(&self, key: &str) -> Option<&str> {
        let words =
            Purpose::ALL.iter().map(|purpose| purpose.word()).chain(QuestionKind::ALL.iter().map(|kind| kind.word()));
        let all: Vec<&str> = self.headers.iter().map(String::as_str).chain(words).collect();
        let lower: Vec<String> = all.iter().map(|one| name(one)).collect();
        let near = nearest(&name(key), lower.iter().map(String::as_str))?;
        lower.iter().position(|one| one == near).map(|at| all[at])
    }

    fn find_answer(&mut self, question: &Question) -> Option<Planned> {
        let ask = &question.ask;
        let permission = ask.purpose == Purpose::Permission;
        let keys: &[&str] = match permission {
            // The agent may choose a permission's words: an answer meant for another question must not allow anything.
            true => &[&question.question_id, ask.purpose.word()],
            false => &[
                &question.question_id,
                ask.header.shown(),
                ask.text.shown(),
                ask.kind.word().word(),
                ask.purpose.word(),
            ],
        };
        let mut keys = keys.iter().map(|key| name(key)).filter(|key| !key.is_empty());
        let found = keys.find(|key| self.answers.contains_key(key))?;
        let Answers { used, planned, .. } = self.answers.get_mut(&found)?;
        *used = true;
        if planned.len() > 1 { planned.pop_front() } else { planned.front().cloned() }
    }
}

fn name(key: &str) -> String {
    key.trim().to_lowercase()
}

/// `a,b` means several options if the question allows several and each part is one.
fn typed(ask: &Ask, text: &str) -> Option<Box<RawValue>> {
    let whole = to_raw_value(text).ok();
    let Kind::Select { choices, multiple: true, .. } = &ask.kind else { return whole };
    let parts = to_raw_value(&text.split(',').map(str::trim).collect::<Vec<_>>()).ok();
    let kind = Kind::Select { choices: choices.clone(), multiple: true, allow_other: false };
    let options_only = Ask { kind, ..ask.clone() };
    parts.filter(|parts| check(&options_only, parts, None).is_ok()).or(whole)
}
