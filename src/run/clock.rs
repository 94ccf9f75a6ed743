//! The clock of a run: its limits, its deadlines, its heartbeat.

use super::active_run::ActiveRun;
use super::agent_side::ProcessState;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::Outcome;
use crate::protocol::words::WaitingOn;
use std::time::Duration;

impl ActiveRun {
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let heartbeat = self.effects.heartbeat_at();
        let ending = self.end.ending.as_ref().map(|ending| ending.due);
        let all = match ending {
            _ if self.agent.process == ProcessState::Drained => [heartbeat, None, None, None, None, None],
            Some(due) => [due, heartbeat, None, None, None, None],
            None => {
                [heartbeat, self.clocks.run, self.clocks.start, self.idle_at(), self.questions.due(), self.turn_due()]
            }
        };
        all.into_iter().flatten().min()
    }

    /// The deadline of the agent's next output. The clock stops during a question, and during a tool for at most
    /// `tool_timeout_s`.
    fn idle_at(&self) -> Option<Duration> {
        let limit = self.settings.idle_timeout_s.duration();
        if limit.is_zero() || self.clocks.active.is_zero() || self.questions.is_waiting() || self.turns.is_over() {
            return None;
        }
        let held = self.tools.running_since().map(|since| since + self.settings.tool_timeout_s.duration());
        Some(self.clocks.active.max(held.unwrap_or_default()) + limit)
    }

    pub(super) fn tick(&mut self) {
        let now = self.effects.now;
        let due = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        if self.agent.process == ProcessState::Drained {
            if due(self.effects.heartbeat_at()) {
                self.heartbeat();
            }
            return;
        }
        if due(self.end.ending.as_ref().and_then(|ending| ending.due)) {
            self.advance();
        }
        if self.end.ending.is_none() {
            let late = [
                (self.clocks.run, Code::Timeout, "The run took longer than timeout_s: raise it or split the task."),
                (
                    self.clocks.start,
                    Code::StartTimeout,
                    "The agent sent nothing within start_timeout_s: check its installation.",
                ),
                (
                    self.idle_at(),
                    Code::IdleTimeout,
                    "The agent was silent for longer than idle_timeout_s: raise it, or check what the agent is waiting for.",
                ),
            ];
            let first = late.into_iter().filter(|(at, ..)| due(*at)).min_by_key(|(at, ..)| *at);
            if let Some((_, code, message)) = first {
                return self.stop(Outcome::Failed(Failure::new(code, message)), None);
            }
        }
        if self.end.ending.is_none() && due(self.turn_due()) {
            self.turn_is_due();
        }
        if self.end.ending.is_none() && due(self.questions.due()) {
            self.nobody(self.questions.due_cause());
        }
        if due(self.effects.heartbeat_at()) {
            self.heartbeat();
        }
    }

    fn heartbeat(&mut self) {
        let idle = self.effects.now.saturating_sub(self.clocks.active);
        let waiting_on = match (self.questions.is_waiting(), self.turns.is_over()) {
            (true, _) => WaitingOn::Input,
            (false, true) => WaitingOn::Prompt,
            (false, false) => WaitingOn::Agent,
        };
        self.effects.heartbeat(idle, waiting_on);
    }
}
