//! An agent that rests: after a completed turn its process stays, for a further turn in a later part of the same run.

use super::active_run::{ActiveRun, ProcessState};
use super::event::{Effect, FirstProcess, RestingSession, Unseen};
use super::stop_ladder::{DecidedEnd, Stage};
use crate::protocol::outbound::{Outcome, Text};
use crate::protocol::words::{Action, Status, StopReason};
use std::path::PathBuf;

impl ActiveRun {
    /// Lets the agent rest after its result if the run keeps its process. Otherwise, tells the agent to exit.
    pub(super) fn release_agent(&mut self) {
        let can_stay = self.agent.driver.takes_turns() && !self.features().process_per_turn;
        match &mut self.end.ending {
            Some(ending) if self.keeps_process && can_stay && matches!(ending.outcome, Outcome::Completed { .. }) => {
                // The search for changed files has a limit of its own.
                ending.due = None;
                self.out.push(Effect::Rest);
            }
            Some(_) | None => self.finish_agent(),
        }
    }

    /// Tells the agent to exit, because it cannot rest.
    pub(super) fn cannot_rest(&mut self) {
        let Some(ending) = self.end.ending.take() else { return };
        self.end.ending = Some(DecidedEnd::after_result(self.now, ending.outcome, self.features().leaves));
        self.finish_agent();
    }

    /// Handles the end of the search for changed files. From here on the agent rests, and the run is over.
    pub(super) fn rested(&mut self, files: Result<Vec<(PathBuf, Action)>, Unseen>) {
        let stays =
            self.end.ending.as_ref().is_some_and(|ending| ending.stage == Stage::Leaving && ending.due.is_none());
        if stays && self.agent.process == ProcessState::Running {
            self.unreported(files);
            self.agent.process = ProcessState::Resting;
        }
    }

    /// The session of the agent, if it rests.
    pub(super) fn resting(&self) -> Option<RestingSession> {
        (self.agent.process == ProcessState::Resting).then(|| RestingSession {
            session_id: self.work.session_id.clone(),
            model: self.work.model.clone(),
            usage: self.work.counted,
            waiting: self.agent.waiting.clone(),
        })
    }

    /// Continues with an agent that rests.
    pub(super) fn begin_at_rest(&mut self, first: FirstProcess) {
        let (session, leaves) = match first {
            FirstProcess::New => return,
            FirstProcess::Resting(session) => (session, false),
            FirstProcess::Leaving(session) => (session, true),
        };
        let RestingSession { session_id, model, usage, waiting } = session;
        (self.work.session_id, self.work.model) = (session_id, model);
        self.work.continue_process(usage);
        // It has shown signs of life.
        (self.agent.waiting, self.agent.alive) = (waiting, true);
        self.agent.process = ProcessState::Running;
        self.clocks.run = self.settings.timeout_s.map(|limit| self.now + limit.duration());
        if leaves {
            let (text, message_id) = (Text::default(), None);
            let (text_cut, structured_output, stop_reason) = (false, None, StopReason::EndTurn);
            self.decide(Outcome::Completed { text, message_id, text_cut, structured_output, stop_reason });
            return self.finish_agent();
        }
        self.status(Status::Running, "The agent is working", None);
        let prompt = self.settings.prompt.clone();
        self.drive(|driver, turn| driver.follow_up(&prompt, &[], turn));
    }
}
