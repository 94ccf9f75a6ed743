//! Factory Droid (0.225.2).

use crate::agent::acp::profile::{Profile, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Tested, VerifyRowName};
use crate::agent::endpoint::{Endpoint, Wire};
use crate::agent::native::{HOME, Native};

const SETTINGS: &str = r#"{
    "customModels": [{"model": "stub-model", "displayName": "Stub", "baseUrl": "{url}/v1", "apiKey": "{key}",
        "provider": "generic-chat-completion-api", "maxOutputTokens": 8000}, {"model": "other-model",
        "displayName": "Other", "baseUrl": "{url}/v1", "apiKey": "{key}", "provider": "generic-chat-completion-api",
        "maxOutputTokens": 8000}],
    "sessionDefaultSettings": {"model": "custom:Stub-0"},
    "cloudSessionSync": false
}"#;

static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::ChatCompletions,
    model: Some(("custom:Other-1", "other-model")),
    env: &[("FACTORY_API_KEY", "fk-made-up-0000")],
    files: &[(".factory/settings.json", SETTINGS)],
};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    aliases: &["factory-droid", "factorydroid"],
    args: &["exec", "--output-format", "acp"],
    env: &[("DROID_DISABLE_AUTO_UPDATE", "true"), ("FACTORY_DROID_AUTO_UPDATE_ENABLED", "false")],
    package: Some("@factory/cli@0.225.1"),
    tested: Some(Tested { version: "0.225.2", fails: &[VerifyRowName::Question] }),
    endpoint: Some(&ENDPOINT),
    ..BuiltIn::program("droid", "Factory Droid", "npm install -g @factory/cli")
};

pub(crate) static PROFILE: Profile = Profile {
    name: "Droid",
    native: &Native::whole(&[(HOME, ".factory")], &[(HOME, ".factory/settings.json"), (HOME, ".factory/mcp.json")]),
    ..UNKNOWN
};
