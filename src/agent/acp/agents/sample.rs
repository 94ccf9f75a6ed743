//! An agent that only the tests have: this file and its name in the list are all that adds it.

use crate::agent::acp::profile::{HiddenFailure, Profile, ServerWay, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Tested, VerifyRowName};
use crate::protocol::words::Category;

pub(super) static ENTRY: BuiltIn = BuiltIn {
    aliases: &["sampler"],
    command: Some("sample-acp"),
    args: &["--acp"],
    env: &[("SAMPLE_QUIET", "1")],
    package: Some("sample@1.2.3"),
    tested: Some(Tested { version: "1.2.3", fails: &[VerifyRowName::Mcp] }),
    ..BuiltIn::program("sample", "Sample", "see its page")
};

pub(crate) static PROFILE: Profile = Profile {
    name: "Sample",
    asking_mode: Some("careful"),
    unasked: &[Category::Edit],
    hidden_failure: Some(HiddenFailure::Silence(&[])),
    servers: ServerWay::Nowhere,
    ..UNKNOWN
};
