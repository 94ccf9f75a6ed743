//! The bodies of the seven outbound frames. The walk in [`super::parts`] finds every text in them, to redact it and to
//! cut it where a frame would be too long. A body becomes JSON only as a [`super::redacted::Redacted`].

use super::fields::Settings;
use super::limited::Limited;
use super::limits::{LEFT_LISTED, PLAN_ENTRIES};
use super::question::{Ask, Subject};
use super::read::Seconds;
use super::words::{
    Category, Level, PhaseState, PlanStatus, QuestionKind, Resolution, Source, Status, StopReason, ToolState,
    WaitingOn, Warning,
};
use crate::failure::Failure;
use serde::Serialize;

pub use super::artifact::{Artifact, ArtifactRef};
pub use super::question::Place;
pub use super::text::{Json, Text};
pub use super::workflow::{Breach, GaveWay, PhaseReport, WorkflowEnd, WorkflowStarted};

/// Null where a value is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Cached ones included.
    pub input_tokens: Option<u64>,
    /// The tokens that the model wrote.
    pub output_tokens: Option<u64>,
    /// The part of the input that came from a cache.
    pub cached_input_tokens: Option<u64>,
    /// In US dollars.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// The usage of two runs. What is unknown of one of them counts as nothing.
    pub fn plus(&self, other: &Usage) -> Usage {
        fn add<T: std::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a + b),
                (one, other) => one.or(other),
            }
        }
        Usage {
            input_tokens: add(self.input_tokens, other.input_tokens),
            output_tokens: add(self.output_tokens, other.output_tokens),
            cached_input_tokens: add(self.cached_input_tokens, other.cached_input_tokens),
            cost_usd: add(self.cost_usd, other.cost_usd),
        }
    }

    /// The tokens, in one short line.
    pub fn line(&self) -> String {
        let count = |n: Option<u64>| n.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
        format!("{} tokens in, {} out", count(self.input_tokens), count(self.output_tokens))
    }
}

/// The capabilities of a driver; null while unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// The kinds of question it can raise.
    pub questions: Vec<QuestionKind>,
    /// Whether a session can be resumed.
    pub resume: Option<bool>,
    /// Whether text comes in pieces.
    pub deltas: Option<bool>,
    /// Whether output_schema has an effect.
    pub structured_output: Option<bool>,
    /// Whether tokens are counted.
    pub usage: Option<bool>,
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
    /// As it came.
    pub metadata: Option<Json>,
    /// `cwd`, as the frame shows it.
    pub cwd: Text,
    /// `agent_args`, as the frame shows them.
    pub agent_args: Vec<Text>,
    /// Of a workflow's run.
    pub workflow: Option<Box<WorkflowStarted>>,
    /// Whether something was cut.
    pub truncated: bool,
}

/// One entry of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanEntry {
    /// The text of the entry.
    pub text: Text,
    /// How far it is.
    pub status: PlanStatus,
}

/// The entries of a plan.
pub type Entries = Limited<PlanEntry, PLAN_ENTRIES>;

/// run.progress: its kind with that kind's own fields, and what all kinds have.
#[derive(Clone, Debug)]
pub struct Progress {
    /// One human line.
    pub text: Text,
    /// Of the work of a sub-agent: the tool call that started it.
    pub parent_call_id: Option<String>,
    /// The kind of the progress, with its fields.
    pub about: About,
    /// Whether something was cut.
    pub truncated: bool,
}

/// Facts about the end of a tool call that only a person sees: no frame carries them.
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
    /// As the agent names it. In a body relative to the working directory if it is inside, otherwise absolute.
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
#[expect(missing_docs, reason = "the fields are those of the protocol's table")]
pub enum About {
    Status(Status),
    Session {
        session_id: Option<String>,
        agent_version: Option<Text>,
        model: Option<Text>,
        capabilities: Option<Capabilities>,
    },
    Warning(Warning),
    Resolved {
        question_id: String,
        resolution: Resolution,
        used_default: bool,
        permission: Option<(Subject, Option<&'static str>)>,
        /// The question in one short line, with its options. Only for a screen: the frame has the question in its text.
        what: Text,
    },
    Heartbeat {
        idle_s: Seconds,
        waiting_on: WaitingOn,
    },
    Text {
        message_id: String,
        done: bool,
        withdrawn: bool,
    },
    Reasoning {
        message_id: String,
        done: bool,
        withdrawn: bool,
    },
    Tool {
        call_id: String,
        category: Category,
        state: ToolState,
        locations: Vec<Place>,
        output: Option<Text>,
        facts: ToolFacts,
        /// Of a command of a workflow: the phase that it verifies.
        phase: Option<String>,
    },
    Plan(Vec<PlanEntry>),
    /// The agent's own list in a workflow, whose steps are the plan.
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
}

impl About {
    /// The least level at which this kind is emitted.
    pub fn level(&self) -> Level {
        match self {
            About::Text { .. } | About::Tool { .. } | About::Plan(_) | About::Usage(_) => Level::Normal,
            About::Reasoning { .. } | About::Todo(_) => Level::Full,
            About::Status(_)
            | About::Session { .. }
            | About::Warning(_)
            | About::Resolved { .. }
            | About::Phase { .. }
            | About::Heartbeat { .. } => Level::Minimal,
        }
    }
}

/// run.question.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its id.
    pub question_id: String,
    /// The group's id.
    pub group_id: String,
    /// How many questions the group has.
    pub group_size: usize,
    /// The question, redacted.
    pub ask: Ask,
    /// The seconds left.
    pub timeout_s: Seconds,
    /// 1, 2, …
    pub attempt: u32,
    /// The fault of the last answer.
    pub error: Option<Text>,
    /// Whether something was cut.
    pub truncated: bool,
}

/// One permission or question that nobody answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Of a permission the tool's category, of any other question its kind.
    pub category: &'static str,
    /// The subject, in one line.
    pub text: Text,
}

/// How many there were, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All of them.
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
    /// Adds what was decided after it.
    pub fn join(&mut self, later: Unattended) {
        for (all, more) in [(&mut self.denied, later.denied), (&mut self.unanswered, later.unanswered)] {
            all.count += more.count;
            let room = LEFT_LISTED.saturating_sub(all.first.len());
            all.first.extend(more.first.into_iter().take(room));
        }
    }
}

/// How the agent's process ended. A number each, or null.
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
    /// How it ended.
    pub outcome: Outcome,
    /// The agent's session.
    pub session_id: Option<String>,
    /// The files that the run created, modified and deleted.
    pub artifacts: Vec<ArtifactRef>,
    /// Of this run.
    pub usage: Usage,
    /// Since the agent was to be started, in milliseconds.
    pub duration_ms: u64,
    /// As it came.
    pub metadata: Option<Json>,
    /// The questions and permissions that nobody answered. Only run.completed shows it.
    pub unattended: Unattended,
    /// Whether the completion marker was in the agent's text.
    pub completion_detected: bool,
    /// How the agent's process ended; null when there was none.
    pub agent_exit: Option<AgentExit>,
    /// Of a workflow's run.
    pub workflow: Option<Box<WorkflowEnd>>,
    /// Whether something was cut.
    pub truncated: bool,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// With the agent's result.
    Completed {
        /// The final answer.
        text: Text,
        /// The message whose pieces are whole, where `text` is cut.
        message_id: Option<String>,
        /// Whether `text` is cut.
        text_cut: bool,
        /// The structured result.
        structured_output: Option<Json>,
        /// Why the model stopped.
        stop_reason: StopReason,
    },
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled {
        /// Why, as the one who did said.
        reason: Option<Text>,
        /// Who did.
        source: Source,
    },
}

/// The body of a frame.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the variants are the types of the protocol")]
pub enum Body {
    Started(Box<Started>),
    Progress(Box<Progress>),
    Question(Box<Question>),
    Artifact(Box<Artifact>),
    Terminal(Box<Terminal>),
}

impl Outcome {
    /// The file that a refused workflow is about, where it is known.
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

    /// Whether this only says that nothing happened.
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
