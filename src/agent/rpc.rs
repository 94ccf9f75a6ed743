//! JSON-RPC 2.0 over lines, as far as one side of a pipe needs it; told by its shape, since not every agent sends
//! `jsonrpc`. Ids of the other side stay the text they came as, so that they
//! go back unchanged; our own are numbers.

use super::json::Object;
use crate::protocol::json::to_line;
use serde_json::{Value, json};

/// No such method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// One message of the agent's.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// It wants an answer.
    Request { id: &'a str, method: String, params: Option<Object<'a>> },
    /// It wants none.
    Notification { method: String, params: Option<Object<'a>> },
    /// An answer to the request of ours with this number.
    Response { id: u64, result: Result<Option<Object<'a>>, Error> },
}

/// The error of a response. Its text is the agent's: it may hold keys and paths, and is only looked at.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) code: i64,
    pub(crate) message: String,
    /// The agent's name for the kind of error, where its data has one.
    pub(crate) name: String,
}

/// Reads an object as a message. `None`: it is none that we could follow.
pub(crate) fn read<'a>(object: &Object<'a>) -> Option<Message<'a>> {
    let id = object.raw("id").map(|raw| raw.get());
    match (object.str("method"), id) {
        (Some(method), Some(id)) => Some(Message::Request { id, method, params: object.object("params") }),
        (Some(method), None) => Some(Message::Notification { method, params: object.object("params") }),
        (None, Some(_)) => {
            let result = object.object("error").map_or_else(|| Ok(object.object("result")), |e| Err(error_of(&e)));
            Some(Message::Response { id: object.count("id")?, result })
        }
        (None, None) => None,
    }
}

fn error_of(error: &Object<'_>) -> Error {
    Error {
        code: error.number("code").unwrap_or(0.0) as i64,
        message: error.str("message").unwrap_or_default(),
        name: error.object("data").and_then(|data| data.str("errorName")).unwrap_or_default(),
    }
}

/// A request of ours.
pub(crate) fn request(id: u64, method: &str, params: &Value) -> String {
    to_line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// A notification of ours.
pub(crate) fn notification(method: &str, params: Option<&Value>) -> String {
    match params {
        Some(params) => to_line(&json!({"jsonrpc": "2.0", "method": method, "params": params})),
        None => to_line(&json!({"jsonrpc": "2.0", "method": method})),
    }
}

/// Our answer to the agent's request `id`, which is as it was written.
pub(crate) fn result(id: &str, result: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}}}", to_line(result))
}

/// Our refusal of the agent's request `id`.
pub(crate) fn error(id: &str, code: i64, message: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{}}}", to_line(&json!({"code": code, "message": message})))
}

#[cfg(test)]
mod tests {
    use super::{Message, read, result};
    use crate::agent::json::Object;
    use serde_json::json;

    #[test]
    fn foreign_ids_go_back_as_they_came() {
        for id in ["0", "\"a-1\"", "1e3", "12345678901234567890123"] {
            let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}");
            let Some(Message::Request { id: read, .. }) = read(&Object::parse(&text).unwrap()) else { panic!("{id}") };
            assert_eq!(result(read, &json!({})), format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"));
        }
    }

    #[test]
    fn a_result_may_be_null() {
        let object = Object::parse(r#"{"jsonrpc":"2.0","id":2,"result":null}"#).unwrap();
        assert!(matches!(read(&object), Some(Message::Response { id: 2, result: Ok(None) })));
    }
}
