//! The agents that can be named. A built-in one is a line of [`BUILT_IN`]; a dialect is a file beside this one and a
//! line of [`Agent::driver`].

use super::acp::{self, profile};
use super::{Base, Driver, Program, claude, codex};

/// An agent that can be named in run.start.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The name.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// The name for people.
    pub display_name: String,
    /// What it speaks.
    pub dialect: Dialect,
    /// How it is started.
    pub base: Base,
}

/// What an agent speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Claude Code's stream-json.
    Claude,
    /// Codex's app-server.
    Codex,
    /// The Agent Client Protocol.
    Acp,
}

/// An agent that is known without a configuration.
struct BuiltIn {
    name: &'static str,
    alias: Option<&'static str>,
    display_name: &'static str,
    dialect: Dialect,
    /// `None`: this binary itself.
    command: Option<&'static str>,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    install: &'static str,
}

/// What most built-in agents are like.
const ACP: BuiltIn = BuiltIn {
    name: "",
    alias: None,
    display_name: "",
    dialect: Dialect::Acp,
    command: None,
    args: &["acp"],
    env: &[],
    install: "",
};

static BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "claude",
        alias: Some("claude-code"),
        display_name: "Claude Code",
        dialect: Dialect::Claude,
        command: Some("claude"),
        args: &[],
        install: "npm install -g @anthropic-ai/claude-code",
        ..ACP
    },
    BuiltIn {
        name: "codex",
        display_name: "Codex",
        dialect: Dialect::Codex,
        command: Some("codex"),
        args: &[],
        install: "npm install -g @openai/codex",
        ..ACP
    },
    BuiltIn {
        name: "demo",
        display_name: "Demo",
        dialect: Dialect::Claude,
        args: &["replay", "--demo", "--"],
        install: "it is built in",
        ..ACP
    },
    BuiltIn {
        name: "gemini",
        alias: Some("gemini-cli"),
        display_name: "Gemini CLI",
        command: Some("gemini"),
        // The mode in the user's settings could be one that does not ask.
        args: &["--acp", "--approval-mode=default"],
        install: "npm install -g @google/gemini-cli",
        ..ACP
    },
    BuiltIn {
        name: "opencode",
        display_name: "OpenCode",
        command: Some("opencode"),
        install: "npm install -g opencode-ai",
        ..ACP
    },
];

/// The agent when nobody names one.
pub const DEFAULT: &str = "claude";

impl BuiltIn {
    fn agent(&self) -> Agent {
        let env = self.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Agent {
            name: self.name.into(),
            aliases: self.alias.iter().map(|alias| (*alias).to_owned()).collect(),
            display_name: self.display_name.into(),
            dialect: self.dialect,
            base: Base {
                program: self.command.map_or(Program::Myself, |command| Program::Command(command.into())),
                args: self.args.iter().map(|arg| (*arg).to_owned()).collect(),
                env: env.collect(),
                install: Some(self.install.into()),
            },
        }
    }
}

impl Agent {
    /// A fresh driver for one run.
    pub fn driver(&self) -> Box<dyn Driver> {
        let base = self.base.clone();
        match self.dialect {
            Dialect::Claude => Box::new(claude::Claude::new(base)),
            Dialect::Codex => Box::new(codex::Codex::new(base)),
            Dialect::Acp => Box::new(acp::Acp::new(base, profile::of(&self.base.program))),
        }
    }
}

/// The agents of one session, sorted by name.
#[derive(Clone, Debug)]
pub struct Agents(Vec<Agent>);

impl Agents {
    /// Those that are known without a configuration.
    pub fn built_in() -> Agents {
        Agents(BUILT_IN.iter().map(BuiltIn::agent).collect())
    }

    /// The agent with this name or alias.
    pub fn find(&self, name: &str) -> Option<&Agent> {
        self.0.iter().find(|agent| agent.name == name || agent.aliases.iter().any(|alias| alias == name))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.0.iter()
    }

    /// The names of all of them, for a message.
    pub fn names(&self) -> String {
        self.0.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}
