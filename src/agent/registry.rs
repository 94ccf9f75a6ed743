//! The agents that can be named. Adding one is a line here; adding a dialect is a file beside this one.

use super::acp::{self, profile};
use super::{Driver, Program, claude, codex};

/// An agent that can be named in run.start.
#[derive(Debug)]
pub struct Entry {
    /// The name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The name for people.
    pub display_name: &'static str,
    /// Its program, and arguments that go before the driver's own.
    pub program: &'static str,
    /// How to get it, for the message that says it is missing.
    pub install: &'static str,
    driver: fn(&'static Entry) -> Box<dyn Driver>,
}

/// Every agent, sorted by name.
pub static REGISTRY: &[Entry] = &[
    Entry {
        name: "claude",
        aliases: &["claude-code"],
        display_name: "Claude Code",
        program: "claude",
        install: "npm install -g @anthropic-ai/claude-code",
        driver: |entry| Box::new(claude::Claude::new(Program::Command(entry.program.into()), Vec::new())),
    },
    Entry {
        name: "codex",
        aliases: &[],
        display_name: "Codex",
        program: "codex",
        install: "npm install -g @openai/codex",
        driver: |entry| Box::new(codex::Codex::new(Program::Command(entry.program.into()))),
    },
    Entry {
        name: "demo",
        aliases: &[],
        display_name: "Demo",
        program: "",
        install: "it is built in",
        driver: |_| Box::new(claude::Claude::new(Program::Myself, vec!["replay".into(), "--demo".into(), "--".into()])),
    },
    Entry {
        name: "gemini",
        aliases: &["gemini-cli"],
        display_name: "Gemini CLI",
        program: "gemini",
        install: "npm install -g @google/gemini-cli",
        driver: |entry| Box::new(acp::Acp::new(entry.program, &profile::GEMINI)),
    },
    Entry {
        name: "opencode",
        aliases: &[],
        display_name: "OpenCode",
        program: "opencode",
        install: "npm install -g opencode-ai",
        driver: |entry| Box::new(acp::Acp::new(entry.program, &profile::OPENCODE)),
    },
];

/// The agent when nobody names one.
pub const DEFAULT: &str = "claude";

impl Entry {
    /// A fresh driver for one run.
    pub fn driver(&'static self) -> Box<dyn Driver> {
        (self.driver)(self)
    }
}

/// The entry with this name or alias.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.name == name || entry.aliases.contains(&name))
}

/// The names of all agents, for a message.
pub fn names() -> String {
    REGISTRY.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}
