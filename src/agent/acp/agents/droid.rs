//! Factory Droid (0.225.2).

use crate::agent::acp::profile::{Profile, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Promise, Tested};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    aliases: &["factory-droid", "factorydroid"],
    args: &["exec", "--output-format", "acp"],
    env: &[("DROID_DISABLE_AUTO_UPDATE", "true"), ("FACTORY_DROID_AUTO_UPDATE_ENABLED", "false")],
    package: Some("@factory/cli@0.225.1"),
    tested: Some(Tested { version: "0.225.2", lacks: &[Promise::Questions] }),
    ..BuiltIn::program("droid", "Factory Droid", "npm install -g @factory/cli")
};

pub(crate) static PROFILE: Profile = Profile { name: "Droid", ..UNKNOWN };
