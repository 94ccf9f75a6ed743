//! The model: a server on loopback that speaks the Anthropic Messages API and says what a scenario tells it to.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tiny_http::{Method, Request, Server};

use crate::scenario::{Refusal, Reply, Scenario};
use crate::support::io::shorten;

/// A model that answers until it is dropped.
pub(crate) struct Stub {
    server: Arc<Server>,
    state: Arc<State>,
}

struct State {
    scenario: Mutex<Scenario>,
    cwd: PathBuf,
    log: Mutex<Vec<Heard>>,
    over: Mutex<bool>,
    ended: Condvar,
}

/// A request as it came.
#[derive(Clone)]
struct Heard {
    line: String,
    /// Whether it belongs to the conversation; titles, probes and the like do not.
    conversation: bool,
    body: Value,
}

impl Stub {
    pub(crate) fn start(scenario: &str, cwd: &Path) -> Stub {
        let server = Arc::new(Server::http("127.0.0.1:0").expect("listen on loopback"));
        let state = Arc::new(State {
            scenario: Mutex::new(Scenario::load(scenario, cwd)),
            cwd: cwd.to_owned(),
            log: Mutex::default(),
            over: Mutex::default(),
            ended: Condvar::new(),
        });
        let stub = Stub { server: server.clone(), state: state.clone() };
        thread::spawn(move || {
            for request in server.incoming_requests() {
                let state = state.clone();
                // An agent that was stopped does not hear its answer to the end.
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

    /// What the tools gave back, as the last request of the conversation has it.
    pub(crate) fn tool_results(&self) -> Vec<String> {
        let last = self.conversation().pop().unwrap_or_default();
        let blocks = list(&last["messages"]).iter().flat_map(|message| list(&message["content"]));
        blocks.filter(|block| block["type"] == "tool_result").map(|block| plain(&block["content"])).collect()
    }

    /// All text of the messages in the last request of the conversation.
    pub(crate) fn last_heard(&self) -> String {
        let last = self.conversation().pop().unwrap_or_default();
        list(&last["messages"]).iter().map(|message| plain(&message["content"]) + "\n").collect()
    }

    /// Requests for other hosts, which came here as to a proxy.
    pub(crate) fn strays(&self) -> Vec<String> {
        let log = self.state.log.lock().expect("log");
        log.iter().filter(|heard| heard.line.starts_with("CONNECT ")).map(|heard| heard.line.clone()).collect()
    }

    /// For the report of a failed test.
    pub(crate) fn dump(&self) -> String {
        let log = self.state.log.lock().expect("log");
        let rows = log.iter().map(|heard| {
            let last = list(&heard.body["messages"]).last().map(Value::to_string).unwrap_or_default();
            format!("{} conversation={} last message: {}\n", heard.line, heard.conversation, shorten(&last, 600))
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

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a message's content or a tool's result: a string, or blocks.
fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(|block| plain(&block["text"]) + &plain(&block["content"])).collect(),
        _ => String::new(),
    }
}

impl State {
    fn serve(&self, mut request: Request) -> io::Result<()> {
        let mut text = String::new();
        request.as_reader().read_to_string(&mut text)?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let path = request.url().split('?').next().unwrap_or_default().to_owned();
        let asks = *request.method() == Method::Post && path == "/v1/messages";
        let conversation = asks && !list(&body["tools"]).is_empty();
        let number = {
            let mut log = self.log.lock().expect("log");
            let line = format!("{} {}", request.method(), request.url());
            log.push(Heard { line, conversation, body: body.clone() });
            log.len()
        };
        let mut out = request.into_writer();
        if asks {
            let reply = match conversation {
                true => self.scenario.lock().expect("scenario").next(),
                false => Reply::saying("ok"),
            };
            let model = body["model"].as_str().unwrap_or("stub").to_owned();
            return self.play(&Answer { reply, number, model, cwd: &self.cwd }, body["stream"] == true, &mut out);
        }
        match path.as_str() {
            "/v1/messages/count_tokens" => whole(&mut out, 200, "", &json!({"input_tokens": text.len() / 4 + 1})),
            _ => whole(&mut out, 404, "", &json!({"type": "error", "error": {"type": "not_found_error"}})),
        }
    }

    fn play(&self, answer: &Answer<'_>, stream: bool, out: &mut dyn Write) -> io::Result<()> {
        let reply = &answer.reply;
        if let Some(refusal) = &reply.refuse {
            return refuse(refusal, out);
        }
        if reply.hang && reply.say.is_empty() {
            self.hang();
            return Ok(());
        }
        let steps = answer.steps();
        if !stream {
            return whole(out, 200, "", &answer.message());
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        out.write_all(head.as_bytes())?;
        out.flush()?;
        for step in steps {
            match step {
                Step::Pause => thread::sleep(Duration::from_millis(reply.pause_ms)),
                Step::Hang => {
                    self.hang();
                    return Ok(());
                }
                Step::Event(event) => {
                    let text = format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
                    write!(out, "{:x}\r\n{text}\r\n", text.len())?;
                    out.flush()?;
                }
            }
        }
        out.write_all(b"0\r\n\r\n")?;
        out.flush()
    }

    /// Silence until the test is over.
    fn hang(&self) {
        let over = self.over.lock().expect("over");
        drop(self.ended.wait_while(over, |over| !*over).expect("over"));
    }
}

fn refuse(refusal: &Refusal, out: &mut dyn Write) -> io::Result<()> {
    let retry = refusal.retry_after.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
    let error = json!({"type": refusal.class, "message": "The scenario refuses."});
    whole(out, refusal.status, &retry, &json!({"type": "error", "error": error}))
}

/// A response in one piece.
fn whole(out: &mut dyn Write, status: u16, headers: &str, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let length = body.len();
    let head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
    write!(out, "{head}{headers}\r\n{body}")?;
    out.flush()
}

enum Step {
    Pause,
    Event(Value),
    Hang,
}

/// A reply on its way to becoming the API's events.
struct Answer<'a> {
    reply: Reply,
    /// Makes ids unique within the stub.
    number: usize,
    model: String,
    cwd: &'a Path,
}

impl Answer<'_> {
    fn steps(&self) -> Vec<Step> {
        let reply = &self.reply;
        let mut steps = vec![Step::Event(json!({"type": "message_start", "message": self.envelope()}))];
        let mut index = 0;
        if !reply.think.is_empty() {
            let deltas = reply.think.iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
            self.block(&mut steps, index, json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
            let signature = json!({"type": "signature_delta", "signature": "c3R1Yg=="});
            steps.push(Step::Event(json!({"type": "content_block_delta", "index": index, "delta": signature})));
            steps.push(stop(index));
            index += 1;
        }
        if !reply.say.is_empty() {
            let deltas = reply.say.iter().map(|piece| json!({"type": "text_delta", "text": piece}));
            self.block(&mut steps, index, json!({"type": "text", "text": ""}), deltas);
            if reply.hang {
                steps.push(Step::Hang);
            }
            steps.push(stop(index));
            index += 1;
        }
        for (id, name, input) in self.calls() {
            let start = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
            steps.push(Step::Event(json!({"type": "content_block_start", "index": index, "content_block": start})));
            steps.push(Step::Event(json!({"type": "content_block_delta", "index": index, "delta": delta})));
            steps.push(stop(index));
            index += 1;
        }
        let delta = json!({"stop_reason": self.stop_reason(), "stop_sequence": null});
        let usage = json!({"output_tokens": reply.usage.output});
        steps.push(Step::Event(json!({"type": "message_delta", "delta": delta, "usage": usage})));
        steps.push(Step::Event(json!({"type": "message_stop"})));
        steps
    }

    /// The start of a block and its pieces, each after the pause.
    fn block(&self, steps: &mut Vec<Step>, index: usize, start: Value, deltas: impl Iterator<Item = Value>) {
        steps.push(Step::Event(json!({"type": "content_block_start", "index": index, "content_block": start})));
        for delta in deltas {
            if self.reply.pause_ms > 0 {
                steps.push(Step::Pause);
            }
            steps.push(Step::Event(json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
    }

    fn calls(&self) -> Vec<(String, &str, Value)> {
        let calls = self.reply.calls.iter().enumerate();
        let named = calls.map(|(i, call)| (format!("toolu_{}_{i}", self.number), call.for_claude(self.cwd)));
        named.map(|(id, (name, input))| (id, name, input)).collect()
    }

    fn stop_reason(&self) -> &str {
        let usual = if self.reply.calls.is_empty() { "end_turn" } else { "tool_use" };
        self.reply.stop.as_deref().unwrap_or(usual)
    }

    fn envelope(&self) -> Value {
        let usage = &self.reply.usage;
        json!({"id": format!("msg_{}", self.number), "type": "message", "role": "assistant", "model": self.model,
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": usage.input, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": usage.cached, "output_tokens": 1}})
    }

    /// The answer to a request that does not stream.
    fn message(&self) -> Value {
        let mut content = Vec::new();
        if !self.reply.say.is_empty() {
            content.push(json!({"type": "text", "text": self.reply.say.concat()}));
        }
        let tool = |(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input});
        content.extend(self.calls().into_iter().map(tool));
        let mut message = self.envelope();
        message["content"] = json!(content);
        message["stop_reason"] = json!(self.stop_reason());
        message["usage"]["output_tokens"] = json!(self.reply.usage.output);
        message
    }
}

fn stop(index: usize) -> Step {
    Step::Event(json!({"type": "content_block_stop", "index": index}))
}
