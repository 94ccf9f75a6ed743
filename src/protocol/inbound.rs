//! Parses one line of stdin into one message, and makes all checks that do not depend on the run.
//!
//! The order of the checks is the protocol's: malformed, v, type, run_id, payload.

use super::json::{Fields, deeper_than, string};
use super::limits;
use super::question::Input;
use super::request::{Options, Payload, Problem};

/// The kinds of inbound lines.
#[derive(Debug)]
pub enum Message {
    /// A line that is not a message.
    Malformed,
    /// A message whose `v` is not `"1"`.
    Unsupported,
    /// A type that this version does not know.
    UnknownType,
    /// run.start.
    Start(Box<Payload>),
    /// run.input.
    Input(Input),
    /// run.cancel.
    Cancel {
        /// The reason, if the message states one.
        reason: Option<String>,
    },
}

/// A message and the fields of its envelope.
#[derive(Debug)]
pub struct Inbound {
    /// The message's id, for `reply_to`.
    pub id: Option<String>,
    /// The run that the message names.
    pub run_id: Option<String>,
    /// The message.
    pub message: Message,
}

impl Inbound {
    const MALFORMED: Inbound = Inbound { id: None, run_id: None, message: Message::Malformed };
}

/// Whether an orchestrator may choose this run id: `^[A-Za-z0-9._:-]{1,128}$`.
pub fn is_run_id(text: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
    (1..=128).contains(&text.len()) && text.bytes().all(legal)
}

/// Reads one line, without its LF. `None`: a blank line.
pub fn parse(line: &[u8]) -> Option<Inbound> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let text = std::str::from_utf8(line).ok().filter(|_| !deeper_than(line, limits::DEPTH));
    let Some(fields) = text.and_then(Fields::parse) else { return Some(Inbound::MALFORMED) };
    // A malformed message may have these too.
    let id = fields.get("id").and_then(string).filter(|id| id.chars().count() <= limits::ID_CHARS);
    let run_id = fields.get("run_id").and_then(string);
    let message = read(&fields, &id, &run_id).unwrap_or(Message::Malformed);
    Some(Inbound { id, run_id, message })
}

/// Parses the message. `None`: it is malformed.
fn read(fields: &Fields<'_>, id: &Option<String>, run_id: &Option<String>) -> Option<Message> {
    if fields.repeats_one_of(&["v", "id", "ts", "type", "run_id", "payload"]) {
        return None;
    }
    let kind = string(fields.get("type")?)?;
    let wrong = |name, value: &Option<String>| fields.get(name).is_some() && value.is_none();
    if wrong("id", id) || wrong("run_id", run_id) {
        return None;
    }
    let payload = fields.get("payload");
    if payload.is_some_and(|raw| !raw.get().starts_with('{')) {
        return None;
    }
    let known = match kind.as_str() {
        "run.start" => match Options::parse(payload) {
            Payload { wrong: Some(Problem::Repeated), .. } => return None,
            payload => Message::Start(Box::new(payload)),
        },
        "run.input" => Message::Input(Input::parse(payload)?),
        "run.cancel" => {
            let fields = payload.and_then(|raw| Fields::parse(raw.get()));
            if fields.as_ref().is_some_and(|f| f.repeats_one_of(&["reason"])) {
                return None;
            }
            Message::Cancel { reason: fields.and_then(|f| f.get("reason").and_then(string)) }
        }
        _ => Message::UnknownType,
    };
    let supported = fields.get("v").and_then(string).is_some_and(|v| v == "1");
    Some(if supported { known } else { Message::Unsupported })
}
