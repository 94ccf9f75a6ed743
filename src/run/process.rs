//! The agent's process from its start to its exit, and the files that it changed.

use super::active_run::{ActiveRun, ProcessState};
use super::messages::Messages;
use super::outcome::could_not_go_on;
use super::work::relative;
use super::{Effect, Gone, Unseen};
use crate::agent::{Launch, TurnOver};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::{AgentExit, Outcome, Text};
use crate::protocol::words::{Action, ToolState, Warning};
use std::path::PathBuf;

impl ActiveRun {
    /// Requests a process for the agent.
    pub(super) fn start(&mut self, launch: Box<Launch>) {
        self.agent.process = ProcessState::Due;
        self.out.push(Effect::Spawn(launch, Box::new(self.settings.clone())));
    }

    pub(super) fn spawned(&mut self) {
        self.agent.process = ProcessState::Running;
        self.clocks.active = self.now;
        if self.agent.exit.is_some() {
            // The limits cover all processes together.
            return;
        }
        self.clocks.run = self.settings.timeout_s.map(|limit| self.now + limit.duration());
        if !self.agent.alive {
            self.clocks.start = self.settings.start_timeout_s.map(|limit| self.now + limit.duration());
        }
    }

    pub(super) fn spawn_failed(&mut self, failure: Failure) {
        self.agent.process = ProcessState::Gone;
        self.decide(Outcome::Failed(failure));
    }

    /// Handles the end of the work that a run without a process waits for.
    pub(super) fn task_over(&mut self) {
        let exit = AgentExit { code: None, signal: None };
        let over = self.agent.driver.exited(exit, true, &Text::default());
        self.turn_over(over);
    }

    /// Handles the end of the agent's process and of its output.
    pub(super) fn drained(&mut self, exit: AgentExit) {
        if matches!(self.agent.process, ProcessState::Drained | ProcessState::Gone) {
            return;
        }
        while !self.agent.waiting.is_empty() {
            self.more();
        }
        self.agent.process = ProcessState::Drained;
        self.drive(|driver, turn| driver.drained(exit, turn));
        self.speak(Messages::finish);
        let state =
            if self.is_stopping() || self.turns.is_stopping() { ToolState::Cancelled } else { ToolState::Failed };
        self.work.tools.end_all(self.now, state).for_each(|progress| self.progress(progress, None));
        self.withdraw(None);
    }

    /// Handles the end of the search for changed files. This ends the run, unless the agent's turn asked a question.
    pub(super) fn gone(&mut self, gone: Gone) {
        if self.agent.process == ProcessState::Gone {
            return;
        }
        self.drained(gone.exit);
        self.agent.process = ProcessState::Gone;
        self.agent.exit = Some(gone.exit);
        self.unreported(gone.files);
        if gone.leaked {
            self.warn(Warning::LeakedProcess, "A process outlived the agent and was stopped", None);
        }
        if self.end.ending.is_some() {
            return;
        }
        let over = self.agent.driver.exited(gone.exit, self.agent.alive, &gone.stderr_tail);
        let Some(over) = self.asked(over).and_then(|over| self.checked(over)) else { return };
        // A signal came from elsewhere, and a more specific failure takes precedence.
        let is_general = matches!(&over, TurnOver::Failed(Failure { code: Code::AgentExited | Code::AgentError, .. }));
        let is_declined = is_general && self.turns.current.declined && gone.exit.signal.is_none();
        let mut outcome = if is_declined { Outcome::Failed(could_not_go_on()) } else { self.outcome(over) };
        let shown = !self.agent.alive && !gone.stderr_tail.is_empty() && self.features().stderr_is_fit;
        if let (Outcome::Failed(failure), true) = (&mut outcome, shown) {
            failure.stderr_tail = Some(gone.stderr_tail);
        }
        if let Some(outcome) = self.end_turn(outcome) {
            self.decide(outcome);
        }
    }

    /// Reports the changed files that the agent did not report.
    pub(super) fn unreported(&mut self, files: Result<Vec<(PathBuf, Action)>, Unseen>) {
        let files = match files {
            Ok(files) => files,
            Err(why) => return self.warn(Warning::ArtifactsIncomplete, unseen(why), None),
        };
        for (path, action) in files {
            let shown = relative(&self.settings.cwd, &path);
            if !self.work.artifacts.covers(&shown, action) {
                self.changed(&path, action);
            }
        }
    }
}

fn unseen(why: Unseen) -> &'static str {
    match why {
        Unseen::Late => "git was too slow: the list of changed files may be incomplete",
        Unseen::Failed => "git failed: the list of changed files may be incomplete; see `git status`",
    }
}
