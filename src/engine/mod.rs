//! The engine: the state that a process has once, and the loop that drives a run.
//!
//! A reader thread per pipe waits for its lines, a signal thread pushes signals. The loop waits for all of them in one
//! select, control before data, passes each event to the [`Conductor`], writes the frames, and waits again. It takes at
//! most 64 lines of the agent in a row, so that a control event that arrives meanwhile is served in time. The loop
//! never waits for stdout: bytes that a pipe or socket does not accept at once, and all bytes for a terminal or a file,
//! go to a writer thread. Two rules limit memory: the loop takes nothing from the agent while the outbox is full, and
//! sending to the writer is one arm of the select, so that an unread stdout never delays a cancel.
//!
//! No thread starts before run.started is written, if the run.start is there in time: see [`Inbox::first`].
//!
//! A panic in any thread ends the run with `internal_error`. The loop learns of panics in other threads; if the loop
//! itself panics, the run is ended without it.
//!
//! A process has one run. That of a workflow consists of parts: the workflow, which is blocking code, gives the loop of the
//! open run one part after another, and the loop returns with the end of each ([`RunLoop::part`]). The workflow and the
//! loop never work at the same time, so they share a thread. Between two parts, lines of stdin and signals wait for the
//! next one.

mod answers;
mod ask_connections;
mod ask_socket;
mod changes;
mod conductor;
pub(crate) mod dry_run;
mod host;
mod images;
mod job;
mod local_host;
mod overwritten;
mod peer;
mod prepare;
mod recordings;
mod run_loop;
mod server_reports;
mod session_lock;
mod stderr;

pub use crate::io::outbox::Outbox;
pub use answers::Script;
pub use ask_connections::{AskConnections, AskEvent, AskOutcome};
pub(crate) use ask_socket::ADDRESS as ASK_ADDRESS;
pub use conductor::{Conductor, Recorded};
pub use host::Host;
pub use job::{Admission, Admit, Awaited, Begin, Job, Prepared, Report, Successor};
pub use peer::{InAdvance, Outgoing, Peer, ScreenChange, ScreenPeer, Understood};
pub(crate) use prepare::flaw_in_file;
pub use prepare::{redactor_here, secrets_here};
pub use recordings::DebugLog;
pub use run_loop::RunLoop;
pub(crate) use server_reports::LAUNCH;
pub use server_reports::ServerReport;

use crate::io::inbox::{Inbox, Source};
use crate::io::output::{StdoutWriter, streams_are_apart};
use crate::io::signals::{self, SignalChannels};
use crate::io::tty::LineModes;
use crate::io::{panic_channel, threads};
use crate::process::guard::Guard;
use crate::process::tree::{self, Inherited};
use crate::protocol::failure::{Code, Failure};
use crate::run::OnEof;
use crossbeam_channel::Receiver;
use local_host::LocalHost;

/// The line on stderr if the last frame cannot be delivered.
pub const UNDELIVERED: &str = "spektacular: undelivered: stdout closed early or unread; run stopped";

pub struct Engine {
    inbox: Inbox,
    /// Ready after a panic in any thread.
    panics: Receiver<()>,
    /// `None`: the signals could not be registered, so no run can begin.
    signals: Option<SignalChannels>,
    /// The children that existed before this program started any.
    inherited: Inherited,
    output: StdoutWriter,
    random: String,
    /// The changed modes of terminals that carry JSON Lines, restored when the engine is dropped.
    modes: Option<LineModes>,
}

impl Engine {
    /// Registers the signals and becomes the parent of orphans. stdin is first read when the run listens. Call it once
    /// per process.
    pub fn start(source: Source) -> Engine {
        Engine::with(signals::listen().ok(), source)
    }

    pub(crate) fn with(signals: Option<SignalChannels>, source: Source) -> Engine {
        let panics = signals.as_ref().map_or_else(panic_channel::listen, |signals| signals.panics.clone());
        tree::become_subreaper();
        let nonce = tree::nonce();
        let mut engine = Engine {
            inbox: Inbox::new(Source::Nothing),
            panics,
            signals,
            inherited: Inherited::find(),
            output: StdoutWriter::new(),
            random: nonce[..12.min(nonce.len())].to_owned(),
            modes: None,
        };
        engine.read(source);
        engine
    }

    pub(crate) fn know(&mut self, guard: &Guard) {
        self.inherited.except(guard.pid());
    }

    /// Takes the input from `source`. Call this before the run.
    pub fn read(&mut self, source: Source) {
        self.modes = matches!(source, Source::Stdin).then(LineModes::default);
        self.inbox = Inbox::new(source);
        self.switch_modes();
    }

    fn switch_modes(&mut self) {
        self.modes.iter_mut().for_each(LineModes::switch);
    }

    /// Drives the run to its end. Every failure becomes a body for the peer, or exit code 74 if none can be delivered.
    pub fn run(&mut self, job: Job, peer: &mut dyn Peer) -> Report {
        RunLoop::begin(self, job, peer).finish()
    }

    /// Opens the run of a workflow: takes the run.start, checks it, and emits run.started. Error: the run is over already.
    pub fn open<'e, 'p>(&'e mut self, job: Job, peer: &'p mut dyn Peer) -> Result<RunLoop<'e, 'p>, Box<Report>> {
        let opened = RunLoop::begin(self, job, peer);
        if opened.is_open() { Ok(opened) } else { Err(Box::new(opened.finish())) }
    }

    fn conductor<'p>(&self, mut job: Job, peer: &'p mut dyn Peer) -> (Conductor<&'p mut dyn Peer, LocalHost>, Begin) {
        if self.inbox.closed {
            // stdin was closed from the beginning, so its end is not a decision of the user.
            job.on_eof = OnEof::Continue;
        }
        let begin = std::mem::replace(&mut job.begin, Begin::FromInput);
        let mut conductor = Conductor::new(job, peer, LocalHost::beside(&self.inherited), &self.random);
        conductor.outbox().set_apart(streams_are_apart());
        let begin = match (threads::low_limit(), &self.signals) {
            (Some(limit), _) => Begin::Refused(Failure::new(Code::ResourceExhausted, limit)),
            (None, Some(_)) => begin,
            (None, None) => Begin::Refused(Failure::no_thread()),
        };
        (conductor, begin)
    }
}
