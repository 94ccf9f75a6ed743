//! A built-in agent: its names, its start, and the evidence of its last check. Each agent that speaks ACP and
//! was tried is in a file of its own.

use super::dialect::Dialect;
use super::endpoint::Endpoint;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyRowName {
    Hello,
    Allow,
    Denied,
    Deny,
    ReadOnly,
    Write,
    Question,
    Cancel,
    Resume,
    NoKey,
    Busy,
    Broken,
    Mcp,
    Model,
}

impl VerifyRowName {
    pub const ALL: &[VerifyRowName] = &[
        VerifyRowName::Hello,
        VerifyRowName::Allow,
        VerifyRowName::Denied,
        VerifyRowName::Deny,
        VerifyRowName::ReadOnly,
        VerifyRowName::Write,
        VerifyRowName::Question,
        VerifyRowName::Cancel,
        VerifyRowName::Resume,
        VerifyRowName::NoKey,
        VerifyRowName::Busy,
        VerifyRowName::Broken,
        VerifyRowName::Mcp,
        VerifyRowName::Model,
    ];

    pub fn word(self) -> &'static str {
        match self {
            VerifyRowName::Hello => "hello",
            VerifyRowName::Allow => "allow",
            VerifyRowName::Denied => "denied",
            VerifyRowName::Deny => "deny",
            VerifyRowName::ReadOnly => "read-only",
            VerifyRowName::Write => "write",
            VerifyRowName::Question => "question",
            VerifyRowName::Cancel => "cancel",
            VerifyRowName::Resume => "resume",
            VerifyRowName::NoKey => "401",
            VerifyRowName::Busy => "429",
            VerifyRowName::Broken => "500",
            VerifyRowName::Mcp => "mcp",
            VerifyRowName::Model => "model",
        }
    }

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

/// A promise that depends on the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It asks before each command and each change of a file, so that every policy holds.
    Permissions,
    /// Under `read-only` it changes nothing.
    ReadOnly,
    Questions,
    McpServers,
    Session,
    /// A failure of its provider ends the run with the code of that failure.
    Failures,
}

impl Promise {
    pub const ALL: &[Promise] = &[
        Promise::Permissions,
        Promise::ReadOnly,
        Promise::Questions,
        Promise::McpServers,
        Promise::Session,
        Promise::Failures,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Promise::Permissions => "permissions",
            Promise::ReadOnly => "read-only",
            Promise::Questions => "questions",
            Promise::McpServers => "mcp_servers",
            Promise::Session => "session_id",
            Promise::Failures => "failures",
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
