//! JSON-RPC 2.0, one message per line. A message's fields determine its kind, because not every agent sends `jsonrpc`.
//! Responses repeat the agent's request ids verbatim; our own ids are numbers.

use super::{DriverOutput, Line, error_text};
use crate::json::{Index, Object, Raw, is_blank, to_line};
use crate::protocol::utc::UtcTime;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    Request { id: &'a str, method: Cow<'a, str>, params: Option<Object<'a>> },
    Notification { method: Cow<'a, str>, params: Option<Object<'a>> },
    Response { id: u64, result: Result<Option<Object<'a>>, Error> },
}

#[derive(Debug, Default)]
pub(crate) struct Error {
    pub(crate) code: i64,
    pub(crate) message: String,
    /// The text in the error's data.
    pub(crate) detail: String,
    /// The provider's own code for the failure, if the data has one.
    pub(crate) reason: String,
    /// The agent's name for the kind of error, if the data has one.
    pub(crate) name: String,
    pub(crate) status: Option<u64>,
    /// The end of the provider's limit, which no error's data has.
    pub(crate) retry_at: Option<UtcTime>,
}

/// `None`: not a JSON-RPC message.
pub(crate) fn read<'a>(object: &Object<'a>) -> Option<Incoming<'a>> {
    let [id, method, params] = object.raws(["id", "method", "params"]);
    let params = params.and_then(Raw::object);
    match (method.and_then(Raw::str), id.map(|raw| raw.get())) {
        (Some(method), Some(id)) => Some(Incoming::Request { id, method, params }),
        (Some(method), None) => Some(Incoming::Notification { method, params }),
        (None, Some(_)) => {
            let result = object.raw("error").map_or_else(|| Ok(object.object("result")), |e| Err(error_of(e)));
            Some(Incoming::Response { id: object.count("id")?, result })
        }
        (None, None) => None,
    }
}

pub(crate) fn line(
    index: &mut Index,
    line: Line<'_>,
    out: &mut DriverOutput,
    handle: impl FnOnce(Incoming<'_>, &mut DriverOutput),
) {
    let Line::Text(mut text) = line else { return out.unparsed() };
    if is_blank(&text) {
        return;
    }
    match index.read(&mut text).as_ref().and_then(read) {
        Some(message) => handle(message, out),
        None => out.unparsed(),
    }
}

/// The fields of an error's data that may have the HTTP status.
const STATUSES: &[&str] = &["status", "statusCode", "status_code", "httpStatus", "http_status", "code"];

fn error_of(raw: Raw<'_>) -> Error {
    let error = raw.object();
    let field = |name: &str| error.as_ref().and_then(|error| error.string(name));
    let data = error.as_ref().and_then(|error| error.object("data"));
    // Some agents pass on the object with the provider's error.
    let inner = data.as_ref().and_then(|data| data.object("error"));
    let parts = || [&inner, &data].into_iter().flatten();
    let in_data = |names: &[&str]| parts().find_map(|part| names.iter().find_map(|name| part.string(name)));
    let number = |part: &Object<'_>, name: &str| part.count(name).or_else(|| part.str(name)?.parse().ok());
    let status = |part: &Object<'_>| {
        STATUSES.iter().find_map(|name| number(part, name).filter(|status| (400..600).contains(status)))
    };
    Error {
        code: error.as_ref().and_then(|error| error.number("code")).unwrap_or(0.0) as i64,
        message: field("message").or_else(|| raw.string()).unwrap_or_default(),
        detail: field("data").or_else(|| in_data(&["message", "details", "detail", "error"])).unwrap_or_default(),
        reason: in_data(&["code", "type", "reason"]).unwrap_or_default(),
        name: in_data(&["errorName", "errorKind"]).unwrap_or_default(),
        status: parts().find_map(status),
        retry_at: None,
    }
}

impl Error {
    pub(crate) fn said(&self) -> Option<String> {
        error_text::errors([self.message.as_str(), self.detail.as_str()])
    }

    /// Whether the agent refused a session because another process writes it. Codex: "already has an active writer".
    pub(crate) fn is_of_busy_session(&self) -> bool {
        const WORDS: [&str; 9] = [
            "active writer",
            "in use",
            "being used",
            "is busy",
            "is locked",
            "another process",
            "already open",
            "already active",
            "already running",
        ];
        let text = format!("{}\n{}", self.message, self.detail).to_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    }
}

pub(crate) fn request(id: u64, method: &str, params: &impl Serialize) -> String {
    let (method, params) = (to_line(&method), to_line(params));
    format!("{{\"id\":{id},\"jsonrpc\":\"2.0\",\"method\":{method},\"params\":{params}}}")
}

pub(crate) fn notification(method: &str, params: Option<&Value>) -> String {
    match params {
        Some(params) => to_line(&json!({"jsonrpc": "2.0", "method": method, "params": params})),
        None => to_line(&json!({"jsonrpc": "2.0", "method": method})),
    }
}

/// `id`: the request's id, verbatim.
pub(crate) fn result(id: &str, result: &impl Serialize) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}}}", to_line(result))
}

pub(crate) fn error(id: &str, code: i64, message: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{}}}", to_line(&json!({"code": code, "message": message})))
}

#[cfg(test)]
mod tests {
    use super::{Incoming, read, result};
    use crate::json::Object;
    use serde_json::json;

    #[test]
    fn foreign_ids_are_returned_unchanged() {
        for id in ["0", "\"a-1\"", "1e3", "12345678901234567890123"] {
            let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}");
            let Some(Incoming::Request { id: read, .. }) = read(&Object::parse(&text).unwrap()) else { panic!("{id}") };
            assert_eq!(result(read, &json!({})), format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"));
        }
    }

    #[test]
    fn the_text_in_the_data_of_an_error_is_kept() {
        for (error, said) in [
            (
                r#"{"code":-32603,"message":"Internal error","data":{"details":"No route."}}"#,
                "Internal error\nNo route.",
            ),
            (r#"{"code":1,"message":"Internal error: No.","data":{"message":"No."}}"#, "Internal error: No."),
            (r#"{"code":1,"message":"Broken","data":"No."}"#, "Broken\nNo."),
            (r#"{"code":1,"message":"Broken","data":{"errorName":"X"}}"#, "Broken"),
            (r#""broken""#, "broken"),
        ] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":2,"error":{error}}}"#);
            let read = read(&Object::parse(&line).unwrap());
            let Some(Incoming::Response { result: Err(error), .. }) = read else { panic!("{line}") };
            assert_eq!(error.said(), Some(said.to_owned()), "{line}");
        }
    }

    #[test]
    fn a_result_may_be_null() {
        let object = Object::parse(r#"{"jsonrpc":"2.0","id":2,"result":null}"#).unwrap();
        assert!(matches!(read(&object), Some(Incoming::Response { id: 2, result: Ok(None) })));
    }
}
