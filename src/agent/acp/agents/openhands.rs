//! OpenHands (1.16.0).

use crate::agent::acp::profile::{Profile, ServerWay, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Tested};
use crate::agent::endpoint::{Endpoint, Wire};

const SETTINGS: &str = r#"{
    "kind": "Agent",
    "llm": {"model": "openai/stub-model", "api_key": "{key}", "base_url": "{url}/v1", "num_retries": 1,
        "retry_min_wait": 1, "retry_max_wait": 2, "usage_id": "agent"},
    "tools": [{"name": "terminal", "params": {}}, {"name": "file_editor", "params": {}}, {"name": "task_tracker", "params": {}}],
    "include_default_tools": ["FinishTool", "ThinkTool"],
    "system_prompt_kwargs": {"cli_mode": true, "llm_security_analyzer": true}
}"#;

static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::ChatCompletions,
    model: None,
    // Without the last one, it asks the network for prices three times at each start.
    env: &[
        ("LLM_MODEL", "openai/stub-model"),
        ("LLM_API_KEY", "{key}"),
        ("LLM_BASE_URL", "{url}/v1"),
        ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
    ],
    files: &[(".openhands/agent_settings.json", SETTINGS)],
};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    args: &["acp", "--override-with-envs"],
    env: &[("OPENHANDS_SUPPRESS_BANNER", "1")],
    // Measured: it prints its version after 9 to 60 s.
    version: None,
    tested: Some(Tested { version: "1.16.0", fails: &[] }),
    endpoint: Some(&ENDPOINT),
    ..BuiltIn::program("openhands", "OpenHands", "pip install openhands")
};

pub(crate) static PROFILE: Profile = Profile { name: "OpenHands", servers: ServerWay::AtPrompt, ..UNKNOWN };
