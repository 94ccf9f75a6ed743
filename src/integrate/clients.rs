//! The configuration of clients of the Agent Client Protocol. `src/acp/reference.md` describes how they work with us.

use super::{Here, Integration};
use crate::json::to_line;
use serde_json::json;

pub(super) const ZED: Integration =
    Integration { name: "zed", about: "an agent in the editor Zed, over ACP", files: None, setup: zed };

pub(super) const ACPX: Integration = Integration {
    name: "acpx",
    about: "an agent for the command-line client acpx, over ACP",
    files: None,
    setup: acpx,
};

fn zed(here: &Here<'_>) -> String {
    let (program, agent) = quoted(here);
    format!(
        "Add this to the settings of Zed (zed: open settings file):\n\n\
         {{\"agent_servers\": {{\n  \"spektacular\": {{\n    \"type\": \"custom\",\n    \"command\": {program},\n    \
         \"args\": [\"acp\", \"--agent\", {agent}],\n    \"env\": {{}}\n  }}\n}}}}\n\n\
         Then choose spektacular where the agent panel starts a new thread.\n"
    )
}

fn acpx(here: &Here<'_>) -> String {
    let (program, agent) = quoted(here);
    format!(
        "Add this to ~/.acpx/config.json:\n\n\
         {{\"agents\": {{\n  \"spektacular\": {{\n    \"command\": {program},\n    \
         \"args\": [\"acp\", \"--agent\", {agent}]\n  }}\n}}}}\n\n\
         To try it: acpx spektacular sessions new, then acpx spektacular \"explain this repository\"\n\
         acpx decides about permissions by its own flags, such as --approve-reads. It answers no form, so a question is text: \
         the next prompt answers it.\n"
    )
}

/// The program and the default agent as JSON strings.
fn quoted(here: &Here<'_>) -> (String, String) {
    (to_line(&json!(here.program)), to_line(&json!(here.default)))
}
