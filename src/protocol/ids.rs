//! The ids of messages and tool calls in frames. They hold numbers, so that an id takes no memory of its own.

use super::json::put_number;

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
