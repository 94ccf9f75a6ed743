//! An MCP server that the agent reaches by its URL, and that answers only requests with its header.

use std::io::{self, Write};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use tiny_http::{Header, Method, Request, Response, Server};

use crate::agents::Agent;
use crate::client::{permission, run};
use crate::lab::Lab;

rows! { a_server_with_a_url a_server_under_read_only }

/// SSE is an older transport, which Codex lacks.
mod a_server_over_sse {
    use crate::agents::Agent;
    use crate::rows::twice;

    #[test]
    fn claude() {
        twice("a_server_over_sse::claude", || super::a_server_over_sse(Agent::Claude));
    }

    #[test]
    fn gemini() {
        twice("a_server_over_sse::gemini", || super::a_server_over_sse(Agent::Gemini));
    }

    #[test]
    fn opencode() {
        twice("a_server_over_sse::opencode", || super::a_server_over_sse(Agent::OpenCode));
    }
}

const TOKEN: &str = "badge-token-0000000000000000";
const BADGE: &str = "The badge is 4711.";

/// An MCP server on loopback with one tool, until it is dropped.
struct Badges {
    server: Arc<Server>,
    requests: Arc<Requests>,
}

#[derive(Default)]
struct Requests {
    /// The methods that clients called with the header.
    called: Mutex<Vec<String>>,
    /// The number of requests without it.
    refused: Mutex<usize>,
    /// The open stream of events, where replies go over SSE.
    events: Mutex<Option<Sender<String>>>,
}

impl Badges {
    fn start() -> Badges {
        let server = Arc::new(Server::http("127.0.0.1:0").unwrap());
        let badges = Badges { server: server.clone(), requests: Arc::default() };
        let requests = badges.requests.clone();
        thread::spawn(move || {
            for request in server.incoming_requests() {
                let requests = requests.clone();
                // The client may be gone.
                thread::spawn(move || drop(requests.serve(request)));
            }
        });
        badges
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.server_addr().to_ip().unwrap())
    }

    #[track_caller]
    fn was_asked_with_the_header(&self) {
        assert_eq!(*self.requests.refused.lock().unwrap(), 0, "requests lack the header");
        let called = self.requests.called.lock().unwrap();
        assert!(called.iter().any(|method| method == "tools/call"), "{called:?}");
    }
}

impl Drop for Badges {
    fn drop(&mut self) {
        self.requests.events.lock().unwrap().take();
        self.server.unblock();
    }
}

impl Requests {
    fn serve(&self, mut request: Request) -> io::Result<()> {
        let is_ours =
            |header: &Header| header.field.equiv("authorization") && header.value.as_str() == format!("Bearer {TOKEN}");
        if !request.headers().iter().any(is_ours) {
            *self.refused.lock().unwrap() += 1;
            return request.respond(Response::empty(401));
        }
        match (request.method(), request.url()) {
            (Method::Get, "/sse") => return self.stream(request),
            (Method::Post, "/mcp" | "/messages") => {}
            _ => return request.respond(Response::empty(405)),
        }
        let mut text = String::new();
        request.as_reader().read_to_string(&mut text)?;
        let message: Value = serde_json::from_str(&text).unwrap_or_default();
        self.called.lock().unwrap().push(message["method"].as_str().unwrap_or_default().to_owned());
        let Some(result) = result(&message) else { return request.respond(Response::empty(202)) };
        let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        if request.url() == "/messages" {
            if let Some(events) = &*self.events.lock().unwrap() {
                drop(events.send(format!("event: message\ndata: {reply}\n\n")));
            }
            return request.respond(Response::empty(202));
        }
        let kind = Header::from_bytes("content-type", "application/json").expect("a header");
        request.respond(Response::from_string(reply).with_header(kind))
    }

    /// Sends events until the test is over.
    fn stream(&self, request: Request) -> io::Result<()> {
        let (sender, events) = channel();
        sender.send("event: endpoint\ndata: /messages\n\n".to_owned()).expect("the receiver is here");
        *self.events.lock().unwrap() = Some(sender);
        let mut out = request.into_writer();
        out.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
        out.flush()?;
        for event in events {
            out.write_all(event.as_bytes())?;
            out.flush()?;
        }
        Ok(())
    }
}

/// The result of a request. `None`: it is a notification.
fn result(message: &Value) -> Option<Value> {
    message.get("id")?;
    Some(match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "badges", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{
            "name": "get_badge",
            "description": "Returns the number of the badge.",
            "inputSchema": {"type": "object", "properties": {}},
        }]}),
        "tools/call" => json!({"content": [{"type": "text", "text": BADGE}]}),
        _ => json!({}),
    })
}

#[track_caller]
fn reaches(agent: Agent, server: Value, badges: &Badges) {
    let lab = Lab::new(agent, "badge");
    let run = run(lab, json!({"mcp_servers": [server]}), permission("allow_once"));
    run.completed("It is 4711.");
    let results = run.stub().tool_results();
    assert!(results.iter().any(|result| result.contains(BADGE)), "{results:?}");
    badges.was_asked_with_the_header();
    run.outcome.never_shows(TOKEN);
    let title = "badges: get_badge";
    assert!(run.outcome.progress("tool").iter().any(|tool| tool.text("text") == title), "no tool is {title}");
}

fn a_server_with_a_url(agent: Agent) {
    let badges = Badges::start();
    let headers = json!({"Authorization": format!("Bearer {TOKEN}")});
    reaches(agent, json!({"name": "badges", "url": badges.url("/mcp"), "headers": headers}), &badges);
}

/// A tool of a server may do anything, so a run that only reads does not call it.
fn a_server_under_read_only(agent: Agent) {
    let badges = Badges::start();
    let headers = json!({"Authorization": format!("Bearer {TOKEN}")});
    let server = json!({"name": "badges", "url": badges.url("/mcp"), "headers": headers});
    let lab = Lab::new(agent, "badge");
    let run = run(lab, json!({"mcp_servers": [server], "permissions": "read-only"}), Vec::new());
    run.completed("It is 4711.");
    assert!(run.questions().is_empty());
    let called = badges.requests.called.lock().unwrap();
    assert!(!called.iter().any(|method| method == "tools/call"), "{called:?}");
}

fn a_server_over_sse(agent: Agent) {
    let badges = Badges::start();
    let headers = json!({"Authorization": format!("Bearer {TOKEN}")});
    let server = json!({"name": "badges", "url": badges.url("/sse"), "headers": headers, "transport": "sse"});
    reaches(agent, server, &badges);
}
