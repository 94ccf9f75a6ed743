//! The events that a run takes, and the effects that it requests.

use super::Answered;
use super::part::{Closing, Part, Remake};
use crate::agent::{AgentEvent, Driver, Launch, Line, MessageKey, Reply};
use crate::protocol::failure::Failure;
use crate::protocol::ids::{CheckpointId, InboundId, QuestionId, RunId, SessionId};
use crate::protocol::image::Image;
use crate::protocol::inbound::{Addressee, Flaw};
use crate::protocol::outbound::{AgentExit, Artifact, Body, Json, Progress, Text, WorkflowStarted};
use crate::protocol::prompt::PromptInput;
use crate::protocol::question::Ask;
use crate::protocol::request::Settings;
use crate::protocol::schema::Mismatch;
use crate::protocol::unknown::UnknownNames;
use crate::protocol::words::{Action, McpState, Source, Warning};
use crate::redact::Redactor;
use std::collections::VecDeque;
use std::path::PathBuf;

pub struct Start {
    pub settings: Settings,
    pub display_name: String,
    pub driver: Box<dyn Driver>,
    pub redactor: Redactor,
    /// The number of entries in `secrets` that are too short to redact.
    pub short_secrets: usize,
    /// Whether the tool `ask_user` could not be offered although the model needs it.
    pub asking_failed: bool,
    /// The warning that the agent runs without the sandbox that was asked for.
    pub missing: Option<String>,
    /// `None`: nobody asked for them.
    pub checkpoints: Option<bool>,
    /// A workflow's run needs it. `None`: the run has one process only.
    pub remake: Option<Remake>,
    /// With it, the run waits for its first part. `None`: the run is a session of the agent.
    pub workflow: Option<Box<WorkflowStarted>>,
    /// Whether steps without the agent come before the session.
    pub has_steps: bool,
}

impl Start {
    pub fn new(settings: Settings, display_name: String, driver: Box<dyn Driver>, redactor: Redactor) -> Start {
        Start {
            settings,
            display_name,
            driver,
            redactor,
            short_secrets: 0,
            asking_failed: false,
            missing: None,
            checkpoints: None,
            remake: None,
            workflow: None,
            has_steps: false,
        }
    }
}

#[derive(Debug)]
pub struct Refusal {
    pub failure: Failure,
    pub metadata: Option<Json>,
    pub redactor: Option<Redactor>,
}

impl Refusal {
    pub fn new(failure: Failure) -> Box<Refusal> {
        Box::new(Refusal { failure, metadata: None, redactor: None })
    }
}

/// The envelope of an inbound message: its id for `reply_to`, and the run that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub id: Option<InboundId>,
    pub run: Addressee,
}

pub enum Event<'a> {
    /// A run.start, checked.
    Start(Origin, Result<Box<Start>, Box<Refusal>>),
    Answer(Origin, ReadInput),
    Prompt(Origin, PromptInput, Vec<Image>),
    CancelTurn(Origin, Option<Text>),
    Cancel(Origin, Option<Text>, Source),
    Malformed(Origin, Flaw),
    /// A message of another major version.
    Unsupported(Origin),
    UnknownType(Origin, String),
    InputEnded,
    Part(Box<Part>),
    /// A workflow reports something between two parts.
    Tell(Box<Progress>),
    /// A workflow itself changed a file.
    Wrote(Box<Artifact>),
    Close(Box<Closing>),
    /// The run cannot continue, because of a bad flag, a broken configuration, or an agent that does not read its
    /// input.
    Refused(Failure),
    /// stdout is closed: no further frame can be delivered.
    OutputLost,
    Spawned,
    /// npx runs this package in place of the agent's missing program.
    SpawnedByNpx(&'static str),
    /// The next agent takes over, as [`Effect::HandOver`] requested. Its settings have the prompt for it.
    TakesOver(Box<Start>),
    SpawnFailed(Failure),
    TaskOver,
    Line(Line<'a>),
    /// A line of the agent's stderr, or a part of a long one.
    Stderr(&'a str),
    /// The agent started the server that offers our tools.
    AskServerCame,
    /// The model called the tool `ask_user`.
    ToolAsk {
        /// The call; unique in a run.
        call: u64,
        /// At least one.
        asks: Vec<Ask>,
    },
    ToolAskWithdrawn {
        call: u64,
    },
    /// An MCP server's launcher reported what became of the server.
    McpServer {
        /// The server's position in `mcp_servers`.
        position: usize,
        state: McpState,
        /// The end of the server's stderr, cleaned, or the reason why it did not start.
        words: Text,
    },
    /// The model submitted its result with our tool: the result, or the reasons why it does not fit.
    Submitted(Result<Json, Vec<Mismatch>>),
    /// Stdout has room for the next event of the last line.
    More,
    /// The agent cannot load its session later.
    SessionLost,
    /// The agent's process tree is gone and its output has been read. The search for changed files may still run.
    TreeGone(AgentExit),
    /// The search for changed files is finished too.
    AgentEnded(AgentEnd, FoundFiles),
    /// The agent rests, and the search for changed files is finished.
    Rested(FoundFiles),
    CannotRest,
    Checkpoint(CheckpointReport),
    /// Messages were ignored because nobody reads stdout: their number.
    Ignored(u64),
    Warn(Origin, Warning, String),
    /// The agent's output waits because nobody reads stdout, so the agent does not count as silent.
    NotRead,
    /// A deadline may have passed.
    Tick,
}

#[derive(Clone, Debug)]
pub struct AgentEnd {
    /// The exit of the agent's own process.
    pub exit: AgentExit,
    /// Whether one of its processes outlived it, although the agent exited by itself.
    pub leaked: bool,
    pub lost_session: bool,
    /// The end of its stderr. The engine cuts it with all secrets hidden before the run gets it.
    pub stderr: Text,
}

/// The files that changed during a part of the run, including those that the agent reported. Error: the warning that the
/// list may be incomplete.
pub type FoundFiles = Result<Vec<(PathBuf, Action)>, &'static str>;

/// The payload of a run.input, with its value read.
#[derive(Debug)]
pub struct ReadInput {
    /// `None`: missing or not a string.
    pub question_id: Option<QuestionId>,
    /// `None`: missing, or given in two ways at once.
    pub answered: Option<Answered>,
    /// Text for the agent, to go with a denial.
    pub message: Option<Text>,
    /// The input for the tool whose permission is granted, a JSON object.
    pub updated_input: Option<String>,
    pub unknown: UnknownNames,
}

#[derive(Debug)]
pub enum Effect {
    /// Sets the run_id of all further frames.
    RunId(RunId),
    /// Sets the maximum size of all further frames, in bytes.
    FrameLimit(usize),
    Emit {
        body: Body,
        reply_to: Option<InboundId>,
        /// The file whose size completes an artifact.
        measure: Option<PathBuf>,
    },
    /// Passes a piece of a message to the recording, which needs it to find secrets that are split over pieces. Only
    /// after [`super::Run::recorded`].
    Said {
        message: MessageKey,
        piece: Text,
        /// Whether the message is complete.
        done: bool,
    },
    /// Starts the agent.
    Spawn(Box<Launch>, Box<Settings>),
    /// The agent writes this session.
    HoldSession(SessionId),
    /// Work for the checkpoints of the files.
    Checkpoint(CheckpointOrder),
    /// The next line for the agent contains the labels of these images.
    Attach(Vec<Image>),
    /// Without its LF.
    ToAgent(String),
    /// Answers a call of the tool, all questions of which are resolved.
    ToolReplies {
        call: u64,
        /// One reply per question, in order.
        replies: Vec<Reply>,
    },
    /// Withdraws the questions of a call of the tool.
    ToolWithdrawn { call: u64 },
    /// Closes the agent's stdin after the lines sent so far.
    CloseAgentInput,
    /// Ends the search for changed files, because the run must end now.
    Hurry,
    /// Suspends the agent's processes until the next part of the run, and begins the search for changed files.
    Rest,
    /// Make the next agent of `fallback` ready, and report [`Event::TakesOver`].
    HandOver,
    /// Signals the agent's whole process tree.
    SignalTree(StopSignal),
    /// Writes a line to stderr.
    Diagnose(String),
    /// Writes a line to stderr in verbose mode, and to recordings.
    Note(String),
}

/// The host carries them out in order, and keeps what it sends to the agent until the checkpoint before it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointOrder {
    /// Take the checkpoint at the beginning of a turn.
    Begin(CheckpointId),
    /// Note the state at the end of the turn.
    End,
    /// Put the files back that turns changed since a checkpoint. `undo`: the checkpoint before that.
    Rewind { to: CheckpointId, undo: CheckpointId },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointReport {
    Taken(CheckpointId),
    /// The state after the turn of this checkpoint is known.
    Complete(CheckpointId),
    Nothing,
    /// No checkpoint was taken. `lasting`: none will be.
    Missing {
        why: &'static str,
        lasting: bool,
    },
    Rewound {
        to: CheckpointId,
        undo: CheckpointId,
        files: Vec<(PathBuf, Action)>,
    },
    /// No file changed. `files`: those that are the reason.
    Refused {
        why: &'static str,
        files: Vec<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    Terminate,
    Kill,
}

/// The consequence of the end of stdin after run.start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEof {
    #[default]
    Continue,
    Cancel,
}

const LONG: usize = 256 << 10;
const PART: usize = 64 << 10;

/// The events of the agent's last line that wait: a long text is handled in parts, so that no step of the run takes long,
/// and stdout gets each part before the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingEvents {
    events: VecDeque<AgentEvent>,
    /// The number of bytes of the first event's text that were handled.
    handled: usize,
}

impl WaitingEvents {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns an event that can be handled at once, and keeps any other.
    pub(super) fn pass(&mut self, event: AgentEvent) -> Option<AgentEvent> {
        let is_long = matches!(&event, AgentEvent::Text { piece, .. } if piece.size() > LONG);
        if self.events.is_empty() && !is_long {
            return Some(event);
        }
        self.events.push_back(event);
        None
    }

    pub(super) fn next(&mut self) -> Option<AgentEvent> {
        let event = self.events.pop_front()?;
        let AgentEvent::Text { message, piece, done, reasoning, parent } = event else { return Some(event) };
        let begin = std::mem::take(&mut self.handled);
        let end = piece.unredacted().ceil_char_boundary(begin + PART);
        let part = piece.unredacted()[begin..end].into();
        let is_last = end == piece.size();
        if !is_last {
            self.handled = end;
            self.events.push_front(AgentEvent::Text { message, piece, done, reasoning, parent });
        }
        Some(AgentEvent::Text { message, piece: part, done: done && is_last, reasoning, parent })
    }
}

#[cfg(test)]
mod tests {
    use super::{LONG, PART, WaitingEvents};
    use crate::agent::{AgentEvent, MessageKey};

    fn text(piece: &str, done: bool) -> AgentEvent {
        AgentEvent::Text { message: MessageKey(1), piece: piece.into(), done, reasoning: false, parent: None }
    }

    #[test]
    fn a_long_text_is_handled_in_parts_and_later_events_wait_for_it() {
        let mut waiting = WaitingEvents::default();
        assert!(waiting.pass(text(&"x".repeat(LONG), true)).is_some() && waiting.is_empty());
        for shift in 0..4 {
            let long = "x".repeat(shift) + &"\u{1f600}".repeat(LONG / 4);
            assert!(waiting.pass(text(&(long.clone() + "x"), true)).is_none());
            assert!(waiting.pass(text("", false)).is_none() && waiting.pass(AgentEvent::ModelCalled).is_none());
            let (mut joined, mut ends) = (String::new(), Vec::new());
            while let Some(AgentEvent::Text { piece, done, .. }) = waiting.next() {
                assert!(piece.size() < PART + 4);
                joined.push_str(piece.unredacted());
                ends.push(done);
            }
            assert!(waiting.is_empty());
            assert_eq!(joined, long + "x");
            assert_eq!(ends.iter().position(|done| *done), Some(LONG / PART), "{ends:?}");
            assert_eq!(ends.len(), LONG / PART + 2);
        }
    }
}
