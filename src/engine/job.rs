//! The request for a run, and its result.

use super::answers::Script;
use super::recordings::DebugLog;
use crate::agent::registry::Agent;
use crate::config::Layers;
use crate::io::backstop::LastResort;
use crate::io::spawn_thread;
use crate::protocol::failure::Failure;
use crate::protocol::ids::SessionId;
use crate::protocol::outbound::{Outcome, Terminal, WorkflowStarted};
use crate::protocol::request::{Options, Settings};
use crate::protocol::unknown::UnknownNames;
use crate::protocol::words::{Source as CancelSource, Warning, WorkflowKind};
use crate::redact::Redactor;
use crate::run::OnEof;
use crossbeam_channel::{Receiver, bounded};
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::time::Instant;

pub struct Job {
    pub begin: Begin,
    /// The values of the fields that run.start omits.
    pub layers: Layers,
    /// Warnings about the configuration. The run emits them.
    pub warnings: Vec<(Warning, String)>,
    pub answers: Script,
    pub on_eof: OnEof,
    pub record: Option<PathBuf>,
    /// The project's directory. Below it, the recording follows no symbolic link, because the project may come from a
    /// stranger.
    pub project: Option<PathBuf>,
    pub debug_log: Option<DebugLog>,
    /// Whether lines on stderr begin with the run's id.
    pub log_id: bool,
    pub mirror_stderr: bool,
    /// The source that frames name for a signal: a person at a terminal, or a signal.
    pub signal_source: CancelSource,
    /// `None`: the run is a session of the agent.
    pub admission: Option<Admission>,
    /// Takes the settings and the agent of a session that begins with steps without the agent. `None`: it begins at once.
    pub first_steps: Option<Box<FirstSteps>>,
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
            admission: None,
            first_steps: None,
        }
    }
}

pub struct Admission {
    pub workflow: WorkflowKind,
    pub admit: Box<Admit>,
}

/// Checks a run.start for a workflow, and may change its settings. The arguments after the agent: the field `workflow`,
/// the other fields that it sets, and the unknown fields to warn about.
pub type Admit = dyn FnOnce(
    &mut Settings,
    &Agent,
    Option<&RawValue>,
    &[&'static str],
    &mut UnknownNames,
) -> Result<WorkflowStarted, Failure>;

pub(super) type FirstSteps = dyn FnOnce(&Settings, &Agent);

pub enum Begin {
    FromInput,
    /// run.start needs files that the command line names. A thread reads them before stdin is read, because a pipe
    /// among them may take long.
    Awaited(Awaited),
    /// A bad flag or a broken configuration keeps the run from starting.
    Refused(Failure),
}

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
    /// `None`: run.start comes from the input.
    pub start: Option<Options>,
}

#[derive(Debug)]
pub struct Report {
    pub code: u8,
    /// The terminal body, redacted. `None`: no frame could be delivered.
    pub terminal: Option<Terminal>,
    /// The first signal that cancelled the run.
    pub signal: Option<i32>,
    /// The time of the request to end the run, or of its deadline. `None`: the run ended by itself.
    pub asked_at: Option<Instant>,
    /// The end of a process that takes too long after the run. `None`: no signals are registered.
    pub(crate) last_resort: Option<LastResort>,
    /// A sentence about the answers given in advance whose keys matched no question. `None`: every key matched.
    pub unused_answers: Option<String>,
    /// Knows every secret, including secret answers.
    pub redactor: Redactor,
    /// The name of the agent that took over last.
    pub took_over: Option<String>,
}

/// An agent that takes over where another one fails.
#[derive(Clone, Debug)]
pub struct Successor {
    pub agent: Agent,
    pub settings: Settings,
}

impl Report {
    pub fn is_cancelled(&self) -> bool {
        self.terminal.as_ref().is_some_and(|terminal| matches!(terminal.outcome, Outcome::Cancelled { .. }))
    }

    pub fn redacted(&self, text: &str) -> String {
        self.redactor.redact(text).into_owned()
    }

    pub fn session_id(&self) -> Option<&SessionId> {
        self.terminal.as_ref()?.session_id.as_ref()
    }
}
