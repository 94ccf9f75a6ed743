//! OpenCode (1.18.33).

use crate::agent::acp::native;
use crate::agent::acp::profile::{OwnCall, Profile, PromptWay, UNKNOWN};
use crate::agent::acp::rules::RuleFormat;
use crate::agent::built_in::{BuiltIn, Tested};
use crate::agent::endpoint::{Endpoint, Wire};

pub(super) const PROVIDER: &str = r#"{
    "autoupdate": false,
    "share": "disabled",
    "model": "stub/stub-model",
    "small_model": "stub/stub-model",
    "provider": {"stub": {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Stub",
        "options": {"baseURL": "{url}/v1", "apiKey": "{key}"},
        "models": {"stub-model": {"name": "Stub", "tool_call": true, "limit": {"context": 100000, "output": 8000}},
            "other-model": {"name": "Other", "tool_call": true, "limit": {"context": 100000, "output": 8000}}}
    }}
}"#;

const INSTALLED: &str = r#"{"packages": {"": {"dependencies": {"@opencode-ai/plugin": "1"}}}}"#;

/// By default, the agent installs a library into a folder of its own that lacks it, and loads a list of models.
static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::ChatCompletions,
    model: Some(("stub/other-model", "other-model")),
    env: &[
        ("OPENCODE_MODELS_PATH", "{home}/.config/opencode/models.json"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        // Its engine's last optimizer takes a sixth of the processor time of a short run, and gains it nothing.
        ("BUN_JSC_useFTLJIT", "0"),
    ],
    files: &[
        (".config/opencode/opencode.json", PROVIDER),
        (".config/opencode/models.json", "{}"),
        (".config/opencode/node_modules/placeholder", ""),
        (".config/opencode/package-lock.json", INSTALLED),
    ],
};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    tested: Some(Tested { version: "1.18.33", fails: &[] }),
    endpoint: Some(&ENDPOINT),
    ..BuiltIn::program("opencode", "OpenCode", "npm install -g opencode-ai")
};

pub(crate) static PROFILE: Profile = Profile { new_prompt: Some(PromptWay::OpenCode), ..LIKE };

/// The profile of OpenCode, and of agents made from it.
pub(super) const LIKE: Profile = Profile {
    name: "OpenCode",
    login: "log in with `opencode auth login`",
    // Nobody could answer its own tool for questions, which waits without a limit.
    env: &[
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_ENABLE_QUESTION_TOOL", "false"),
        // Its ACP reports neither their end nor the turn that follows.
        ("OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS", "false"),
        // With a plugin, the user's own too, it installs a library before it answers. Without a network, npm would wait
        // for 10 s and a minute between its attempts.
        ("NPM_CONFIG_FETCH_RETRY_MINTIMEOUT", "100"),
    ],
    names_tools: true,
    inputs_follow: true,
    searches_cwd: true,
    own_call: Some(OwnCall { title: "{server}_{tool}", id: "" }),
    // A mode is one of its agents.
    rules: Some(RuleFormat::OpenCode("OPENCODE_PERMISSION")),
    reports_steps: true,
    native: &native::OPENCODE,
    ..UNKNOWN
};
