//! OpenHands (1.16.0).

use crate::agent::acp::profile::{Profile, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Tested};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    args: &["acp", "--override-with-envs"],
    env: &[("OPENHANDS_SUPPRESS_BANNER", "1")],
    tested: Some(Tested { version: "1.16.0", lacks: &[] }),
    ..BuiltIn::program("openhands", "OpenHands", "pip install openhands")
};

pub(crate) static PROFILE: Profile = Profile { name: "OpenHands", ..UNKNOWN };
