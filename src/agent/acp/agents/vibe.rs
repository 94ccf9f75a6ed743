//! Mistral Vibe (3.0.3).

use crate::agent::acp::profile::{Profile, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Tested};
use crate::agent::endpoint::{Endpoint, Wire};
use crate::agent::native::{HOME, Native};

const SETTINGS: &str = r#"
active_model = "stub"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
api_retry_max_elapsed_time = 5
[[providers]]
name = "stub"
api_base = "{url}/v1"
api_key_env_var = "STUB_API_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "stub-model"
provider = "stub"
alias = "stub"
[[models]]
name = "other-model"
provider = "stub"
alias = "other"
"#;

static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::ChatCompletions,
    model: Some(("other", "other-model")),
    env: &[("STUB_API_KEY", "{key}"), ("MISTRAL_API_KEY", "{key}")],
    files: &[(".vibe/config.toml", SETTINGS)],
};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    aliases: &["mistral-vibe"],
    command: Some("vibe-acp"),
    args: &[],
    tested: Some(Tested { version: "3.0.3", fails: &[] }),
    endpoint: Some(&ENDPOINT),
    ..BuiltIn::program("vibe", "Mistral Vibe", "pip install mistral-vibe")
};

pub(crate) static PROFILE: Profile =
    Profile { name: "Vibe", native: &Native::whole(&[(HOME, ".vibe")], &[(HOME, ".vibe/config.toml")]), ..UNKNOWN };
