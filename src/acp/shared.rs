//! Everything that the sessions of a client share, with the orders for the edge and the questions to the machine.

use super::history::UpdateHistory;
use super::refusal::RequestError;
use super::store::StoredSession;
use super::{Facts, WAITING_BYTES, updates};
use crate::agent::rpc;
use crate::agent::stored::StoredPart;
use crate::json::{map_strings, to_line};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A child of this process, by number.
pub(crate) type ChildKey = u64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerEffect {
    /// Write a line to the client.
    Say(String),
    Start(ChildKey, String),
    /// Write a line to a child.
    Tell(ChildKey, String),
    /// Close the child's stdin. If a run is not over, that cancels it.
    End(ChildKey),
    /// Kill the child unless its turn ends soon, because it was cancelled: a run that is stopped or hangs ends nothing.
    Limit(ChildKey),
    Unlimit(ChildKey),
    /// Write a line to stderr.
    Diagnose(String),
}

pub(crate) trait ServerHost {
    /// A new random id, of letters and digits.
    fn id(&mut self) -> String;
    fn is_folder(&self, path: &str) -> bool;
    /// The reason why the agent cannot start on this machine, if it is known.
    fn missing(&self) -> Option<String>;
    /// The way to log in, if the agent is known not to be logged in.
    fn login(&self) -> Option<String>;
    /// Writes an image into a file, and returns the path. `None`: the data is not base64, or cannot be written.
    fn image(&mut self, data: &str) -> Option<String>;
    /// Removes the secrets from a text, also those of these MCP servers.
    fn redact(&self, text: &str, servers: Option<&str>) -> String;
    /// Removes such a file.
    fn remove(&mut self, path: &str);
    /// The stored sessions of the agent, the newest first.
    fn stored(&self) -> Vec<StoredSession>;
    fn store(&mut self, session: &StoredSession);
    /// Adds updates to the history of a session, a line each.
    fn keep(&mut self, session: &str, updates: &str);
    /// The content of the agent's own session with this id. Empty: it cannot be read here.
    fn own_session(&self, agent_session: &str) -> Vec<StoredPart>;
    /// The history of a session: its updates, a line each.
    fn history(&self, session: &str) -> String;
    /// An absolute path without links and dots, as far as it exists.
    fn real(&self, path: &str) -> String;
}

/// The client, as `initialize` describes it.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) initialized: bool,
    pub(super) forms: bool,
    pub(super) notices: bool,
    /// Whether its forms take two to four options of limited length, and no patterns.
    pub(super) narrow: bool,
}

pub(super) struct SharedState {
    pub(super) facts: Facts,
    pub(super) client: Client,
    pub(super) host: Box<dyn ServerHost>,
    pub(super) children: BTreeMap<ChildKey, String>,
    /// The session and the question of each request that the client has not answered.
    pub(super) asked: BTreeMap<u64, (String, String)>,
    /// The agent's commands as last listed, and the directory of that session.
    pub(super) commands: Option<(String, Vec<Value>)>,
    /// The size of all waiting prompts, in bytes.
    pub(super) waiting: usize,
    histories: BTreeMap<String, UpdateHistory>,
    requests: u64,
    started: u64,
    out: Vec<ServerEffect>,
}

impl SharedState {
    pub(super) fn new(facts: Facts, host: Box<dyn ServerHost>) -> SharedState {
        SharedState {
            facts,
            client: Client::default(),
            host,
            children: BTreeMap::new(),
            asked: BTreeMap::new(),
            commands: None,
            waiting: 0,
            histories: BTreeMap::new(),
            requests: 0,
            started: 0,
            out: Vec::new(),
        }
    }

    pub(super) fn take_effects(&mut self) -> Vec<ServerEffect> {
        std::mem::take(&mut self.out)
    }

    pub(super) fn put(&mut self, effect: ServerEffect) {
        self.out.push(effect);
    }

    pub(super) fn result(&mut self, id: &str, result: &impl Serialize) {
        self.put(ServerEffect::Say(rpc::result(id, result)));
    }

    pub(super) fn refuse(&mut self, id: &str, refusal: &RequestError) {
        self.put(ServerEffect::Say(refusal.line(id)));
    }

    pub(super) fn update(&mut self, session: &str, update: &Value) {
        self.remember(session, update);
        self.tell(session, update);
    }

    pub(super) fn tell(&mut self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.put(ServerEffect::Say(rpc::notification("session/update", Some(&params))));
    }

    /// Tells the client a line about a session, or stderr if the client takes none.
    pub(super) fn notice(&mut self, session: &str, text: &str) {
        if self.client.notices {
            self.update(session, &json!({"sessionUpdate": "notice", "severity": "warning", "title": text}));
        } else {
            self.put(ServerEffect::Diagnose(text.to_owned()));
        }
    }

    /// Adds an update to the history of a session, if a client can load it.
    pub(super) fn remember(&mut self, session: &str, update: &Value) {
        if self.facts.resume {
            let history = self.histories.entry(session.to_owned()).or_default();
            history.add(update);
            if history.is_large() {
                self.keep_history(session);
            }
        }
    }

    pub(super) fn keep_history(&mut self, session: &str) {
        let updates = self.histories.remove(session).map(|mut history| history.take()).unwrap_or_default();
        if !updates.is_empty() {
            self.host.keep(session, &updates);
        }
    }

    /// Sends the client the history of a session: from the agent's own session, which also has the turns outside this
    /// program, or as it was shown, if the agent's cannot be read. `agent_session`: the agent's id of the session.
    /// `servers`: the MCP servers, whose secrets are removed.
    pub(super) fn replay(&mut self, session: &str, agent_session: &str, cwd: &str, servers: Option<&str>) {
        self.keep_history(session);
        let own = updates::of_stored(&self.host.own_session(agent_session), cwd);
        if !own.is_empty() {
            for update in own {
                let line = map_strings(&to_line(&update), &mut |text| self.host.redact(text, servers));
                if let Ok(update) = serde_json::from_str::<Value>(&line) {
                    self.tell(session, &update);
                }
            }
            return;
        }
        for line in self.host.history(session).lines() {
            // A line may be cut if the process was killed.
            if let Ok(update) = serde_json::from_str::<Value>(line) {
                self.tell(session, &update);
            }
        }
    }

    /// Returns the number of the request.
    pub(super) fn ask(&mut self, method: &str, params: &Value, session: &str, question: &str) -> u64 {
        self.requests += 1;
        self.asked.insert(self.requests, (session.to_owned(), question.to_owned()));
        self.put(ServerEffect::Say(rpc::request(self.requests, method, params)));
        self.requests
    }

    pub(super) fn withdraw(&mut self, request: u64) {
        if self.asked.remove(&request).is_some() {
            let params = json!({"requestId": request});
            self.put(ServerEffect::Say(rpc::notification("$/cancel_request", Some(&params))));
        }
    }

    pub(super) fn start(&mut self, session: &str, cwd: &str) -> ChildKey {
        self.started += 1;
        self.children.insert(self.started, session.to_owned());
        self.put(ServerEffect::Start(self.started, cwd.to_owned()));
        self.started
    }

    /// The child of a session that has not ended. A session has one at a time.
    pub(super) fn child_of(&self, session: &str) -> Option<ChildKey> {
        self.children.iter().find(|(_, of)| *of == session).map(|(key, _)| *key)
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.waiting + bytes <= WAITING_BYTES
    }
}
