//! The differences between agents that speak ACP. The profile of each is in a file of its own, in [`agents`](super::agents).

use super::rules::RuleFormat;
use crate::agent::ask_user;
use crate::agent::native::{NONE, Native};
use crate::protocol::words::Category;

#[derive(Debug)]
pub(crate) struct Profile {
    pub(super) name: &'static str,
    pub(super) login: &'static str,
    /// `None`: a request in the session sets the model.
    pub(super) model_flag: Option<&'static str>,
    /// The flag for a further directory. `None`: not supported.
    pub(super) dir_flag: Option<&'static str>,
    /// The modes that `mode` may select. `None`: all. The others make the agent ask less than `permissions` says.
    pub(super) modes: Option<&'static [&'static str]>,
    /// The mode that asks for everything, where its name does not say so.
    pub(super) asking_mode: Option<&'static str>,
    /// The categories for which it does not ask in any mode but one that only reads.
    pub(super) unasked: &'static [Category],
    pub(super) new_prompt: Option<PromptWay>,
    pub(super) env: &'static [(&'static str, &'static str)],
    /// Whether the title of a pending call is the tool's name.
    pub(super) names_tools: bool,
    /// Whether the id of a call begins with the tool's name and `__`.
    pub(super) ids_name_tools: bool,
    /// Whether the title of a shell command is the whole command.
    pub(super) titles_are_commands: bool,
    /// Whether a permission request for a command can precede the call's whole input, which follows without an answer. The
    /// request then lacks the directory of the command, which the input has.
    pub(super) inputs_follow: bool,
    /// Whether the content of a call that has not begun is its input, as JSON that grows.
    pub(super) streams_inputs: bool,
    pub(super) hidden_failure: Option<HiddenFailure>,
    /// Whether a search by a pattern without a path never leaves the working directory, whatever the pattern is.
    pub(super) searches_cwd: bool,
    pub(super) ask_tool: &'static str,
    /// `None`: unknown, so that such a call needs permission like any other.
    pub(super) own_call: Option<OwnCall>,
    pub(super) servers: ServerWay,
    pub(super) rules: Option<RuleFormat>,
    /// Whether it exits at the end of its input even if it has MCP servers.
    pub(super) leaves_servers: bool,
    /// Whether a turn's token counts cover all its requests, and not only the last one.
    pub(super) counts_turns: bool,
    /// Whether a plugin of ours reports each call of its model.
    pub(super) reports_steps: bool,
    pub(crate) native: &'static Native,
}

impl Profile {
    /// Whether its modes are agents with prompts of their own. Its rules say what it asks for, whatever the mode.
    pub(super) fn modes_are_agents(&self) -> bool {
        matches!(self.rules, Some(RuleFormat::OpenCode(_)))
    }
}

/// The way in which an agent gets the MCP servers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerWay {
    /// By the request that opens the session.
    Session,
    /// By the request that opens the session. It starts them at the first prompt, before it calls the model.
    AtPrompt,
    /// By the request that opens the session, unless it ignores them. Nobody tried it.
    Untried,
    /// By a file, which follows this beginning of an argument. It ignores those of the session.
    File(&'static str),
    /// It ignores those of the session, and has no other way that lasts for one run.
    Nowhere,
}

/// The way in which an agent gets a system prompt that replaces its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum PromptWay {
    /// By a file, whose path is in this variable.
    File(&'static str),
    /// By OpenCode's configuration of the agent that the mode selects.
    OpenCode,
}

/// The signs of a turn that failed although it ended well.
#[derive(Debug)]
pub(super) enum HiddenFailure {
    /// No usage, and one of these texts in the last message.
    Notice(&'static [&'static str]),
    /// No call of a tool, and no text but lines that begin with one of these.
    Silence(&'static [&'static str]),
}

impl Default for &Profile {
    fn default() -> Self {
        &GENERIC
    }
}

/// The signs of a call of one of our own tools. The agents join a server's and a tool's name, so a tool of another
/// server could have the same name. Therefore our server's name has a random part, and title and id must both match.
#[derive(Debug)]
pub(super) struct OwnCall {
    /// With [`SERVER`] and [`TOOL`] in place of the names.
    pub(super) title: &'static str,
    /// A prefix, with the same placeholders.
    pub(super) id: &'static str,
}

pub(super) const SERVER: &str = "{server}";
pub(super) const TOOL: &str = "{tool}";

impl OwnCall {
    /// The title is missing where the agent refused the input itself.
    pub(super) fn is_id(&self, server: &str, tool: &str, id: &str) -> bool {
        !self.id.is_empty() && id.starts_with(&self.id.replace(SERVER, server).replace(TOOL, tool))
    }

    /// Takes the first message about a call. The agents' own tools have other kinds.
    pub(super) fn fits(&self, server: &str, tool: &str, id: &str, title: Option<&str>, kind: Option<&str>) -> bool {
        let named = |text: &str| text.replace(SERVER, server).replace(TOOL, tool);
        // The kind comes first, because it decides for most calls.
        matches!(kind, None | Some("other")) && title == Some(&named(self.title)) && id.starts_with(&named(self.id))
    }
}

/// An unknown agent that speaks ACP.
pub(crate) static GENERIC: Profile = Profile { servers: ServerWay::Untried, ..UNKNOWN };

pub(super) const UNKNOWN: Profile = Profile {
    name: "The agent",
    login: "log in with its own command",
    model_flag: None,
    dir_flag: None,
    modes: None,
    asking_mode: None,
    unasked: &[],
    new_prompt: None,
    env: &[],
    names_tools: false,
    ids_name_tools: false,
    titles_are_commands: false,
    inputs_follow: false,
    streams_inputs: false,
    hidden_failure: None,
    searches_cwd: false,
    ask_tool: ask_user::TOOL,
    own_call: None,
    servers: ServerWay::Session,
    rules: None,
    leaves_servers: true,
    counts_turns: false,
    reports_steps: false,
    native: &NONE,
};
