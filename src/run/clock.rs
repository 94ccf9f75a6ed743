//! The clock of a run: its limits, its deadlines, its heartbeat.

use super::active_run::{ActiveRun, ProcessState};
use super::open_questions::NoAnswerCause;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::{About, Outcome};
use crate::protocol::request::Seconds;
use crate::protocol::words::WaitingOn;
use std::time::Duration;

/// The minimum time between heartbeats.
const HEARTBEAT_MIN: Duration = Duration::from_millis(10);

impl ActiveRun {
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let heartbeat = self.heartbeat_at();
        let ending = self.end.ending.as_ref().map(|ending| ending.due);
        let all = match ending {
            _ if self.agent.process == ProcessState::Drained => [heartbeat, None, None, None, None, None],
            Some(due) => [due, heartbeat, None, None, None, None],
            None => {
                [heartbeat, self.clocks.run, self.clocks.start, self.idle_at(), self.question_due(), self.turn_due()]
            }
        };
        all.into_iter().flatten().min()
    }

    /// The deadline of the open questions. After the end of stdin, they are due at once, because only an answer that
    /// was read before can still arrive.
    fn question_due(&self) -> Option<Duration> {
        let deadline = self.questions.book.deadline();
        if self.questions.input_closed && self.questions.book.is_waiting() { Some(Duration::ZERO) } else { deadline }
    }

    fn heartbeat_at(&self) -> Option<Duration> {
        let every = self.settings.heartbeat_s.duration();
        (!every.is_zero()).then(|| self.clocks.frame + every.max(HEARTBEAT_MIN))
    }

    /// The deadline of the agent's next output. The clock stops during a question, and during a tool for at most
    /// `tool_timeout_s`.
    fn idle_at(&self) -> Option<Duration> {
        let limit = self.settings.idle_timeout_s.duration();
        if limit.is_zero() || self.clocks.active.is_zero() || self.questions.book.is_waiting() || self.turns.is_over() {
            return None;
        }
        let held = self.work.tools.running_since().map(|since| since + self.settings.tool_timeout_s.duration());
        Some(self.clocks.active.max(held.unwrap_or_default()) + limit)
    }

    pub(super) fn tick(&mut self) {
        let now = self.now;
        let due = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        if self.agent.process == ProcessState::Drained {
            if due(self.heartbeat_at()) {
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
        if self.end.ending.is_none() && due(self.question_due()) {
            self.nobody(if self.questions.input_closed { NoAnswerCause::InputClosed } else { NoAnswerCause::Timeout });
        }
        if due(self.heartbeat_at()) {
            self.heartbeat();
        }
    }

    fn heartbeat(&mut self) {
        let idle = self.now.saturating_sub(self.clocks.active);
        let waiting_on = match (self.questions.book.is_waiting(), self.turns.is_over()) {
            (true, _) => WaitingOn::Input,
            (false, true) => WaitingOn::Prompt,
            (false, false) => WaitingOn::Agent,
        };
        let text = match waiting_on {
            WaitingOn::Input => "Waiting for an answer",
            WaitingOn::Agent => "Waiting for the agent",
            WaitingOn::Prompt => "Waiting for a prompt",
        };
        let idle_s = Seconds((idle.as_millis() as f64) / 1000.0);
        self.tell(About::Heartbeat { idle_s, waiting_on }, text, None);
        // Even if the level suppressed this heartbeat, the next one is due after a whole period.
        self.clocks.frame = self.now;
    }
}
