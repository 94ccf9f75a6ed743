//! A scenario: a dialogue that the demo agent plays, as data.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Scenario {
    /// A line for people.
    pub(super) about: String,
    pub(super) turns: Vec<Vec<ScenarioStep>>,
}

#[derive(Debug)]
pub(super) struct ScenarioStep {
    pub(super) action: StepAction,
    pub(super) times: u32,
    pub(super) conditions: Vec<Condition>,
}

/// A condition on the answer with this name.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) name: String,
    /// The answers of which one must match. `None`: the question has no answer.
    pub(super) any_of: Vec<Option<String>>,
    /// Whether none of them may match instead.
    pub(super) negated: bool,
}

#[derive(Debug)]
pub(super) enum StepAction {
    /// `parent`: the call whose sub-agent speaks.
    Say {
        words: SpokenText,
        thought: bool,
        parent: Option<String>,
    },
    Ask(Vec<NamedQuestion>),
    /// Tool calls, whose permissions are asked for before any of them acts.
    Calls(Vec<PlayedCall>),
    End(String, ToolEnd),
    /// The entries, as JSON.
    Plan(String),
    /// The fields of a usage, as JSON.
    Usage(String),
    Retry(String),
    /// The structured result, as JSON.
    Result(String),
    /// The failure, as JSON.
    Fail(String),
    Wait(Duration),
    /// Waits at most this long for a prompt that steers.
    AwaitSteer(Duration),
    Stderr(String),
    Exit(u8),
    Hang,
}

/// A text in pieces, played `times` times as one text.
#[derive(Debug)]
pub(super) struct SpokenText {
    pub(super) pieces: Vec<String>,
    pub(super) times: u32,
}

#[derive(Debug)]
pub(super) struct NamedQuestion {
    pub(super) name: Option<String>,
    /// The question in the form of the tool `ask_user`, as JSON.
    pub(super) form: String,
}

#[derive(Debug)]
pub(super) struct PlayedCall {
    /// Its name, and that of the answer to its permission.
    pub(super) name: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) conditions: Vec<Condition>,
    pub(super) work: CallWork,
}

#[derive(Debug)]
pub(super) enum CallWork {
    Tool(PlayedTool),
    Change(FileChange),
}

#[derive(Debug)]
pub(super) struct PlayedTool {
    /// The fields that describe the call, as JSON.
    pub(super) head: String,
    pub(super) asks: bool,
    /// `None`: the call stays open.
    pub(super) end: Option<ToolEnd>,
}

#[derive(Debug)]
pub(super) struct ToolEnd {
    pub(super) failed: bool,
    pub(super) output: Option<SpokenText>,
    pub(super) exit_code: Option<i64>,
}

#[derive(Debug)]
pub(super) struct FileChange {
    pub(super) path: String,
    /// `None`: the file is deleted.
    pub(super) content: Option<SpokenText>,
}
