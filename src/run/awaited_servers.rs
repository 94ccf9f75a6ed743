//! The steps of a run that follow from the states of its MCP servers.

use super::active_run::ActiveRun;
use super::servers::{RunServer, ServerPart};
use crate::protocol::outbound::{Outcome, Text};
use crate::protocol::words::{McpState, Warning};

impl ActiveRun {
    pub(super) fn server_launched(&mut self, position: usize, state: McpState, words: Text) {
        // The end of the agent ends its servers too.
        if self.ladder.is_decided() || self.turns.ends_with_process() {
            return;
        }
        let Some(server) = self.servers.list.get_mut(position) else { return };
        server.launched = Some(state);
        if state == McpState::Failed {
            server.words = Some(words);
        }
        if self.servers.session_open && std::mem::replace(&mut server.state, state) != state {
            self.tell_servers();
        }
        self.without_servers();
    }

    pub(super) fn server_told(&mut self, name: String, state: McpState, said: Option<Text>) {
        if self.servers.told(name, state, said) && self.servers.session_open {
            self.tell_servers();
        }
        self.without_servers();
    }

    /// Reports the session, which the agent has opened. From now on the reports of launchers count.
    pub(super) fn open_servers(&mut self) {
        if !std::mem::replace(&mut self.servers.session_open, true) {
            for server in self.servers.list.iter_mut().filter(|server| server.state == McpState::Pending) {
                server.state = server.launched.unwrap_or(McpState::Pending);
            }
        }
        let about = self.agent.session(self.servers.states(), &self.settings, self.checkpoints.on);
        self.effects.tell(about, "The agent's session is open", None);
        self.without_servers();
    }

    fn tell_servers(&mut self) {
        let about = self.agent.session(self.servers.states(), &self.settings, self.checkpoints.on);
        self.effects.tell(about, "The state of an MCP server changed", None);
    }

    /// Holds the first prompt until the servers run that it needs.
    pub(super) fn await_servers(&mut self) {
        self.servers.awaited = true;
        self.without_servers();
    }

    pub(super) fn without_servers(&mut self) {
        if self.ladder.is_decided() {
            return;
        }
        for at in 0..self.servers.list.len() {
            let server = &mut self.servers.list[at];
            if server.state != McpState::Failed {
                continue;
            }
            match server.part {
                ServerPart::Required => {
                    let failure = server.failure();
                    return self.stop(Outcome::Failed(failure), None);
                }
                ServerPart::Optional { warned: false } if self.servers.session_open => {
                    server.part = ServerPart::Optional { warned: true };
                    let text = server.warning();
                    self.effects.warn(Warning::McpUnavailable, text, None);
                }
                ServerPart::Optional { .. } | ServerPart::AgentsOwn => {}
            }
        }
        // A server that has started is needed no more: if it ends, the agent goes on.
        for server in self.servers.list.iter_mut().filter(|server| server.state == McpState::Ready) {
            if server.part == ServerPart::Required {
                server.part = ServerPart::Optional { warned: false };
            }
        }
        let is_missing = self.servers.list.iter().any(RunServer::is_awaited);
        if !is_missing && std::mem::take(&mut self.servers.awaited) {
            self.drive(|driver, out| driver.send_held(out));
        }
    }

    pub(super) fn miss_servers(&mut self) {
        self.servers.due = None;
        if let Some(failure) = self.servers.missing() {
            return self.stop(Outcome::Failed(failure), None);
        }
        self.warn_of_silent_servers();
    }

    pub(super) fn warn_of_silent_servers(&mut self) {
        for at in 0..self.servers.list.len() {
            let server = &mut self.servers.list[at];
            let is_silent = server.launched == Some(McpState::Pending) && server.state == McpState::Pending;
            if is_silent && server.part == (ServerPart::Optional { warned: false }) {
                server.part = ServerPart::Optional { warned: true };
                let text = server.warning();
                self.effects.warn(Warning::McpUnavailable, text, None);
            }
        }
    }
}
