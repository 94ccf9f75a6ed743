//! The bodies of the seven outbound frames. The walk in [`super::parts`] finds every text in them, to redact it, and to
//! cut it if a frame would be too long. A body becomes JSON only as a [`super::redacted::Redacted`].

use super::failure::Failure;
use super::fields::Settings;
use super::ids::{QuestionId, SessionId};
use super::limited::Limited;
use super::limits::{LEFT_LISTED, PLAN_ENTRIES};
use super::question::{Ask, Subject};
use super::read::Seconds;
use super::words::{
    Category, Level, PhaseState, PlanStatus, PromptState, QuestionKind, Resolution, Source, Status, StopReason,
    ToolState, TurnOutcome, WaitingOn, Warning,
};
use serde::Serialize;

pub use super::artifact::{Artifact, ArtifactRef};
pub use super::ids::{CallId, MessageId};
pub use super::question::Place;
pub use super::text::{Json, Text};
pub use super::workflow::{Breach, GaveWay, PhaseReport, WorkflowEnd, WorkflowStarted};

/// The usage of tokens and money. Unknown values are null in a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Input tokens, including cached ones.
    pub input_tokens: Option<u64>,
    /// The tokens that the model wrote.
    pub output_tokens: Option<u64>,
    /// The part of the input that came from a cache.
    pub cached_input_tokens: Option<u64>,
    /// The cost, in US dollars.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// The sum of two usages. A value that is unknown in one of them counts as zero.
    pub fn plus(&self, other: &Usage) -> Usage {
        fn sum<T>(a: Option<T>, b: Option<T>, add: fn(T, T) -> T) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(add(a, b)),
                (one, other) => one.or(other),
            }
        }
        let tokens = |a, b| sum(a, b, u64::saturating_add);
        Usage {
            input_tokens: tokens(self.input_tokens, other.input_tokens),
            output_tokens: tokens(self.output_tokens, other.output_tokens),
            cached_input_tokens: tokens(self.cached_input_tokens, other.cached_input_tokens),
            cost_usd: sum(self.cost_usd, other.cost_usd, |a, b| a + b),
        }
    }

    /// The part of this usage that came after `before`.
    pub fn since(&self, before: &Usage) -> Usage {
        fn rest<T: Default>(now: Option<T>, before: Option<T>, subtract: fn(T, T) -> T) -> Option<T> {
            now.map(|now| subtract(now, before.unwrap_or_default()))
        }
        Usage {
            input_tokens: rest(self.input_tokens, before.input_tokens, u64::saturating_sub),
            output_tokens: rest(self.output_tokens, before.output_tokens, u64::saturating_sub),
            cached_input_tokens: rest(self.cached_input_tokens, before.cached_input_tokens, u64::saturating_sub),
            cost_usd: rest(self.cost_usd, before.cost_usd, |now, before| (now - before).max(0.0)),
        }
    }

    /// The tokens, in one short line.
    pub fn line(&self) -> String {
        let count = |n: Option<u64>| n.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
        format!("{} tokens in, {} out", count(self.input_tokens), count(self.output_tokens))
    }
}

/// The capabilities of a driver. Unknown ones are null in a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// The kinds of question that the agent can ask.
    pub questions: Vec<QuestionKind>,
    /// Whether a session can be resumed.
    pub resume: Option<bool>,
    /// Whether text is reported in pieces.
    pub deltas: Option<bool>,
    /// Whether output_schema has an effect.
    pub structured_output: Option<bool>,
    /// Whether tokens are counted.
    pub usage: Option<bool>,
    /// Whether the agent takes further prompts.
    pub conversation: Option<bool>,
    /// Whether the agent takes a prompt while it works.
    pub steer: Option<bool>,
}

impl Capabilities {
    /// The capabilities of a driver that can only ask these kinds of question.
    pub fn only_asking(questions: Vec<QuestionKind>) -> Capabilities {
        let no = Some(false);
        Capabilities {
            questions,
            resume: no,
            deltas: no,
            structured_output: no,
            usage: no,
            conversation: no,
            steer: no,
        }
    }
}

/// run.started.
#[derive(Clone, Debug)]
pub struct Started {
    /// The agent's name, as in the request.
    pub agent: String,
    /// The agent's name for people.
    pub display_name: Text,
    /// The settings of the run, defaults included.
    pub settings: Box<Settings>,
    /// The capabilities of the driver.
    pub capabilities: Capabilities,
    /// The metadata of run.start, as it was sent.
    pub metadata: Option<Json>,
    /// `cwd`, as the frame shows it.
    pub cwd: Text,
    /// `agent_args`, as the frame shows them.
    pub agent_args: Vec<Text>,
    /// The part of a workflow. `None`: the run is not a workflow.
    pub workflow: Option<Box<WorkflowStarted>>,
    /// Whether something was cut.
    pub truncated: bool,
}

/// An entry of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanEntry {
    /// The text of the entry.
    pub text: Text,
    /// The state of the entry.
    pub status: PlanStatus,
}

/// The entries of a plan.
pub type Entries = Limited<PlanEntry, PLAN_ENTRIES>;

/// run.progress: the kind with its own fields, and the fields of all kinds.
#[derive(Clone, Debug)]
pub struct Progress {
    /// A line for people.
    pub text: Text,
    /// For work of a sub-agent: the tool call that started the sub-agent.
    pub parent_call_id: Option<CallId>,
    /// The kind of the progress, with its fields.
    pub about: About,
    /// Whether something was cut.
    pub truncated: bool,
}

impl Progress {
    /// Progress of the run itself, outside sub-agents.
    pub fn new(about: About, text: impl Into<Text>) -> Progress {
        Progress { text: text.into(), parent_call_id: None, about, truncated: false }
    }
}

/// Facts about the end of a tool call.
#[derive(Clone, Debug, Default)]
pub struct ToolFacts {
    /// The exit code of a command.
    pub exit_code: Option<i64>,
    /// The changes that an edit made.
    pub edits: Vec<FileEdit>,
}

/// The changes to one file.
#[derive(Clone, Debug)]
pub struct FileEdit {
    /// The path as the agent reports it. In a body, it is relative to the working directory if it is inside, otherwise
    /// absolute.
    pub path: Text,
    /// The lines of hunks, each with its sign, or all lines of a created or deleted file.
    pub lines: Text,
    /// Whether lines at the end are missing.
    pub is_cut: bool,
}

impl FileEdit {
    /// The changes to a file. `None`: there are none.
    pub fn of(path: impl Into<Text>, lines: String) -> Option<FileEdit> {
        (!lines.is_empty()).then(|| FileEdit { path: path.into(), lines: lines.into(), is_cut: false })
    }
}

/// The kinds of run.progress.
#[derive(Clone, Debug)]
pub enum About {
    Status(Status),
    Session {
        session_id: Option<SessionId>,
        agent_version: Option<Text>,
        model: Option<Text>,
        capabilities: Option<Capabilities>,
    },
    Warning(Warning),
    Resolved {
        question_id: QuestionId,
        resolution: Resolution,
        used_default: bool,
        permission: Option<(Subject, Option<&'static str>)>,
        /// The question in one short line with its options, for a screen: the frame has the question in its text.
        what: Text,
    },
    Heartbeat {
        idle_s: Seconds,
        waiting_on: WaitingOn,
    },
    Text {
        message_id: MessageId,
        done: bool,
        withdrawn: bool,
    },
    Reasoning {
        message_id: MessageId,
        done: bool,
        withdrawn: bool,
    },
    Tool {
        call_id: CallId,
        /// The tool, as the agent knows it. Empty: the call is spektacular's own.
        name: Text,
        category: Category,
        state: ToolState,
        /// The time that the call took. `None`: it has not ended.
        duration_ms: Option<u64>,
        locations: Vec<Place>,
        /// The input of the call, an object.
        input: Option<Json>,
        output: Option<Text>,
        facts: ToolFacts,
        /// For a command of a workflow: the phase that it verifies.
        phase: Option<String>,
    },
    Plan(Vec<PlanEntry>),
    /// The agent's own list in a workflow, where `plan` shows the workflow's steps.
    Todo(Vec<PlanEntry>),
    Phase {
        phase: String,
        title: Text,
        number: u64,
        of: u64,
        attempt: u64,
        state: PhaseState,
    },
    Usage(Usage),
    Prompt {
        /// The number of the prompt in the run, from 1.
        number: u64,
        state: PromptState,
    },
    Turn(Box<TurnReport>),
}

/// The end of a turn of a conversation.
#[derive(Clone, Debug)]
pub struct TurnReport {
    /// The number of the turn, from 1.
    pub number: u64,
    /// The outcome, as that of a run.
    pub outcome: Outcome,
    /// The usage of this turn.
    pub usage: Usage,
    /// Whether the completion marker was in the agent's text.
    pub completion_detected: bool,
    /// The questions and permissions of this turn that nobody answered.
    pub unattended: Unattended,
}

impl TurnReport {
    /// The outcome as a word.
    pub fn word(&self) -> TurnOutcome {
        match self.outcome {
            Outcome::Completed { .. } => TurnOutcome::Completed,
            Outcome::Failed(_) => TurnOutcome::Failed,
            Outcome::Cancelled { .. } => TurnOutcome::Cancelled,
        }
    }
}

impl About {
    /// The lowest level at which this kind is emitted.
    pub fn level(&self) -> Level {
        match self {
            About::Text { .. } | About::Tool { .. } | About::Plan(_) | About::Usage(_) => Level::Normal,
            About::Reasoning { .. } | About::Todo(_) => Level::Full,
            About::Status(_)
            | About::Session { .. }
            | About::Warning(_)
            | About::Resolved { .. }
            | About::Phase { .. }
            | About::Prompt { .. }
            | About::Turn(_)
            | About::Heartbeat { .. } => Level::Minimal,
        }
    }
}

/// run.question.
#[derive(Clone, Debug)]
pub struct Question {
    /// The question's id.
    pub question_id: QuestionId,
    /// The group's id.
    pub group_id: String,
    /// The number of questions in the group.
    pub group_size: usize,
    /// The question, redacted.
    pub ask: Ask,
    /// The time left to answer.
    pub timeout_s: Seconds,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The mistake in the last answer.
    pub error: Option<Text>,
    /// Whether something was cut.
    pub truncated: bool,
}

/// A permission or question that nobody answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The tool's category for a permission, or the question's kind.
    pub category: &'static str,
    /// The subject, in one line.
    pub text: Text,
}

/// A count of unanswered questions, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of unanswered questions.
    pub count: u64,
    /// The first [`crate::protocol::limits::LEFT_LISTED`].
    pub first: Vec<Left>,
}

/// The questions and permissions that nobody answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unattended {
    /// Permissions that were denied.
    pub denied: Tally,
    /// Other questions.
    pub unanswered: Tally,
}

impl Unattended {
    /// Adds the counts of a later part of the run.
    pub fn join(&mut self, later: Unattended) {
        for (all, more) in [(&mut self.denied, later.denied), (&mut self.unanswered, later.unanswered)] {
            all.count += more.count;
            let room = LEFT_LISTED.saturating_sub(all.first.len());
            all.first.extend(more.first.into_iter().take(room));
        }
    }
}

/// The exit of the agent's process. At most one of the two numbers is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AgentExit {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// The outcome of the run.
    pub outcome: Outcome,
    /// The agent's session.
    pub session_id: Option<SessionId>,
    /// The files that the run created, modified and deleted.
    pub artifacts: Vec<ArtifactRef>,
    /// The usage of this run.
    pub usage: Usage,
    /// The time since run.start, in milliseconds.
    pub duration_ms: u64,
    /// The metadata of run.start, as it was sent.
    pub metadata: Option<Json>,
    /// The questions and permissions that nobody answered. Only run.completed shows it.
    pub unattended: Unattended,
    /// Whether the completion marker was in the agent's text.
    pub completion_detected: bool,
    /// The exit of the agent's process. `None`: no process was started.
    pub agent_exit: Option<AgentExit>,
    /// The number of turns of a conversation. `None`: the run is not a conversation.
    pub turns: Option<u64>,
    /// The part of a workflow. `None`: the run is not a workflow.
    pub workflow: Option<Box<WorkflowEnd>>,
    /// Whether something was cut.
    pub truncated: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The run completed with the agent's result.
    Completed {
        /// The final answer.
        text: Text,
        /// The message whose pieces contain the whole text, if `text` is cut.
        message_id: Option<MessageId>,
        /// Whether `text` is cut.
        text_cut: bool,
        /// The structured result.
        structured_output: Option<Json>,
        /// The reason why the model stopped.
        stop_reason: StopReason,
    },
    /// The run failed.
    Failed(Failure),
    /// The run was cancelled.
    Cancelled {
        /// The reason that the canceller stated.
        reason: Option<Text>,
        /// The source of the cancel.
        source: Source,
    },
}

/// The body of a frame.
#[derive(Clone, Debug)]
pub enum Body {
    Started(Box<Started>),
    Progress(Box<Progress>),
    Question(Box<Question>),
    Artifact(Box<Artifact>),
    Terminal(Box<Terminal>),
}

impl Outcome {
    /// The file that a refused workflow concerns, if known.
    pub fn refused_target(&self) -> Option<Text> {
        match self {
            Outcome::Failed(failure) => failure.target.as_deref().cloned(),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } => None,
        }
    }
}

impl Body {
    /// The frame's `type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Body::Started(_) => "run.started",
            Body::Progress(_) => "run.progress",
            Body::Question(_) => "run.question",
            Body::Artifact(_) => "run.artifact",
            Body::Terminal(end) => match end.outcome {
                Outcome::Completed { .. } => "run.completed",
                Outcome::Failed(_) => "run.failed",
                Outcome::Cancelled { .. } => "run.cancelled",
            },
        }
    }

    /// Whether this is a heartbeat.
    pub fn is_heartbeat(&self) -> bool {
        matches!(self, Body::Progress(progress) if matches!(progress.about, About::Heartbeat { .. }))
    }

    /// The entry for an artifact in the list of a terminal frame.
    pub fn artifact(&self) -> Option<ArtifactRef> {
        match self {
            Body::Artifact(artifact) => Some(ArtifactRef { path: artifact.path.clone(), action: artifact.action }),
            Body::Started(_) | Body::Progress(_) | Body::Question(_) | Body::Terminal(_) => None,
        }
    }

    /// Whether this is the last frame.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Body::Terminal(_))
    }
}
