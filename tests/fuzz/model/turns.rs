//! The turns of a run, and the prompts for them, as the protocol defines them.

use super::acts::Seen;
use super::reference::{Process, Reference};
use std::time::Duration;

/// The time that an agent has to stop its turn.
const STOP_LIMIT: Duration = Duration::from_secs(2);
/// The number of prompts that may wait.
const WAITING: u64 = 32;

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Running,
    Stopping {
        timeout: bool,
        due: Option<Duration>,
        with_process: bool,
    },
    Over(Duration),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// The number of turns that have ended.
    ended: u64,
    state: State,
    pub(super) began: Duration,
    waiting: u64,
    closing: bool,
    completed: bool,
    failed: Option<&'static str>,
    /// Whether the agent opened its session.
    pub(super) has_session: bool,
}

impl Turns {
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.state, State::Stopping { .. })
    }

    pub(super) fn ends_with_process(&self) -> bool {
        matches!(self.state, State::Stopping { with_process: true, .. })
    }

    fn conclusion(&self) -> &'static str {
        if self.completed { "run.completed" } else { self.failed.unwrap_or("run.cancelled") }
    }
}

impl Reference {
    pub(super) fn prompt(&mut self, now: bool) {
        if self.decided.is_some() || self.turns.closing || self.turns.waiting >= WAITING {
            return;
        }
        match self.turns.state {
            State::Over(_) => {
                self.seen.push(Seen::Prompt("sent"));
                self.begin_turn();
            }
            State::Running if now && self.rules.lives.steers => {
                self.seen.extend([Seen::Sent("steer".into()), Seen::Prompt("sent")]);
            }
            State::Running | State::Stopping { .. } => {
                self.turns.waiting += 1;
                self.seen.push(Seen::Prompt("queued"));
            }
        }
    }

    fn begin_turn(&mut self) {
        (self.turns.state, self.turns.began) = (State::Running, self.now);
        (self.markers, self.answered, self.refused, self.active) = (0, 0, false, self.now);
        match self.process {
            // Only the agent of a conversation is started again.
            Process::Ended if self.rules.lives.per_turn || self.rules.conversation => self.spawn(),
            Process::Ended => self.decide("agent_exited"),
            Process::Due | Process::Running | Process::TreeGone | Process::Resting => {
                self.seen.push(Seen::Sent("follow up".into()));
            }
        }
    }

    pub(super) fn no_more_prompts(&mut self) {
        self.turns.closing |= self.rules.conversation;
        if !self.turns.closing || !self.turns.is_over() || self.decided.is_some() {
            return;
        }
        let outcome = self.turns.conclusion();
        match self.process {
            Process::Running => self.after_result(outcome),
            Process::Due | Process::TreeGone | Process::Ended | Process::Resting => self.decide(outcome),
        }
    }

    /// Ends the running turn. Returns the outcome of the run if the run is over with it.
    pub(super) fn end_turn(&mut self, outcome: &'static str) -> Option<&'static str> {
        let stopped = match self.turns.state {
            State::Running => None,
            State::Stopping { timeout, .. } => Some(if timeout { "timeout" } else { "run.cancelled" }),
            State::Over(_) => return (!self.leaves_a_session(outcome)).then_some(outcome),
        };
        if stopped.is_some() {
            self.tools.clear();
        }
        let outcome = stopped.unwrap_or(outcome);
        let goes_on = match self.rules.conversation {
            true => stopped.is_some() || self.leaves_a_session(outcome),
            false => outcome == "run.completed" && self.turns.waiting > 0,
        };
        if !goes_on {
            return Some(outcome);
        }
        self.close_turn(outcome);
        if self.turns.waiting > 0 {
            self.turns.waiting -= 1;
            self.seen.push(Seen::Prompt("sent"));
            self.begin_turn();
            return None;
        }
        self.turns.closing.then(|| self.turns.conclusion())
    }

    fn leaves_a_session(&self, outcome: &'static str) -> bool {
        match outcome {
            "run.completed" | "run.cancelled" => true,
            "rate_limited" | "limit_reached" => self.turns.has_session || self.rules.lives.per_turn,
            "agent_error" => self.turns.has_session && self.process == Process::Running,
            _ => false,
        }
    }

    fn close_turn(&mut self, outcome: &'static str) {
        self.turns.state = State::Over(self.now);
        self.turns.ended += 1;
        match outcome {
            "run.completed" => self.turns.completed = true,
            "run.cancelled" => {}
            code => self.turns.failed = Some(code),
        }
        if self.rules.conversation {
            self.seen.push(Seen::Turn(self.turns.ended, outcome));
        }
    }

    fn drop_prompts(&mut self) {
        let dropped = std::mem::take(&mut self.turns.waiting);
        self.seen.extend((0..dropped).map(|_| Seen::Prompt("dropped")));
    }

    /// Ends a turn that still runs when the run ends.
    pub(super) fn close_last_turn(&mut self, outcome: &'static str) {
        self.drop_prompts();
        if !self.turns.is_over() {
            self.close_turn(outcome);
        }
    }

    pub(super) fn interrupt_turn(&mut self, timeout: bool) {
        if !self.turns.is_running() || self.decided.is_some() {
            return;
        }
        if !timeout {
            self.drop_prompts();
        }
        self.turns.state = State::Stopping { timeout, due: Some(self.now + STOP_LIMIT), with_process: false };
        self.withdraw(None);
        if self.rules.lives.stays {
            self.seen.push(Seen::Sent("interrupt turn".into()));
        } else {
            self.end_process();
        }
    }

    fn end_process(&mut self) {
        let State::Stopping { due, with_process, .. } = &mut self.turns.state else { return };
        self.seen.push(if *with_process { Seen::Kill } else { Seen::Terminate });
        *due = (!*with_process).then_some(self.now + STOP_LIMIT);
        *with_process = true;
    }

    pub(super) fn turn_due(&self) -> Option<Duration> {
        if !self.rules.conversation {
            return None;
        }
        match self.turns.state {
            State::Running => self.rules.turn_timeout.map(|limit| self.turns.began + limit),
            State::Stopping { due, .. } => due,
            State::Over(since) => self.rules.prompt_timeout.map(|limit| since + limit),
        }
    }

    pub(super) fn turn_is_due(&mut self) {
        match self.turns.state {
            State::Running => self.interrupt_turn(true),
            State::Stopping { .. } => self.end_process(),
            State::Over(_) => self.no_more_prompts(),
        }
    }
}
