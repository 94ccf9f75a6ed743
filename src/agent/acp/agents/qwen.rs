//! Qwen Code (0.24.4).

use crate::agent::acp::profile::{Profile, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Promise, Tested};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    // The mode in the user's settings might not ask for permission.
    args: &["--acp", "--approval-mode=default"],
    package: Some("@qwen-code/qwen-code@0.24.4"),
    tested: Some(Tested { version: "0.24.4", lacks: &[Promise::Questions] }),
    ..BuiltIn::program("qwen", "Qwen Code", "npm install -g @qwen-code/qwen-code")
};

pub(crate) static PROFILE: Profile = Profile { name: "Qwen Code", ..UNKNOWN };
