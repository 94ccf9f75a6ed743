//! The server: a thread that keeps the scenario and the requests, and one for each connection.

use super::http::{self, HttpRequest};
use super::scenario::{HttpRefusal, ModelReply, ModelScenario};
use super::tools;
use super::wire::{ModelAnswer, RequestPurpose, StreamStep};
use crate::agent::endpoint::Wire;
use crate::io::spawn_thread;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, unbounded};
use serde_json::Value;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// A model that answers until it is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    arrivals: Sender<Arrival>,
    /// Dropped at the end, which the connections notice.
    over: Option<Sender<Infallible>>,
}

#[derive(Clone, Debug)]
pub struct HeardRequest {
    pub line: String,
    /// Whether the request belongs to the conversation. Titles and probes, for example, do not.
    pub conversation: bool,
    pub body: Value,
}

impl HeardRequest {
    pub fn names_model(&self, part: &str) -> bool {
        self.body["model"].as_str().is_some_and(|model| model.contains(part))
    }
}

/// A message for the thread that keeps the scenario.
enum Arrival {
    Request(String, Value, Sender<Turn>),
    Look(Sender<Vec<HeardRequest>>),
}

/// The answer to a request, for the thread of its connection.
enum Turn {
    Reply { reply: ModelReply, stream: bool, number: usize, body: Value },
    Fixed(Value),
    Unknown,
}

impl ScriptedModel {
    /// `cwd`: the agent's working directory. Error: the system's.
    pub fn start(wire: Wire, scenario: ModelScenario, cwd: PathBuf) -> io::Result<ScriptedModel> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (arrivals, received) = unbounded();
        let (over, ends) = bounded(0);
        spawn_thread("model", move || Memory { wire, scenario, log: Vec::new(), widest: 0 }.serve(&received))?;
        let connection = Connection { wire, cwd, arrivals: arrivals.clone(), ends };
        spawn_thread("model-door", move || {
            for stream in listener.incoming().flatten() {
                if connection.is_over() {
                    break;
                }
                let connection = connection.clone();
                // A stopped agent does not read its answer to the end.
                let _ = spawn_thread("model-talk", move || drop(connection.serve(&stream)));
            }
        })?;
        Ok(ScriptedModel { address, arrivals, over: Some(over) })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn heard(&self) -> Vec<HeardRequest> {
        let (reply, answer) = bounded(1);
        let _ = self.arrivals.send(Arrival::Look(reply));
        answer.recv().unwrap_or_default()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.over.take();
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

struct Memory {
    wire: Wire,
    scenario: ModelScenario,
    log: Vec<HeardRequest>,
    /// The most tools that a request offered.
    widest: usize,
}

impl Memory {
    fn serve(mut self, arrivals: &Receiver<Arrival>) {
        // The asker may be gone.
        for arrival in arrivals {
            match arrival {
                Arrival::Request(line, body, reply) => drop(reply.send(self.turn(line, body))),
                Arrival::Look(reply) => drop(reply.send(self.log.clone())),
            }
        }
    }

    fn turn(&mut self, line: String, body: Value) -> Turn {
        let target = line.split(' ').nth(1).unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        let asked = match self.wire.format().asked(path, &body) {
            RequestPurpose::Conversation { stream } => self.of_conversation(stream, &body),
            asked @ (RequestPurpose::Aside { .. } | RequestPurpose::Fixed(_) | RequestPurpose::Unknown) => asked,
        };
        let conversation = matches!(asked, RequestPurpose::Conversation { .. });
        self.log.push(HeardRequest { line, conversation, body: body.clone() });
        let (reply, stream) = match asked {
            RequestPurpose::Conversation { stream } => (self.scenario.next(), stream),
            RequestPurpose::Aside { stream, answer } => (ModelReply::saying(&answer), stream),
            RequestPurpose::Fixed(answer) => return Turn::Fixed(answer),
            RequestPurpose::Unknown => return Turn::Unknown,
        };
        Turn::Reply { reply, stream, number: self.log.len(), body }
    }

    fn of_conversation(&mut self, stream: bool, body: &Value) -> RequestPurpose {
        let count = tools::count(body);
        self.widest = self.widest.max(count);
        if self.scenario.only_main && count * 2 < self.widest {
            return RequestPurpose::Aside { stream, answer: "ok".into() };
        }
        RequestPurpose::Conversation { stream }
    }
}

#[derive(Clone)]
struct Connection {
    wire: Wire,
    cwd: PathBuf,
    arrivals: Sender<Arrival>,
    ends: Receiver<Infallible>,
}

impl Connection {
    fn is_over(&self) -> bool {
        self.ends.try_recv() == Err(TryRecvError::Disconnected)
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let request = HttpRequest::read(stream)?;
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        let (reply, turn) = bounded(1);
        let _ = self.arrivals.send(Arrival::Request(request.line, body, reply));
        let mut out = stream;
        match turn.recv().unwrap_or(Turn::Unknown) {
            Turn::Reply { mut reply, stream, number, body } => {
                let calls = tools::calls(&mut reply, &body, &self.cwd, self.wire.format().usual());
                self.play(&ModelAnswer { reply, calls, number, body: &body }, stream, out)
            }
            Turn::Fixed(answer) => http::whole(&mut out, 200, "", &answer),
            Turn::Unknown => {
                let refusal = HttpRefusal { status: 404, message: "Not here.".into(), ..HttpRefusal::default() };
                self.refuse(&refusal, out)
            }
        }
    }

    fn play(&self, answer: &ModelAnswer<'_>, stream: bool, mut out: &TcpStream) -> io::Result<()> {
        let reply = &answer.reply;
        if let Some(refusal) = &reply.refuse {
            return self.refuse(refusal, out);
        }
        if reply.hang && reply.say.is_empty() {
            self.hang();
            return Ok(());
        }
        if !stream {
            return if reply.cut { Ok(()) } else { http::whole(&mut out, 200, "", &self.wire.format().whole(answer)) };
        }
        http::begin(&mut out, reply.cut)?;
        for step in self.wire.format().steps(answer) {
            match step {
                StreamStep::Pause => thread::sleep(Duration::from_millis(reply.pause_ms)),
                StreamStep::Hang => {
                    self.hang();
                    return Ok(());
                }
                StreamStep::Cut => return Ok(()),
                StreamStep::Event(text) => http::event(&mut out, &text)?,
            }
        }
        http::event(&mut out, "")
    }

    fn refuse(&self, refusal: &HttpRefusal, mut out: &TcpStream) -> io::Result<()> {
        let retry = refusal.retry_after.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
        http::whole(&mut out, refusal.status, &retry, &self.wire.format().error(refusal))
    }

    /// Waits for the end of the model.
    fn hang(&self) {
        let _ = self.ends.recv();
    }
}
