//! The parts of a workflow's run: turns of the agent and steps without it, one after another; and what each leaves.
//!
//! This is the data alone. `parts` and `steps` carry them out.

use crate::agent::{Driver, Reply};
use crate::protocol::failure::Failure;
use crate::protocol::ids::SessionId;
use crate::protocol::outbound::{AgentExit, ArtifactRef, Outcome, Text, Unattended, Usage, WorkflowEnd};
use crate::protocol::question::Ask;
use crate::protocol::request::Settings;
use crate::protocol::words::{Category, StopReason};

pub struct Part {
    /// The limits are what the run has left.
    pub settings: Settings,
    pub work: PartWork,
}

pub enum PartWork {
    Turn(Turn),
    /// A session that is the rest of the run, which has had nothing but steps before.
    Rest(Turn),
    /// The process that stayed after the agent's last turn is told to leave.
    Leave,
    Step(StepWork),
}

/// Makes another driver for the agent of a run.
pub type Remake = Box<dyn Fn() -> Box<dyn Driver> + Send>;

#[derive(Default)]
pub struct Turn {
    pub start: TurnBegin,
    /// Whether the agent's process may stay after the turn: see [`PartEnd::stays`].
    pub keeps_process: bool,
    /// Whether the prompt offers the marker of a blocked agent, which is removed from the text then.
    pub offers_blocked: bool,
    /// The whole prompt, for an agent that takes over. `None`: that of the settings.
    pub whole: Option<String>,
    pub asking_failed: bool,
    /// Makes the driver of another agent, which has this part alone, in a new or resumed session. `None`: the agent of the
    /// run has it.
    pub guest: Option<Remake>,
}

impl Turn {
    pub fn new_session() -> Turn {
        Turn::default()
    }
}

pub enum StepWork {
    Command(ShellCommand),
    Ask(Box<Ask>),
    /// The wait for work in a thread, which [`Event::TaskOver`](super::Event::TaskOver) ends.
    Task,
}

/// A process that is treated like an agent's, from the marker of its tree to the ladder that stops it.
pub struct ShellCommand {
    /// The arguments of `/bin/sh`.
    pub args: Vec<String>,
    /// The variables of the agent's entry.
    pub env: Vec<(String, String)>,
    /// The command as frames show it. `None`: frames do not show it.
    pub title: Option<String>,
    pub phase: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TurnBegin {
    #[default]
    NewSession,
    Resume(SessionId),
    /// In the process that stayed after the last turn.
    SameProcess,
    /// In the next process of an agent that has one process per turn.
    NextProcess,
}

#[derive(Clone, Debug)]
pub struct PartEnd {
    pub outcome: Outcome,
    pub exit: Option<AgentExit>,
    /// Whether the agent's process stays for a further turn.
    pub stays: bool,
    pub session_id: Option<SessionId>,
    pub takes_turns: bool,
    pub usage: Usage,
    pub tool_calls: u64,
    /// The number of denied permissions in the run so far.
    pub denied: u64,
    pub seen: PartSeen,
    /// The end of the output of a command, redacted.
    pub output: String,
    pub reply: Option<Reply>,
}

#[derive(Clone, Debug, Default)]
pub struct PartSeen {
    /// The first changed files that were reported, except hidden ones, as frames show them.
    pub files: Vec<ArtifactRef>,
    /// Whether a tool that does something completed.
    pub acted: bool,
    /// The agent's reason if it says that it cannot continue.
    pub blocked: Option<String>,
    /// Whether the agent wrote anything.
    pub heard: bool,
}

/// The end of a run between two of its parts.
pub struct Closing {
    pub outcome: Outcome,
    /// `None`: the run has only had steps before a session.
    pub workflow: Option<WorkflowEnd>,
    /// The exit of an agent that stayed after its last turn and was killed.
    pub killed: Option<AgentExit>,
}

#[derive(Default)]
pub(super) struct Sums {
    pub(super) usage: Usage,
    pub(super) unattended: Unattended,
    pub(super) completion: bool,
    /// The number of results that were shown as messages.
    pub(super) results: u64,
}

impl PartEnd {
    pub(super) fn failed(failure: Failure) -> PartEnd {
        PartEnd {
            outcome: Outcome::Failed(failure),
            exit: None,
            stays: false,
            session_id: None,
            takes_turns: false,
            usage: Usage::default(),
            tool_calls: 0,
            denied: 0,
            seen: PartSeen::default(),
            output: String::new(),
            reply: None,
        }
    }
}

pub fn completed(text: impl Into<Text>) -> Outcome {
    let (text, message_id) = (text.into(), None);
    let (text_cut, structured_output, stop_reason) = (false, None, StopReason::EndTurn);
    Outcome::Completed { text, message_id, text_cut, structured_output, stop_reason }
}

pub(super) fn does_something(category: Category) -> bool {
    match category {
        Category::Edit | Category::Delete | Category::Move | Category::Execute | Category::Mcp | Category::Other => {
            true
        }
        Category::Read | Category::Search | Category::Fetch | Category::Think | Category::Agent | Category::Mode => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::does_something;
    use crate::protocol::words::Category;

    #[test]
    fn only_a_tool_that_changes_something_counts_as_an_action() {
        for (category, acted) in [(Category::Edit, true), (Category::Execute, true), (Category::Read, false)] {
            assert_eq!(does_something(category), acted, "{category:?}");
        }
    }
}
