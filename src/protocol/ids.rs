//! The ids in messages and frames, a type each. Those of the agent's messages and tool calls hold numbers, so that an id
//! takes no memory of its own.

use super::json::put_number;
use serde::Serialize;
use std::ops::Deref;

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
        pub struct $name(String);

        impl From<String> for $name {
            fn from(id: String) -> $name {
                $name(id)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> $name {
                $name(id.to_owned())
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }
    )*};
}

text_ids! {
    /// The id of a question, as an answer names it.
    QuestionId;
    /// The id of an inbound message, which `reply_to` returns.
    InboundId;
}

/// The id of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageId {
    /// `m_1`: the agent said it.
    Said(u64),
    /// `m_result_1`: a result without messages, shown as one.
    Result(u64),
}

/// The id of a tool call: `c_1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(pub u64);

impl MessageId {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            MessageId::Said(number) => write("m_", number, out),
            MessageId::Result(number) => write("m_result_", number, out),
        }
    }
}

impl CallId {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        write("c_", self.0, out);
    }
}

/// Appends an id as a JSON string.
fn write(prefix: &str, number: u64, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(prefix.as_bytes());
    put_number(number, out);
    out.push(b'"');
}
