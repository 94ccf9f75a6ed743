//! What differs between the agents that speak ACP. A further agent is a further profile here.

use super::native;
use crate::agent::Program;
use crate::agent::native::{NONE, Native};

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
    /// Added to its environment.
    pub(super) env: &'static [(&'static str, &'static str)],
    /// Whether the title of a pending call is the tool's name.
    pub(super) names_tools: bool,
    /// Whether a denied permission ends its turn.
    pub(super) stops_when_denied: bool,
    /// Whether a turn's token counts cover all its requests. Else they are those of the last.
    pub(super) counts_turns: bool,
    /// What it is beside ACP.
    pub(crate) native: &'static Native,
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
    // Else it is two processes, and SIGTERM to the first does nothing.
    env: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
    names_tools: false,
    stops_when_denied: false,
    counts_turns: true,
    native: &native::GEMINI,
};

/// OpenCode (1.18.33).
pub static OPENCODE: Profile = Profile {
    name: "OpenCode",
    login: "log in with `opencode auth login`",
    model_flag: None,
    dir_flag: None,
    env: &[
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        // By itself it asks for nearly nothing. This goes over every configuration, and leaves
        // OPENCODE_CONFIG_CONTENT to its user. Tools are named so that a rule for one of them does not win.
        (
            "OPENCODE_PERMISSION",
            r#"{"*":"ask","bash":"ask","edit":"ask","webfetch":"ask","task":"ask","external_directory":"ask"}"#,
        ),
    ],
    names_tools: true,
    stops_when_denied: true,
    counts_turns: false,
    native: &native::OPENCODE,
};

/// An agent of which nothing is known but that it speaks ACP.
pub static GENERIC: Profile = Profile {
    name: "The agent",
    login: "log in with its own command",
    model_flag: None,
    dir_flag: None,
    env: &[],
    names_tools: false,
    stops_when_denied: false,
    counts_turns: false,
    native: &NONE,
};
