//! An agent that rests: after a completed turn its process stays, for a further turn in a later part of the same run.

use super::active_run::ActiveRun;
use super::agent_side::ProcessState;
use super::artifacts::FoundChanges;
use super::event::{Effect, FirstProcess, RestingSession, StartedServers};
use crate::protocol::outbound::{Outcome, Text};
use crate::protocol::words::{Status, StopReason};

impl ActiveRun {
    /// Lets the agent rest after its result if the run keeps its process. Otherwise, tells the agent to exit.
    pub(super) fn release_agent(&mut self) {
        let can_stay = self.agent.driver.takes_turns() && !self.features().process_per_turn;
        // The search for changed files has a limit of its own.
        if self.agent.keeps_process && can_stay && self.ladder.rest() {
            self.effects.push(Effect::Rest);
        } else {
            self.finish_agent();
        }
    }

    /// Tells the agent to exit, because it cannot rest.
    pub(super) fn refuse_rest(&mut self) {
        if self.ladder.end_rest(self.effects.now) {
            self.finish_agent();
        }
    }

    /// Handles the end of the search for changed files. From here on the agent rests, and the run is over.
    pub(super) fn end_at_rest(&mut self, files: FoundChanges) {
        if self.ladder.is_resting() && self.agent.process == ProcessState::Running {
            self.artifacts.report_found(files, &self.texts, &mut self.effects);
            self.agent.process = ProcessState::Resting;
        }
    }

    /// The session of the agent, if it rests.
    pub(super) fn resting(&self) -> Option<RestingSession> {
        (self.agent.process == ProcessState::Resting).then(|| RestingSession {
            session_id: self.agent.session_id.clone(),
            model: self.agent.model.clone(),
            usage: self.budget.counted(),
            waiting: self.agent.waiting.clone(),
            servers: StartedServers {
                nonce: self.settings.nonce.clone(),
                ask: self.settings.ask_server.clone(),
                mcp: self.settings.mcp_servers.clone(),
            },
        })
    }

    /// Continues with an agent that rests.
    pub(super) fn begin_at_rest(&mut self, first: FirstProcess) {
        let (session, leaves) = match first {
            FirstProcess::New => return,
            FirstProcess::Resting(session) => (session, false),
            FirstProcess::Leaving(session) => (session, true),
        };
        let RestingSession { session_id, model, usage, waiting, servers } = session;
        let StartedServers { nonce, ask, mcp } = servers;
        (self.settings.nonce, self.settings.ask_server, self.settings.mcp_servers) = (nonce, ask, mcp);
        (self.agent.session_id, self.agent.model) = (session_id, model);
        self.budget.continue_process(usage);
        // It has shown signs of life.
        (self.agent.waiting, self.agent.alive) = (waiting, true);
        self.agent.process = ProcessState::Running;
        self.deadlines.begin_run(self.effects.now, &self.settings);
        if leaves {
            let (text, message_id) = (Text::default(), None);
            let (text_cut, structured_output, stop_reason) = (false, None, StopReason::EndTurn);
            self.decide(Outcome::Completed { text, message_id, text_cut, structured_output, stop_reason });
            return self.finish_agent();
        }
        self.effects.status(Status::Running, "The agent is working", None);
        let prompt = self.settings.prompt.clone();
        self.drive(|driver, out| driver.follow_up(&prompt, &[], out));
    }
}
