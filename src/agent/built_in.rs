//! A built-in agent: its names, its start, and the evidence of its last check. Each agent that speaks ACP and
//! was tried is in a file of its own.

use super::endpoint::Endpoint;
use crate::protocol::words::{one_of, word_enums};

#[derive(Debug)]
pub(crate) struct BuiltIn {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) display_name: &'static str,
    pub(crate) dialect: Dialect,
    /// `None`: this binary itself.
    pub(crate) command: Option<&'static str>,
    pub(crate) args: &'static [&'static str],
    pub(crate) env: &'static [(&'static str, &'static str)],
    /// The arguments with which its program prints its version, separated by blanks. `None`: unknown, or the dialect defines it.
    pub(crate) version: Option<&'static str>,
    pub(crate) install: &'static str,
    /// The npm package, with its version, that npx runs where the program is not installed.
    pub(crate) package: Option<&'static str>,
    /// `None`: its command comes from documentation, and nobody ran it.
    pub(crate) tested: Option<Tested>,
    pub(crate) endpoint: Option<&'static Endpoint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tested {
    pub version: &'static str,
    /// The rows of `agents verify` whose promise it did not keep.
    pub fails: &'static [VerifyRowName],
}

word_enums! {
    #[derive(Default)]
    pub enum Dialect {
        #[default]
        Acp = "acp",
        Claude = "claude",
        Codex = "codex",
        /// No dialect: any command that prints text.
        Lines = "lines",
        Pi = "pi",
        /// The demo agent's own. No entry of a configuration can name it.
        Demo = "demo",
    }

    pub enum VerifyRowName {
        Hello = "hello", Allow = "allow", Denied = "denied", Deny = "deny", ReadOnly = "read-only", Write = "write",
        Question = "question", Cancel = "cancel", Resume = "resume", NoKey = "401", Busy = "429", Broken = "500",
        Mcp = "mcp", Model = "model",
    }

    /// A promise that depends on the agent.
    pub enum Promise {
        /// It asks before each command and each change of a file, so that every policy holds.
        Permissions = "permissions",
        /// Under `read-only` it changes nothing.
        ReadOnly = "read-only",
        Questions = "questions",
        McpServers = "mcp_servers",
        Session = "session_id",
        /// A failure of its provider ends the run with the code of that failure.
        Failures = "failures",
    }
}

impl Dialect {
    /// The names that an entry of a configuration can have, as the rest of "must be …".
    pub const EXPECTED: &str = one_of!("acp", "claude", "codex", "lines", "pi");
}

impl VerifyRowName {
    /// `None`: the row checks a promise that every agent must keep.
    pub fn promise(self) -> Option<Promise> {
        match self {
            VerifyRowName::Hello | VerifyRowName::Cancel | VerifyRowName::Model => None,
            VerifyRowName::Allow | VerifyRowName::Denied | VerifyRowName::Deny | VerifyRowName::Write => {
                Some(Promise::Permissions)
            }
            VerifyRowName::ReadOnly => Some(Promise::ReadOnly),
            VerifyRowName::Question => Some(Promise::Questions),
            VerifyRowName::Resume => Some(Promise::Session),
            VerifyRowName::NoKey | VerifyRowName::Busy | VerifyRowName::Broken => Some(Promise::Failures),
            VerifyRowName::Mcp => Some(Promise::McpServers),
        }
    }
}

impl Tested {
    pub fn keeps(&self) -> impl Iterator<Item = Promise> {
        Promise::ALL.iter().copied().filter(|promise| !self.lacks(*promise))
    }

    fn lacks(&self, promise: Promise) -> bool {
        self.fails.iter().any(|row| row.promise() == Some(promise))
    }

    pub fn lacking(&self) -> impl Iterator<Item = Promise> {
        Promise::ALL.iter().copied().filter(|promise| self.lacks(*promise))
    }
}

impl BuiltIn {
    /// An untested ACP agent whose program has the agent's name.
    pub(crate) const fn program(name: &'static str, display_name: &'static str, install: &'static str) -> BuiltIn {
        BuiltIn {
            name,
            aliases: &[],
            display_name,
            dialect: Dialect::Acp,
            command: Some(name),
            args: &["acp"],
            env: &[],
            version: Some("--version"),
            install,
            package: None,
            tested: None,
            endpoint: None,
        }
    }
}
