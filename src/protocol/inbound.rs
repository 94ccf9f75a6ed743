//! Parses one line of stdin into one message, and makes all checks that do not depend on the run.
//!
//! The order of the checks is the protocol's: malformed, v, type, run_id, payload.

use super::fields::START_FIELDS;
use super::form::{Form, HasForm, Member, MessageForm, ObjectForm, TextRule, VERSION, object_forms};
use super::ids::{InboundId, RunId};
use super::input::{self, AnswerInput};
use super::limits;
use super::prompt::{self, PromptInput};
use super::request::{Options, Payload, Problem};
use super::text::Text;
use super::unknown::UnknownNames;
pub use super::words::CancelScope;
use super::workflow::OPTIONS;
use crate::json::{Fields, deeper_than, string};
use crate::redact::Redactor;
use crate::suggest::{either, nearest, shown};

#[derive(Debug)]
pub enum Message {
    Malformed(Flaw),
    /// A message whose `v` is not `"1"`.
    Unsupported,
    UnknownType(String),
    Start(Box<Payload>),
    Answer(AnswerInput),
    /// run.input with a further prompt, or with the end of the prompts.
    Prompt(PromptInput),
    Cancel {
        reason: Option<Text>,
        scope: CancelScope,
    },
}

const ID: Form = Form::Shaped(&TextRule { most: Some(limits::ID_CHARS), ..TextRule::matching("") });

object_forms! {
    pub ENVELOPE_IN = "Message" {
        /// The major version.
        v: VERSION, false;
        /// The id of the message, which `reply_to` returns.
        id: ID, true;
        /// The time of the message, for people.
        ts: Form::Text, true;
        /// The type of the message.
        type: Form::Text, false;
        /// The id of the run. A run.start without one gets one.
        run_id: RunId::FORM, true;
        /// The content of the message.
        payload: Form::AnyObject, true;
    }

    CANCEL = "Cancel" {
        /// The reason.
        reason: Form::Text, true;
        /// The part to cancel. By default the run.
        scope: CancelScope::FORM, true;
    }
}

const START: ObjectForm = ObjectForm {
    name: "Start",
    members: &[
        Member::All(&START_FIELDS),
        Member::field("workflow", "The options of a workflow.", Form::Object(&OPTIONS), true),
    ],
};

pub const MESSAGES: [MessageForm; 3] = [
    MessageForm { name: "run.start", doc: "Starts the run.", payloads: &[&START] },
    MessageForm {
        name: "run.input",
        doc: "Answers a question, gives a further prompt, ends a conversation, or puts files back.",
        payloads: &[
            &input::VALUE,
            &input::DECLINED,
            &input::VALUE_FROM,
            &prompt::PROMPT,
            &prompt::END,
            &prompt::REWIND,
        ],
    },
    MessageForm { name: "run.cancel", doc: "Cancels the run, or the running turn.", payloads: &[&CANCEL] },
];

/// The reason why a line is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    Length,
    Form,
    Depth,
    /// A known key occurs twice in one object.
    Repeated,
    Type,
    Id,
    RunId,
    Payload,
}

impl Flaw {
    /// A clause about the line, as "it".
    pub fn clause(self) -> String {
        match self {
            Flaw::Length => format!("it is longer than {} MiB", limits::INBOUND_LINE_BYTES >> 20),
            Flaw::Form => "it is not a JSON object in UTF-8".into(),
            Flaw::Depth => format!("it is nested deeper than {} levels", limits::DEPTH),
            Flaw::Repeated => "it has a key twice in one object".into(),
            Flaw::Type => "its `type` must be a string".into(),
            Flaw::Id => format!("its `id` must be a string of at most {} characters", limits::ID_CHARS),
            Flaw::RunId => "its `run_id` must be a string".into(),
            Flaw::Payload => "its `payload` must be an object".into(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Addressee {
    #[default]
    Unnamed,
    Run(RunId),
    /// A text that cannot be the id of a run.
    Invalid,
}

#[derive(Debug)]
pub struct Inbound {
    /// For `reply_to`.
    pub id: Option<InboundId>,
    pub run: Addressee,
    pub message: Message,
}

impl Inbound {
    pub fn bare(message: Message) -> Inbound {
        Inbound { id: None, run: Addressee::Unnamed, message }
    }
}

/// `line`: without its LF. `None`: it is blank.
pub fn parse(line: &[u8]) -> Option<Inbound> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    if deeper_than(line, limits::DEPTH) {
        return Some(Inbound::bare(Message::Malformed(Flaw::Depth)));
    }
    let text = std::str::from_utf8(line).ok();
    let Some(fields) = text.and_then(Fields::parse) else { return Some(Inbound::bare(Message::Malformed(Flaw::Form))) };
    // A malformed message may have these too.
    let id = fields.get("id").and_then(string).filter(|id| id.chars().count() <= limits::ID_CHARS);
    let run_id = fields.get("run_id").and_then(string);
    let message = read(&fields, &id, &run_id).unwrap_or_else(Message::Malformed);
    let run = run_id.map_or(Addressee::Unnamed, |id| RunId::new(&id).map_or(Addressee::Invalid, Addressee::Run));
    Some(Inbound { id: id.map(InboundId::from), run, message })
}

fn read(fields: &Fields<'_>, id: &Option<String>, run_id: &Option<String>) -> Result<Message, Flaw> {
    if fields.repeats_one_of(ENVELOPE_IN.keys()) {
        return Err(Flaw::Repeated);
    }
    let kind = fields.get("type").and_then(string).ok_or(Flaw::Type)?;
    for (name, value, flaw) in [("id", id, Flaw::Id), ("run_id", run_id, Flaw::RunId)] {
        if fields.get(name).is_some() && value.is_none() {
            return Err(flaw);
        }
    }
    let payload = fields.get("payload");
    if payload.is_some_and(|raw| !raw.get().starts_with('{')) {
        return Err(Flaw::Payload);
    }
    let known = match kind.as_str() {
        "run.start" => match Options::parse(payload) {
            Payload { wrong: Some(Problem::Repeated), .. } => return Err(Flaw::Repeated),
            mut payload => {
                add_misspelt(fields, &mut payload.unknown);
                Message::Start(Box::new(payload))
            }
        },
        "run.input" => match payload.and_then(|raw| Fields::parse(raw.get())) {
            None => Message::Answer(AnswerInput::default()),
            Some(fields) => match PromptInput::read(&fields).map_err(|_| Flaw::Repeated)? {
                Some(input) => Message::Prompt(input),
                None => {
                    let input = AnswerInput::read(&fields).ok_or(Flaw::Repeated)?;
                    Message::Answer(AnswerInput { unknown: unknown_in(&fields), ..input })
                }
            },
        },
        "run.cancel" => {
            let fields = payload.and_then(|raw| Fields::parse(raw.get()));
            if fields.as_ref().is_some_and(|f| f.repeats_one_of(CANCEL.keys())) {
                return Err(Flaw::Repeated);
            }
            let text = |name: &str| fields.as_ref().and_then(|fields| fields.get(name)).and_then(string);
            let scope = if text("scope").as_deref() == Some("turn") { CancelScope::Turn } else { CancelScope::Run };
            Message::Cancel { reason: text("reason").map(Text::from), scope }
        }
        _ => Message::UnknownType(kind),
    };
    let supported = fields.get("v").and_then(string).is_some_and(|v| v == "1");
    Ok(if supported { known } else { Message::Unsupported })
}

/// Adds the unknown fields of an envelope that look like one which is missing. The others are the sender's own.
fn add_misspelt(envelope: &Fields<'_>, unknown: &mut UnknownNames) {
    // Every other short name would resemble `v`, `id` and `ts`.
    let missing = || ENVELOPE_IN.keys().filter(|key| key.len() > 2 && envelope.get(key).is_none());
    for (name, _) in envelope.iter().filter(|(name, _)| !ENVELOPE_IN.keys().any(|key| key == *name)) {
        if let Some(meant) = nearest(name, missing()) {
            unknown.add(name, || Some(meant.to_owned()));
        }
    }
}

/// The fields that no run.input has, also those of `value_from`.
fn unknown_in(fields: &Fields<'_>) -> UnknownNames {
    let mut unknown = UnknownNames::default();
    let known = || input::answer_keys().chain(prompt::keys());
    for (name, _) in fields.iter().filter(|(name, _)| !known().any(|key| key == *name)) {
        unknown.add(name, || nearest(name, known()).map(str::to_owned));
    }
    let from = fields.get("value_from").and_then(|raw| Fields::parse(raw.get()));
    let is_source = |name: &str| input::source_keys().any(|key| key == name);
    for (name, _) in from.iter().flat_map(Fields::iter).filter(|(name, _)| !is_source(name)) {
        unknown.add(&format!("value_from.{name}"), || nearest(name, input::source_keys()).map(str::to_owned));
    }
    unknown
}

pub(crate) fn unknown_type(kind: &str, redactor: &Redactor) -> String {
    let types = || MESSAGES.iter().map(|message| message.name);
    let remark = match nearest(kind, types()) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("the types are {}", either(&types().collect::<Vec<_>>())),
    };
    format!("Ignored a message of the unknown type {} ({remark})", shown(kind, redactor))
}
