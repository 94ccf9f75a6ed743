//! The request for a run, and its result.

use super::answers::Script;
use super::debug_log::DebugLog;
use crate::agent::registry::Layers;
use crate::failure::Failure;
use crate::protocol::inbound::Inbound;
use crate::protocol::outbound::Terminal;
use crate::protocol::words::{Source as CancelSource, Warning};
use crate::run::OnEof;
use std::path::PathBuf;

/// The request for a run.
pub struct Job {
    /// The source of run.start.
    pub begin: Begin,
    /// The values of the fields that run.start omits.
    pub layers: Layers,
    /// Warnings about the configuration. The run emits them.
    pub warnings: Vec<(Warning, String)>,
    /// Answers given in advance.
    pub answers: Script,
    /// The consequence of the end of stdin, if stdin is read.
    pub on_eof: OnEof,
    /// The file for a recording of the dialogue with the agent.
    pub record: Option<PathBuf>,
    /// The folder with a recording of each run.
    pub debug_log: Option<DebugLog>,
    /// Whether the agent's stderr is copied to ours.
    pub mirror_stderr: bool,
    /// The source that frames name for a signal: a person at a terminal, or a signal.
    pub signal_source: CancelSource,
}

impl Job {
    /// A run whose run.start comes from its input, with built-in defaults for everything else.
    pub fn new(layers: Layers) -> Job {
        Job {
            begin: Begin::FromInput,
            layers,
            warnings: Vec::new(),
            answers: Script::default(),
            on_eof: OnEof::Continue,
            record: None,
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
    /// This one.
    Ready(Box<Inbound>),
    /// A thread makes it before stdin is read. This may take long, for example if the prompt comes through a pipe.
    Awaited(Awaited),
    /// None: the run cannot begin, because of a bad flag or a broken configuration.
    Refused(Failure),
}

/// Makes a run.start.
pub type Awaited = Box<dyn FnOnce() -> Result<Inbound, Failure> + Send>;

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    /// The exit code.
    pub code: u8,
    /// The terminal body, redacted. `None`: no frame could be delivered.
    pub terminal: Option<Terminal>,
    /// The first signal that cancelled the run.
    pub signal: Option<i32>,
    /// The keys of answers given in advance that matched no question, in words. `None`: every key matched.
    pub unused_answers: Option<String>,
}

impl Report {
    /// The id of the agent's session.
    pub fn session_id(&self) -> Option<&str> {
        self.terminal.as_ref()?.session_id.as_deref()
    }
}
