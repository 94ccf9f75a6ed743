//! A run without processes, threads or a clock: the engine's own conductor on a host that only records requests.

use serde_json::Value;
use serde_json::value::RawValue;
use spektacular::agent::registry::Agents;
use spektacular::agent::{Launch, Line, Offered, Reply};
use spektacular::config::Layers;
use spektacular::engine::{Conductor, Host, Job};
use spektacular::json_lines::JsonLines;
use spektacular::protocol::failure::{Code, Failure};
use spektacular::protocol::inbound::{self, Message};
use spektacular::protocol::outbound::AgentExit;
use spektacular::protocol::question::PathFact;
use spektacular::protocol::request::{McpAccess, McpServer, Options, Settings};
use spektacular::run::{AgentEnd, Event, Run, StopSignal};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The random part of every id in a simulated run.
pub(crate) const RANDOM: &str = "golden";

/// The content of every image.
pub(crate) const DOTS: &[u8] = include_bytes!("../../../testdata/dots.png");
/// The bytes of the image as base64.
pub(crate) const DATA: &str =
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAFElEQVR42mOQO4EKGdD4cgwjSgUAHKNzAVt7+nkAAAAASUVORK5CYII=";
/// The text that replaces the data in a recording.
pub(crate) const LABEL: &str = "[image/png, 77 bytes]";

/// More parts than any line in a test has.
const PARTS: usize = 1_000_000;

/// The lines that the run sent to its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Line(String),
    Eof,
}

/// A frame: its encoded line, and its JSON.
pub(crate) struct Frame {
    pub(crate) line: String,
    pub(crate) value: Value,
}

/// Reads a frame. Its metadata may hold numbers that serde does not read, since they are returned as they were sent:
/// such metadata reads as an empty object.
#[track_caller]
fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| {
        let unread = || -> serde_json::Result<Value> {
            let frame: BTreeMap<&str, &RawValue> = serde_json::from_str(line)?;
            let payload: BTreeMap<&str, &RawValue> = serde_json::from_str(frame["payload"].get())?;
            serde_json::from_str(&line.replacen(payload["metadata"].get(), "{}", 1))
        };
        unread().unwrap_or_else(|_| panic!("a frame is JSON ({error}): {line}"))
    })
}

/// A simulated host.
#[derive(Default)]
pub(crate) struct RecordingHost {
    now: Duration,
    cwd: PathBuf,
    pub(crate) sent: VecDeque<Sent>,
    /// The requested stops with their times.
    pub(crate) stops: Vec<(Duration, StopSignal)>,
    /// The time at which the agent's stdin was closed.
    pub(crate) closed: Option<Duration>,
    /// Whether a process of the agent is running.
    pub(crate) has_process: bool,
    /// The date at which the run began, by the wall clock at the creation of the host.
    pub(crate) today: Option<SystemTime>,
    /// The number of bytes that the agent has not read.
    pub(crate) unsent: usize,
    /// Whether no process can be started.
    broken: bool,
    /// Whether the agent's stdin is closed right after the start, which does not mean that the run ends.
    closes_early: bool,
}

impl RecordingHost {
    /// Creates a host with this working directory.
    pub(crate) fn at(cwd: &str) -> RecordingHost {
        RecordingHost { cwd: cwd.into(), ..RecordingHost::default() }
    }
}

impl Host for RecordingHost {
    fn now(&self) -> Duration {
        self.now
    }

    fn date(&self) -> SystemTime {
        self.today.unwrap_or(UNIX_EPOCH) + self.now
    }

    fn variables(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn directory(&self, _: Option<&Path>) -> Option<PathBuf> {
        Some(self.cwd.clone())
    }

    fn look(&self, _: &Path) -> PathFact {
        PathFact::File
    }

    fn read(&self, _: &Path) -> Option<String> {
        None
    }

    /// Every image is the same.
    fn image(&self, _: &Path, bytes: u64) -> io::Result<(u64, Vec<u8>)> {
        let first = &DOTS[..DOTS.len().min(usize::try_from(bytes).unwrap())];
        Ok((DOTS.len() as u64, first.to_vec()))
    }

    /// A missing file has no size.
    fn size(&self, _: &Path) -> Option<u64> {
        None
    }

    /// The name of the server of our own tool in recordings.
    fn offer(&mut self, _: Offered) -> Option<McpServer> {
        let address = "00000000000000000000000000000000:/home/user/tmp/spektacular-000000000000/s";
        let access = McpAccess::Stdio {
            command: "/home/user/bin/spektacular".into(),
            args: vec!["ask-server".into()],
            env: [("SPEKTACULAR_ASK".to_owned(), address.to_owned())].into(),
        };
        Some(McpServer::new("spektacular", access))
    }

    // Recordings contain the agent's side of the call, but not the answer.
    fn reply(&mut self, _: u64, _: &[Reply]) {}

    fn withdraw(&mut self, _: u64) {}

    fn spawn(&mut self, launch: &Launch, _: &Settings, _: bool) -> Result<(), Failure> {
        if self.broken {
            return Err(Failure::new(Code::AgentStartFailed, "It could not be started."));
        }
        self.has_process = true;
        self.closes_early = launch.close_input;
        Ok(())
    }

    fn send(&mut self, line: String) {
        self.sent.push_back(Sent::Line(line));
    }

    fn unsent(&self) -> usize {
        self.unsent
    }

    fn close_input(&mut self) {
        if !std::mem::take(&mut self.closes_early) {
            self.closed = self.closed.or(Some(self.now));
        }
        self.sent.push_back(Sent::Eof);
    }

    fn signal_tree(&mut self, signal: StopSignal) {
        self.stops.push((self.now, signal));
    }

    fn hurry(&mut self, _: bool) {}

    fn abort(&mut self) {
        self.has_process = false;
    }
}

pub(crate) struct World {
    conductor: Conductor<Box<JsonLines>, RecordingHost>,
    pub(crate) frames: Vec<Frame>,
    /// Overrides the settings of run.start.
    over: Options,
}

impl World {
    /// Creates a world at time zero. `over` overrides the settings of run.start.
    pub(crate) fn new(cwd: &str, over: Options, agents: Agents) -> World {
        World { over, ..World::of(Job::new(Layers::new(agents)), cwd) }
    }

    pub(crate) fn of(job: Job, cwd: &str) -> World {
        let host = RecordingHost::at(cwd);
        let conductor = Conductor::new(job, Box::<JsonLines>::default(), host, RANDOM);
        World { conductor, frames: Vec::new(), over: Options::default() }
    }

    /// The run itself.
    pub(crate) fn run(&self) -> &Run {
        self.conductor.run()
    }

    /// The host.
    pub(crate) fn host_mut(&mut self) -> &mut RecordingHost {
        self.conductor.host_mut()
    }

    /// Advances the time, which never goes back.
    pub(crate) fn at(&mut self, at: Duration) {
        let host = self.host_mut();
        host.now = host.now.max(at);
    }

    /// Whether the terminal frame was emitted, or can no longer be.
    pub(crate) fn is_over(&self) -> bool {
        self.run().exit_code().is_some()
    }

    /// Whether the outcome is decided. The agent may still be running.
    pub(crate) fn is_decided(&mut self) -> bool {
        self.is_over() || self.host_mut().closed.is_some() || self.run().stopping().is_some()
    }

    /// The ids of the questions, in the order in which they were first asked.
    pub(crate) fn question_ids(&self) -> Vec<String> {
        let asked =
            self.frames.iter().filter(|f| f.value["type"] == "run.question" && f.value["payload"]["attempt"] == 1);
        asked.filter_map(|f| f.value["payload"]["question_id"].as_str().map(str::to_owned)).collect()
    }

    /// The run's output so far: frames, lines for the agent, stops.
    pub(crate) fn traces(&mut self) -> usize {
        self.frames.len() + self.host_mut().sent.len() + self.host_mut().stops.len()
    }

    /// Hands the run an event.
    pub(crate) fn step(&mut self, event: Event<'_>) {
        self.conductor.step(event);
        self.take();
    }

    /// Takes the pending output. A long line is taken in parts.
    #[track_caller]
    pub(crate) fn take(&mut self) {
        for parts in 0.. {
            assert!(parts < PARTS, "a line comes in parts without end");
            while !self.conductor.outbox().is_empty() {
                let chunk = self.conductor.outbox().pop();
                if chunk.out.is_empty() {
                    continue;
                }
                let text = String::from_utf8(chunk.out).expect("a frame is UTF-8");
                for line in text.split_inclusive('\n') {
                    self.frames.push(Frame { line: line.to_owned(), value: read(line) });
                }
            }
            if !self.run().has_more() {
                return;
            }
            self.conductor.more();
        }
    }

    /// The requested start of the agent.
    pub(crate) fn due(&self) -> Option<&Launch> {
        self.conductor.due()
    }

    /// Starts the agent, if a start is pending and no stop came first.
    pub(crate) fn spawn(&mut self) {
        self.conductor.spawn_if_due();
        self.take();
    }

    pub(crate) fn fail_to_spawn(&mut self) {
        self.host_mut().broken = true;
        self.spawn();
    }

    /// Passes a line of stdin to the run.
    pub(crate) fn hear(&mut self, line: &str) {
        match inbound::parse(line.as_bytes()) {
            Some(mut inbound) if matches!(inbound.message, Message::Start(_)) => {
                if let Message::Start(start) = &mut inbound.message {
                    assert_eq!(start.wrong, None, "the script's run.start is valid");
                    start.options = self.over.clone().over(start.options.clone());
                }
                self.conductor.inbound(inbound);
            }
            message => message.into_iter().for_each(|message| self.conductor.inbound(message)),
        }
        self.take();
    }

    /// SIGTERM.
    pub(crate) fn signal(&mut self) {
        self.conductor.signalled(15);
        self.take();
    }

    /// Passes a line of the agent to the run.
    pub(crate) fn line(&mut self, line: &str) {
        self.hand(line);
        self.take();
    }

    /// Passes a line of the agent to the run. Leaves the frames in the outbox.
    pub(crate) fn hand(&mut self, line: &str) {
        self.conductor().line(line.to_owned());
    }

    /// The conductor, for everything without a method here.
    pub(crate) fn conductor(&mut self) -> &mut Conductor<Box<JsonLines>, RecordingHost> {
        &mut self.conductor
    }

    /// Reports a line of the agent that was too long.
    pub(crate) fn too_long(&mut self) {
        self.step(Event::Line(Line::TooLong));
    }

    /// Reports that the agent's process exited and its output was read to the end.
    pub(crate) fn gone(&mut self, exit: AgentExit, stderr: &str) {
        if std::mem::take(&mut self.host_mut().has_process) {
            let end = AgentEnd { exit, leaked: false, lost_session: false, stderr: stderr.into() };
            self.conductor.tree_gone(&end);
            self.conductor.agent_ended(end, Ok(Vec::new()));
            self.take();
        }
    }

    /// Lets everything happen that is due until then.
    pub(crate) fn tick_until(&mut self, at: Duration) {
        while let Some(due) = self.run().next_deadline().filter(|due| *due <= at) {
            self.tick(due);
        }
        self.at(at);
    }

    /// Lets the next deadline pass.
    pub(crate) fn tick(&mut self, due: Duration) {
        self.at(due);
        self.conductor.tick();
        self.take();
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
