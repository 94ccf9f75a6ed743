//! The protocol's own words: every closed set of strings that occurs in a frame. They are never redacted.

use serde::Serialize;

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each variant is the word itself")]
        pub enum $name { $($variant),* }

        impl $name {
            /// Every word of this set.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// The same as strings.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word as it stands in a frame.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            /// The member that has this word.
            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)* _ => None }
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
    /// What a tool does. Permission policies are written in these words.
    Category {
        Read = "read", Edit = "edit", Delete = "delete", Move = "move", Search = "search", Execute = "execute",
        Fetch = "fetch", Think = "think", Agent = "agent", Mcp = "mcp", Mode = "mode", Other = "other",
    }
    /// What to do when the agent asks for permission.
    Policy { Ask = "ask", Allow = "allow", Deny = "deny" }
    /// How much run.progress is emitted.
    Level { Minimal = "minimal", Normal = "normal", Full = "full" }
    /// What happens when a required question without a default is not answered in time.
    OnQuestionTimeout { Fail = "fail", Continue = "continue" }
    /// What the run is doing.
    Status {
        Starting = "starting", Running = "running", WaitingForInput = "waiting_for_input", Retrying = "retrying",
        Cancelling = "cancelling",
    }
    /// How far a tool call is.
    ToolState { Started = "started", Completed = "completed", Failed = "failed", Denied = "denied" }
    /// How far an entry of a plan is.
    PlanStatus { Pending = "pending", InProgress = "in_progress", Completed = "completed" }
    /// What happened to a file.
    Action { Created = "created", Modified = "modified", Deleted = "deleted" }
    /// Why a question is asked.
    Purpose { Permission = "permission", Clarification = "clarification", Input = "input" }
    /// Why a question is over.
    Resolution {
        Answered = "answered", Declined = "declined", Timeout = "timeout", InputClosed = "input_closed",
        Headless = "headless", Policy = "policy", Withdrawn = "withdrawn",
    }
    /// Who is waited for.
    WaitingOn { Agent = "agent", Input = "input" }
    /// Why the model stopped.
    StopReason { EndTurn = "end_turn", MaxTokens = "max_tokens", Refusal = "refusal", Other = "other" }
    /// Who cancelled.
    Source { Orchestrator = "orchestrator", Signal = "signal", Terminal = "terminal" }
    /// What a warning is about.
    Warning {
        UnknownType = "unknown_type", UnknownRun = "unknown_run", UnknownQuestion = "unknown_question",
        DuplicateStart = "duplicate_start", UnknownField = "unknown_field", MalformedMessage = "malformed_message", InvalidAnswer = "invalid_answer",
        UnsupportedOption = "unsupported_option", ShortSecret = "short_secret",
        AgentOutputUnparsed = "agent_output_unparsed", AgentRetrying = "agent_retrying",
        ArtifactsIncomplete = "artifacts_incomplete", EmptyResult = "empty_result", LeakedProcess = "leaked_process",
    }
    /// The kinds of question.
    QuestionKind {
        Confirm = "confirm", Select = "select", Text = "text", Secret = "secret", FilePath = "file_path",
    }
    /// What a file_path answer must name.
    PathType { File = "file", Directory = "directory" }
}
