//! Agents that a configuration adds or changes.

use crate::agent::registry::{Agent, Agents, Dialect};
use crate::agent::{Base, Program};
use crate::json::string;
use crate::protocol::read::{Read, any_string, arguments, environment, layer, non_empty, paths, strings};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

layer! {
    /// An entry of `agents`. `None`: the entry does not set the field.
    Entry {
        driver: Dialect = dialect;
        /// The program, searched on the PATH that the agent gets.
        command: String = program;
        /// The arguments before those of the driver.
        args: Vec<String> = arguments;
        env: BTreeMap<String, String> = environment;
        /// The model, unless the run names one.
        model: String = non_empty;
        display_name: String = any_string;
        session_patterns: Vec<String> = strings;
        failure_patterns: Vec<String> = strings;
        /// The path of the text in lines that are JSON.
        text_field: String = non_empty;
        /// The completion marker, unless the run names one.
        completion_marker: String = non_empty;
        /// The arguments for a further turn.
        resume_args: Vec<String> = arguments;
        /// The files and folders that it may change in a sandbox.
        state: Vec<String> = paths;
    }
}

fn dialect(raw: &RawValue) -> Read<Dialect> {
    let found = string(raw).and_then(|word| Dialect::from_word(&word));
    found.filter(|dialect| *dialect != Dialect::Demo).ok_or(Some(Dialect::EXPECTED))
}

fn program(raw: &RawValue) -> Read<String> {
    string(raw).filter(|s| !s.is_empty() && !s.contains('\0')).ok_or(Some("a program's name or path"))
}

impl Entry {
    /// The agent that this entry defines, or changes if `known` is set. `None`: a new agent lacks a required field.
    fn agent(self, name: &str, known: Option<&Agent>) -> Option<Agent> {
        let mut agent = match (known, self.driver, &self.command) {
            (Some(known), ..) => known.clone(),
            (None, Some(dialect), Some(command)) => {
                Agent::new(name, dialect, Base { install: None, ..Base::command(command) })
            }
            _ => return None,
        };
        if let Some(command) = self.command {
            agent.base.program = Program::Command(command);
            (agent.base.install, agent.base.package) = (None, None);
            (agent.version, agent.tested) = (None, None);
        }
        agent.dialect = self.driver.unwrap_or(agent.dialect);
        agent.base.args = self.args.unwrap_or(agent.base.args);
        agent.base.env.extend(self.env.unwrap_or_default());
        agent.model = self.model.or(agent.model);
        agent.display_name = self.display_name.unwrap_or(agent.display_name);
        agent.lines.session_patterns = self.session_patterns.unwrap_or(agent.lines.session_patterns);
        agent.lines.failure_patterns = self.failure_patterns.unwrap_or(agent.lines.failure_patterns);
        agent.lines.text_field = self.text_field.or(agent.lines.text_field);
        agent.completion_marker = self.completion_marker.or(agent.completion_marker);
        agent.lines.resume_args = self.resume_args.unwrap_or(agent.lines.resume_args);
        agent.state = self.state.unwrap_or(agent.state);
        Some(agent)
    }
}

/// The built-in agents with these entries applied, and one sentence about each unusable entry.
pub(super) fn build(entries: BTreeMap<String, Entry>) -> (Agents, Vec<String>) {
    let (mut agents, mut warnings) = (Agents::built_in(), Vec::new());
    for (name, entry) in entries {
        match entry.agent(&name, agents.find(&name).as_deref()) {
            Some(agent) => agents.put(agent),
            None => {
                warnings.push(format!(
                    "The agent {name} is ignored: it needs agents.{name}.driver and agents.{name}.command."
                ));
            }
        }
    }
    (agents, warnings)
}
