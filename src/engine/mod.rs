//! The engine: what a process has once, and the loop that carries a run.
//!
//! A reader thread per pipe pushes batches of lines, a signal thread pushes signals, a writer thread takes chunks of
//! frames. The loop waits for all of them in one select, control before data, hands what came to the [`Conductor`], and
//! waits again. A batch is small enough that a control which comes meanwhile is served in time. Two gates bound memory:
//! nothing is taken from the agent while the outbox is full, and the send to the writer is one arm of the select, so that
//! a stdout nobody reads never keeps a cancel from being served.
//!
//! A panic in any thread ends the run by `internal_error`: the loop hears of it, and a run whose loop panicked is ended
//! without the loop.
//!
//! [`Engine::run`] can be called again and again. Between two runs, lines of stdin and signals wait for the next one.

mod answers;
mod ask_socket;
mod changes;
mod conductor;
mod debug_log;
pub mod dry_run;
mod host;
mod job;
mod machine;
mod opening;
mod outbox;
mod peer;
mod prepare;
mod relay;
mod run_loop;
mod stderr;
mod tape;

pub use answers::Script;
pub use conductor::Conductor;
pub use debug_log::DebugLog;
pub use job::{Awaited, Begin, Carried, Job, Next, Over, Prepared, Report};
pub use machine::{Departed, Machine};
pub use outbox::Outbox;
pub use peer::{InAdvance, Outgoing, Peer, Understood};
pub use prepare::{redactor_here, secrets_here};
pub use relay::relay;

use crate::failure::{Code, EXIT_UNDELIVERED, Failure};
use crate::io::faults;
use crate::io::inbox::{Inbox, Source};
use crate::io::output::{StdoutWriter, diagnose};
use crate::io::signals::{self, SignalChannels};
use crate::io::tty::LineModes;
use crate::process::myself;
use crate::process::tree::{self, Inherited};
use crate::run::{Ids, OnEof};
use conductor::RunSummary;
use crossbeam_channel::Receiver;
use host::Host;
use run_loop::RunLoop;

/// What stderr says where no frame can be delivered.
pub const UNDELIVERED: &str =
    "spektacular: undelivered: stdout was closed or is not read: how the run ended could not be told there";

/// What a process has once: its input, its signals, its output, and the numbers of the ids it gave out.
pub struct Engine {
    inbox: Inbox,
    /// Ready after a panic in any thread.
    faults: Receiver<()>,
    /// `None`: the signals could not be registered. No run is begun then.
    signals: Option<SignalChannels>,
    /// The children that were there before this program started any.
    inherited: Inherited,
    output: StdoutWriter,
    ids: Ids,
    random: String,
    /// The modes of terminals that carry JSON Lines, until the engine is dropped.
    modes: Option<LineModes>,
}

impl Engine {
    /// Registers the signals, becomes the parent of orphans, and starts the writer. stdin is first read when a run
    /// listens. To be made once in a process.
    pub fn start(source: Source) -> Engine {
        let faults = faults::listen();
        let signals = signals::listen().ok();
        tree::become_subreaper();
        let nonce = tree::nonce();
        let mut engine = Engine {
            inbox: Inbox::new(Source::Nothing),
            faults,
            signals,
            inherited: Inherited::find(),
            output: StdoutWriter::start(),
            ids: Ids::default(),
            random: nonce[..12.min(nonce.len())].to_owned(),
            modes: None,
        };
        engine.read(source);
        engine
    }

    /// Takes the input from `source`. Call this before the first run.
    pub fn read(&mut self, source: Source) {
        self.modes = matches!(source, Source::Stdin).then(LineModes::default);
        self.inbox = Inbox::new(source);
        self.switch_modes();
    }

    /// Switches the modes of terminals that carry JSON Lines, where that was not possible before.
    fn switch_modes(&mut self) {
        self.modes.iter_mut().for_each(LineModes::switch);
    }

    /// Carries one run to its end. Everything that goes wrong is a body for the peer, or the exit code 74 where none
    /// can be delivered.
    pub fn run(&mut self, mut job: Job, peer: &mut dyn Peer) -> Report {
        if self.inbox.closed {
            // Nobody is there from the beginning: nobody chose that.
            job.on_eof = OnEof::Continue;
        }
        let begin = std::mem::replace(&mut job.begin, Begin::FromInput);
        let conductor = Conductor::new(job, peer, Host::beside(&self.inherited), &self.random, self.ids);
        let begin = match self.signals {
            _ if !myself::has_room() => Begin::Refused(no_room()),
            Some(_) if self.output.has_thread => begin,
            Some(_) | None => Begin::Refused(no_thread()),
        };
        let (host, ending) = RunLoop::new(self, conductor).carry(begin);
        host.dismiss();
        self.report(ending)
    }

    fn report(&mut self, ending: RunSummary) -> Report {
        self.ids = ending.ids;
        self.output.lost |= ending.lost;
        if ending.incomplete_recording {
            diagnose("spektacular: warning: the recording is not complete: the file could not be written");
        }
        let code = ending.code.filter(|_| !ending.lost);
        if code.is_none() {
            diagnose(UNDELIVERED);
        }
        Report {
            code: code.unwrap_or(EXIT_UNDELIVERED),
            terminal: ending.terminal.filter(|_| code.is_some()),
            signal: ending.signal,
            unused_answers: ending.carried.answers.unused(),
            late: ending.late,
            worked: ending.worked,
            carried: ending.carried,
        }
    }
}

/// The failure of a run that would come to the limit of its memory.
fn no_room() -> Failure {
    let message = "The limit of this process's address space is below 64 MiB: raise it (`ulimit -v`).";
    Failure::new(Code::ResourceExhausted, message)
}

/// The failure of a run for which no thread could be started.
fn no_thread() -> Failure {
    let message = "Cannot start a thread: free some memory or processes.";
    Failure::new(Code::ResourceExhausted, message).retryable()
}
