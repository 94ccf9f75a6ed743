//! GitHub Copilot (1.0.102).

use crate::agent::acp::profile::{HiddenFailure, Profile, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Promise, Tested};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    args: &["--acp", "--stdio"],
    env: &[("COPILOT_AUTO_UPDATE", "false")],
    package: Some("@github/copilot@1.0.102"),
    tested: Some(Tested { version: "1.0.102", lacks: &[Promise::Questions, Promise::McpServers] }),
    ..BuiltIn::program("copilot", "GitHub Copilot", "npm install -g @github/copilot")
};

pub(crate) static PROFILE: Profile =
    Profile { name: "Copilot", hidden_failure: Some(HiddenFailure::Notice(&["Error: "])), ..UNKNOWN };
