//! One run as it is asked for, and what came of it.

use super::answers::Script;
use super::debug_log::DebugLog;
use crate::agent::registry::Layers;
use crate::failure::Failure;
use crate::protocol::inbound::Inbound;
use crate::protocol::outbound::Terminal;
use crate::protocol::request::Options;
use crate::protocol::words::{Source as CancelSource, Warning};
use crate::run::OnEof;
use std::path::PathBuf;

/// One run, as it is asked for.
pub struct Job {
    /// Where run.start comes from.
    pub begin: Begin,
    /// The values of fields that run.start leaves out.
    pub layers: Layers,
    /// What the configuration brought up; told as warnings of the run.
    pub warnings: Vec<(Warning, String)>,
    /// Answers that were given before the questions came.
    pub answers: Script,
    /// What the end of stdin does, where stdin is read.
    pub on_eof: OnEof,
    /// Where the dialogue with the agent is recorded.
    pub record: Option<PathBuf>,
    /// The project's directory. Below it the recording follows no link, since it may come from a stranger.
    pub project: Option<PathBuf>,
    /// Where each run is recorded by itself.
    pub debug_log: Option<DebugLog>,
    /// Whether the agent's stderr is copied to ours.
    pub mirror_stderr: bool,
    /// Whom a signal counts as: a person at a terminal, or a signal.
    pub signal_source: CancelSource,
}

impl Job {
    /// A run that starts from its input, with built-in defaults for everything else.
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
            mirror_stderr: false,
            signal_source: CancelSource::Signal,
        }
    }
}

/// Where run.start comes from.
pub enum Begin {
    /// From the input, like all other messages.
    FromInput,
    /// It is there.
    Ready(Box<Inbound>),
    /// A thread reads files that the command line names, before stdin is read. A pipe among them may take long.
    Awaited(Awaited),
    /// The run cannot begin: a bad flag, a broken configuration.
    Refused(Failure),
}

/// Reads the files that the command line names.
pub type Awaited = Box<dyn FnOnce() -> Result<Box<Prepared>, Failure> + Send>;

/// The content of files that the command line names.
#[derive(Debug, Default)]
pub struct Prepared {
    /// Fields of run.start that override the job's layers.
    pub above: Options,
    /// Answers given in advance, instead of the job's.
    pub answers: Script,
    /// The run.start. `None`: it comes from the input.
    pub start: Option<Inbound>,
}

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// The exit code of the protocol's table.
    pub code: u8,
    /// The terminal body, redacted. `None`: no frame could be delivered.
    pub terminal: Option<Terminal>,
    /// The first signal that cancelled the run.
    pub signal: Option<i32>,
    /// The keys of answers given in advance that fitted no question, as a list of words. `None`: all did.
    pub unused_answers: Option<String>,
}

impl Report {
    /// The agent's session, if there was one.
    pub fn session_id(&self) -> Option<&str> {
        self.terminal.as_ref()?.session_id.as_deref()
    }
}
