//! What differs between the agents that speak ACP. A further agent is a further profile here.

use super::native;
use crate::agent::native::{NONE, Native};
use crate::agent::{Program, ask_user};

/// One agent's ways.
#[derive(Debug)]
pub struct Profile {
    /// Its name for people.
    pub(super) name: &'static str,
    /// How to log in, for the message that says it is needed.
    pub(super) login: &'static str,
    /// The flag that names the model. `None`: it is set in the session.
    pub(super) model_flag: Option<&'static str>,
    /// The flag that names a further directory. `None`: it has none.
    pub(super) dir_flag: Option<&'static str>,
    /// Whether its modes say what it is and does. Else they say what it asks permission for, which is not theirs to say.
    pub(super) has_modes: bool,
    /// Added to its environment.
    pub(super) env: &'static [(&'static str, &'static str)],
    /// Whether the title of a pending call is the tool's name.
    pub(super) names_tools: bool,
    /// Whether the id of a call begins with the tool's name and `__`.
    pub(super) ids_name_tools: bool,
    /// Whether the title of a shell command is the whole command.
    pub(super) titles_are_commands: bool,
    /// Whether a denied permission ends its turn.
    pub(super) stops_when_denied: bool,
    /// What our own tool is called.
    pub(super) ask_tool: &'static str,
    /// How it names a call of our own tool, in what it says before the call. `None`: not known, so such a call needs the
    /// user's leave like any other.
    pub(super) own_call: Option<OwnCall>,
    /// What else its environment holds where our tool is offered.
    pub(super) asking_env: &'static [(&'static str, &'static str)],
    /// Whether it leaves at the end of its input while it has MCP servers.
    pub(super) leaves_servers: bool,
    /// Whether a turn's token counts cover all its requests. Else they are those of the last.
    pub(super) counts_turns: bool,
    /// What it is beside ACP.
    pub(crate) native: &'static Native,
}

/// The name of a call of our own tool. Names are built of a server's and a tool's, so that another server's tool could
/// have the same: no server whose name begins like ours is let in, and both parts must fit.
#[derive(Debug)]
pub(super) struct OwnCall {
    /// What its title is.
    pub(super) title: &'static str,
    /// What its id begins with.
    pub(super) id: &'static str,
}

impl OwnCall {
    /// Whether this is such a call, by what is first said of it. The agents' own tools are of other kinds.
    pub(super) fn fits(&self, id: &str, title: Option<&str>, kind: Option<&str>) -> bool {
        title == Some(self.title) && id.starts_with(self.id) && matches!(kind, None | Some("other"))
    }
}

/// The ways of the agent that this program starts, wherever it is installed; else of the agent with this name, which
/// may be started by a wrapper.
pub(crate) fn of(program: &Program, name: &str) -> &'static Profile {
    let known = |name: &str| match name {
        "gemini" => Some(&GEMINI),
        "opencode" => Some(&OPENCODE),
        _ => None,
    };
    let program = match program {
        Program::Command(command) => command.rsplit('/').next().unwrap_or_default(),
        Program::Myself => "",
    };
    known(program).or_else(|| known(name)).unwrap_or(&GENERIC)
}

/// Gemini CLI (0.61.0). In a folder that it does not trust it asks for everything, which is what is wanted here, so no
/// trust is given. A session that is loaded in the minute in which it began is spoiled by Gemini itself.
pub static GEMINI: Profile = Profile {
    name: "Gemini CLI",
    login: "log in with `gemini`, or set GEMINI_API_KEY",
    model_flag: Some("--model"),
    dir_flag: Some("--include-directories"),
    has_modes: false,
    // Else it is two processes, and SIGTERM to the first does nothing.
    env: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
    names_tools: false,
    ids_name_tools: true,
    titles_are_commands: true,
    stops_when_denied: false,
    // It hides every tool with the name of its own ask_user, which it does not offer over ACP.
    ask_tool: "ask_the_user",
    own_call: Some(OwnCall { title: "ask_the_user (spektacular MCP Server)", id: "mcp_spektacular_ask_the_user__" }),
    asking_env: &[],
    leaves_servers: false,
    counts_turns: true,
    native: &native::GEMINI,
};

/// OpenCode (1.18.33).
pub static OPENCODE: Profile = Profile {
    name: "OpenCode",
    login: "log in with `opencode auth login`",
    model_flag: None,
    dir_flag: None,
    // They are its agents.
    has_modes: true,
    env: &[("OPENCODE_DISABLE_AUTOUPDATE", "1"), native::OPENCODE_ASKS],
    names_tools: true,
    ids_name_tools: false,
    titles_are_commands: false,
    stops_when_denied: true,
    ask_tool: ask_user::TOOL,
    own_call: Some(OwnCall { title: "spektacular_ask_user", id: "" }),
    // As above, and without a question before each question.
    asking_env: &[(
        "OPENCODE_PERMISSION",
        r#"{"*":"ask","bash":"ask","edit":"ask","webfetch":"ask","task":"ask","external_directory":"ask","spektacular_ask_user":"allow"}"#,
    )],
    leaves_servers: true,
    counts_turns: false,
    native: &native::OPENCODE,
};

/// An agent of which nothing is known but that it speaks ACP.
pub static GENERIC: Profile = Profile {
    name: "The agent",
    login: "log in with its own command",
    model_flag: None,
    dir_flag: None,
    has_modes: true,
    env: &[],
    names_tools: false,
    ids_name_tools: false,
    titles_are_commands: false,
    stops_when_denied: false,
    ask_tool: ask_user::TOOL,
    own_call: None,
    asking_env: &[],
    leaves_servers: true,
    counts_turns: false,
    native: &NONE,
};
