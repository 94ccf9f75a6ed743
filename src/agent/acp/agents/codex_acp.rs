//! Codex through an adapter for ACP (2.6.0), which brings its own Codex.

use crate::agent::acp::profile::{HiddenFailure, Profile, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Tested, VerifyRowName};
use crate::agent::endpoint::CODEX;
use crate::agent::native::{Native, State};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    args: &[],
    package: Some("@agentclientprotocol/codex-acp@2.6.0"),
    tested: Some(Tested { version: "2.6.0", fails: &[VerifyRowName::Question] }),
    endpoint: Some(&CODEX),
    ..BuiltIn::program("codex-acp", "Codex over ACP", "npm install -g @agentclientprotocol/codex-acp")
};

/// Only this mode asks for commands and edits; `agent` lets a model decide.
pub(crate) static PROFILE: Profile = Profile {
    name: "Codex",
    login: "log in with `codex`",
    asking_mode: Some("read-only"),
    hidden_failure: Some(HiddenFailure::Notice(&["exceeded retry limit", "experiencing high demand"])),
    // Its Codex puts commands into a sandbox of its own in every mode that asks.
    native: &Native::of_state(State {
        unfit: Some(
            "its commands run in a sandbox of its own, which cannot start in another one; the agent `codex` works there",
        ),
        ..State::NONE
    }),
    ..UNKNOWN
};
