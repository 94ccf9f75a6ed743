//! An agent that rests: after a completed turn its process stays, for a further turn in a later part of the run.

use super::FoundFiles;
use super::active_run::ActiveRun;
use super::agent_side::ProcessState;
use super::event::Effect;

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

    /// Handles the end of the search for changed files. From here on the agent rests, and the part is over.
    pub(super) fn end_at_rest(&mut self, files: FoundFiles) {
        if self.ladder.is_resting() && self.agent.process == ProcessState::Running {
            self.artifacts.report_found(files, &self.texts, &mut self.effects);
            self.agent.process = ProcessState::Resting;
        }
    }
}
