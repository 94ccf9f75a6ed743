//! The bodies of the seven outbound frames. Each field is declared once ([`super::declare`]): from the declaration come its
//! JSON, its description ([`super::form`]), and the walk that finds every text in it, to redact it, and to cut it if a frame
//! would be too long. A body becomes JSON only as a [`super::redacted::Redacted`].

use super::declare::{objects, sources};
use super::ids::{QuestionId, SessionId};
use super::parts::{Parts, Role, Visit};
use super::question::Ask;
use super::read::Seconds;
use super::sentence::Sentence;
use super::words::Warning;

pub use super::fields::ShownSettings;
pub use super::ids::{CallId, CheckpointId, MessageId, PromptId};
pub use super::kinds::ProgressKind;
pub use super::pieces::{
    AgentCommand, AgentExit, Artifact, ArtifactRef, Capabilities, Entries, FileEdit, McpServerState, Outcome,
    PlanEntry, ToolExit, ToolFacts, TurnReport, UnansweredItem, UnansweredItems, Unattended, Usage,
};
pub use super::question::Place;
pub use super::review::ReviewFinding;
pub use super::text::{Json, Text};
pub use super::workflow::{MovedFile, PhaseReport, RuleViolation, WorkflowEnd, WorkflowStarted};

objects! {
    #[derive(Clone, Debug)]
    pub struct Started {
        /// The agent.
        pub agent: AgentName as text,
        /// The settings of the run, defaults included.
        pub config: ShownSettings as text,
        /// The version of the protocol.
        pub protocol: ProtocolVersion as text,
        /// The capabilities of the driver.
        pub capabilities: Capabilities as text,
        /// The metadata of run.start, as it was sent.
        pub metadata: Metadata as own,
        /// The part of a workflow. Absent: the run is not a workflow.
        pub workflow: Option<Box<WorkflowStarted>> as known text,
        /// Whether something was cut.
        pub truncated: bool as known,
    }

    #[derive(Clone, Debug)]
    pub struct AgentName {
        /// The agent's name, as in the request.
        pub name: String as name,
        /// The agent's name for people.
        pub display_name: Text as text,
        /// Null, because the agent reports its version later, in the session frame.
        pub version: Option<Text> as text,
    }

    #[derive(Clone, Debug)]
    pub struct ProtocolVersion {
        /// The major version.
        pub v: &'static str,
        /// The minor version.
        pub minor: u32,
        /// The version of spektacular.
        pub spektacular: &'static str,
    }
}

impl ProtocolVersion {
    pub const OURS: ProtocolVersion = ProtocolVersion { v: "1", minor: 2, spektacular: env!("CARGO_PKG_VERSION") };
}

/// As it was sent. A frame shows an empty object if there is none.
#[derive(Clone, Debug, Default)]
pub struct Metadata(pub Option<Json>);

impl Parts for Metadata {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        self.0.visit(role, visit);
    }
}

objects! {
    #[derive(Clone, Debug)]
    pub struct Progress {
        /// A line for people.
        pub text: Text as text,
        pub about: ProgressKind as flat text,
        /// For work of a sub-agent: the tool call that started the sub-agent.
        pub parent_call_id: Option<CallId> as known,
        /// Whether something was cut.
        pub truncated: bool as known,
    }
}

impl Progress {
    /// Outside sub-agents.
    pub fn new(about: ProgressKind, text: impl Into<Text>) -> Progress {
        Progress { text: text.into(), parent_call_id: None, about, truncated: false }
    }

    pub fn warning(code: Warning, text: impl Into<Sentence>) -> Progress {
        let (text, for_person) = text.into().into_texts();
        Progress::new(ProgressKind::Warning { code, retry_at: None, for_person }, text)
    }
}

sources! {
    #[derive(Clone, Debug)]
    pub struct Question {
        pub question_id: QuestionId,
        pub group_id: String as name,
        pub group_size: usize,
        /// Redacted.
        pub ask: Ask as text,
        pub timeout_s: Seconds,
        pub attempt: u32,
        pub error: Option<Text> as text,
        pub truncated: bool,
    }
}

objects! {
    #[derive(Clone, Debug)]
    pub struct Terminal {
        pub outcome: Outcome as hidden text,
        /// The agent's session.
        pub session_id: Option<SessionId>,
        /// The files that the run created, modified and deleted.
        pub artifacts: Vec<ArtifactRef> as list,
        /// The usage of this run.
        pub usage: Usage as text,
        /// The time since run.start, in milliseconds.
        pub duration_ms: u64,
        /// The metadata of run.start, as it was sent.
        pub metadata: Metadata as own,
        /// Only run.completed shows it.
        pub unattended: Unattended as hidden text,
        /// Whether the completion marker was in the agent's text.
        pub completion_detected: bool,
        /// The exit of the agent's process. Null: no process was started.
        pub agent_exit: Option<AgentExit> as text,
        /// The number of turns of a conversation. Absent: the run is not a conversation.
        pub turns: Option<u64> as known,
        /// The part of a workflow. Absent: the run is not a workflow.
        pub workflow: Option<Box<WorkflowEnd>> as known text,
        /// Whether something was cut.
        pub truncated: bool as known,
    }
}

impl Terminal {
    pub fn new(outcome: Outcome) -> Terminal {
        Terminal {
            outcome,
            session_id: None,
            artifacts: Vec::new(),
            usage: Usage::default(),
            duration_ms: 0,
            metadata: Metadata::default(),
            unattended: Unattended::default(),
            completion_detected: false,
            agent_exit: None,
            turns: None,
            workflow: None,
            truncated: false,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Body {
    Started(Box<Started>),
    Progress(Box<Progress>),
    Question(Box<Question>),
    Artifact(Box<Artifact>),
    Terminal(Box<Terminal>),
}

impl Parts for Body {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        match self {
            Body::Started(body) => body.visit(role, visit),
            Body::Progress(body) => body.visit(role, visit),
            Body::Question(body) => body.visit(role, visit),
            Body::Artifact(body) => body.visit(role, visit),
            Body::Terminal(body) => body.visit(role, visit),
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

    pub fn is_heartbeat(&self) -> bool {
        matches!(self, Body::Progress(progress) if matches!(progress.about, ProgressKind::Heartbeat { .. }))
    }

    pub fn artifact(&self) -> Option<ArtifactRef> {
        match self {
            Body::Artifact(artifact) => Some(ArtifactRef { path: artifact.path.clone(), action: artifact.action }),
            Body::Started(_) | Body::Progress(_) | Body::Question(_) | Body::Terminal(_) => None,
        }
    }

    pub fn is_terminal(&self) -> bool {
        matches!(self, Body::Terminal(_))
    }
}
