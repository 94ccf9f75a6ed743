//! The steps of a run that follow from the states of its MCP servers.

use super::active_run::ActiveRun;
use super::servers::{RunServer, ServerPart};
use crate::protocol::outbound::{Outcome, Text};
use crate::protocol::words::McpState;

const SERVER_CHANGED: &str = "The state of an MCP server changed";

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
            self.tell_session(SERVER_CHANGED);
        }
        self.without_servers();
    }

    pub(super) fn server_told(&mut self, name: String, state: McpState, said: Option<Text>) {
        if self.servers.told(name, state, said) && self.servers.session_open {
            self.tell_session(SERVER_CHANGED);
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
        self.tell_session("The agent's session is open");
        self.without_servers();
    }

    fn tell_session(&mut self, text: &str) {
        let about = self.agent.session(self.servers.states(), &self.settings, self.checkpoints.on);
        self.effects.tell(about, text, None);
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
        for server in self.servers.list.iter_mut().filter(|server| server.state == McpState::Failed) {
            match server.part {
                ServerPart::Required => {
                    let failure = server.failure();
                    return self.stop(Outcome::Failed(failure), None);
                }
                ServerPart::Optional { warned: false } if self.servers.session_open => server.warn(&mut self.effects),
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
        let unwarned = ServerPart::Optional { warned: false };
        for server in self.servers.list.iter_mut().filter(|server| server.part == unwarned) {
            if server.launched == Some(McpState::Pending) && server.state == McpState::Pending {
                server.warn(&mut self.effects);
            }
        }
    }
}
