//! Kilo (7.7.9), which is made from OpenCode.

use crate::agent::acp::agents::opencode;
use crate::agent::acp::profile::Profile;
use crate::agent::acp::rules::RuleFormat;
use crate::agent::built_in::{BuiltIn, Tested};
use crate::agent::endpoint::{Endpoint, Wire};
use crate::agent::native::{HOME, Native};

static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::ChatCompletions,
    model: Some(("stub/other-model", "other-model")),
    env: &[("KILO_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("KILO_TELEMETRY_LEVEL", "off")],
    files: &[(".config/kilo/kilo.json", opencode::PROVIDER)],
};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    aliases: &["kilocode"],
    package: Some("@kilocode/cli@7.7.9"),
    tested: Some(Tested { version: "7.7.9", fails: &[] }),
    endpoint: Some(&ENDPOINT),
    ..BuiltIn::program("kilo", "Kilo Code", "npm install -g @kilocode/cli")
};

/// It never asks the questions of its own tool, and waits without a limit, so that tool is off.
pub(crate) static PROFILE: Profile = Profile {
    name: "Kilo",
    login: "log in with `kilo auth login`",
    env: &[
        ("KILO_DISABLE_AUTOUPDATE", "1"),
        // As a client of another kind it offers its own tools `question` and `suggest`.
        ("KILO_CLIENT", "acp"),
        ("KILO_ENABLE_QUESTION_TOOL", "false"),
        ("KILO_EXPERIMENTAL_BACKGROUND_SUBAGENTS", "false"),
    ],
    own_call: None,
    rules: Some(RuleFormat::OpenCode("KILO_PERMISSION")),
    reports_steps: false,
    // It makes the folder of its own sandbox's policy beside that of its state.
    native: &Native::whole(
        &[
            (HOME, ".config/kilo"),
            (HOME, ".local/share/kilo"),
            (HOME, ".local/state/kilo"),
            (HOME, ".local/state/kilo-sandbox-policy"),
            (HOME, ".cache/kilo"),
        ],
        &[(HOME, ".config/kilo/kilo.json"), (HOME, ".config/kilo/plugin")],
    ),
    ..opencode::LIKE
};
