//! OpenCode (1.18.33).

use crate::agent::acp::native;
use crate::agent::acp::profile::{OwnCall, Profile, PromptWay, ServerWay};
use crate::agent::acp::rules::RuleFormat;
use crate::agent::ask_user;
use crate::agent::built_in::{BuiltIn, Tested};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    tested: Some(Tested { version: "1.18.33", lacks: &[] }),
    ..BuiltIn::program("opencode", "OpenCode", "npm install -g opencode-ai")
};

pub(crate) static PROFILE: Profile = Profile { new_prompt: Some(PromptWay::OpenCode), ..LIKE };

/// The profile of OpenCode, and of agents made from it.
pub(super) const LIKE: Profile = Profile {
    name: "OpenCode",
    login: "log in with `opencode auth login`",
    model_flag: None,
    dir_flag: None,
    // A mode is one of its agents.
    modes: None,
    asking_mode: None,
    unasked: &[],
    new_prompt: None,
    // Nobody could answer its own tool for questions, which waits without a limit.
    env: &[("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("OPENCODE_ENABLE_QUESTION_TOOL", "false")],
    names_tools: true,
    ids_name_tools: false,
    titles_are_commands: false,
    inputs_follow: true,
    streams_inputs: false,
    hidden_failure: None,
    searches_cwd: true,
    ask_tool: ask_user::TOOL,
    own_call: Some(OwnCall { title: "{server}_{tool}", id: "" }),
    servers: ServerWay::Session,
    rules: Some(RuleFormat::OpenCode("OPENCODE_PERMISSION")),
    leaves_servers: true,
    counts_turns: false,
    reports_steps: true,
    native: &native::OPENCODE,
};
