//! Cline (3.0.65).

use crate::agent::acp::profile::{Profile, ServerWay, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Promise, Tested};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    args: &["--acp"],
    env: &[("CLINE_NO_AUTO_UPDATE", "1")],
    package: Some("cline@3.0.65"),
    tested: Some(Tested { version: "3.0.65", lacks: &[Promise::Questions, Promise::McpServers] }),
    ..BuiltIn::program("cline", "Cline", "npm install -g cline")
};

pub(crate) static PROFILE: Profile =
    Profile { name: "Cline", login: "log in with `cline auth`", servers: ServerWay::Nowhere, ..UNKNOWN };
