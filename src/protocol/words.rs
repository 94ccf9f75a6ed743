//! The words of the protocol: every closed set of strings in frames. They are never redacted.

use super::form::{Form, HasForm, WordSet};
use super::frame_value::{FrameValue, put_word};
use super::parts::{Fixed, IsRedacted};
use crate::json::string;
use serde::Serialize;
use serde_json::value::RawValue;

/// The rest of "must be …".
macro_rules! one_of {
    ($first:literal $(, $word:literal)*) => { concat!("one of \"", $first, "\"" $(, ", \"", $word, "\"")*) };
}

pub(crate) use one_of;

macro_rules! word_set {
    ($name:ident) => {
        WordSet { name: stringify!($name), words: $name::WORDS, grows: false }
    };
    ($name:ident $published:literal) => {
        WordSet { name: $published, words: $name::WORDS, grows: true }
    };
}

macro_rules! word_enums {
    ($($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:expr),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $($(#[$doc])* $variant),* }

        impl $name {
            $vis const ALL: &'static [$name] = &[$($name::$variant),*];
            $vis const WORDS: &'static [&'static str] = &[$($word),*];

            $vis fn word(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            $vis fn from_word(word: &str) -> Option<$name> {
                $name::WORDS.iter().position(|known| *known == word).map(|at| $name::ALL[at])
            }
        }
    )*};
}

pub(crate) use word_enums;

/// `grows`: a later minor version may add words; then follows the name of the set in other languages.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident $(grows $published:literal)? { $($variant:ident = $word:literal),* $(,)? })*) => {$(
        word_enums! {
            $(#[$doc])*
            pub enum $name { $($variant = $word),* }
        }

        impl $name {
            /// The rest of "must be …".
            pub const EXPECTED: &'static str = one_of!($($word),*);

            /// Error: [`Self::EXPECTED`].
            pub fn read(raw: &RawValue) -> Result<$name, Option<&'static str>> {
                string(raw).and_then(|word| $name::from_word(&word)).ok_or(Some($name::EXPECTED))
            }
        }

        impl Fixed for $name {}

        impl HasForm for $name {
            const FORM: Form = Form::Word(&word_set!($name $($published)?));
        }

        impl FrameValue for $name {
            fn put(&self, out: &mut Vec<u8>, _: IsRedacted) {
                put_word(self.word(), out);
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    )*};
}

words! {
    McpTransport { Http = "http", Sse = "sse" }
    McpState { Pending = "pending", Ready = "ready", Failed = "failed" }
    /// The category of a tool, which permission policies use too.
    Category {
        Read = "read", Edit = "edit", Delete = "delete", Move = "move", Search = "search", Execute = "execute",
        Fetch = "fetch", Think = "think", Agent = "agent", Mcp = "mcp", Mode = "mode", Other = "other",
    }
    Policy { Ask = "ask", Allow = "allow", Deny = "deny" }
    Level { Minimal = "minimal", Normal = "normal", Full = "full" }
    OnQuestionTimeout { Fail = "fail", Continue = "continue" }
    Background { Wait = "wait", Refuse = "refuse" }
    SystemPromptMode { Append = "append", Replace = "replace" }
    OnUnsupported { Fail = "fail", Warn = "warn" }
    OnRateLimit { Fail = "fail", Wait = "wait" }
    TakesOverAfter {
        AgentNotFound = "agent_not_found", AgentStartFailed = "agent_start_failed", AuthRequired = "auth_required",
        QuotaExceeded = "quota_exceeded", RateLimited = "rate_limited", ProviderUnavailable = "provider_unavailable",
        ModelNotFound = "model_not_found", ContextExceeded = "context_exceeded", Refused = "refused",
        AgentError = "agent_error", AgentExited = "agent_exited", AgentProtocolError = "agent_protocol_error",
    }
    SandboxMode { Off = "off", ReadOnly = "read-only", Workspace = "workspace" }
    SandboxSecrets { Hidden = "hidden", Readable = "readable" }
    GitState { Protected = "protected", Checked = "checked" }
    /// The limits of run.start, by their fields.
    Limit {
        AllowedTools = "allowed_tools", DisallowedTools = "disallowed_tools", McpServers = "mcp_servers",
        Permissions = "permissions",
        MaxTurns = "max_turns", MaxToolCalls = "max_tool_calls", MaxTokens = "max_tokens", MaxCostUsd = "max_cost_usd",
    }
    /// The field of run.start that ended a run.
    LimitField {
        AllowedTools = "allowed_tools", DisallowedTools = "disallowed_tools", McpServers = "mcp_servers",
        Permissions = "permissions",
        MaxTurns = "max_turns", MaxToolCalls = "max_tool_calls", MaxTokens = "max_tokens", MaxCostUsd = "max_cost_usd",
        Timeout = "timeout_s", TurnTimeout = "turn_timeout_s", StartTimeout = "start_timeout_s",
        IdleTimeout = "idle_timeout_s", QuestionTimeout = "question_timeout_s",
        PhaseTimeout = "phase_timeout_s",
    }
    Status {
        Starting = "starting", Running = "running", WaitingForInput = "waiting_for_input", Retrying = "retrying",
        Cancelling = "cancelling", WaitingForPrompt = "waiting_for_prompt",
        WaitingForLimit = "waiting_for_limit", WaitingForAgent = "waiting_for_agent",
    }
    PromptState { Queued = "queued", Sent = "sent", Dropped = "dropped" }
    /// The state of a checkpoint: taken before a turn, complete with the state after it, or what the files are again.
    CheckpointState { Taken = "taken", Complete = "complete", Restored = "restored" }
    TurnOrigin { Prompt = "prompt", Agent = "agent" }
    TurnOutcome { Completed = "completed", Failed = "failed", Cancelled = "cancelled" }
    ToolState {
        Started = "started", Completed = "completed", Failed = "failed", Denied = "denied", Cancelled = "cancelled",
    }
    PlanStatus { Pending = "pending", InProgress = "in_progress", Completed = "completed" }
    /// The change of a file.
    Action { Created = "created", Modified = "modified", Deleted = "deleted" }
    /// The purpose of a question.
    Purpose { Permission = "permission", Clarification = "clarification", Input = "input" }
    Resolution {
        Answered = "answered", Declined = "declined", Timeout = "timeout", InputClosed = "input_closed",
        Headless = "headless", Policy = "policy", Withdrawn = "withdrawn",
    }
    WaitingOn { Agent = "agent", Input = "input", Prompt = "prompt" }
    StopReason { EndTurn = "end_turn", MaxTokens = "max_tokens", Refusal = "refusal", Other = "other" }
    /// The part that a cancel ends.
    CancelScope { Run = "run", Turn = "turn" }
    /// The source of a cancel.
    Source { Orchestrator = "orchestrator", Signal = "signal", Terminal = "terminal" }
    Warning grows "WarningCode" {
        UnknownType = "unknown_type", UnknownRun = "unknown_run", UnknownQuestion = "unknown_question",
        DuplicateStart = "duplicate_start", UnknownField = "unknown_field", MalformedMessage = "malformed_message", InvalidAnswer = "invalid_answer",
        UnsupportedOption = "unsupported_option", ShortSecret = "short_secret",
        AgentOutputUnparsed = "agent_output_unparsed", AgentRetrying = "agent_retrying",
        ArtifactsIncomplete = "artifacts_incomplete", EmptyResult = "empty_result", LeakedProcess = "leaked_process",
        Unguarded = "unguarded", PlanChanged = "plan_changed", SpecChanged = "spec_changed",
        SpecViolations = "spec_violations", Unverified = "unverified", UnexpectedChange = "unexpected_change",
        UntrustedPrompt = "untrusted_prompt", NotCommitted = "not_committed",
        PermissionTooLong = "permission_too_long", PromptRefused = "prompt_refused",
        OutputIncomplete = "output_incomplete", McpUnavailable = "mcp_unavailable",
        SandboxPartial = "sandbox_partial", ProtectedChanged = "protected_changed",
        BackgroundStopped = "background_stopped", AgentReplaced = "agent_replaced",
        ReviewFindings = "review_findings", Unreviewed = "unreviewed", NameTaken = "name_taken",
        DraftRejected = "draft_rejected",
        CheckpointMissing = "checkpoint_missing", RewindRefused = "rewind_refused",
    }
    WorkflowKind { Spec = "spec", Plan = "plan", Implement = "implement" }
    /// The state of a phase in progress.
    PhaseState {
        Started = "started", Verifying = "verifying", Reviewing = "reviewing", Failed = "failed", Passed = "passed",
        Reopened = "reopened",
    }
    /// The state of a phase in the report of a workflow.
    PhaseOutcome { Done = "done", Passed = "passed", Failed = "failed", Open = "open" }
    RefusalReason {
        Exists = "exists", NotFound = "not_found", Outside = "outside", Invalid = "invalid", TooLarge = "too_large",
        Locked = "locked", Dirty = "dirty", NoGit = "no_git", Consent = "consent",
    }
    QuestionKind {
        Confirm = "confirm", Select = "select", Text = "text", Secret = "secret", FilePath = "file_path",
    }
    PathType { File = "file", Directory = "directory" }
}

impl ToolState {
    /// The end of the line about a call that ended in this state. Empty for the usual end.
    pub fn suffix(self) -> &'static str {
        match self {
            ToolState::Started | ToolState::Completed => "",
            ToolState::Failed => ": failed",
            ToolState::Denied => ": denied",
            ToolState::Cancelled => ": cancelled",
        }
    }

    /// The title of a call in the line about its end in this state, and a hint after the state, or nothing.
    pub fn title(self, line: &str) -> (&str, &str) {
        match (self.suffix(), line.rsplit_once(self.suffix())) {
            ("", _) | (_, None) => (line, ""),
            (_, Some(parts)) => parts,
        }
    }
}

impl Category {
    /// The categories of calls that change something by themselves.
    pub const ACTS: &[Category] = &[Category::Edit, Category::Delete, Category::Move, Category::Execute];

    /// Whether an action of this category changes files, so that its detail is a diff.
    pub fn changes_files(self) -> bool {
        matches!(self, Category::Edit | Category::Delete | Category::Move)
    }
}
