//! JSON-RPC 2.0 over lines: what kind of message a line is, and the lines for it. The ids of the other side stay text,
//! so that they go back as they came.

use super::json::Object;
use crate::protocol::json::to_line;
use serde_json::Value;
use serde_json::value::RawValue;

/// The error code for a method that is not served.
pub const METHOD_NOT_FOUND: i64 = -32601;

/// A message of the other side.
#[derive(Debug)]
pub enum Message<'a> {
    /// It wants an answer.
    Request {
        /// Its own id, as it was written.
        id: &'a RawValue,
        /// What it wants.
        method: String,
        /// With what; null where there is nothing.
        params: Option<Object<'a>>,
    },
    /// It wants none.
    Notification {
        /// What happened.
        method: String,
        /// To what.
        params: Option<Object<'a>>,
    },
    /// It answers a request of ours.
    Response {
        /// Our id.
        id: &'a RawValue,
        /// The result, or the error.
        result: Result<Option<Object<'a>>, Option<Object<'a>>>,
    },
}

/// Tells a line by its shape: not every agent sends `jsonrpc`. `None`: it is no message.
pub fn read(line: &str) -> Option<Message<'_>> {
    let fields = Object::parse(line)?;
    let params = fields.object("params");
    match (fields.str("method"), fields.raw("id")) {
        (Some(method), Some(id)) => Some(Message::Request { id, method, params }),
        (Some(method), None) => Some(Message::Notification { method, params }),
        (None, Some(id)) => {
            let failed = fields.raw("error").is_some();
            let result = if failed { Err(fields.object("error")) } else { Ok(fields.object("result")) };
            Some(Message::Response { id, result })
        }
        (None, None) => None,
    }
}

/// A request of ours.
pub fn request(id: u64, method: &str, params: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{},\"params\":{}}}", to_line(&method), to_line(params))
}

/// A notification of ours.
pub fn notification(method: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":{}}}", to_line(&method))
}

/// The answer to a request. `id` is the request's, as it was written.
pub fn response(id: &str, result: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}}}", to_line(result))
}

/// The answer to a request that is not served.
pub fn error(id: &str, code: i64, message: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{}}}}}", to_line(&message))
}

#[cfg(test)]
mod tests {
    use super::{Message, read, response};
    use serde_json::json;

    #[test]
    fn a_message_is_told_by_its_shape() {
        assert!(matches!(read(r#"{"id":0,"method":"m","params":{}}"#), Some(Message::Request { .. })));
        assert!(matches!(read(r#"{"method":"m"}"#), Some(Message::Notification { params: None, .. })));
        assert!(matches!(read(r#"{"id":1,"result":{}}"#), Some(Message::Response { result: Ok(Some(_)), .. })));
        assert!(matches!(read(r#"{"id":1,"error":{"code":1}}"#), Some(Message::Response { result: Err(_), .. })));
        assert!(read("{}").is_none() && read("[]").is_none());
    }

    #[test]
    fn a_foreign_id_goes_back_as_it_came() {
        let Some(Message::Request { id, .. }) = read(r#"{"id":1e2,"method":"m"}"#) else { panic!("no request") };
        assert_eq!(response(id.get(), &json!({})), r#"{"jsonrpc":"2.0","id":1e2,"result":{}}"#);
    }
}
