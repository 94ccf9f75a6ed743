//! A run with everything around it simulated: it is told the time, and its effects are written down.

use serde_json::Value;
use spektacular::agent::Launch;
use spektacular::agent::registry::{self, Agents};
use spektacular::failure::{Code, Failure};
use spektacular::protocol::frame::{Stamper, redact};
use spektacular::protocol::inbound::{self, Inbound, Message};
use spektacular::protocol::limits;
use spektacular::protocol::outbound::AgentExit;
use spektacular::protocol::question::Given;
use spektacular::protocol::request::{McpServer, Options};
use spektacular::protocol::words::Source;
use spektacular::redact::Redactor;
use spektacular::run::{Answered, Effect, Event, Gone, Input, Method, OnEof, Origin, Refusal, Run, Start};
use std::collections::VecDeque;
use std::time::{Duration, UNIX_EPOCH};

/// The random part of every id in a simulated run.
pub(crate) const RANDOM: &str = "golden";

/// What the run gave its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Line(String),
    Eof,
}

/// One frame: as it was encoded, and read again.
pub(crate) struct Frame {
    pub(crate) line: String,
    pub(crate) value: Value,
}

pub(crate) struct World {
    pub(crate) run: Run,
    pub(crate) now: Duration,
    pub(crate) frames: Vec<Frame>,
    pub(crate) sent: VecDeque<Sent>,
    /// When which stop was asked for.
    pub(crate) stops: Vec<(Duration, Method)>,
    /// When the agent's stdin was closed.
    pub(crate) closed: Option<Duration>,
    /// When the run began to stop its agent.
    pub(crate) stopping: Option<Duration>,
    pub(crate) diagnosed: Vec<String>,
    stamper: Stamper,
    frame_limit: usize,
    cwd: String,
    pub(crate) to_spawn: Option<Box<Launch>>,
    /// Whether a process of the agent's is there.
    pub(crate) has_process: bool,
    /// Laid over run.start.
    over: Options,
    agents: Agents,
}

impl World {
    /// A world at time zero. `over` goes before what run.start says.
    pub(crate) fn new(cwd: &str, over: Options, agents: Agents) -> World {
        World {
            run: Run::new(RANDOM, OnEof::Continue, Redactor::new()),
            now: Duration::ZERO,
            frames: Vec::new(),
            sent: VecDeque::new(),
            stops: Vec::new(),
            closed: None,
            stopping: None,
            diagnosed: Vec::new(),
            stamper: Stamper::new(),
            frame_limit: limits::FRAME_BYTES,
            cwd: cwd.to_owned(),
            to_spawn: None,
            has_process: false,
            over,
            agents,
        }
    }

    /// Time goes on, never back.
    pub(crate) fn at(&mut self, at: Duration) {
        self.now = self.now.max(at);
    }

    /// Whether the terminal frame is out, or never will be.
    pub(crate) fn is_over(&self) -> bool {
        self.run.exit_code().is_some()
    }

    /// Whether the outcome is known, though the agent may still be there.
    pub(crate) fn is_decided(&self) -> bool {
        self.is_over() || self.closed.is_some() || self.stopping.is_some()
    }

    /// The ids of the questions, in the order in which they were first asked.
    pub(crate) fn question_ids(&self) -> Vec<String> {
        let asked =
            self.frames.iter().filter(|f| f.value["type"] == "run.question" && f.value["payload"]["attempt"] == 1);
        asked.filter_map(|f| f.value["payload"]["question_id"].as_str().map(str::to_owned)).collect()
    }

    /// Gives the run an event and carries out what it wants. Gives the number of effects.
    pub(crate) fn step(&mut self, event: Event<'_>) -> usize {
        let effects = self.run.step(self.now, event);
        let mut count = effects.len();
        effects.into_iter().for_each(|effect| self.carry_out(effect));
        // A long line is taken in parts.
        while self.run.has_more() {
            count += self.step(Event::More);
        }
        if self.run.is_stopping() {
            self.stopping = self.stopping.or(Some(self.now));
        }
        count
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::RunId(id) => self.stamper.set_run_id(&id),
            Effect::FrameLimit(bytes) => self.frame_limit = bytes,
            // A file that is not there has no size.
            Effect::Emit { mut body, reply_to, measure: _ } => {
                redact(&mut body, self.run.redactor());
                let mut frame = self
                    .stamper
                    .stamp(UNIX_EPOCH + self.now, reply_to, *body)
                    .expect("nothing follows a terminal frame");
                let line = String::from_utf8(frame.to_line(self.frame_limit)).expect("a frame is UTF-8");
                let value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("a frame is JSON ({e}): {line}"));
                self.frames.push(Frame { line, value });
            }
            Effect::Spawn(launch, _) => self.to_spawn = Some(launch),
            Effect::ToAgent(line) => self.sent.push_back(Sent::Line(line)),
            Effect::CloseAgentInput => {
                self.closed = self.closed.or(Some(self.now));
                self.sent.push_back(Sent::Eof);
            }
            Effect::Hurry => {}
            Effect::Stop(method) => self.stops.push((self.now, method)),
            Effect::Diagnose(text) => self.diagnosed.push(text),
            // What concerns only a recording that is being made.
            _ => {}
        }
    }

    /// The agent is started, if one is wanted and the run has not been stopped before that.
    pub(crate) fn spawn(&mut self) {
        let Some(launch) = self.to_spawn.take() else { return };
        if self.run.is_stopping() {
            return self.fail_to_spawn();
        }
        self.has_process = true;
        self.step(Event::Spawned);
        self.sent.extend(launch.send.iter().cloned().map(Sent::Line));
        if launch.close_input {
            self.sent.push_back(Sent::Eof);
        }
    }

    pub(crate) fn fail_to_spawn(&mut self) {
        self.to_spawn = None;
        self.step(Event::SpawnFailed(Failure::new(Code::AgentStartFailed, "It could not be started.")));
    }

    /// A line of stdin.
    pub(crate) fn hear(&mut self, line: &str) {
        if let Some(inbound) = inbound::parse(line.as_bytes()) {
            let event = self.event(inbound);
            self.step(event);
        }
    }

    fn event(&self, inbound: Inbound) -> Event<'static> {
        let origin = Origin { id: inbound.id, run_id: inbound.run_id };
        match inbound.message {
            Message::Malformed => Event::Malformed(origin),
            Message::Unsupported => Event::Unsupported(origin),
            Message::UnknownType => Event::UnknownType(origin),
            Message::Cancel { reason } => Event::Cancel(origin, reason, Source::Orchestrator),
            Message::Start(_) if !self.run.is_waiting() => {
                let failure = Failure::new(Code::InvalidRequest, "A second run.start.");
                Event::Start(origin, Err(Refusal::new(failure)))
            }
            Message::Start(options) => {
                let (options, wrong) = *options;
                assert_eq!(wrong, None, "the script's run.start is valid");
                Event::Start(origin, Ok(Box::new(self.start(self.over.clone().over(options)))))
            }
            Message::Input(input) => {
                let answered = input.given.map(|given| match given {
                    Given::Value(value) => Answered::Value(value, None),
                    Given::Declined => Answered::Declined,
                    other => panic!("a script has no {other:?}"),
                });
                Event::Input(origin, Input { question_id: input.question_id, answered, message: input.message })
            }
        }
    }

    fn start(&self, options: Options) -> Start {
        let name = options.agent.clone().unwrap_or_else(|| registry::DEFAULT.into());
        let agent = self.agents.find(&name).unwrap_or_else(|| panic!("no agent {name}"));
        let options = options.over(agent.defaults());
        let prompt = options.prompt.clone().expect("a prompt");
        let mut settings = options.resolve(prompt, agent.name.clone(), self.cwd.clone().into());
        let driver = agent.driver();
        settings.ask_server = driver.asks_by(&settings).map(|_| ask_server());
        let mut redactor = Redactor::new();
        let short_secrets = settings.secrets.iter().filter(|secret| !redactor.add(secret)).count();
        let display_name = agent.display_name.clone();
        Start { settings, display_name, driver, redactor, short_secrets, asking_failed: false }
    }

    /// The agent's process is gone, and all that came from it.
    pub(crate) fn gone(&mut self, exit: AgentExit, stderr_tail: &str) {
        if !std::mem::take(&mut self.has_process) {
            return;
        }
        self.step(Event::Gone(Gone {
            exit,
            leaked: false,
            stderr_tail: stderr_tail.to_owned(),
            files: Ok(Vec::new()),
        }));
    }

    /// Whatever is due until then happens.
    pub(crate) fn tick_until(&mut self, at: Duration) {
        while let Some(due) = self.run.next_deadline().filter(|due| *due <= at) {
            self.at(due);
            self.step(Event::Tick);
        }
        self.at(at);
    }
}

/// The server by which a model asks, as it stands in recordings.
fn ask_server() -> McpServer {
    let address = "00000000000000000000000000000000:/home/user/tmp/spektacular-000000000000/s";
    McpServer {
        name: "spektacular".into(),
        command: "/home/user/bin/spektacular".into(),
        args: vec!["ask-server".into()],
        env: [("SPEKTACULAR_ASK".to_owned(), address.to_owned())].into(),
    }
}

/// A process that ended by itself.
pub(crate) fn exited(code: i32) -> AgentExit {
    AgentExit { code: Some(code), signal: None }
}

/// A process that a signal ended.
pub(crate) fn killed(signal: i32) -> AgentExit {
    AgentExit { code: None, signal: Some(signal) }
}
