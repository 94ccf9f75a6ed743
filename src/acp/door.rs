//! The door: all sessions of one client, and the messages that belong to none.

use super::refusal::{INVALID_REQUEST, PARSE_ERROR, Refusal};
use super::session::Session;
use super::store::Stored;
use super::{Facts, WAITING_BYTES};
use crate::agent::rpc::{self, Incoming};
use crate::json::Object;
use crate::json::deeper_than;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The maximum depth of a message.
const DEPTH: usize = 128;
/// The maximum length of a request's id, in bytes.
const ID_BYTES: usize = 1024;

/// A child of this process, by number.
pub(crate) type ChildKey = u64;

/// An order for the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Write a line to the client.
    Say(String),
    /// Start a child in this directory.
    Start(ChildKey, String),
    /// Write a line to a child.
    Tell(ChildKey, String),
    /// Close the child's stdin. If a run is not over, that cancels it.
    End(ChildKey),
    /// Write a line to stderr.
    Diagnose(String),
}

/// The parts of the machine that the door needs.
pub(crate) trait World {
    /// A new random id, of letters and digits.
    fn id(&mut self) -> String;
    /// Whether an absolute path is an existing directory.
    fn is_folder(&self, path: &str) -> bool;
    /// The reason why the agent cannot start on this machine, if it is known.
    fn missing(&self) -> Option<String>;
    /// The way to log in, if the agent is known not to be logged in.
    fn login(&self) -> Option<String>;
    /// Writes an image into a file, and returns the path. `None`: the data is not base64, or cannot be written.
    fn image(&mut self, data: &str) -> Option<String>;
    /// Removes such a file.
    fn remove(&mut self, path: &str);
    /// The stored sessions of the agent, the newest first.
    fn stored(&self) -> Vec<Stored>;
    /// Stores a session.
    fn store(&mut self, session: &Stored);
}

/// The client, as `initialize` describes it.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) initialized: bool,
    /// Whether it shows forms.
    pub(super) forms: bool,
    /// Whether it shows notices.
    pub(super) notices: bool,
    /// Whether its forms take two to four options of limited length, and no patterns.
    pub(super) narrow: bool,
}

/// Everything that the sessions share.
pub(super) struct Desk {
    pub(super) facts: Facts,
    pub(super) client: Client,
    pub(super) world: Box<dyn World>,
    /// The session of each child that has not ended.
    pub(super) children: BTreeMap<ChildKey, String>,
    /// The session and the question of each request that the client has not answered.
    pub(super) asked: BTreeMap<u64, (String, String)>,
    /// The size of all waiting prompts, in bytes.
    pub(super) waiting: usize,
    requests: u64,
    started: u64,
    out: Vec<Effect>,
}

impl Desk {
    pub(super) fn put(&mut self, effect: Effect) {
        self.out.push(effect);
    }

    pub(super) fn result(&mut self, id: &str, result: &impl Serialize) {
        self.put(Effect::Say(rpc::result(id, result)));
    }

    pub(super) fn refuse(&mut self, id: &str, refusal: &Refusal) {
        self.put(Effect::Say(refusal.line(id)));
    }

    /// Sends an update of a session.
    pub(super) fn update(&mut self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.put(Effect::Say(rpc::notification("session/update", Some(&params))));
    }

    /// Asks the client about a question. Returns the number of the request.
    pub(super) fn ask(&mut self, method: &str, params: &Value, session: &str, question: &str) -> u64 {
        self.requests += 1;
        self.asked.insert(self.requests, (session.to_owned(), question.to_owned()));
        self.put(Effect::Say(rpc::request(self.requests, method, params)));
        self.requests
    }

    /// Takes a request back that the client has not answered.
    pub(super) fn withdraw(&mut self, request: u64) {
        if self.asked.remove(&request).is_some() {
            let params = json!({"requestId": request});
            self.put(Effect::Say(rpc::notification("$/cancel_request", Some(&params))));
        }
    }

    /// Starts a child for a session.
    pub(super) fn start(&mut self, session: &str, cwd: &str) -> ChildKey {
        self.started += 1;
        self.children.insert(self.started, session.to_owned());
        self.put(Effect::Start(self.started, cwd.to_owned()));
        self.started
    }

    /// Whether a prompt of this size may wait.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.waiting + bytes <= WAITING_BYTES
    }
}

/// All sessions of one client.
pub(crate) struct Door {
    pub(super) desk: Desk,
    pub(super) sessions: BTreeMap<String, Session>,
}

impl Door {
    pub(crate) fn new(facts: Facts, world: Box<dyn World>) -> Door {
        let desk = Desk {
            facts,
            client: Client::default(),
            world,
            children: BTreeMap::new(),
            asked: BTreeMap::new(),
            waiting: 0,
            requests: 0,
            started: 0,
            out: Vec::new(),
        };
        Door { desk, sessions: BTreeMap::new() }
    }

    /// Handles a line of the client. `None`: the line was too long.
    pub(crate) fn client(&mut self, line: Option<&[u8]>) -> Vec<Effect> {
        self.read(line);
        std::mem::take(&mut self.desk.out)
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
        self.desk.refuse("null", &Refusal::new(code, message));
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
                    self.desk.refuse(id, &refusal);
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
        let Some((session, question)) = self.desk.asked.remove(&request) else { return };
        if let Some(session) = self.sessions.get_mut(&session) {
            session.answered(&question, result, &mut self.desk);
        }
    }

    /// Handles a line of a child.
    pub(crate) fn child(&mut self, key: ChildKey, line: &str) -> Vec<Effect> {
        let session = self.desk.children.get(&key).and_then(|id| self.sessions.get_mut(id));
        if let (Some(session), Some(frame)) = (session, Object::parse(line)) {
            session.frame(key, &frame, &mut self.desk);
        }
        std::mem::take(&mut self.desk.out)
    }

    /// Handles the end of a child, after its last line.
    pub(crate) fn ended(&mut self, key: ChildKey) -> Vec<Effect> {
        let id = self.desk.children.remove(&key);
        if let Some(session) = id.and_then(|id| self.sessions.get_mut(&id)) {
            session.child_ended(key, &mut self.desk);
        }
        std::mem::take(&mut self.desk.out)
    }

    /// Handles the client's end: no response can reach it, but a prompt that is cancelled is answered nevertheless.
    pub(crate) fn close(&mut self) -> Vec<Effect> {
        for session in self.sessions.values_mut() {
            session.close(&mut self.desk);
        }
        self.sessions.clear();
        std::mem::take(&mut self.desk.out)
    }
}
