//! A client of the Agent Client Protocol. It checks every message that it receives against the published schema.

use super::schema;
use crate::support::Case;
use crate::support::io::{self, Gate, Line, LineReader, StdinWriter};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// The definition of the result of a request.
fn result_of(method: &str) -> &'static str {
    match method {
        "initialize" => "InitializeResponse",
        "authenticate" => "AuthenticateResponse",
        "session/new" => "NewSessionResponse",
        "session/load" => "LoadSessionResponse",
        "session/resume" => "ResumeSessionResponse",
        "session/list" => "ListSessionsResponse",
        "session/close" => "CloseSessionResponse",
        "session/set_mode" => "SetSessionModeResponse",
        "session/set_config_option" => "SetSessionConfigOptionResponse",
        "session/prompt" => "PromptResponse",
        method => panic!("{method} has no result"),
    }
}

pub(super) struct Client {
    pub(super) case: Case,
    child: Child,
    stdin: Option<StdinWriter>,
    lines: Receiver<Line>,
    sent: u64,
    /// The methods of the requests that are not answered.
    open: BTreeMap<u64, String>,
    /// All messages so far.
    pub(super) seen: Vec<Value>,
}

impl Client {
    /// Starts the program, without a message.
    #[track_caller]
    pub(super) fn start(case: Case, args: &[&str]) -> Client {
        let (stdin_read, stdin_write) = std::io::pipe().expect("pipe");
        let (stdout_read, stdout_write) = std::io::pipe().expect("pipe");
        let mut command = case.command(env!("CARGO_BIN_EXE_spektacular"));
        command.arg("acp").args(args).stdin(stdin_read).stdout(stdout_write);
        let child = command.spawn().expect("spektacular");
        drop(command);
        let gate = case.gate();
        let (_, lines) = LineReader::spawn(stdout_read, gate);
        let stdin = Some(StdinWriter::spawn(stdin_write));
        Client { case, child, stdin, lines, sent: 0, open: BTreeMap::new(), seen: Vec::new() }
    }

    /// Starts the program and initializes it, with these capabilities.
    #[track_caller]
    pub(super) fn able(case: Case, capabilities: Value) -> Client {
        let mut client = Client::start(case, &[]);
        client.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities}));
        client
    }

    /// Starts the program and initializes it, without capabilities.
    #[track_caller]
    pub(super) fn new(case: Case) -> Client {
        Client::able(case, json!({}))
    }

    pub(super) fn gate(&self) -> Gate {
        self.case.gate()
    }

    #[track_caller]
    pub(super) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_ref().expect("stdin is closed");
        stdin.send(format!("{line}\n").into_bytes());
    }

    #[track_caller]
    pub(super) fn send_bytes(&mut self, bytes: Vec<u8>) {
        self.stdin.as_ref().expect("stdin is closed").send(bytes);
    }

    #[track_caller]
    pub(super) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.sent += 1;
        self.open.insert(self.sent, method.to_owned());
        self.send(&json!({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params}).to_string());
        self.sent
    }

    #[track_caller]
    pub(super) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Answers a request of the program.
    #[track_caller]
    pub(super) fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string());
    }

    /// The next message.
    #[track_caller]
    pub(super) fn next(&mut self) -> Value {
        match self.lines.recv_timeout(self.case.limit) {
            Ok(line) => self.read(&line),
            Err(error) => panic!("no message ({error}) after {:#?}", self.seen),
        }
    }

    #[track_caller]
    fn read(&mut self, line: &Line) -> Value {
        let message: Value = serde_json::from_slice(&line.bytes).expect("JSON");
        self.check(&message);
        self.seen.push(message.clone());
        message
    }

    #[track_caller]
    fn check(&mut self, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        let Some(method) = message["method"].as_str() else {
            let method = message["id"].as_u64().and_then(|id| self.open.remove(&id));
            return match message.get("error") {
                Some(error) => schema::check("Error", error),
                None => schema::check(result_of(&method.expect("a request of ours")), &message["result"]),
            };
        };
        let params = &message["params"];
        match method {
            "session/update" => schema::check("SessionNotification", params),
            "session/request_permission" => schema::check("RequestPermissionRequest", params),
            "elicitation/create" => schema::check("CreateElicitationRequest", params),
            "$/cancel_request" => schema::check("CancelRequestNotification", params),
            method => panic!("{method} is not a method of a client"),
        }
        assert_eq!(message.get("id").is_some(), matches!(method, "session/request_permission" | "elicitation/create"));
    }

    #[track_caller]
    pub(super) fn until(&mut self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + self.case.limit;
        loop {
            assert!(Instant::now() < deadline, "no {what} among {:#?}", self.seen);
            let message = self.next();
            if is(&message) {
                return message;
            }
        }
    }

    /// The response to a request.
    #[track_caller]
    pub(super) fn response(&mut self, id: u64) -> Value {
        self.until(&format!("response to {id}"), |message| message["id"] == id && message.get("method").is_none())
    }

    /// The response to a request, which may have come.
    #[track_caller]
    pub(super) fn answer_of(&mut self, id: u64) -> Value {
        let is = |message: &&Value| message["id"] == id && message.get("method").is_none();
        let seen = self.seen.iter().find(is).cloned();
        seen.unwrap_or_else(|| self.response(id))
    }

    /// The result of a request.
    #[track_caller]
    pub(super) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let response = self.response(id);
        assert!(response.get("error").is_none(), "{response}");
        response["result"].clone()
    }

    /// The error of a request.
    #[track_caller]
    pub(super) fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.response(id)["error"].clone()
    }

    /// The next request of the program.
    #[track_caller]
    pub(super) fn asked(&mut self, method: &str) -> Value {
        self.until(method, |message| message["method"] == method)
    }

    /// Opens a session in work/.
    #[track_caller]
    pub(super) fn session(&mut self) -> String {
        let cwd = self.case.work();
        self.session_in(&cwd)
    }

    #[track_caller]
    pub(super) fn session_in(&mut self, cwd: &Path) -> String {
        let result = self.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
        result["sessionId"].as_str().expect("sessionId").to_owned()
    }

    /// Sends a prompt, and returns the request's id.
    #[track_caller]
    pub(super) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.request("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    /// Sends a prompt, and returns its stop reason.
    #[track_caller]
    pub(super) fn turn(&mut self, session: &str, text: &str) -> String {
        let id = self.prompt(session, text);
        self.stop_reason(id)
    }

    #[track_caller]
    pub(super) fn stop_reason(&mut self, id: u64) -> String {
        let response = self.answer_of(id);
        response["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
    }

    /// Waits for this text of a session, unless it has come.
    #[track_caller]
    pub(super) fn until_text(&mut self, session: &str, text: &str) {
        while !self.text(session).contains(text) {
            self.next();
        }
    }

    /// The updates of a session of this kind so far.
    pub(super) fn updates(&self, session: &str, kind: &str) -> Vec<&Value> {
        let params =
            self.seen.iter().filter(|message| message["method"] == "session/update").map(|message| &message["params"]);
        let ours = params.filter(|params| params["sessionId"] == session).map(|params| &params["update"]);
        ours.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// The text of the agent in a session so far.
    pub(super) fn text(&self, session: &str) -> String {
        let chunks = self.updates(session, "agent_message_chunk");
        chunks.iter().map(|chunk| chunk["content"]["text"].as_str().expect("a text")).collect()
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the program's end.
    #[track_caller]
    pub(super) fn exit(&mut self) -> ExitStatus {
        io::exit(&mut self.child, self.case.limit).expect("the program does not end")
    }

    /// Ends as a client does, and leaves its machine to another one.
    #[track_caller]
    pub(super) fn stop(mut self) -> Case {
        self.close_stdin();
        assert_eq!(self.exit().code(), Some(0));
        std::mem::replace(&mut self.case, Case::new())
    }

    /// Ends as a client does, and checks that nothing is left.
    #[track_caller]
    pub(super) fn finish(mut self) {
        self.close_stdin();
        assert_eq!(self.exit().code(), Some(0));
        assert_eq!(self.case.survivors(), [""; 0]);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        crate::support::procs::kill_marked(self.case.marker());
    }
}
