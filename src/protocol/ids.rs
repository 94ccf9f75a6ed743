//! The ids in messages and frames, and the names of sessions, a type each. Those of the agent's messages and tool calls
//! hold numbers, so that an id takes no memory of its own.

use super::limits::SESSION_ID_BYTES;
use crate::json::put_number;
use crate::redact::Redactor;
use serde::Serialize;
use std::fmt;
use std::ops::Deref;

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
        pub struct $name(String);

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }
    )*};
}

text_ids! {
    QuestionId;
    /// The id of an inbound message, which `reply_to` returns.
    InboundId;
    /// `^[A-Za-z0-9._:-]{1,128}$`. No character of it needs an escape in JSON.
    RunId;
    /// 1 to [`SESSION_ID_BYTES`] bytes, so that a run.start can name it.
    SessionId;
    /// The name that a person gives to a session: 1 to 64 letters, digits, `-`, `_` and `.`, the first a letter or digit.
    SessionName;
}

/// Ids that may be any text.
macro_rules! any_text {
    ($($name:ident)*) => {$(
        impl<T: Into<String>> From<T> for $name {
            fn from(id: T) -> $name {
                $name(id.into())
            }
        }
    )*};
}

any_text!(QuestionId InboundId);

impl RunId {
    /// An id that an orchestrator chooses.
    pub(crate) const PATTERN: &str = "^[A-Za-z0-9._:-]{1,128}$";

    pub fn new(id: &str) -> Option<RunId> {
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
        ((1..=128).contains(&id.len()) && id.bytes().all(legal)).then(|| RunId(id.to_owned()))
    }

    /// For a run whose orchestrator chose none. `random`: letters and digits.
    pub fn generated(random: &str) -> RunId {
        RunId(format!("run_{random}"))
    }
}

impl SessionId {
    pub fn new(id: impl Into<String>) -> Option<SessionId> {
        let id = id.into();
        (1..=SESSION_ID_BYTES).contains(&id.len()).then_some(SessionId(id))
    }

    /// The id from a file. A stranger may have written the file, so the id must not look like a flag or a path.
    pub fn stored(id: &str) -> Option<SessionId> {
        let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        SessionId::new(id).filter(|_| plain && !id.starts_with(['-', '.']))
    }

    /// A redacted id can no longer be used to resume the session.
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        redactor.redact_in(&mut self.0);
    }
}

impl SessionName {
    pub fn new(name: &str) -> Option<SessionName> {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        (begins && plain && name.len() <= 64).then(|| SessionName(name.to_owned()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageId {
    /// `m_1`: the agent said it.
    Said(u64),
    /// `m_result_1`: a result without messages, shown as one.
    Result(u64),
}

/// `c_1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(pub u64);

/// `p_1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PromptId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckpointId {
    /// `p_1`: before this prompt. `p_0`: before the prompt of run.start.
    Prompt(u64),
    /// `r_1`: before this rewind.
    Rewind(u64),
}

impl CheckpointId {
    pub(super) const PATTERN: &'static str = "^[pr]_[0-9]{1,18}$";

    pub fn read(text: &str) -> Option<CheckpointId> {
        let (kind, number) = text.split_once('_')?;
        let digits = (1..=18).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|_| digits)?;
        match kind {
            "p" => Some(CheckpointId::Prompt(number)),
            "r" => Some(CheckpointId::Rewind(number)),
            _ => None,
        }
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointId::Prompt(number) => write!(out, "p_{number}"),
            CheckpointId::Rewind(number) => write!(out, "r_{number}"),
        }
    }
}

pub(super) fn put_id(prefix: &str, number: u64, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(prefix.as_bytes());
    put_number(number, out);
    out.push(b'"');
}
