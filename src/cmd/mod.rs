//! The commands. Each takes what was typed, already checked, and gives the exit code.

pub mod adhoc;
pub mod agents;
pub mod ask_server;
pub mod config;
pub mod export;
mod last;
pub mod manual;
pub mod open;
mod plan;
pub mod replay;
mod texts;

use crate::agent::registry::{Agent, Agents, DEFAULT};
use crate::config::load;
use crate::failure::{Code, Failure};
use crate::help::did_you_mean;
use crate::protocol::request::Options;
use crate::session;

/// Says on stderr what went wrong; gives the exit code.
pub fn complain(failure: &Failure) -> u8 {
    session::diagnose(&format!("spektacular: {}: {}", failure.code.name(), failure.message));
    failure.code.exit_code()
}

/// What the configuration says to the commands that need no run.
struct Configured {
    agents: Agents,
    /// The layers over what an agent has of its own.
    above: Options,
    /// The layers below that.
    below: Options,
}

impl Configured {
    /// Reads the configuration; its warnings go to stderr. Error: it cannot be used.
    fn load() -> Result<Configured, Failure> {
        let loaded = load();
        let (agents, wrong) = loaded.config.agents();
        if let Some(failure) = loaded.failure {
            return Err(failure);
        }
        for warning in loaded.warnings.iter().chain(&wrong) {
            session::diagnose(&format!("spektacular: warning: {warning}"));
        }
        Ok(Configured { agents, above: loaded.config.above(), below: loaded.config.below() })
    }

    /// The name of the agent when none was typed.
    fn default_agent(&self) -> &str {
        self.above.agent.as_deref().or(self.below.agent.as_deref()).unwrap_or(DEFAULT)
    }

    /// The agent with this name. Error: one that names what was probably meant, or all there are.
    fn named(&self, name: &str) -> Result<&Agent, Failure> {
        self.agents.find(name).ok_or_else(|| {
            let names = self.agents.iter().flat_map(|agent| std::iter::once(&agent.name).chain(&agent.aliases));
            let message = match did_you_mean(name, names.map(String::as_str)) {
                Some(meant) => format!("There is no such agent. Did you mean {meant}?"),
                None => format!("There is no such agent. There are: {}.", self.agents.names()),
            };
            Failure::new(Code::Usage, message)
        })
    }
}
