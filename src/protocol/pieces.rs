//! The objects that several frames contain.

use super::declare::{objects, sources};
use super::failure::Failure;
use super::ids::{MessageId, PromptId};
use super::limited::Limited;
use super::limits::{LEFT_LISTED, PLAN_ENTRIES};
use super::parts::{Fixed, Parts, Rank, Role, Visit};
use super::text::{Json, Text};
use super::words::{Action, McpState, PlanStatus, QuestionKind, Source, StopReason, TurnOrigin, TurnOutcome};

objects! {
    /// Unknown values are null in a frame.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct Usage {
        /// Input tokens, including cached ones.
        pub input_tokens: Option<u64>,
        /// The tokens that the model wrote.
        pub output_tokens: Option<u64>,
        /// The part of the input that came from a cache.
        pub cached_input_tokens: Option<u64>,
        /// The cost, in US dollars.
        pub cost_usd: Option<f64>,
        /// The tokens of the model's last call, with its answer, which fill its context.
        pub context_tokens: Option<u64>,
        /// The size of the model's context, in tokens.
        pub context_window: Option<u64>,
    }
}

impl Usage {
    /// `input` excludes the tokens that were read from a cache and written to it.
    pub fn of_call(input: u64, (read, written): (u64, u64), output: u64, cost_usd: Option<f64>) -> Usage {
        Usage {
            input_tokens: Some(input.saturating_add(read).saturating_add(written)),
            output_tokens: Some(output),
            cached_input_tokens: Some(read),
            cost_usd,
            ..Usage::default()
        }
    }

    /// An unknown number counts as zero.
    pub(crate) fn tokens(&self) -> u64 {
        self.input_tokens.unwrap_or_default().saturating_add(self.output_tokens.unwrap_or_default())
    }

    /// The context is that of `other`, the later one. A value that is unknown in one of them counts as zero.
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
            context_tokens: other.context_tokens.or(self.context_tokens),
            context_window: other.context_window.or(self.context_window),
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
            ..*self
        }
    }

    pub fn line(&self) -> String {
        let count = |n: Option<u64>| n.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
        format!("{} tokens in, {} out", count(self.input_tokens), count(self.output_tokens))
    }
}

objects! {
    #[derive(Clone, Debug)]
    pub struct Artifact {
        /// `a_1`, `a_2`, …
        pub artifact_id: String as name,
        /// The path, relative to the working directory if it is inside, otherwise absolute.
        pub path: Text as text,
        /// The change.
        pub action: Action,
        /// Always `file`.
        pub kind: &'static str,
        /// The size in bytes. Null: unknown.
        pub size_bytes: Option<u64>,
        /// Whether something was cut.
        pub truncated: bool as known,
    }

    /// In the list of a terminal frame.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ArtifactRef {
        /// The path, as in run.artifact.
        pub path: Text as inherited,
        /// The change.
        pub action: Action,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct McpServerState {
        /// The server's name.
        pub name: Text as text,
        /// Whether it runs.
        pub state: McpState,
    }

    /// A command or skill of the agent, which a prompt calls that begins with `/` and its name.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AgentCommand {
        /// The name, without the `/`.
        pub name: Text as text,
        /// The agent's own description. Null: it gives none.
        pub description: Option<Text> as text,
        /// The input that follows the name. Null: the agent does not say.
        pub hint: Option<Text> as text,
    }

    /// Unknown ones are null in a frame.
    #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
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
        /// Whether a permission can be granted with another input of the tool.
        pub updated_input: Option<bool>,
        /// Whether `rewind` puts files back. Absent: run.start does not set `checkpoints`.
        pub rewind: Option<bool> as known,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PlanEntry {
        /// The text of the entry.
        pub text: Text as inherited,
        /// The state of the entry.
        pub status: PlanStatus,
    }
}

impl Capabilities {
    /// The capabilities that most agents have: all but prompts while the agent works, and other inputs of a tool.
    pub fn usual(questions: Vec<QuestionKind>) -> Capabilities {
        let (yes, no) = (Some(true), Some(false));
        Capabilities {
            questions,
            resume: yes,
            deltas: yes,
            structured_output: yes,
            usage: yes,
            conversation: yes,
            steer: no,
            updated_input: no,
            rewind: None,
        }
    }
}

pub type Entries = Limited<PlanEntry, PLAN_ENTRIES>;

/// Facts about the end of a tool call.
#[derive(Clone, Debug, Default)]
pub struct ToolFacts {
    pub exit_code: Option<i64>,
    pub edits: Vec<FileEdit>,
}

sources! {
    #[derive(Clone, Debug)]
    pub struct FileEdit {
        /// As the agent reports it. In a body, relative to the working directory if it is inside, otherwise absolute.
        pub path: Text as inherited,
        /// The lines of hunks, each with its sign, or all lines of a created or deleted file.
        pub lines: Text as inherited,
        /// Whether lines at the end are missing.
        pub is_cut: bool,
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct ToolExit {
    /// `None`: unknown.
    pub code: Option<i64>,
    /// Whether the frame shows it, because the call is a command that ended.
    pub in_frame: bool,
}

impl FileEdit {
    /// `None`: there are no lines.
    pub fn new(path: impl Into<Text>, lines: String) -> Option<FileEdit> {
        (!lines.is_empty()).then(|| FileEdit { path: path.into(), lines: lines.into(), is_cut: false })
    }
}

sources! {
    #[derive(Clone, Debug)]
    pub struct TurnReport {
        pub number: u64,
        pub agent: String as name,
        pub origin: TurnOrigin,
        pub prompt_id: Option<PromptId>,
        pub outcome: Outcome as text,
        pub usage: Usage as text,
        pub completion_detected: bool,
        pub unattended: Unattended as text,
    }
}

impl TurnReport {
    pub fn word(&self) -> TurnOutcome {
        match self.outcome {
            Outcome::Completed { .. } => TurnOutcome::Completed,
            Outcome::Failed(_) => TurnOutcome::Failed,
            Outcome::Cancelled { .. } => TurnOutcome::Cancelled,
        }
    }
}

objects! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct UnansweredItem {
        /// The tool's category for a permission, or the question's kind.
        pub category: &'static str,
        /// The subject, in one line.
        pub text: Text as inherited,
    }

    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct UnansweredItems {
        /// The number of unanswered questions.
        pub count: u64,
        /// The first 20.
        pub first: Vec<UnansweredItem> as list,
    }

    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Unattended {
        /// Permissions that were denied.
        pub denied: UnansweredItems as text,
        /// Other questions.
        pub unanswered: UnansweredItems as text,
    }

    /// At most one of the two numbers is set.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AgentExit {
        /// The exit code, unless a signal ended it.
        pub code: Option<i32>,
        /// The signal that ended it.
        pub signal: Option<i32>,
    }
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

#[derive(Clone, Debug)]
pub enum Outcome {
    Completed {
        text: Text,
        /// The message whose pieces contain the whole text, if `text` is cut.
        message_id: Option<MessageId>,
        text_cut: bool,
        structured_output: Option<Json>,
        stop_reason: StopReason,
    },
    Failed(Failure),
    Cancelled {
        reason: Option<Text>,
        source: Source,
    },
}

impl Parts for Outcome {
    fn visit(&mut self, _: Role, visit: Visit<'_>) {
        match self {
            Outcome::Completed { text, message_id: _, text_cut: _, structured_output, stop_reason: _ } => {
                structured_output.visit(Role::Cut(Rank::Output), visit);
                text.visit(Role::Cut(Rank::Text), visit);
            }
            Outcome::Failed(failure) => failure.visit(Role::Cut(Rank::Text), visit),
            Outcome::Cancelled { reason, source: _ } => reason.visit(Role::Cut(Rank::Text), visit),
        }
    }
}

impl Outcome {
    pub fn refused_target(&self) -> Option<Text> {
        match self {
            Outcome::Failed(failure) => failure.target.as_deref().cloned(),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } => None,
        }
    }
}

impl Fixed for ToolExit {}
