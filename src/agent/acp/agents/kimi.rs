//! Kimi Code (2.1.0).

use crate::agent::acp::profile::{HiddenFailure, Profile, UNKNOWN};
use crate::agent::built_in::VerifyRowName::{Broken, Busy, Write};
use crate::agent::built_in::{BuiltIn, Tested};
use crate::agent::endpoint::{Endpoint, Wire};
use crate::agent::native::{HOME, Native};
use crate::protocol::words::Category;

const SETTINGS: &str = r#"
default_model = "stub"
[loop_control]
max_attempts_per_step = 2
[providers.stub]
type = "openai"
base_url = "{url}/v1"
api_key = "{key}"
[models.stub]
provider = "stub"
model = "stub-model"
max_context_size = 100000
capabilities = ["tool_use"]
[models.other]
provider = "stub"
model = "other-model"
max_context_size = 100000
capabilities = ["tool_use"]
"#;

static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::ChatCompletions,
    model: Some(("other", "other-model")),
    env: &[],
    files: &[(".kimi-code/config.toml", SETTINGS)],
};

pub(super) static ENTRY: BuiltIn = BuiltIn {
    env: &[("KIMI_CODE_NO_AUTO_UPDATE", "1")],
    package: Some("@moonshot-ai/kimi-code@2.1.0"),
    tested: Some(Tested { version: "2.1.0", fails: &[Write, Busy, Broken] }),
    endpoint: Some(&ENDPOINT),
    ..BuiltIn::program("kimi", "Kimi Code", "npm install -g @moonshot-ai/kimi-code")
};

/// It writes files without a request, but not in its mode `plan`. Its requests cut a long command.
pub(crate) static PROFILE: Profile = Profile {
    name: "Kimi",
    unasked: &[Category::Edit, Category::Delete, Category::Move],
    streams_inputs: true,
    hidden_failure: Some(HiddenFailure::Silence(&[])),
    native: &Native::whole(&[(HOME, ".kimi-code")], &[(HOME, ".kimi-code/config.toml")]),
    ..UNKNOWN
};
