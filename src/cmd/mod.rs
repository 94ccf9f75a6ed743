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

use crate::agent::registry::{Agent, Layers};
use crate::config::load;
use crate::failure::{Code, Failure};
use crate::help::did_you_mean;
use crate::io::output::diagnose;

/// Says on stderr what went wrong; gives the exit code.
pub fn complain(failure: &Failure) -> u8 {
    diagnose(&format!("spektacular: {}: {}", failure.code.name(), failure.message));
    failure.code.exit_code()
}

/// What the configuration says to the commands that need no run; its warnings go to stderr. Error: it cannot be used.
fn configured() -> Result<Layers, Failure> {
    let loaded = load();
    let (layers, wrong) = loaded.config.layers();
    if let Some(failure) = loaded.failure {
        return Err(failure);
    }
    for warning in loaded.warnings.iter().chain(&wrong) {
        diagnose(&format!("spektacular: warning: {warning}"));
    }
    Ok(layers)
}

/// The agent with this name; without one that of the configuration. Error: one that names what was probably meant, or
/// all there are.
fn named<'a>(layers: &'a Layers, name: Option<&str>) -> Result<&'a Agent, Failure> {
    let name = name.unwrap_or(layers.default_agent());
    layers.agents.find(name).ok_or_else(|| {
        let names = layers.agents.iter().flat_map(|agent| std::iter::once(&agent.name).chain(&agent.aliases));
        let message = match did_you_mean(name, names.map(String::as_str)) {
            Some(meant) => format!("There is no such agent. Did you mean {meant}?"),
            None => format!("There is no such agent. There are: {}.", layers.agents.names()),
        };
        Failure::new(Code::Usage, message)
    })
}
