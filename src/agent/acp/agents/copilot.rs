//! GitHub Copilot (1.0.102).

use crate::agent::acp::profile::{HiddenFailure, Profile, ServerWay, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Tested};
use crate::agent::endpoint::{Endpoint, Wire};
use crate::agent::native::{HOME, Native};

static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::ChatCompletions,
    model: Some(("other-model", "other-model")),
    env: &[
        ("COPILOT_PROVIDER_BASE_URL", "{url}/v1"),
        ("COPILOT_PROVIDER_API_KEY", "{key}"),
        ("COPILOT_MODEL", "stub-model"),
        ("COPILOT_OFFLINE", "true"),
    ],
    files: &[],
};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    aliases: &["github-copilot-cli"],
    args: &["--acp", "--stdio"],
    env: &[("COPILOT_AUTO_UPDATE", "false")],
    package: Some("@github/copilot@1.0.102"),
    tested: Some(Tested { version: "1.0.102", fails: &[] }),
    endpoint: Some(&ENDPOINT),
    ..BuiltIn::program("copilot", "GitHub Copilot", "npm install -g @github/copilot")
};

pub(crate) static PROFILE: Profile = Profile {
    name: "Copilot",
    hidden_failure: Some(HiddenFailure::Notice(&["Error: "])),
    servers: ServerWay::File("--additional-mcp-config=@"),
    native: &Native::whole(
        &[(HOME, ".copilot"), (HOME, ".cache/copilot")],
        &[(HOME, ".copilot/config.json"), (HOME, ".copilot/mcp-config.json")],
    ),
    ..UNKNOWN
};
