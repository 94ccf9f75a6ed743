//! Random orders of everything that a client, runs and their ends can do, against the rules that hold in each of them.

mod steering;

use super::server::ClientLine;
use super::shared::{ChildKey, ServerEffect, ServerHost};
use super::store::StoredSession;
use super::{AcpServer, Facts};
use crate::agent::stored::StoredPart;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

#[derive(Clone, Default)]
struct FakeHost {
    ids: u64,
    images: Rc<RefCell<BTreeSet<String>>>,
    stored: Rc<RefCell<BTreeMap<String, StoredSession>>>,
    histories: BTreeMap<String, String>,
}

impl ServerHost for FakeHost {
    fn id(&mut self) -> String {
        self.ids += 1;
        self.ids.to_string()
    }
    fn is_folder(&self, _: &str) -> bool {
        true
    }
    fn missing(&self) -> Option<String> {
        None
    }
    fn login(&self) -> Option<String> {
        None
    }
    fn image(&mut self, _: &str) -> Option<String> {
        let path = self.id();
        self.images.borrow_mut().insert(path.clone());
        Some(path)
    }
    fn redact(&self, text: &str, _: Option<&str>) -> String {
        text.replace("hunter2", "[redacted]")
    }
    fn remove(&mut self, path: &str) {
        assert!(self.images.borrow_mut().remove(path), "an image is removed twice");
    }
    fn stored(&self) -> Vec<StoredSession> {
        self.stored.borrow().values().cloned().collect()
    }
    fn store(&mut self, session: &StoredSession) {
        self.stored.borrow_mut().insert(session.id.clone(), session.clone());
    }
    fn keep(&mut self, session: &str, updates: &str) {
        self.histories.entry(session.into()).or_default().push_str(updates);
    }
    fn own_session(&self, _: &str) -> Vec<StoredPart> {
        Vec::new()
    }
    fn history(&self, session: &str) -> String {
        self.histories.get(session).cloned().unwrap_or_default()
    }
    fn real(&self, path: &str) -> String {
        path.into()
    }
}

fn facts(conversation: bool) -> Facts {
    Facts {
        agent: "mine".into(),
        display_name: "Mine".into(),
        images: true,
        servers: true,
        http: true,
        sse: true,
        conversation,
        resume: true,
        login: false,
        question_limit: false,
        permissions: "ask".into(),
        model: None,
        effort: None,
        mode: None,
        fields: Vec::new(),
    }
}

#[derive(Default)]
struct Run {
    frames: VecDeque<Value>,
    in_turn: bool,
    open: Vec<String>,
    questions: u64,
    closed: bool,
    /// Whether it ends once its frames are delivered.
    over: bool,
}

impl Run {
    fn frame(&mut self, kind: &str, payload: Value) {
        self.frames.push_back(json!({"v": "1", "type": kind, "payload": payload}));
    }

    fn progress(&mut self, kind: &str, mut fields: Value) {
        fields["kind"] = json!(kind);
        self.frame("run.progress", fields);
    }

    fn resolve_all(&mut self) {
        for id in std::mem::take(&mut self.open) {
            self.progress("question_resolved", json!({"question_id": id}));
        }
    }

    fn end_turn(&mut self, outcome: &str, conversation: bool) {
        self.resolve_all();
        self.in_turn = false;
        if conversation {
            self.progress("turn", json!({"outcome": outcome}));
            self.progress("status", json!({"status": "waiting_for_prompt"}));
        } else {
            let kind = if outcome == "cancelled" { "run.cancelled" } else { "run.completed" };
            self.end(kind);
        }
    }

    fn end(&mut self, kind: &str) {
        if !self.over {
            self.resolve_all();
            self.frame(kind, json!({"session_id": "s", "code": "agent_exited", "message": "gone"}));
            (self.over, self.in_turn) = (true, false);
        }
    }

    fn take(&mut self, line: &str, conversation: bool) {
        assert!(!self.closed, "a message after the end of stdin is lost: {line}");
        let message: Value = serde_json::from_str(line).unwrap();
        let payload = &message["payload"];
        if self.over {
            return;
        }
        match message["type"].as_str().unwrap() {
            "run.start" => self.in_turn = true,
            "run.cancel" if self.in_turn => self.end_turn("cancelled", conversation),
            "run.input" if payload.get("end").is_some() => self.end("run.completed"),
            "run.input" if payload.get("prompt").is_some() => {
                assert!(!self.in_turn, "a prompt in a turn");
                self.in_turn = true;
            }
            "run.input" => {
                let id = payload["question_id"].as_str().unwrap();
                if let Some(at) = self.open.iter().position(|open| open == id) {
                    self.open.remove(at);
                    self.progress("question_resolved", json!({"question_id": id}));
                }
            }
            _ => {}
        }
    }
}

struct Game {
    server: AcpServer,
    host: FakeHost,
    runs: BTreeMap<ChildKey, Run>,
    conversation: bool,
    random: u64,
    requests: u64,
    /// The number of responses to each request.
    answers: BTreeMap<u64, u64>,
    sessions: Vec<String>,
    /// The sessions by the requests that close them.
    closing: BTreeMap<u64, String>,
    closed: BTreeSet<String>,
    /// The sessions by the requests that resume them.
    resuming: BTreeMap<u64, String>,
    asked: Vec<(u64, String)>,
}

impl Game {
    fn new(seed: u64) -> Game {
        let (conversation, forms) = (!seed.is_multiple_of(5), seed.is_multiple_of(2));
        let host = FakeHost::default();
        let server = AcpServer::new(facts(conversation), Box::new(host.clone()));
        let (runs, answers, sessions, asked) = Default::default();
        let (closing, resuming, closed) = Default::default();
        // A seed of 0 would stay 0.
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut game = Game {
            server,
            host,
            runs,
            conversation,
            random,
            requests: 0,
            answers,
            sessions,
            closing,
            closed,
            resuming,
            asked,
        };
        let able = if forms { json!({"elicitation": {"form": {}}}) } else { json!({}) };
        game.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": able}));
        game
    }

    /// A number below the limit, by xorshift.
    fn pick(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below as u64) as usize
    }

    fn send(&mut self, message: &Value) {
        let effects = self.server.client(&ClientLine::Whole(message.to_string().into_bytes()));
        self.carry_out(effects);
    }

    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.requests += 1;
        self.answers.insert(self.requests, 0);
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        match method {
            "session/close" => _ = self.closing.insert(self.requests, session),
            "session/resume" => _ = self.resuming.insert(self.requests, session),
            _ => {}
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params}));
        self.requests
    }

    fn carry_out(&mut self, effects: Vec<ServerEffect>) {
        for effect in effects {
            match effect {
                ServerEffect::Say(line) => self.hear(&serde_json::from_str(&line).unwrap()),
                ServerEffect::Start(key, _) => {
                    let of = &self.server.shared.children;
                    let alive = self.runs.keys().filter(|other| of.get(other) == of.get(&key)).count();
                    assert_eq!(alive, 0, "a second run writes the agent's session before the first has ended");
                    self.runs.insert(key, Run::default());
                }
                // A run that crashed takes no message.
                ServerEffect::Tell(key, line) => {
                    let conversation = self.conversation;
                    self.runs.get_mut(&key).into_iter().for_each(|run| run.take(&line, conversation));
                }
                ServerEffect::End(key) => {
                    if let Some(run) = self.runs.get_mut(&key) {
                        run.closed = true;
                        run.end("run.cancelled");
                    }
                }
                ServerEffect::Limit(_) | ServerEffect::Unlimit(_) | ServerEffect::Diagnose(_) => {}
            }
        }
    }

    fn hear(&mut self, message: &Value) {
        let Some(method) = message["method"].as_str() else {
            let id = message["id"].as_u64().unwrap();
            *self.answers.get_mut(&id).expect("an answer to a request") += 1;
            self.closed.extend(self.closing.remove(&id));
            if let Some(session) = self.resuming.remove(&id).filter(|_| message.get("result").is_some()) {
                self.closed.remove(&session);
            }
            self.sessions.extend(message["result"]["sessionId"].as_str().map(str::to_owned));
            return;
        };
        let session = &message["params"]["sessionId"];
        assert!(session.as_str().is_none_or(|id| !self.closed.contains(id)), "a closed session speaks: {message}");
        match method {
            "$/cancel_request" => {
                let id = message["params"]["requestId"].as_u64().unwrap();
                assert!(self.asked.iter().any(|(asked, _)| *asked == id), "a request is taken back twice");
                self.asked.retain(|(asked, _)| *asked != id);
            }
            "session/update" => {}
            method => self.asked.push((message["id"].as_u64().unwrap(), method.to_owned())),
        }
    }

    fn client_acts(&mut self) {
        if self.sessions.is_empty() || self.pick(30) == 0 {
            self.request("session/new", &json!({"cwd": "/", "mcpServers": []}));
            return;
        }
        let at = self.pick(self.sessions.len());
        let session = self.sessions[at].clone();
        let of = json!({"sessionId": session});
        match self.pick(12) {
            0..=3 => {
                let image = json!({"type": "image", "mimeType": "image/png", "data": "AAAA"});
                let words = ["Go", "2", "/skip"][self.pick(3)];
                let text = json!({"type": "text", "text": words});
                let blocks = if self.pick(3) == 0 { json!([text, image]) } else { json!([text]) };
                self.request("session/prompt", &json!({"sessionId": session, "prompt": blocks}));
            }
            4 => self.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": of})),
            5 => {
                let id = self.requests - self.pick(6).min(self.requests as usize - 1) as u64;
                self.send(&json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}}));
            }
            6 if self.pick(4) == 0 => _ = self.request("session/close", &of),
            7 => {
                let model = ["a", "b"][self.pick(2)];
                self.request(
                    "session/set_config_option",
                    &json!({"sessionId": session, "configId": "model", "value": model}),
                );
            }
            8 => _ = self.request("session/resume", &json!({"sessionId": session, "cwd": "/", "mcpServers": []})),
            _ => self.client_answers(),
        }
    }

    fn client_answers(&mut self) {
        if self.asked.is_empty() {
            return;
        }
        let at = self.pick(self.asked.len());
        let (id, method) = self.asked.remove(at);
        let good = match method.as_str() {
            "session/request_permission" => json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
            _ => json!({"action": "accept", "content": {"answer": "a"}}),
        };
        match self.pick(6) {
            0 => self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "no"}})),
            1 => self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {}})),
            _ => self.send(&json!({"jsonrpc": "2.0", "id": id, "result": good})),
        }
    }

    /// A run does something, or what it did arrives. `wild`: it may also ask, fail and crash.
    fn run_acts(&mut self, key: ChildKey, wild: bool) {
        let (choice, conversation) = (self.pick(14), self.conversation);
        let Some(run) = self.runs.get_mut(&key) else { return };
        if run.in_turn && run.frames.is_empty() {
            let id = format!("q{key}_{}", run.questions);
            let options = json!([{"value": "a", "label": "A"}, {"value": "b", "label": "B"}]);
            let question = json!({"question_id": id, "kind": "select", "text": "Which?", "options": options});
            match choice {
                0..=2 if wild => {
                    run.questions += 1;
                    run.open.push(id);
                    let mut question = question;
                    if choice == 0 {
                        question["purpose"] = json!("permission");
                    }
                    run.frame("run.question", question);
                }
                3 if wild => run.end("run.failed"),
                4 if wild => (run.over, run.in_turn) = (true, false),
                5 => run.progress("session", json!({"session_id": format!("s{key}")})),
                6 => run.progress("tool", json!({"call_id": "c", "state": "started", "text": "T", "category": "read"})),
                7 => run.progress("text", json!({"text": "Hm", "message_id": "m"})),
                8 => run.resolve_all(),
                _ => run.end_turn("completed", conversation),
            }
        }
        match run.frames.pop_front() {
            Some(frame) => {
                let effects = self.server.child(key, &frame.to_string());
                self.carry_out(effects);
            }
            None if run.over => {
                self.runs.remove(&key);
                let effects = self.server.ended(key);
                self.carry_out(effects);
            }
            None => {}
        }
    }

    fn some_run_acts(&mut self, wild: bool) {
        if !self.runs.is_empty() {
            let at = self.pick(self.runs.len());
            let key = *self.runs.keys().nth(at).unwrap();
            self.run_acts(key, wild);
        }
    }

    fn unanswered(&self) -> Vec<u64> {
        self.answers.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect()
    }

    fn with_session() -> Game {
        let mut game = Game::new(1);
        game.request("session/new", &json!({"cwd": "/", "mcpServers": []}));
        game
    }

    fn prompt(&mut self, text: &str) {
        let blocks = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", &json!({"sessionId": self.sessions[0], "prompt": blocks}));
    }
}

fn play(seed: u64) {
    let mut game = Game::new(seed);
    for _ in 0..300 {
        if game.pick(3) == 0 { game.client_acts() } else { game.some_run_acts(true) }
    }
    // The client does no more, and the runs end their turns.
    for _ in 0..20_000 {
        if game.unanswered().is_empty() {
            break;
        }
        game.some_run_acts(false);
    }
    assert_eq!(game.unanswered(), [0; 0], "seed {seed}: a request is never answered");
    let effects = game.server.close();
    game.carry_out(effects);
    assert!(game.runs.values().all(|run| run.closed || run.over), "seed {seed}: a run goes on");
    while !game.runs.is_empty() {
        game.some_run_acts(false);
    }
    let twice: Vec<_> = game.answers.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "seed {seed}: {twice:?}");
    let shared = &game.server.shared;
    assert_eq!((shared.waiting, shared.asked.len(), shared.children.len()), (0, 0, 0), "seed {seed}");
    assert_eq!(*game.host.images.borrow(), BTreeSet::new(), "seed {seed}: an image stays");
}

#[test]
fn every_order_of_events_answers_each_request_once_and_leaves_nothing() {
    (0..100).for_each(play);
}

#[test]
fn a_waiting_image_counts_as_much_as_its_data() {
    let mut game = Game::new(1);
    game.request("session/new", &json!({"cwd": "/", "mcpServers": []}));
    let blocks = json!([{"type": "image", "mimeType": "image/png", "data": "A".repeat(4000)}]);
    for _ in 0..2 {
        game.request("session/prompt", &json!({"sessionId": game.sessions[0], "prompt": blocks}));
    }
    assert!(game.server.shared.waiting > 4000, "{}", game.server.shared.waiting);
}

#[test]
fn a_prompt_that_no_run_takes_is_refused() {
    let mut game = Game::with_session();
    game.prompt(&"x".repeat(16 << 20));
    assert_eq!((game.unanswered(), game.runs.len()), (vec![], 0), "it is refused before a run starts");
    game.prompt("Go");
    assert_eq!((game.unanswered().len(), game.runs.len()), (1, 1));
}

fn too_long(game: &mut Game, head: &str) -> Vec<String> {
    let effects = game.server.client(&ClientLine::TooLong(head.into()));
    effects
        .into_iter()
        .filter_map(|effect| match effect {
            ServerEffect::Say(line) => Some(line),
            _ => None,
        })
        .collect()
}

#[test]
fn a_request_that_is_too_long_is_answered_by_its_id() {
    let mut game = Game::with_session();
    for (head, id) in [
        (r#"{"jsonrpc":"2.0","id":"p-1","method":"session/prompt","params":{"prompt":[{"text":"x"#, json!("p-1")),
        (r#"{"method":"session/prompt","id":7,"params":{"id":8,"x"#, json!(7)),
        (r#"{"id":7, "params":{"id":8,"x"#, json!(7)),
        (r#"{"jsonrpc":"2.0","method":"session/prompt","params":{"id":8,"x"#, Value::Null),
        (r#"{"id":[1],"method":"session/prompt","params":{"x"#, Value::Null),
        ("xxxxxxxx", Value::Null),
    ] {
        let said = too_long(&mut game, head);
        assert_eq!(said.len(), 1, "{head}");
        let answer: Value = serde_json::from_str(&said[0]).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32600)), "{head}");
    }
}

/// A run that ignores a message says so once, and waits on.
#[test]
fn a_warning_about_a_prompt_ends_it_and_the_next_one_is_sent() {
    for (code, reply_to) in [
        ("malformed_message", Value::Null),
        ("prompt_refused", json!("prompt")),
        ("invalid_answer", json!("prompt")),
        ("unknown_type", json!("prompt")),
    ] {
        let mut game = Game::with_session();
        game.prompt("First");
        let key = *game.runs.keys().next().unwrap();
        game.runs.get_mut(&key).unwrap().end_turn("completed", true);
        while !game.runs[&key].frames.is_empty() {
            game.run_acts(key, false);
        }
        assert_eq!(game.unanswered(), [0; 0]);
        game.prompt("Second");
        game.runs.get_mut(&key).unwrap().in_turn = false;
        let warning = json!({"v": "1", "type": "run.progress", "reply_to": reply_to,
            "payload": {"kind": "warning", "code": code, "text": "It is ignored."}});
        let effects = game.server.child(key, &warning.to_string());
        game.carry_out(effects);
        assert_eq!(game.unanswered(), [0; 0], "{code}");
        game.prompt("Third");
        assert!(game.runs[&key].in_turn, "{code}: the next prompt is sent");
    }
}

#[test]
fn a_warning_about_another_message_ends_no_prompt() {
    for (code, reply_to) in [("unknown_question", Value::Null), ("short_secret", json!("prompt"))] {
        let mut game = Game::with_session();
        game.prompt("First");
        let key = *game.runs.keys().next().unwrap();
        let warning = json!({"v": "1", "type": "run.progress", "reply_to": reply_to,
            "payload": {"kind": "warning", "code": code, "text": "Something."}});
        let effects = game.server.child(key, &warning.to_string());
        game.carry_out(effects);
        assert_eq!(game.unanswered().len(), 1, "{code}");
    }
}
