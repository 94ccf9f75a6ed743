//! One line of stdin → one message. Everything that can be said without knowing the run is said here.
//!
//! The order of the checks is the protocol's: malformed, v, type, run_id, payload.

use super::json::{Fields, deeper_than, string};
use super::limits;
use super::question::Input;
use super::request::{Options, Problem};

/// What an inbound line is.
#[derive(Debug)]
pub enum Message {
    /// Not a message at all.
    Malformed,
    /// A message whose `v` is not `"1"`.
    Unsupported,
    /// A type that this version does not know.
    UnknownType,
    /// run.start. The problem is that of its first bad field.
    Start(Box<Result<Options, Problem>>),
    /// run.input.
    Input(Input),
    /// run.cancel.
    Cancel {
        /// Why, if it says so.
        reason: Option<String>,
    },
}

/// A message with what every message may carry.
#[derive(Debug)]
pub struct Inbound {
    /// Its id, for `reply_to`.
    pub id: Option<String>,
    /// The run it is meant for.
    pub run_id: Option<String>,
    /// What it says.
    pub message: Message,
}

impl Inbound {
    const MALFORMED: Inbound = Inbound { id: None, run_id: None, message: Message::Malformed };
}

/// Whether a run id is one that an orchestrator may choose: `^[A-Za-z0-9._:-]{1,128}$`.
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
    Some(read(line).unwrap_or(Inbound::MALFORMED))
}

/// `None`: malformed.
fn read(line: &[u8]) -> Option<Inbound> {
    let text = std::str::from_utf8(line).ok()?;
    if deeper_than(line, limits::DEPTH) {
        return None;
    }
    let fields = Fields::parse(text)?;
    if fields.repeats_one_of(&["v", "id", "ts", "type", "run_id", "payload"]) {
        return None;
    }
    let kind = string(fields.get("type")?)?;
    let optional = |name| match fields.get(name) {
        None => Some(None),
        Some(raw) => string(raw).map(Some),
    };
    let id: Option<String> = optional("id")?;
    if id.as_ref().is_some_and(|id| id.chars().count() > limits::ID_CHARS) {
        return None;
    }
    let run_id = optional("run_id")?;
    let payload = fields.get("payload");
    if payload.is_some_and(|raw| !raw.get().starts_with('{')) {
        return None;
    }
    let known = match kind.as_str() {
        "run.start" => match Options::parse(payload) {
            Err(Problem::Repeated) => return None,
            options => Message::Start(Box::new(options)),
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
    let message = if supported { known } else { Message::Unsupported };
    Some(Inbound { id, run_id, message })
}
