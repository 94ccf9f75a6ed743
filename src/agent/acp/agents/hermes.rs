//! Hermes (0.19.0). Without its extra `mcp` it starts no MCP server, and says nothing.

use crate::agent::acp::profile::{HiddenFailure, Profile, UNKNOWN};
use crate::agent::built_in::VerifyRowName::{Allow, Denied, Deny, ReadOnly};
use crate::agent::built_in::{BuiltIn, Tested};
use crate::agent::endpoint::{Endpoint, Wire};
use crate::agent::native::{HOME, Native};
use crate::protocol::words::Category;

const SETTINGS: &str = r#"
model:
  default: stub-model
  provider: custom
  base_url: {url}/v1
  api_key: {key}
  context_length: 100000
agent:
  api_max_retries: 1
"#;

static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::ChatCompletions,
    model: Some(("other-model", "other-model")),
    env: &[("OPENAI_API_KEY", "{key}"), ("OPENAI_BASE_URL", "{url}/v1")],
    files: &[(".hermes/config.yaml", SETTINGS)],
};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    tested: Some(Tested { version: "0.19.0", fails: &[Allow, Denied, Deny, ReadOnly] }),
    endpoint: Some(&ENDPOINT),
    ..BuiltIn::program("hermes", "Hermes", "pip install 'hermes-agent[acp,mcp]'")
};

/// It asks only for those commands that it thinks dangerous.
pub(crate) static PROFILE: Profile = Profile {
    name: "Hermes",
    unasked: &[Category::Execute],
    hidden_failure: Some(HiddenFailure::Notice(&["HTTP 4", "HTTP 5", "API call failed after"])),
    native: &Native::whole(&[(HOME, ".hermes")], &[(HOME, ".hermes/config.yaml")]),
    ..UNKNOWN
};
