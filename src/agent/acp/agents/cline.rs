//! Cline (3.0.65).

use crate::agent::acp::profile::{Profile, ServerWay, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Tested, VerifyRowName};
use crate::agent::endpoint::{Endpoint, Wire};
use crate::agent::native::{HOME, Native};

const SETTINGS: &str = r#"{
    "version": 1,
    "lastUsedProvider": "openai-compatible",
    "modes": {},
    "providers": {"openai-compatible": {
        "settings": {"provider": "openai-compatible", "apiKey": "{key}", "model": "stub-model", "baseUrl": "{url}/v1"},
        "updatedAt": "2026-01-01T00:00:00.000Z",
        "tokenSource": "manual"
    }}
}"#;

/// Without the three variables, it opens a session only with an account, whatever is in the file.
static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::ChatCompletions,
    model: None,
    env: &[
        ("CLINE_API_KEY", "{key}"),
        ("CLINE_PROVIDER", "openai-compatible"),
        ("CLINE_MODEL", "stub-model"),
        ("CLINE_TELEMETRY_DISABLED", "1"),
    ],
    files: &[(".cline/data/settings/providers.json", SETTINGS)],
};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    args: &["--acp"],
    env: &[("CLINE_NO_AUTO_UPDATE", "1")],
    package: Some("cline@3.0.65"),
    tested: Some(Tested { version: "3.0.65", fails: &[VerifyRowName::Question, VerifyRowName::Mcp] }),
    endpoint: Some(&ENDPOINT),
    ..BuiltIn::program("cline", "Cline", "npm install -g cline")
};

pub(crate) static PROFILE: Profile = Profile {
    name: "Cline",
    login: "log in with `cline auth`",
    servers: ServerWay::Nowhere,
    native: &Native::whole(&[(HOME, ".cline")], &[(HOME, ".cline/data/settings")]),
    ..UNKNOWN
};
