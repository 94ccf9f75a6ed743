//! The agent's own commands, which the client offers to its user.

use super::super::shared::SharedState;
use super::ClientSession;
use crate::json::Object;
use crate::protocol::prompt::{called_command, first_word};
use serde_json::{Value, json};

impl ClientSession {
    pub(in crate::acp) fn replay(&self, shared: &mut SharedState) {
        let (agent_session, place) = (self.agent_session.as_deref().unwrap_or_default(), &self.place);
        shared.replay(&self.id, agent_session, &place.cwd, place.servers.as_deref());
    }

    /// Passes the agent's commands on, also to later sessions of the directory: an agent lists them only once it runs.
    pub(super) fn learn_commands(&mut self, frame: &Object<'_>, shared: &mut SharedState) {
        let command = |command: Object<'_>| {
            let description = command.string("description").unwrap_or_default();
            let mut said = json!({"name": command.string("name")?, "description": description});
            if let Some(hint) = command.string("hint") {
                said["input"] = json!({"hint": hint});
            }
            Some(said)
        };
        let all: Vec<Value> = frame.objects("commands").filter_map(command).collect();
        shared.commands = Some((self.place.cwd.clone(), all));
        self.offer_commands(shared);
    }

    pub(in crate::acp) fn offer_commands(&self, shared: &mut SharedState) {
        if let Some((_, all)) = shared.commands.as_ref().filter(|(cwd, _)| *cwd == self.place.cwd) {
            let update = json!({"sessionUpdate": "available_commands_update", "availableCommands": all});
            shared.tell(&self.id, &update);
        }
    }

    /// Until an agent lists its commands, it may have any.
    pub(super) fn calls_command(&self, text: &str, shared: &SharedState) -> bool {
        let known = shared.commands.as_ref().filter(|(cwd, _)| *cwd == self.place.cwd);
        // Some commands have names of two words.
        let is = |command: &Value, word: &str| command["name"].as_str().is_some_and(|name| first_word(name) == word);
        let has = |word: &str| known.is_none_or(|(_, all)| all.iter().any(|command| is(command, word)));
        called_command(text).is_some_and(has)
    }

    /// Lets the agent take a prompt of run.input as a command if it has that command, and only then.
    pub(super) fn mark_command(&self, text: &str, payload: &mut Value, shared: &SharedState) {
        let raw = self.calls_command(text, shared);
        let has_own_rule = shared.facts.fields.iter().any(|(name, _)| *name == "raw_prompt");
        if raw != self.runs_raw && !has_own_rule {
            payload["raw_prompt"] = json!(raw);
        }
    }

    /// Like [`ClientSession::mark_command`], for the prompt of run.start.
    pub(super) fn mark_first(&mut self, text: &str, payload: &mut Value, shared: &SharedState) {
        self.runs_raw = false;
        self.mark_command(text, payload, shared);
        self.runs_raw = payload["raw_prompt"] == true;
    }
}
