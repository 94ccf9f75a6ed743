//! Parses one line of stdin into one message, and makes all checks that do not depend on the run.
//!
//! The order of the checks is the protocol's: malformed, v, type, run_id, payload.

use super::fields::START_FIELDS;
use super::form::{Form, Member, MessageForm, ObjectForm, TextRule, VERSION, WordSet};
use super::ids::{InboundId, RunId};
use super::input::{self, AnswerInput};
use super::limits;
use super::prompt::{self, PromptInput};
use super::request::{Options, Payload, Problem};
use super::text::Text;
use super::unknown::UnknownNames;
use super::workflow::OPTIONS;
use crate::json::{Fields, deeper_than, string};
use crate::redact::Redactor;
use crate::suggest::{either, nearest, shown};

/// The kinds of inbound lines.
#[derive(Debug)]
pub enum Message {
    /// A line that is not a message.
    Malformed(Flaw),
    /// A message whose `v` is not `"1"`.
    Unsupported,
    /// A type that this version does not know.
    UnknownType(String),
    /// run.start.
    Start(Box<Payload>),
    /// run.input that answers a question.
    Answer(AnswerInput),
    /// run.input with a further prompt, or with the end of the prompts.
    Prompt(PromptInput),
    /// run.cancel.
    Cancel {
        /// The reason, if the message states one.
        reason: Option<Text>,
        /// The part to cancel.
        scope: CancelScope,
    },
}

/// The part of a run that a cancel ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CancelScope {
    /// The whole run.
    #[default]
    Run,
    /// The running turn of a conversation.
    Turn,
}

const ID: Form = Form::Shaped(&TextRule { most: Some(limits::ID_CHARS), ..TextRule::matching("") });
const RUN_ID: Form = Form::Shaped(&TextRule::matching(RunId::PATTERN));

/// The envelope of a message.
pub const ENVELOPE_IN: ObjectForm = ObjectForm {
    name: "Message",
    members: &[
        Member::field("v", "The major version.", VERSION, false),
        Member::field("id", "The id of the message, which `reply_to` returns.", ID, true),
        Member::field("ts", "The time of the message, for people.", Form::Text, true),
        Member::field("type", "The type of the message.", Form::Text, false),
        Member::field("run_id", "The id of the run. A run.start without one gets one.", RUN_ID, true),
        Member::field("payload", "The content of the message.", Form::AnyObject, true),
    ],
};

/// The payload of run.start.
const START: ObjectForm = ObjectForm {
    name: "Start",
    members: &[
        Member::All(&START_FIELDS),
        Member::field("workflow", "The options of a workflow.", Form::Object(&OPTIONS), true),
    ],
};

/// The payload of run.cancel.
const CANCEL: ObjectForm = ObjectForm {
    name: "Cancel",
    members: &[
        Member::field("reason", "The reason.", Form::Text, true),
        Member::field(
            "scope",
            "The part to cancel. By default the run.",
            Form::Word(&WordSet { name: "CancelScope", words: &["run", "turn"], grows: false }),
            true,
        ),
    ],
};

/// The three inbound messages.
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
    /// The line is longer than [`limits::INBOUND_LINE_BYTES`].
    Length,
    /// The line is not valid UTF-8, or not a JSON object.
    Form,
    /// The line is nested deeper than [`limits::DEPTH`].
    Depth,
    /// A known key occurs twice in one object.
    Repeated,
    /// `type` is absent or not a string.
    Type,
    /// `id` is not a string, or too long.
    Id,
    /// `run_id` is not a string.
    RunId,
    /// `payload` is not an object.
    Payload,
}

impl Flaw {
    /// The reason as a clause about the line.
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

/// The run that a message names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Addressee {
    /// The message names no run.
    #[default]
    Unnamed,
    Run(RunId),
    /// The message names a text that cannot be the id of a run.
    Invalid,
}

/// A message and the fields of its envelope.
#[derive(Debug)]
pub struct Inbound {
    /// The message's id, for `reply_to`.
    pub id: Option<InboundId>,
    /// The run that the message names.
    pub run: Addressee,
    pub message: Message,
}

impl Inbound {
    /// A message without an envelope.
    pub fn bare(message: Message) -> Inbound {
        Inbound { id: None, run: Addressee::Unnamed, message }
    }
}

/// Reads one line, without its LF. `None`: a blank line.
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

/// Adds the unknown fields of an envelope that look like one which is missing. Other unknown fields of an envelope are
/// the sender's own.
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

/// The text of the warning about a message of an unknown type.
pub(crate) fn unknown_type(kind: &str, redactor: &Redactor) -> String {
    let types = || MESSAGES.iter().map(|message| message.name);
    let remark = match nearest(kind, types()) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("the types are {}", either(&types().collect::<Vec<_>>())),
    };
    format!("Ignored a message of the unknown type {} ({remark})", shown(kind, redactor))
}
