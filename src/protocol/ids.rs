//! The ids of messages and tool calls in frames. They hold numbers, so that an id takes no memory of its own.

use super::json::put_number;
use std::fmt;

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
    fn parts(self) -> (&'static str, u64) {
        match self {
            MessageId::Said(number) => ("m_", number),
            MessageId::Result(number) => ("m_result_", number),
        }
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        let (prefix, number) = self.parts();
        write(prefix, number, out);
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

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, number) = self.parts();
        write!(f, "{prefix}{number}")
    }
}
