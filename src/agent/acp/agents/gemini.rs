//! Gemini CLI (0.61.0).

use crate::agent::acp::native;
use crate::agent::acp::profile::{OwnCall, Profile, PromptWay, UNKNOWN};
use crate::agent::acp::rules::RuleFormat;
use crate::agent::built_in::{BuiltIn, Tested};
use crate::agent::endpoint::{Endpoint, Wire};

const SETTINGS: &str = r#"{
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "model": {"name": "gemini-2.5-flash"},
    "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 2},
    "privacy": {"usageStatisticsEnabled": false},
    "telemetry": {"enabled": false}
}"#;

/// By default, the agent asks a router for the model, and starts no MCP servers in an untrusted folder.
static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::GenerateContent,
    model: Some(("gemini-2.5-pro", "gemini-2.5-pro")),
    env: &[("GOOGLE_GEMINI_BASE_URL", "{url}"), ("GEMINI_API_KEY", "{key}"), ("GEMINI_CLI_TRUST_WORKSPACE", "true")],
    files: &[(".gemini/settings.json", SETTINGS)],
};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    aliases: &["gemini-cli"],
    // The mode in the user's settings might not ask for permission.
    args: &["--acp", "--approval-mode=default"],
    tested: Some(Tested { version: "0.61.0", fails: &[] }),
    endpoint: Some(&ENDPOINT),
    ..BuiltIn::program("gemini", "Gemini CLI", "npm install -g @google/gemini-cli")
};

/// In a folder that it does not trust, it asks permission for everything. We want that, so we do
/// not make it trust the folder.
pub(crate) static PROFILE: Profile = Profile {
    name: "Gemini CLI",
    login: "log in with `gemini`, or set GEMINI_API_KEY",
    model_flag: Some("--model"),
    dir_flag: Some("--include-directories"),
    modes: Some(native::GEMINI_MODES),
    new_prompt: Some(PromptWay::File("GEMINI_SYSTEM_MD")),
    // Without this variable, Gemini starts a second process, and SIGTERM to the first has no effect.
    env: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
    ids_name_tools: true,
    titles_are_commands: true,
    // Gemini hides every tool named ask_user, because it has its own, which it does not offer over ACP.
    ask_tool: "ask_the_user",
    own_call: Some(OwnCall { title: "{tool} ({server} MCP Server)", id: "mcp_{server}_{tool}__" }),
    rules: Some(RuleFormat::Gemini),
    leaves_servers: false,
    counts_turns: true,
    native: &native::GEMINI,
    ..UNKNOWN
};
