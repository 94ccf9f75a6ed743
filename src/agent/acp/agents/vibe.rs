//! Mistral Vibe (3.0.3).

use crate::agent::acp::profile::{Profile, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Tested};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    command: Some("vibe-acp"),
    args: &[],
    tested: Some(Tested { version: "3.0.3", lacks: &[] }),
    ..BuiltIn::program("vibe", "Mistral Vibe", "pip install mistral-vibe")
};

pub(crate) static PROFILE: Profile = Profile { name: "Vibe", ..UNKNOWN };
