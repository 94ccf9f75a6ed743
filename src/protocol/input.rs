//! The payload of a run.input that answers a question.

use super::form::{Form, Member, ObjectForm};
use super::ids::QuestionId;
use super::text::Text;
use super::unknown::UnknownNames;
use crate::json::{Fields, string};
use serde_json::value::RawValue;

#[derive(Debug, Default)]
pub struct AnswerInput {
    /// `None`: the field is missing or not a string.
    pub question_id: Option<QuestionId>,
    /// `None`: the message does not have exactly one of value, declined and value_from, or has a malformed one.
    pub given: Option<Given>,
    /// Free text for the agent, to go with a denial.
    pub message: Option<Text>,
    /// The input for the tool whose permission is granted, a JSON object. Makes another answer invalid.
    pub updated_input: Option<String>,
    /// Empty for an answer from a script.
    pub unknown: UnknownNames,
}

#[derive(Debug)]
pub enum Given {
    Value(Box<RawValue>),
    Declined,
    /// `value_from: {"env": NAME}`.
    FromEnv(String),
    /// `value_from: {"file": path}`.
    FromFile(String),
}

const QUESTION_ID: Member = Member::field("question_id", "The question to answer.", Form::Text, false);
const MESSAGE: Member = Member::field("message", "Free text for the agent, to go with a denial.", Form::Text, true);

const UPDATED_INPUT: Member =
    Member::field("updated_input", "With allow_once: the input to use for the tool.", Form::AnyObject, true);

pub(super) const VALUE: ObjectForm = ObjectForm {
    name: "Answer",
    members: &[QUESTION_ID, Member::field("value", "The answer.", Form::Any, false), MESSAGE, UPDATED_INPUT],
};

pub(super) const DECLINED: ObjectForm = ObjectForm {
    name: "DeclinedAnswer",
    members: &[QUESTION_ID, Member::field("declined", "The question is declined.", Form::True, false), MESSAGE],
};

pub(super) const VALUE_FROM: ObjectForm = ObjectForm {
    name: "AnswerFrom",
    members: &[QUESTION_ID, Member::field("value_from", "The source of the answer.", SOURCE, false), MESSAGE],
};

const SOURCE: Form = Form::Either(&[Form::Object(&ENV), Form::Object(&FILE)]);

const ENV: ObjectForm = ObjectForm {
    name: "AnswerFromEnv",
    members: &[Member::field("env", "The name of a variable of this process.", Form::Text, false)],
};
const FILE: ObjectForm = ObjectForm {
    name: "AnswerFromFile",
    members: &[Member::field("file", "A path, relative to this process's directory.", Form::Text, false)],
};

pub(super) fn answer_keys() -> impl Iterator<Item = &'static str> {
    VALUE.keys().chain(["declined", "value_from"])
}

impl AnswerInput {
    /// For an answer from a script. `None`: a known key is repeated.
    pub fn parse(payload: &RawValue) -> Option<AnswerInput> {
        Fields::parse(payload.get()).map_or_else(|| Some(AnswerInput::default()), |fields| AnswerInput::read(&fields))
    }

    /// `None`: a known key is repeated, so the message is malformed.
    pub(super) fn read(fields: &Fields<'_>) -> Option<AnswerInput> {
        let mut input = AnswerInput::default();
        if fields.repeats_one_of(answer_keys()) {
            return None;
        }
        input.question_id = fields.get("question_id").and_then(string).map(QuestionId::from);
        input.message = fields.get("message").and_then(string).map(Text::from);
        let value = fields.get("value").map(|raw| Some(Given::Value(raw.to_owned())));
        let declined = fields.get("declined").map(|raw| (raw.get() == "true").then_some(Given::Declined));
        let from = match fields.get("value_from") {
            None => None,
            Some(raw) => Some(value_from(raw)?),
        };
        let mut ways = [value, declined, from].into_iter().flatten();
        input.given = match (ways.next(), ways.next()) {
            (Some(only), None) => only,
            _ => None,
        };
        if let Some(raw) = fields.get("updated_input").filter(|raw| raw.get() != "null") {
            input.updated_input = Some(raw.get().to_owned());
            if !raw.get().starts_with('{') {
                input.given = None;
            }
        }
        Some(input)
    }
}

/// `Some(None)`: it is invalid. `None`: a key is repeated.
fn value_from(raw: &RawValue) -> Option<Option<Given>> {
    let Some(fields) = Fields::parse(raw.get()) else { return Some(None) };
    if fields.repeats_one_of(["env", "file"]) {
        return None;
    }
    Some(match (fields.get("env"), fields.get("file")) {
        (Some(name), None) => string(name).map(Given::FromEnv),
        (None, Some(path)) => string(path).map(Given::FromFile),
        _ => None,
    })
}

pub(super) fn source_keys() -> impl Iterator<Item = &'static str> {
    ENV.keys().chain(FILE.keys())
}
