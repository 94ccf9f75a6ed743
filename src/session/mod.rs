//! The session: one loop thread that owns all state, and threads around it that hold none.
//!
//! A reader thread per pipe pushes lines, a signal thread pushes signals, a writer thread takes chunks. The loop
//! waits for all of them in one select, control before data, hands what came to [`Run`], and carries out what it
//! wants. Two gates bound memory: nothing is taken from the agent while the outbox is full, and the send to the writer
//! is one arm of the select, so that a stdout nobody reads never keeps a cancel from being served.

mod child;
mod doors;
mod effects;
pub mod git;
pub mod guard;
mod lines;
mod prepare;
mod process;
mod sources;
pub mod tree;
mod tty;
mod writer;

pub use doors::{Front, JsonFront};
pub use sources::{Control, Source, stdout_is_closed};
pub use writer::{Chunk, diagnose, print};

use crate::agent::{Launch, Line};
use crate::failure::{Code, EXIT_UNDELIVERED, Failure};
use crate::protocol::frame::Stamper;
use crate::protocol::inbound::{Inbound, Message, is_run_id};
use crate::protocol::limits;
use crate::protocol::outbound::Json;
use crate::protocol::request::{Options, Settings};
use crate::protocol::words::Source as CancelSource;
use crate::recording::{Moment, Piece, Recorder};
use crate::run::{Answered, Event, Gone, Input, OnEof, Origin, Refusal, Run};
use child::{Agent, Data, Process};
use crossbeam_channel::{Receiver, Sender, at, bounded, never, select_biased};
use guard::Guard;
use rustix::process::Signal;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tree::Swept;
use writer::Written;

/// Frames, and bytes of them, that wait for the writer before the agent is no longer read.
const OUTBOX_FRAMES: usize = 32;
const OUTBOX_BYTES: usize = 1 << 20;
/// How long the sweep of what outlived the agent may take after an end by itself, and after a stop.
const LEAK_LIMIT: Duration = Duration::from_secs(2);
const LEAK_LIMIT_STOPPED: Duration = Duration::from_millis(500);
/// How long git may take to say what changed, each before and after.
const GIT_LIMIT: Duration = Duration::from_millis(200);
/// How long an orchestrator that does not read is waited for after a stop.
const UNREAD_LIMIT: Duration = Duration::from_secs(1);

/// What stderr says where no frame can be delivered.
pub const UNDELIVERED: &str = "spektacular: undelivered: stdout is closed or not read: no run can be told of there";

/// What a session is made of.
pub struct Setup {
    /// Who sees the frames.
    pub front: Box<dyn Front>,
    /// Where messages come from.
    pub source: Source,
    /// A run.start made of flags.
    pub first: Option<Inbound>,
    /// A failure that keeps the run from beginning: a bad flag.
    pub refused: Option<Failure>,
    /// The layer below run.start.
    pub defaults: Options,
    /// What the end of stdin does.
    pub on_eof: OnEof,
    /// Where the dialogue with the agent is recorded.
    pub record: Option<PathBuf>,
    /// Whether the agent's stderr is copied to ours.
    pub mirror_stderr: bool,
    /// Whom a signal counts as: a person at a terminal, or a signal.
    pub signal_source: CancelSource,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code of the protocol's table.
    pub code: u8,
    /// The first signal that cancelled it.
    pub signal: Option<i32>,
}

struct Session {
    began: Instant,
    run: Run,
    front: Box<dyn Front>,
    defaults: Options,
    signal_source: CancelSource,
    stamper: Stamper,
    frame_limit: usize,
    nonce: String,
    mirror_stderr: bool,
    recorder: Option<Recorder>,
    /// Bytes of the line that is being dealt with.
    taken: usize,
    /// The pieces of messages in the line that is being dealt with.
    said: Vec<Piece>,
    agent: Option<Agent>,
    guard: Option<Guard>,
    end: AgentEnd,
    /// What the working directory was like before the agent ran.
    baseline: Option<git::Pending>,
    /// The agent that is to be started once run.started is on its way.
    to_spawn: Option<(Box<Launch>, Box<Settings>)>,
    outbox: VecDeque<Chunk>,
    /// Since when the outbox holds something that nobody takes.
    blocked: Option<Instant>,
    stopping: Option<Instant>,
    signal: Option<i32>,
    lost: bool,
    finished: bool,
}

/// The agent's end has parts that come in any order.
#[derive(Default)]
struct AgentEnd {
    swept: Option<Swept>,
    stdout: bool,
    stderr: Option<String>,
}

/// Runs one session to its end.
///
/// # Errors
/// None: everything that goes wrong is a frame, or the exit code 74 where no frame can be delivered.
pub fn run(setup: Setup) -> Ended {
    let began = Instant::now();
    let _modes = (setup.source == Source::JsonLines).then(tty::LineModes::switch);
    let signals = sources::signals();
    tree::become_subreaper();
    let nonce = tree::nonce();
    let redactor = prepare::redactor();
    let (control_in, control) = bounded(64);
    let (chunks, written) = writer_thread();
    let recorder = setup.record.as_ref().map(|path| Recorder::create(path));
    let mut session = Session {
        began,
        run: Run::new(&nonce[..12.min(nonce.len())], setup.on_eof, redactor),
        front: setup.front,
        defaults: setup.defaults,
        signal_source: setup.signal_source,
        stamper: Stamper::new(),
        frame_limit: limits::FRAME_BYTES,
        nonce,
        mirror_stderr: setup.mirror_stderr,
        recorder: None,
        taken: 0,
        said: Vec::new(),
        agent: None,
        guard: None,
        end: AgentEnd::default(),
        baseline: None,
        to_spawn: None,
        outbox: VecDeque::new(),
        blocked: None,
        stopping: None,
        signal: None,
        lost: false,
        finished: false,
    };
    match recorder {
        Some(Ok(recorder)) => session.recorder = Some(recorder),
        Some(Err(_)) => session.step(Event::Refused(Failure::new(
            Code::Usage,
            "--record: the file cannot be written: name one in a directory that you may write to.",
        ))),
        None => {}
    }
    if let Some(failure) = setup.refused {
        session.step(Event::Refused(failure));
    }
    if let Some(first) = setup.first {
        session.inbound(first);
    }
    if !session.finished {
        sources::start(setup.source, control_in);
    }
    session.run_loop(&signals, control, chunks, &written)
}

fn writer_thread() -> (Sender<Chunk>, Receiver<Written>) {
    // No room: a chunk counts as taken when the writer is about to write it.
    let (chunks_in, chunks) = bounded(0);
    let (done_in, done) = bounded(2);
    let lost = done_in.clone();
    let work = move || writer::write_chunks(&chunks, &done_in);
    if std::thread::Builder::new().name("stdout".into()).spawn(work).is_err() {
        let _ = lost.send(Written::Lost);
    }
    sources::watch_stdout(lost);
    (chunks_in, done)
}

impl Session {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// No `?` in here: every error is an event, so that draining, reaping and the terminal frame always happen.
    fn run_loop(
        mut self,
        signals: &Receiver<i32>,
        mut control: Receiver<Control>,
        chunks: Sender<Chunk>,
        written: &Receiver<Written>,
    ) -> Ended {
        let mut chunks = Some(chunks);
        // Never ready: its receiver is kept and never asked.
        let (nowhere, _kept) = bounded::<Chunk>(0);
        loop {
            self.spawn_if_due();
            if self.finished && self.outbox.is_empty() {
                // The writer's channel ends, and it says when everything was written.
                chunks = None;
            }
            let timer = self.wake_at().map_or_else(never, at);
            let sink = chunks.as_ref().filter(|_| !self.outbox.is_empty()).unwrap_or(&nowhere);
            let (data, process) = self.agent_channels();
            let more = if self.run.has_more() && !self.outbox_is_full() { at(Instant::now()) } else { never() };
            select_biased! {
                recv(signals) -> signal => self.signalled(signal.unwrap_or_default()),
                recv(control) -> message => match message {
                    Ok(message) => self.controlled(message),
                    Err(_) => control = never(),
                },
                recv(process) -> event => match event {
                    Ok(event) => self.process(event),
                    Err(_) => self.crash(),
                },
                recv(timer) -> _ => self.step(Event::Tick),
                send(sink, self.outbox.pop_front().unwrap_or_default()) -> _ => {
                    self.blocked = (!self.outbox.is_empty()).then(Instant::now);
                }
                recv(written) -> done => match done {
                    Ok(Written::All) => {
                        let code = self.run.exit_code();
                        return self.ended(code);
                    }
                    _ if self.lost => {}
                    _ => self.output_lost(),
                },
                recv(more) -> _ => self.more(),
                recv(data) -> item => match item {
                    Ok(item) => self.data(item),
                    Err(_) => self.crash(),
                },
            }
            if self.lost && self.finished || self.is_undeliverable() {
                return self.ended(None);
            }
        }
    }

    /// The agent's channels, each `never` where nothing more is expected or wanted: an ended channel is always ready.
    fn agent_channels(&self) -> (Receiver<Data>, Receiver<Process>) {
        let Some(agent) = &self.agent else { return (never(), never()) };
        let drained = self.end.stdout && self.end.stderr.is_some();
        let data = if drained || self.outbox_is_full() || self.run.has_more() { never() } else { agent.data.clone() };
        (data, if self.end.swept.is_some() { never() } else { agent.process.clone() })
    }

    fn outbox_is_full(&self) -> bool {
        let bytes: usize = self.outbox.iter().map(|chunk| chunk.out.len()).sum();
        self.outbox.len() >= OUTBOX_FRAMES || bytes >= OUTBOX_BYTES
    }

    fn ended(mut self, code: Option<u8>) -> Ended {
        self.settle_recording(true);
        if self.recorder.as_ref().is_some_and(Recorder::failed) {
            diagnose("spektacular: warning: the recording is not complete: the file could not be written");
        }
        if let Some(agent) = &self.agent {
            // Only where the terminal frame could not be delivered can anything be left.
            agent.signal(Signal::KILL);
        }
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        if self.lost || code.is_none() {
            diagnose(UNDELIVERED);
        }
        let code = if self.lost { EXIT_UNDELIVERED } else { code.unwrap_or(EXIT_UNDELIVERED) };
        Ended { code, signal: self.signal }
    }

    fn wake_at(&self) -> Option<Instant> {
        let run = self.run.next_deadline().map(|deadline| self.began + deadline);
        [run, self.unread_until()].into_iter().flatten().min()
    }

    /// After a stop, when an orchestrator that does not read has been waited for long enough.
    fn unread_until(&self) -> Option<Instant> {
        let tree_is_gone = self.agent.is_none() || self.end.swept.is_some();
        let (stopping, blocked) = (self.stopping?, self.blocked?);
        tree_is_gone.then(|| stopping.max(blocked) + UNREAD_LIMIT)
    }

    fn is_undeliverable(&self) -> bool {
        self.unread_until().is_some_and(|until| until <= Instant::now())
    }

    fn output_lost(&mut self) {
        self.lost = true;
        self.outbox.clear();
        self.step(Event::OutputLost);
        if self.agent.is_none() {
            self.finished = true;
        }
    }

    fn crash(&mut self) {
        let effects = self.run.crashed();
        self.carry_out(effects);
        self.finished = true;
        self.signal_agent(Signal::KILL);
        self.agent = None;
    }

    // What came.

    fn step(&mut self, event: Event<'_>) {
        let now = self.now();
        let run = &mut self.run;
        match catch_unwind(AssertUnwindSafe(|| run.step(now, event))) {
            Ok(effects) => self.carry_out(effects),
            Err(_) => self.crash(),
        }
        if self.stopping.is_none() && self.run.is_stopping() {
            self.stopping = Some(Instant::now());
            self.blocked = self.blocked.map(|_| Instant::now());
        }
    }

    fn signalled(&mut self, signal: i32) {
        if sources::is_suspend(signal) {
            return self.suspend();
        }
        if self.signal.is_none() {
            self.signal = Some(signal);
        }
        if self.finished {
            // The outcome is out; whoever does not read it is not waited for any longer.
            self.stopping = self.stopping.or(Some(Instant::now()));
            return;
        }
        self.step(Event::Cancel(Origin::default(), None, self.signal_source));
    }

    /// Ctrl-Z: the agent stops with us, and goes on with us.
    fn suspend(&mut self) {
        self.signal_agent(Signal::STOP);
        sources::stop_ourselves();
        self.signal_agent(Signal::CONT);
    }

    fn signal_agent(&mut self, signal: Signal) {
        self.settle_git();
        if let Some(agent) = &self.agent {
            agent.signal(signal);
        }
    }

    /// A git of ours comes from us like what comes from the agent: it must be over before that is ended.
    fn settle_git(&mut self) {
        if let Some(baseline) = &mut self.baseline {
            baseline.settle();
        }
    }

    fn controlled(&mut self, control: Control) {
        match control {
            Control::Inbound(inbound) => self.inbound(inbound),
            Control::Typed(line) => {
                for inbound in self.front.typed(line) {
                    self.inbound(inbound);
                }
            }
            Control::Ended => self.step(Event::InputEnded),
        }
    }

    fn inbound(&mut self, inbound: Inbound) {
        let origin = Origin { id: inbound.id, run_id: inbound.run_id };
        let event = match inbound.message {
            Message::Malformed => Event::Malformed(origin),
            Message::Unsupported => Event::Unsupported(origin),
            Message::UnknownType => Event::UnknownType(origin),
            Message::Cancel { reason } => Event::Cancel(origin, reason, CancelSource::Orchestrator),
            Message::Start(_) if !self.run.is_waiting() => {
                let failure = Failure::new(Code::InvalidRequest, "A second run.start.");
                Event::Start(origin, Err(Refusal { failure, metadata: None }))
            }
            Message::Start(start) => {
                let (options, wrong) = *start;
                let metadata = options.metadata.clone().or_else(|| self.defaults.metadata.clone()).map(Json);
                let bad_id = origin.run_id.as_ref().is_some_and(|id| !is_run_id(id));
                let start = if bad_id {
                    let message = "run.start: `run_id` must match ^[A-Za-z0-9._:-]{1,128}$.";
                    Err(Failure::new(Code::InvalidRequest, message))
                } else {
                    prepare::start(options, wrong, &self.defaults)
                };
                Event::Start(origin, start.map_err(|failure| Refusal { failure, metadata }))
            }
            Message::Input(input) => {
                let cwd = input.question_id.as_deref().and_then(|id| self.run.path_question(id));
                let answered: Option<Answered> = input.given.map(|given| prepare::answer(given, cwd.as_deref()));
                Event::Input(origin, Input { question_id: input.question_id, answered, message: input.message })
            }
        };
        self.step(event);
    }

    fn process(&mut self, event: Process) {
        match event {
            Process::Exited => {
                self.settle_git();
                let limit = if self.run.is_stopping() { LEAK_LIMIT_STOPPED } else { LEAK_LIMIT };
                if let Some(agent) = &self.agent {
                    agent.sweep(limit);
                }
            }
            Process::Swept(swept) => {
                self.end.swept = Some(swept);
                self.gone();
            }
        }
    }

    fn data(&mut self, item: Data) {
        match item {
            Data::Line(line) => {
                self.record(|| Moment::Agent(line.clone()));
                self.taken += line.len();
                self.step(Event::Line(Line::Text(line.into())));
                self.line_done();
            }
            Data::TooLong => self.step(Event::Line(Line::TooLong)),
            Data::Stderr(line) => {
                self.record(|| Moment::Stderr(line.clone()));
                if self.mirror_stderr {
                    let clean = self.run.redactor().redact(&line).into_owned();
                    self.outbox.push_back(Chunk { err: format!("{clean}\n").into_bytes(), out: Vec::new() });
                }
            }
            Data::End => {
                self.end.stdout = true;
                self.gone();
            }
            Data::StderrEnd(tail) => {
                self.end.stderr = Some(tail);
                self.gone();
            }
        }
    }

    fn more(&mut self) {
        self.step(Event::More);
        self.line_done();
    }

    /// Once a line is taken as a whole, the next may be read.
    fn line_done(&mut self) {
        if self.run.has_more() {
            return;
        }
        let taken = std::mem::take(&mut self.taken);
        if let Some(agent) = &self.agent {
            agent.taken(taken);
        }
        self.settle_recording(false);
    }

    /// Once every part of the agent's end is there, the run learns of it.
    fn gone(&mut self) {
        let AgentEnd { swept: Some(swept), stdout: true, stderr: Some(tail) } = &self.end else { return };
        let (leaked, stderr_tail) = (swept.killed > 0, crate::clean::whole(tail));
        let Some(mut agent) = self.agent.take() else { return };
        let exit = agent.reap();
        self.record(|| match exit.signal {
            Some(signal) => Moment::Signal(signal),
            None => Moment::Exit(exit.code.unwrap_or_default()),
        });
        self.settle_recording(true);
        let stderr_tail = self.run.redactor().redact(&stderr_tail).into_owned();
        let baseline = self.baseline.take().filter(|_| !self.run.is_stopping());
        let files = match baseline.map_or(git::Changes::NotARepository, |baseline| baseline.changes(GIT_LIMIT)) {
            git::Changes::NotARepository => Some(Vec::new()),
            git::Changes::Incomplete => None,
            git::Changes::Files(files) => Some(files),
        };
        self.step(Event::Gone(Gone { exit, leaked, stderr_tail, files }));
    }

    fn record(&mut self, moment: impl FnOnce() -> Moment) {
        let at = self.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.moment(at, moment());
        }
    }

    /// Once an event is dealt with, what came of it belongs into the recording.
    fn settle_recording(&mut self, end: bool) {
        let Some(recorder) = &mut self.recorder else { return };
        recorder.pieces(std::mem::take(&mut self.said));
        recorder.settle(self.run.redactor(), end);
    }
}
