//! The server: all sessions of one client, and the messages that belong to none.

use super::Facts;
use super::refusal::{INVALID_REQUEST, PARSE_ERROR, RequestError};
use super::session::ClientSession;
use super::shared::{ChildKey, ServerEffect, ServerHost, SharedState};
use crate::agent::rpc::{self, Incoming};
use crate::json::{Object, Raw, deeper_than};
use std::collections::BTreeMap;

const DEPTH: usize = 128;
const ID_BYTES: usize = 1024;

pub(crate) enum ClientLine {
    Whole(Vec<u8>),
    /// The beginning of a line that is longer than its limit.
    TooLong(Vec<u8>),
}

pub(crate) struct AcpServer {
    pub(super) shared: SharedState,
    pub(super) sessions: BTreeMap<String, ClientSession>,
}

impl AcpServer {
    pub(crate) fn new(facts: Facts, host: Box<dyn ServerHost>) -> AcpServer {
        AcpServer { shared: SharedState::new(facts, host), sessions: BTreeMap::new() }
    }

    pub(crate) fn client(&mut self, line: &ClientLine) -> Vec<ServerEffect> {
        match line {
            ClientLine::Whole(line) => self.read(line),
            ClientLine::TooLong(head) => self.refuse_long(head),
        }
        self.shared.take_effects()
    }

    /// Answers a request that is too long, and ends the question that a response of such a length was for.
    fn refuse_long(&mut self, head: &[u8]) {
        let (fields, next) = first_fields(head).unwrap_or_default();
        let object = Object::parse(&fields);
        let request = object.and_then(|object| object.count("id")).filter(|_| next.starts_with(b"\"result\""));
        if let Some(request) = request {
            return self.response(request, None);
        }
        let id = object.and_then(|object| object.raw("id")).map(Raw::get).filter(|id| is_plain(id));
        let refusal = RequestError::new(INVALID_REQUEST, "The message is longer than 16 MiB.");
        self.shared.refuse(id.unwrap_or("null"), &refusal);
    }

    fn read(&mut self, line: &[u8]) {
        let Ok(text) = std::str::from_utf8(line) else {
            return self.unread(PARSE_ERROR, "The line is not UTF-8.");
        };
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if deeper_than(text.as_bytes(), DEPTH) {
            return self.unread(PARSE_ERROR, "The message is nested too deeply.");
        }
        let Some(object) = Object::parse(text) else {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            return if is_json {
                self.unread(INVALID_REQUEST, "The message is not an object. Batches are not supported.")
            } else {
                self.unread(PARSE_ERROR, "The line is not JSON.")
            };
        };
        self.message(&object);
    }

    fn unread(&mut self, code: i64, message: &str) {
        self.shared.refuse("null", &RequestError::new(code, message));
    }

    fn message(&mut self, object: &Object<'_>) {
        // An id is echoed, so only a string or a number of reasonable length is taken.
        let id = object.raw("id").map(|raw| raw.get());
        if id.is_some_and(|id| !is_plain(id)) {
            return self.unread(INVALID_REQUEST, "`id` must be a string or a number.");
        }
        let mut keys = object.iter().map(|(key, _)| key);
        let is_something = keys.any(|key| matches!(&*key, "method" | "result" | "error"));
        match rpc::read(object).filter(|_| is_something) {
            Some(Incoming::Request { id, method, params }) => {
                if let Err(refusal) = self.request(id, &method, params.as_ref()) {
                    self.shared.refuse(id, &refusal);
                }
            }
            Some(Incoming::Notification { method, params }) => self.notification(&method, params.as_ref()),
            Some(Incoming::Response { id, result }) => self.response(id, result.ok().flatten().as_ref()),
            // A response to a request that is not ours needs no reply, and could start an endless exchange.
            None if is_something && object.raw("method").is_none() => {}
            None => self.unread(INVALID_REQUEST, "The message has no `method` that is a string."),
        }
    }

    /// `None`: the client failed to ask.
    fn response(&mut self, request: u64, result: Option<&Object<'_>>) {
        let Some((session, question)) = self.shared.asked.remove(&request) else { return };
        if let Some(session) = self.sessions.get_mut(&session) {
            session.answered(&question, result, &mut self.shared);
        }
    }

    pub(crate) fn child(&mut self, key: ChildKey, line: &str) -> Vec<ServerEffect> {
        let session = self.shared.children.get(&key).and_then(|id| self.sessions.get_mut(id));
        if let (Some(session), Some(frame)) = (session, Object::parse(line)) {
            session.frame(key, &frame, &mut self.shared);
        }
        self.shared.take_effects()
    }

    /// Handles the end of a child, after its last line.
    pub(crate) fn ended(&mut self, key: ChildKey) -> Vec<ServerEffect> {
        let id = self.shared.children.remove(&key);
        if let Some(session) = id.and_then(|id| self.sessions.get_mut(&id)) {
            session.child_ended(key, &mut self.shared);
        }
        self.shared.take_effects()
    }

    /// Handles the client's end: no response can reach it, but a prompt that is cancelled is answered nevertheless.
    pub(crate) fn close(&mut self) -> Vec<ServerEffect> {
        for session in self.sessions.values_mut() {
            session.close(&mut self.shared);
        }
        self.sessions.clear();
        self.shared.take_effects()
    }
}

fn is_plain(id: &str) -> bool {
    id.len() <= ID_BYTES && id.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit())
}

/// The complete fields at the beginning of an object, as an object, and the rest. `None`: there are none.
fn first_fields(head: &[u8]) -> Option<(String, &[u8])> {
    let (mut depth, mut in_string, mut escaped, mut end) = (0usize, false, false, None);
    for (at, byte) in head.iter().enumerate() {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => end = Some(at),
            _ => {}
        }
    }
    let (fields, rest) = head.split_at(end?);
    Some((format!("{}}}", std::str::from_utf8(fields).ok()?), rest[1..].trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::first_fields;

    #[test]
    fn the_first_fields_of_a_long_object_are_whole() {
        for (head, fields) in [
            (
                r#"{"id":1,"method":"a,b","params":{"x":[1,2],"y"#,
                Some((r#"{"id":1,"method":"a,b"}"#, r#""params":{"x":[1,2],"y"#)),
            ),
            (r#" {"id":"a\"},", "params":["x"#, Some((r#" {"id":"a\"},"}"#, r#""params":["x"#))),
            (r#"{"params":{"id":1,"#, None),
            ("xxx", None),
        ] {
            let fields = fields.map(|(fields, rest): (&str, &str)| (fields.to_owned(), rest.as_bytes()));
            assert_eq!(first_fields(head.as_bytes()), fields, "{head}");
        }
        assert_eq!(first_fields(b"{\"id\":\"\xff\",\"x"), None, "not UTF-8");
    }
}
