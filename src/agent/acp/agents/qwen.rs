//! Qwen Code (0.24.4).

use crate::agent::acp::profile::{Profile, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Tested};
use crate::agent::endpoint::{Endpoint, Wire};
use crate::agent::native::{HOME, Native};

const SETTINGS: &str = r#"{
    "security": {"auth": {"selectedType": "openai"}},
    "model": {"name": "stub-model"},
    "modelProviders": {"openai": [{"id": "stub-model", "name": "stub-model", "baseUrl": "{url}/v1",
        "envKey": "OPENAI_API_KEY", "generationConfig": {"maxRetries": 1}}, {"id": "other-model", "name": "other-model",
        "baseUrl": "{url}/v1", "envKey": "OPENAI_API_KEY", "generationConfig": {"maxRetries": 1}}]},
    "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
    "privacy": {"usageStatisticsEnabled": false},
    "telemetry": {"enabled": false}
}"#;

static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::ChatCompletions,
    model: Some(("other-model", "other-model")),
    env: &[("OPENAI_API_KEY", "{key}"), ("OPENAI_BASE_URL", "{url}/v1"), ("OPENAI_MODEL", "stub-model")],
    files: &[(".qwen/settings.json", SETTINGS)],
};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    aliases: &["qwen-code"],
    // The mode in the user's settings might not ask for permission.
    args: &["--acp", "--approval-mode=default"],
    package: Some("@qwen-code/qwen-code@0.24.4"),
    tested: Some(Tested { version: "0.24.4", fails: &[] }),
    endpoint: Some(&ENDPOINT),
    ..BuiltIn::program("qwen", "Qwen Code", "npm install -g @qwen-code/qwen-code")
};

pub(crate) static PROFILE: Profile = Profile {
    name: "Qwen Code",
    native: &Native::whole(&[(HOME, ".qwen")], &[(HOME, ".qwen/settings.json"), (HOME, ".qwen/extensions")]),
    ..UNKNOWN
};
