//! Kimi Code (2.1.0).

use crate::agent::acp::profile::{HiddenFailure, Profile, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Promise, Tested};
use crate::protocol::words::Category;

pub(super) static ENTRY: BuiltIn = BuiltIn {
    env: &[("KIMI_CODE_NO_AUTO_UPDATE", "1")],
    package: Some("@moonshot-ai/kimi-code@2.1.0"),
    tested: Some(Tested { version: "2.1.0", lacks: &[Promise::Permissions, Promise::Failures] }),
    ..BuiltIn::program("kimi", "Kimi Code", "npm install -g @moonshot-ai/kimi-code")
};

/// It writes files without a request, but not in its mode `plan`. Its requests cut a long command.
pub(crate) static PROFILE: Profile = Profile {
    name: "Kimi",
    unasked: &[Category::Edit, Category::Delete, Category::Move],
    streams_inputs: true,
    hidden_failure: Some(HiddenFailure::Silence),
    ..UNKNOWN
};
