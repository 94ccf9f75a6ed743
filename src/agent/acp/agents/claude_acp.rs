//! Claude Code through an adapter for ACP (0.101.0), which brings its own Claude Code.

use crate::agent::acp::profile::{Profile, UNKNOWN};
use crate::agent::built_in::{BuiltIn, Tested};
use crate::agent::claude;
use crate::agent::endpoint::CLAUDE_CODE;
use crate::agent::native::Native;

pub(super) static ENTRY: BuiltIn = BuiltIn {
    command: Some("claude-agent-acp"),
    args: &[],
    package: Some("@agentclientprotocol/claude-agent-acp@0.101.0"),
    tested: Some(Tested { version: "0.101.0", fails: &[] }),
    endpoint: Some(&CLAUDE_CODE),
    ..BuiltIn::program("claude-acp", "Claude Code over ACP", "npm install -g @agentclientprotocol/claude-agent-acp")
};

pub(crate) static PROFILE: Profile =
    Profile { name: "Claude Code", login: "log in with `claude`", native: &Native::of_state(claude::STATE), ..UNKNOWN };
