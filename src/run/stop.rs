//! Carries out the steps that stop the agent, in the order of the `stop_ladder`.
//!
//! A stop begins in [`ActiveRun::stop`]: the driver's interrupt. Each step that is due leads to [`ActiveRun::advance`],
//! which closes the agent's stdin, and then requests SIGTERM and SIGKILL for the whole tree. A second signal goes to the
//! kill at once. The host sends the signals, and [`ActiveRun::end_agent`] ends the run when the tree is gone.

use super::active_run::ActiveRun;
use super::agent_side::ProcessState;
use super::event::Effect;
use super::stop_ladder::Stage;
use super::{FoundFiles, StopSignal};
use crate::protocol::ids::InboundId;
use crate::protocol::outbound::Outcome;
use crate::protocol::words::Status;

impl ActiveRun {
    pub(super) fn decide(&mut self, mut outcome: Outcome) {
        if !self.ladder.is_decided() {
            self.warn_of_background();
            if matches!(outcome, Outcome::Completed { .. }) {
                self.warn_of_silent_servers();
                // An agent that starts servers with its first prompt may not have started them all.
                outcome = self.servers.missed().map_or(outcome, Outcome::Failed);
            }
        }
        let leave_time = self.features().leave_time;
        self.ladder.begin_exit(self.effects.now, outcome, leave_time);
    }

    pub(super) fn finish_agent(&mut self) {
        self.drive(|driver, out| driver.finish(out));
    }

    /// An earlier outcome stands.
    pub(super) fn stop(&mut self, outcome: Outcome, reply_to: Option<InboundId>) {
        if self.ladder.is_decided() {
            return;
        }
        self.warn_of_background();
        self.effects.push(Effect::Hurry);
        let is_cancelled = matches!(outcome, Outcome::Cancelled { .. });
        let leave_time = self.features().leave_time;
        self.ladder.begin_stop(self.effects.now, outcome, leave_time);
        self.withdraw_questions(None);
        if is_cancelled {
            self.effects.status(Status::Cancelling, "Cancelling", reply_to);
        }
        self.drive(|driver, out| driver.interrupt(out));
        if self.step.is_some() || !self.features().listens {
            self.advance();
            self.advance();
        }
    }

    pub(super) fn advance(&mut self) {
        match self.ladder.next_step(self.effects.now) {
            None | Some(Stage::Interrupted) => {}
            Some(Stage::Leaving) => self.finish_agent(),
            Some(Stage::Terminated) => self.effects.push(Effect::SignalTree(StopSignal::Terminate)),
            Some(Stage::Killed) => self.effects.push(Effect::SignalTree(StopSignal::Kill)),
        }
    }

    /// After a completed turn, a process that can stay rests, for a further turn in a later part of the run.
    pub(super) fn release_agent(&mut self) {
        let can_stay = self.agent.driver.takes_turns() && !self.features().process_per_turn;
        // The search for changed files has a limit of its own.
        if self.agent.keeps_process && can_stay && self.ladder.rest() {
            self.effects.push(Effect::Rest);
        } else {
            self.finish_agent();
        }
    }

    pub(super) fn refuse_rest(&mut self) {
        if self.ladder.end_rest(self.effects.now) {
            self.finish_agent();
        }
    }

    /// From here on the agent rests, and the part is over.
    pub(super) fn end_at_rest(&mut self, files: FoundFiles) {
        if self.ladder.is_resting() && self.agent.process == ProcessState::Running {
            self.artifacts.report_found(files, &self.texts, &mut self.effects);
            self.agent.process = ProcessState::Resting;
        }
    }
}
