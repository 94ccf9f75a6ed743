//! The request for a run, and its result.

use super::answers::Script;
use super::debug_log::DebugLog;
use super::resting::{RestingAgent, RestingPlace};
use crate::agent::Driver;
use crate::config::Layers;
use crate::io::spawn_thread;
use crate::protocol::failure::Failure;
use crate::protocol::ids::{RunId, SessionId};
use crate::protocol::outbound::{Body, Outcome, Terminal};
use crate::protocol::request::{Options, Settings};
use crate::protocol::words::{Source as CancelSource, Warning};
use crate::redact::Redactor;
use crate::run::{AlwaysAllowed, Late, OnEof, Remake};
use crossbeam_channel::{Receiver, bounded};
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The request for a run. A peer may join several runs into one. The first then ends before any process starts
/// ([`Job::opens`]), the next ones begin with [`Begin::Next`], and the last one with [`Begin::Over`].
pub struct Job {
    /// The source of run.start.
    pub begin: Begin,
    /// The values of the fields that run.start omits.
    pub layers: Layers,
    /// Warnings about the configuration. The run emits them.
    pub warnings: Vec<(Warning, String)>,
    pub answers: Script,
    /// The consequence of the end of stdin, if stdin is read.
    pub on_eof: OnEof,
    /// The file for the recording of the dialogue with the agent.
    pub record: Option<PathBuf>,
    /// The project's directory. Below it, the recording follows no symbolic link, because the project may come from a
    /// stranger.
    pub project: Option<PathBuf>,
    /// The folder with a recording of each run.
    pub debug_log: Option<DebugLog>,
    /// Whether lines on stderr begin with the run's id.
    pub log_id: bool,
    /// Whether to copy the agent's stderr to ours.
    pub mirror_stderr: bool,
    /// The source that frames name for a signal: a person at a terminal, or a signal.
    pub signal_source: CancelSource,
    /// Whether this run ends before any agent starts, because later runs continue with its work.
    pub opens: bool,
    pub first: Vec<Body>,
    /// A channel that is disconnected once the work is done for which a run without a process waits. `None`: the run
    /// waits for no work.
    pub task: Option<Receiver<Infallible>>,
    /// The state from the previous part. `None`: this is the first part.
    pub carried: Option<Carried>,
}

impl Job {
    /// Creates the job for a run whose run.start comes from its input, with built-in defaults for everything else.
    pub fn new(layers: Layers) -> Job {
        Job {
            begin: Begin::FromInput,
            layers,
            warnings: Vec::new(),
            answers: Script::default(),
            on_eof: OnEof::Continue,
            record: None,
            project: None,
            debug_log: None,
            log_id: false,
            mirror_stderr: false,
            signal_source: CancelSource::Signal,
            opens: false,
            first: Vec::new(),
            task: None,
            carried: None,
        }
    }

    /// Creates a job with these settings for another run, without the work of this one.
    pub fn another(&self) -> Job {
        Job {
            on_eof: self.on_eof,
            record: self.record.clone(),
            project: self.project.clone(),
            debug_log: self.debug_log.clone(),
            log_id: self.log_id,
            mirror_stderr: self.mirror_stderr,
            signal_source: self.signal_source,
            ..Job::new(self.layers.clone())
        }
    }
}

/// The source of run.start.
pub enum Begin {
    /// run.start comes from the input, like all other messages.
    FromInput,
    /// run.start needs files that the command line names. A thread reads them before stdin is read, because a pipe
    /// among them may take long.
    Awaited(Awaited),
    /// A bad flag or a broken configuration keeps the run from starting.
    Refused(Failure),
    /// A further part of a run, already checked.
    Next(Box<Next>),
    /// The end of a run of several parts.
    Over(Box<Over>),
}

impl Begin {
    /// Wakes an agent that rests, and takes its place.
    pub(super) fn take_place(&mut self) -> Option<RestingPlace> {
        match self {
            Begin::Next(next) => {
                let cwd = next.settings.cwd.clone();
                next.process.kept()?.wake(&cwd)
            }
            Begin::FromInput | Begin::Awaited(_) | Begin::Refused(_) | Begin::Over(_) => None,
        }
    }
}

/// A further part of a run.
pub struct Next {
    pub run_id: RunId,
    pub settings: Settings,
    /// The agent's name for people.
    pub display_name: String,
    /// The agent's dialect, or a step without an agent.
    pub driver: Box<dyn Driver>,
    /// The agent's process.
    pub process: NextProcess,
    /// Whether the agent's process stays after a completed turn: [`Report::resting`].
    pub keeps_process: bool,
    /// Makes the driver of another process for the same session. `None`: the part has one process only.
    pub remake: Option<Remake>,
}

/// The agent's process in a further part of a run.
#[derive(Default)]
pub enum NextProcess {
    #[default]
    New,
    /// The process that an earlier part kept gets the prompt as a further turn.
    Resting(RestingAgent),
    /// The process that an earlier part kept is told to leave. The prompt is not used.
    Leaving(RestingAgent),
}

impl NextProcess {
    /// The agent that an earlier part kept.
    pub(super) fn kept(&mut self) -> Option<&mut RestingAgent> {
        match self {
            NextProcess::New => None,
            NextProcess::Resting(agent) | NextProcess::Leaving(agent) => Some(agent),
        }
    }
}

/// The end of a run of several parts.
pub struct Over {
    pub run_id: RunId,
    /// The maximum size of the run's frames, in bytes.
    pub max_frame_bytes: usize,
    pub terminal: Terminal,
}

/// The state that one part of a run passes to the next.
#[derive(Debug)]
pub struct Carried {
    /// The redactor, which knows every secret, including secret answers.
    pub(super) redactor: Redactor,
    pub(super) granted: AlwaysAllowed,
    pub(super) answers: Script,
}

impl Carried {
    /// The redactor, which knows every secret, including secret answers.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

/// A function that reads the files that the command line names.
pub type Awaited = Box<dyn FnOnce() -> Result<Box<Prepared>, Failure> + Send>;

/// Reads files in a thread, which is never joined because it may wait for a pipe forever.
pub(super) fn start_of(work: Awaited) -> Receiver<Result<Box<Prepared>, Failure>> {
    let (start_in, start) = bounded(1);
    let failed = start_in.clone();
    let make = move || {
        let _ = start_in.send(work());
    };
    if spawn_thread("start", make).is_err() {
        let _ = failed.send(Err(Failure::no_thread()));
    }
    start
}

/// The content of files that the command line names.
#[derive(Debug, Default)]
pub struct Prepared {
    /// Fields of run.start that override the job's layers.
    pub above: Options,
    /// Answers given in advance, instead of the job's.
    pub answers: Script,
    /// The fields of run.start. `None`: run.start comes from the input.
    pub start: Option<Options>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    pub code: u8,
    /// The terminal body, redacted. `None`: no frame could be delivered.
    pub terminal: Option<Terminal>,
    /// The first signal that cancelled the run.
    pub signal: Option<i32>,
    /// The time of the request to end the run, or of its deadline. `None`: the run ended by itself.
    pub asked_at: Option<Instant>,
    /// A sentence about the answers given in advance whose keys matched no question. `None`: every key matched.
    pub unused_answers: Option<String>,
    /// A cancel that came after the run had its outcome.
    pub late: Option<Late>,
    /// The time since the first process started, by the clock of limits. `None`: no process started.
    pub worked: Option<Duration>,
    /// The state for a further part of the run.
    pub carried: Carried,
    /// The agent, if its process stayed for a further part of the run.
    pub resting: Option<RestingAgent>,
}

impl Report {
    /// Whether run.cancelled was the end.
    pub fn is_cancelled(&self) -> bool {
        self.terminal.as_ref().is_some_and(|terminal| matches!(terminal.outcome, Outcome::Cancelled { .. }))
    }

    /// Redacts a text with the run's secrets.
    pub fn redacted(&self, text: &str) -> String {
        self.carried.redactor.redact(text).into_owned()
    }

    /// The id of the agent's session.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.terminal.as_ref()?.session_id.as_ref()
    }
}
