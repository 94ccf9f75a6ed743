//! pi (1.6.0) through an adapter for ACP (0.0.34), which starts the program pi.

use crate::agent::acp::profile::{HiddenFailure, Profile, ServerWay, UNKNOWN};
use crate::agent::built_in::VerifyRowName::{Allow, Broken, Busy, Denied, Deny, Mcp, NoKey, Question, ReadOnly, Write};
use crate::agent::built_in::{BuiltIn, Tested};
use crate::agent::native::{HOME, Native};
use crate::agent::pi;
use crate::protocol::words::Category;

pub(super) static ENTRY: BuiltIn = BuiltIn {
    args: &[],
    // It takes no flag.
    version: None,
    package: Some("pi-acp@0.0.34"),
    tested: Some(Tested {
        version: "0.0.34",
        fails: &[Allow, Denied, Deny, Write, ReadOnly, Question, Mcp, NoKey, Busy, Broken],
    }),
    endpoint: Some(&pi::ENDPOINT),
    ..BuiltIn::program("pi-acp", "pi over ACP", "npm install -g pi-acp @earendil-works/pi-coding-agent")
};

/// It never asks.
pub(crate) static PROFILE: Profile = Profile {
    name: "pi",
    unasked: Category::ACTS,
    servers: ServerWay::Nowhere,
    hidden_failure: Some(HiddenFailure::Silence(&["Retrying (attempt "])),
    native: &Native::whole(&[(HOME, ".pi")], &[(HOME, ".pi/agent/settings.json"), (HOME, ".pi/agent/extensions")]),
    ..UNKNOWN
};
