//! The session: one loop thread that owns all state, and threads around it that hold none.
//!
//! A reader thread per pipe pushes lines, a signal thread pushes signals, a writer thread takes chunks. The loop
//! waits for all of them in one select, control before data, hands what came to [`Run`], and carries out what it
//! wants. Two gates bound memory: nothing is taken from the agent while the outbox is full, and the send to the writer
//! is one arm of the select, so that a stdout nobody reads never keeps a cancel from being served.

mod ask_socket;
mod changes;
mod child;
mod debug;
mod doors;
mod effects;
mod events;
pub mod git;
pub mod guard;
pub mod handover;
mod keys;
mod lines;
mod myself;
mod outbox;
pub mod plan;
mod prepare;
mod process;
pub mod query;
mod relay;
mod script;
mod sources;
mod stderr;
pub mod stdin;
pub mod tree;
mod tty;
mod writer;

pub use child::not_found as agent_not_found;
pub use debug::DebugLog;
pub use doors::{Front, JsonFront, Typed};
pub use keys::Keys;
pub use prepare::redactor_for;
pub use relay::relay;
pub use script::Script;
pub use sources::{Awaited, Control, First, Source, end_by, stdout_is_closed};
pub use tree::nonce;
pub use tty::{Hidden, Keyboard, columns, is_in_front};
pub use writer::{Chunk, deliver, diagnose, print, print_bytes};

use crate::agent::Launch;
use crate::agent::registry::Layers;
use crate::failure::{Code, EXIT_UNDELIVERED, Failure};
use crate::protocol::frame::Stamper;
use crate::protocol::limits;
use crate::protocol::request::Settings;
use crate::protocol::words::{Source as CancelSource, Warning};
use crate::recording::{self, Piece, Recorder};
use crate::run::{Event, OnEof, Run};
use ask_socket::{AskSocket, Heard};
use child::{Agent, Data, Process};
use crossbeam_channel::{Receiver, Sender, at, bounded, never, select_biased};
use guard::Guard;
use outbox::Outbox;
use rustix::process::Signal;
use std::os::unix::fs::FileTypeExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tree::Swept;
use writer::Written;

/// Messages that are taken in a row while lines of the agent wait.
const CONTROLS_IN_ROW: u32 = 16;
/// How long the sweep of what outlived the agent may take after an end by itself, and after a stop.
const LEAK_LIMIT: Duration = Duration::from_secs(2);
const LEAK_LIMIT_STOPPED: Duration = Duration::from_millis(500);
/// How long an orchestrator that does not read is waited for after a stop.
const UNREAD_LIMIT: Duration = Duration::from_secs(1);

/// What stderr says where no frame can be delivered.
pub const UNDELIVERED: &str =
    "spektacular: undelivered: stdout was closed or is not read: how the run ended could not be told there";

/// What a session is made of.
pub struct Setup {
    /// Who sees the frames.
    pub front: Box<dyn Front>,
    /// Where messages come from.
    pub source: Source,
    /// Where run.start comes from.
    pub first: First,
    /// Answers that were given before the questions came.
    pub script: Script,
    /// A failure that keeps the run from beginning: a bad flag.
    pub refused: Option<Failure>,
    /// What holds where run.start does not say.
    pub layers: Layers,
    /// What the configuration brought up.
    pub warnings: Vec<String>,
    /// What the end of stdin does, where it is read.
    pub on_eof: OnEof,
    /// Where the dialogue with the agent is recorded.
    pub record: Option<PathBuf>,
    /// Where it is recorded too, run by run.
    pub debug_log: Option<DebugLog>,
    /// Whether the agent's stderr is copied to ours.
    pub mirror_stderr: bool,
    /// Whom a signal counts as: a person at a terminal, or a signal.
    pub signal_source: CancelSource,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code of the protocol's table.
    pub code: u8,
    /// The first signal that cancelled it.
    pub signal: Option<i32>,
    /// The agent's session, if there was one.
    pub session_id: Option<String>,
    /// How many of the answers that were given in advance fitted no question.
    pub unused_answers: usize,
}

struct Session {
    began: Instant,
    run: Run,
    front: Box<dyn Front>,
    script: Script,
    session_id: Option<String>,
    layers: Layers,
    debug_log: Option<DebugLog>,
    signal_source: CancelSource,
    stamper: Stamper,
    frame_limit: usize,
    nonce: String,
    mirror_stderr: bool,
    /// The terminals that carry messages and frames, where they may be terminals.
    modes: Option<tty::LineModes>,
    recorder: Option<Recorder>,
    /// The recording that was asked for: no work of the agent's.
    recorded: Option<PathBuf>,
    /// Bytes of the line that is being dealt with.
    taken: usize,
    /// The pieces of messages in the line that is being dealt with.
    said: Vec<Piece>,
    agent: Option<Agent>,
    /// Where the agent's model asks, if it is offered that.
    asking: Option<AskSocket>,
    guard: Option<Guard>,
    end: AgentEnd,
    /// What git is asked about this run.
    watch: changes::Watch,
    /// The agent that is to be started once run.started is on its way.
    to_spawn: Option<(Box<Launch>, Box<Settings>)>,
    outbox: Outbox,
    /// Messages that were ignored because stdout is not read.
    ignored: u64,
    controls_in_row: u32,
    stderr: stderr::Lines,
    /// Since when the run is being ended against somebody's will.
    stopping: Option<Instant>,
    swept_at: Option<Instant>,
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
    let mut modes = matches!(setup.source, Source::JsonLines).then(tty::LineModes::default);
    modes.iter_mut().for_each(tty::LineModes::switch);
    let signals = sources::signals();
    tree::become_subreaper();
    let nonce = nonce();
    let (control_in, control) = bounded(64);
    let (chunks, written) = writer_thread();
    let record = setup.record.as_deref().map(open_recording);
    // Without a source stdin is at its end from the beginning: nobody chose that.
    let on_eof = if matches!(setup.source, Source::Nothing) { OnEof::Continue } else { setup.on_eof };
    let mut session = Session {
        began,
        run: Run::new(&nonce[..12.min(nonce.len())], on_eof, prepare::redactor()),
        front: setup.front,
        script: setup.script,
        session_id: None,
        layers: setup.layers,
        debug_log: setup.debug_log,
        signal_source: setup.signal_source,
        stamper: Stamper::new(),
        frame_limit: limits::FRAME_BYTES,
        nonce,
        mirror_stderr: setup.mirror_stderr,
        modes,
        recorder: None,
        recorded: setup.record.clone(),
        taken: 0,
        said: Vec::new(),
        agent: None,
        asking: None,
        guard: None,
        end: AgentEnd::default(),
        watch: changes::Watch::default(),
        to_spawn: None,
        outbox: Outbox::default(),
        ignored: 0,
        controls_in_row: 0,
        stderr: stderr::Lines::default(),
        stopping: None,
        swept_at: None,
        signal: None,
        lost: false,
        finished: false,
    };
    for warning in setup.warnings {
        session.step(Event::Warn(Warning::UnsupportedOption, warning));
    }
    if let Some(file) = record {
        session.record_into(file);
    }
    if let Some(failure) = setup.refused {
        session.refuse(failure);
    }
    let awaited = match setup.first {
        First::OnSource => None,
        First::Awaited(work) => Some(work),
    };
    let started = signals.is_ok() && (session.finished || sources::start(setup.source, awaited, control_in).is_ok());
    if !started && !session.finished {
        let message = "No thread could be started: free some memory or processes.";
        session.step(Event::Refused(Failure::new(Code::ResourceExhausted, message).retryable()));
    }
    session.run_loop(&signals.unwrap_or_else(|_| never()), control, chunks, &written)
}

fn open_recording(path: &Path) -> std::io::Result<std::fs::File> {
    // Opening a pipe would wait for somebody to read it.
    if std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo()) {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    recording::private().create(true).truncate(true).open(path)
}

fn writer_thread() -> (Sender<Chunk>, Receiver<Written>) {
    // No room: a chunk counts as taken when the writer is about to write it.
    let (chunks_in, chunks) = bounded(0);
    let (done_in, done) = bounded(2);
    let watcher = done_in.clone();
    let work = move || writer::write_chunks(&chunks, &done_in);
    if std::thread::Builder::new().name("stdout".into()).spawn(work).is_err() {
        let _ = watcher.send(Written::Lost);
    }
    sources::watch_stdout(watcher);
    (chunks_in, done)
}

impl Session {
    fn record_into(&mut self, file: std::io::Result<std::fs::File>) {
        match file {
            Ok(file) => self.recorder.get_or_insert_default().add(file),
            Err(_) => self.step(Event::Refused(Failure::new(
                Code::Usage,
                "--record: the file cannot be written: name one in a directory that you may write to.",
            ))),
        }
    }

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
            while let Some(answer) = self.script.next() {
                self.inbound(answer);
            }
            if self.finished && self.outbox.is_empty() {
                // The writer's channel ends, and it says when everything was written.
                chunks = None;
            }
            let timer = self.wake_at().map_or_else(never, at);
            let sink = chunks.as_ref().filter(|_| !self.outbox.is_empty()).unwrap_or(&nowhere);
            let (data, process) = self.agent_channels();
            let asks = self.asks();
            let more = if self.run.has_more() && !self.outbox.is_full() { at(Instant::now()) } else { never() };
            // Messages go before the agent's lines, but a flood of them must not keep these away for ever.
            let flooded = self.controls_in_row >= CONTROLS_IN_ROW && !data.is_empty();
            let messages = if flooded { never() } else { control.clone() };
            self.controls_in_row = if flooded { 0 } else { self.controls_in_row };
            select_biased! {
                recv(signals) -> signal => self.signalled(signal.unwrap_or_default()),
                recv(timer) -> _ => self.tick(),
                recv(process) -> event => match event {
                    Ok(event) => self.process(event),
                    Err(_) => self.crash(),
                },
                send(sink, self.outbox.pop()) -> _ => {}
                recv(written) -> done => match done {
                    Ok(Written::All) => {
                        let code = self.run.exit_code();
                        return self.ended(code);
                    }
                    _ if self.lost => {}
                    // Whoever leaves after the last frame has what there is; if not, the writer says so.
                    Ok(Written::Closed) if self.finished && self.outbox.is_empty() => {}
                    _ => self.output_lost(),
                },
                recv(messages) -> message => match message {
                    Ok(message) => self.controlled(message),
                    Err(_) => control = never(),
                },
                recv(asks) -> heard => heard.into_iter().for_each(|heard| self.heard(heard)),
                recv(self.watch.told()) -> told => self.git_told(told.ok()),
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
        // A flood of messages fills the outbox with answers to them: that must not shut the agent out.
        let flooded = self.controls_in_row >= CONTROLS_IN_ROW;
        let full = if flooded { self.outbox.is_overfull() } else { self.outbox.is_full() };
        let data = if drained || full || self.run.has_more() { never() } else { agent.data.clone() };
        (data, if self.end.swept.is_some() { never() } else { agent.process.clone() })
    }

    /// What the agent's model asks. Like its lines it waits for an orchestrator that does not read.
    fn asks(&self) -> Receiver<Heard> {
        let socket = self.asking.as_ref().filter(|_| !self.outbox.is_full() && !self.finished);
        socket.map_or_else(never, |socket| socket.heard.clone())
    }

    fn ended(mut self, code: Option<u8>) -> Ended {
        self.watch.end();
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
        let unused_answers = self.script.unused();
        Ended { code, signal: self.signal, session_id: self.session_id, unused_answers }
    }

    fn wake_at(&self) -> Option<Instant> {
        let run = self.run.next_deadline().map(|deadline| self.began + deadline);
        let progress = self.asking.as_ref().and_then(AskSocket::progress_at);
        // While something waits to be written, what is new would only wait behind it.
        let front = self.front.wake_at().filter(|_| self.outbox.is_empty());
        [run, progress, self.unread_until(), front, self.watch.due()].into_iter().flatten().min()
    }

    /// After a stop, and once the agent's tree is gone, when an orchestrator that does not read has been waited for
    /// long enough. Nothing that is read meanwhile moves this.
    fn unread_until(&self) -> Option<Instant> {
        let gone = match (&self.agent, self.swept_at) {
            (Some(_), None) => return None,
            (_, swept) => swept,
        };
        self.stopping.map(|stopping| gone.map_or(stopping, |gone| gone.max(stopping)) + UNREAD_LIMIT)
    }

    fn is_undeliverable(&self) -> bool {
        self.unread_until().is_some_and(|until| until <= Instant::now())
    }

    fn output_lost(&mut self) {
        self.outbox.clear();
        let err = self.front.leave();
        self.push(Chunk { err, ..Chunk::default() });
        self.lost = true;
        self.step(Event::OutputLost);
        if self.agent.is_none() {
            self.finished = true;
        }
    }

    /// The end of a run whose own code failed: what it started is ended first.
    fn crash(&mut self) {
        self.watch.end();
        if let Some(mut agent) = self.agent.take() {
            agent.end_now(LEAK_LIMIT_STOPPED);
        }
        let effects = self.run.crashed();
        self.carry_out(effects);
        self.finished = true;
        self.stopping = self.stopping.or(Some(Instant::now()));
    }

    // What came.

    fn step(&mut self, event: Event<'_>) {
        let taken = catch_unwind(AssertUnwindSafe(|| {
            let now = self.now();
            let effects = self.run.step(now, event);
            self.carry_out(effects);
        }));
        if taken.is_err() {
            self.crash();
        }
        if self.stopping.is_none() && self.run.is_stopping() {
            self.stopping = Some(Instant::now());
        }
    }

    fn tick(&mut self) {
        if self.outbox.is_full() && self.agent.as_ref().is_some_and(|agent| !agent.data.is_empty()) {
            // It is not the agent that is silent: nobody listens.
            self.step(Event::NotRead);
        }
        if let Some(socket) = &mut self.asking {
            socket.progress();
        }
        self.step(Event::Tick);
        self.tire_of_git();
        if self.outbox.is_empty() && self.front.wake_at().is_some_and(|at| at <= Instant::now()) {
            let chunk = self.front.woken();
            self.push(chunk);
        }
    }
}
