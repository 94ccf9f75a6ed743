//! The server: all sessions of one client, and the messages that belong to none.

use super::Facts;
use super::refusal::{INVALID_REQUEST, PARSE_ERROR, RequestError};
use super::session::ClientSession;
use super::shared::{ChildKey, ServerEffect, ServerHost, SharedState};
use crate::agent::rpc::{self, Incoming};
use crate::json::Object;
use crate::json::deeper_than;
use std::collections::BTreeMap;

/// The maximum depth of a message.
const DEPTH: usize = 128;
/// The maximum length of a request's id, in bytes.
const ID_BYTES: usize = 1024;

/// All sessions of one client.
pub(crate) struct AcpServer {
    pub(super) shared: SharedState,
    pub(super) sessions: BTreeMap<String, ClientSession>,
}

impl AcpServer {
    pub(crate) fn new(facts: Facts, host: Box<dyn ServerHost>) -> AcpServer {
        AcpServer { shared: SharedState::new(facts, host), sessions: BTreeMap::new() }
    }

    /// Handles a line of the client. `None`: the line was too long.
    pub(crate) fn client(&mut self, line: Option<&[u8]>) -> Vec<ServerEffect> {
        self.read(line);
        self.shared.take_effects()
    }

    fn read(&mut self, line: Option<&[u8]>) {
        let Some(line) = line else {
            return self.unread(INVALID_REQUEST, "The message is longer than 16 MiB.");
        };
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
        let plain =
            |id: &str| id.len() <= ID_BYTES && id.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
        if id.is_some_and(|id| !plain(id)) {
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

    /// Passes the client's answer on. `None`: the client failed to ask.
    fn response(&mut self, request: u64, result: Option<&Object<'_>>) {
        let Some((session, question)) = self.shared.asked.remove(&request) else { return };
        if let Some(session) = self.sessions.get_mut(&session) {
            session.answered(&question, result, &mut self.shared);
        }
    }

    /// Handles a line of a child.
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
