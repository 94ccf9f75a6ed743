//! The model: a server on loopback that speaks one of the dialects and plays a scenario.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tiny_http::{Method, Request, Server};

use crate::dialects::{Answer, Asked, Dialect, Step};
use crate::scenario::{Refusal, Reply, Scenario};
use crate::support::io::shorten;

/// A model that answers until it is dropped.
pub(crate) struct Stub {
    server: Arc<Server>,
    state: Arc<State>,
}

struct State {
    dialect: &'static dyn Dialect,
    scenario: Mutex<Scenario>,
    cwd: PathBuf,
    log: Mutex<Vec<Heard>>,
    over: Mutex<bool>,
    ended: Condvar,
}

/// A request.
#[derive(Clone)]
struct Heard {
    line: String,
    /// Whether the request belongs to the conversation. Titles and probes, for example, do not.
    conversation: bool,
    body: Value,
}

impl Stub {
    pub(crate) fn start(dialect: &'static dyn Dialect, scenario: &str, cwd: &Path) -> Stub {
        let server = Arc::new(Server::http("127.0.0.1:0").expect("listen on loopback"));
        let state = Arc::new(State {
            dialect,
            scenario: Mutex::new(Scenario::load(scenario)),
            cwd: cwd.to_owned(),
            log: Mutex::default(),
            over: Mutex::default(),
            ended: Condvar::new(),
        });
        let stub = Stub { server: server.clone(), state: state.clone() };
        thread::spawn(move || {
            for request in server.incoming_requests() {
                let state = state.clone();
                // A stopped agent does not read its answer to the end.
                thread::spawn(move || drop(state.serve(request)));
            }
        });
        stub
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.server_addr().to_ip().expect("address"))
    }

    /// The bodies of the conversation's requests.
    pub(crate) fn conversation(&self) -> Vec<Value> {
        let log = self.state.log.lock().expect("log");
        log.iter().filter(|heard| heard.conversation).map(|heard| heard.body.clone()).collect()
    }

    /// The conversation's first request, with its line.
    pub(crate) fn first_request(&self) -> String {
        let log = self.state.log.lock().expect("log");
        log.iter().find(|heard| heard.conversation).map(|heard| format!("{} {}", heard.line, heard.body)).expect("one")
    }

    /// The results of the tools in the last request of the conversation.
    pub(crate) fn tool_results(&self) -> Vec<String> {
        self.state.dialect.tool_results(&self.conversation().pop().unwrap_or_default())
    }

    /// All text of the messages in the last request of the conversation, one line each.
    pub(crate) fn last_heard(&self) -> String {
        let texts = self.state.dialect.texts(&self.conversation().pop().unwrap_or_default());
        texts.iter().map(|text| format!("{text}\n")).collect()
    }

    /// The requests for other hosts, which the agents send here as to a proxy.
    pub(crate) fn strays(&self) -> Vec<String> {
        let log = self.state.log.lock().expect("log");
        let lines = log.iter().map(|heard| heard.line.clone());
        lines.filter(|line| line.starts_with("CONNECT ") || line.contains(" http://")).collect()
    }

    /// Prints the requests when a test fails.
    pub(crate) fn dump(&self) -> String {
        let log = self.state.log.lock().expect("log");
        let rows = log.iter().map(|heard| {
            let dialect = self.state.dialect;
            let told = [dialect.texts(&heard.body), dialect.tool_results(&heard.body)].concat();
            let last = told.last().map(String::as_str).unwrap_or_default();
            format!("{} conversation={} last: {}\n", heard.line, heard.conversation, shorten(last, 600))
        });
        format!("---- the model was asked\n{}", rows.collect::<String>())
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        *self.state.over.lock().expect("over") = true;
        self.state.ended.notify_all();
        self.server.unblock();
    }
}

impl State {
    fn serve(&self, mut request: Request) -> io::Result<()> {
        let mut text = String::new();
        request.as_reader().read_to_string(&mut text)?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let path = request.url().split('?').next().unwrap_or_default();
        let asked = match request.method() {
            Method::Post => self.dialect.asked(path, &body),
            _ => Asked::Unknown,
        };
        let conversation = matches!(asked, Asked::Conversation { .. });
        let number = {
            let mut log = self.log.lock().expect("log");
            let line = format!("{} {}", request.method(), request.url());
            log.push(Heard { line, conversation, body: body.clone() });
            log.len()
        };
        let mut out = request.into_writer();
        let (reply, stream) = match asked {
            Asked::Conversation { stream } => (self.scenario.lock().expect("scenario").next(), stream),
            Asked::Aside { stream, answer } => (Reply::saying(&answer), stream),
            Asked::Fixed(answer) => return whole(&mut out, 200, "", &answer),
            Asked::Unknown => {
                let refusal = Refusal { status: 404, message: "Not here.".into(), retry_after: None };
                return self.refuse(&refusal, &mut out);
            }
        };
        let reply = reply.named_as_in(&body);
        self.play(&Answer { reply, number, body: &body, cwd: &self.cwd }, stream, &mut out)
    }

    fn play(&self, answer: &Answer<'_>, stream: bool, out: &mut dyn Write) -> io::Result<()> {
        let reply = &answer.reply;
        if let Some(refusal) = &reply.refuse {
            return self.refuse(refusal, out);
        }
        if reply.hang && reply.say.is_empty() {
            self.hang();
            return Ok(());
        }
        if !stream {
            return whole(out, 200, "", &self.dialect.whole(answer));
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        out.write_all(head.as_bytes())?;
        out.flush()?;
        for step in self.dialect.steps(answer) {
            match step {
                // No event: the scenario asks for this pause.
                Step::Pause => thread::sleep(Duration::from_millis(reply.pause_ms)),
                Step::Hang => {
                    self.hang();
                    return Ok(());
                }
                Step::Event(text) => {
                    write!(out, "{:x}\r\n{text}\r\n", text.len())?;
                    out.flush()?;
                }
            }
        }
        out.write_all(b"0\r\n\r\n")?;
        out.flush()
    }

    fn refuse(&self, refusal: &Refusal, out: &mut dyn Write) -> io::Result<()> {
        let retry = refusal.retry_after.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
        whole(out, refusal.status, &retry, &self.dialect.error(refusal))
    }

    /// Stays silent until the test is over.
    fn hang(&self) {
        let over = self.over.lock().expect("over");
        drop(self.ended.wait_while(over, |over| !*over).expect("over"));
    }
}

/// A response in one piece.
fn whole(out: &mut dyn Write, status: u16, headers: &str, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let length = body.len();
    let head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
    write!(out, "{head}{headers}\r\n{body}")?;
    out.flush()
}
