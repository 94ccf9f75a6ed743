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

/// The origin of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cause {
    #[default]
    Start,
    Prompt,
    Agent,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    cause: Cause,
    /// The origin of the next turn, if the agent has its prompt and began a turn of its own before it.
    sent: Option<Cause>,
    /// Whether the agent has work in the background.
    pub(super) background: bool,
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

    /// Begins a turn for which the agent needs no prompt, or has it already.
    fn begin_unprompted(&mut self, cause: Cause) {
        (self.turns.state, self.turns.began, self.turns.cause) = (State::Running, self.now, cause);
        (self.markers, self.answered, self.refused, self.active) = (0, 0, false, self.now);
    }

    /// Takes the beginning of a turn, as the agent reports it.
    pub(super) fn turn_began(&mut self, own: bool) {
        match (own, self.turns.state) {
            _ if self.decided.is_some() => {}
            (true, State::Over(_)) => self.begin_unprompted(Cause::Agent),
            (true, State::Running) if self.turns.cause != Cause::Agent => {
                self.turns.sent = Some(std::mem::replace(&mut self.turns.cause, Cause::Agent));
            }
            (false, State::Running) => self.turns.cause = self.turns.sent.take().unwrap_or(self.turns.cause),
            (true, State::Running) | (false, State::Over(_)) | (_, State::Stopping { .. }) => {}
        }
    }

    /// Takes whether the agent has work in the background.
    pub(super) fn background(&mut self, works: bool) {
        if self.decided.is_some() {
            return;
        }
        self.turns.background = works;
        if !works && self.turns.is_over() && self.ends_when_idle() {
            self.conclude();
        }
    }

    pub(super) fn ends_when_idle(&self) -> bool {
        self.turns.closing || !self.rules.conversation
    }

    fn awaits_background(&self) -> bool {
        self.rules.waits && self.turns.background
    }

    /// The time since when the run waits for work in the background alone.
    pub(super) fn background_since(&self) -> Option<Duration> {
        match self.turns.state {
            State::Over(since) if self.ends_when_idle() && self.awaits_background() => Some(since),
            State::Over(_) | State::Running | State::Stopping { .. } => None,
        }
    }

    /// Ends a run in which no turn runs.
    pub(super) fn conclude(&mut self) {
        let outcome = self.turns.conclusion();
        match self.process {
            Process::Running if self.rules.conversation => self.after_result(outcome),
            Process::Running => self.release(outcome),
            Process::Due | Process::TreeGone | Process::Ended | Process::Resting => self.decide(outcome),
        }
    }

    fn begin_turn(&mut self) {
        self.begin_unprompted(Cause::Prompt);
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
        if self.turns.closing && self.turns.is_over() && self.decided.is_none() && !self.awaits_background() {
            self.conclude();
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
            false => {
                let is_more_due = self.turns.waiting > 0 || self.turns.sent.is_some();
                outcome == "run.completed" && (is_more_due || self.awaits_background())
            }
        };
        if !goes_on {
            return Some(outcome);
        }
        self.close_turn(outcome);
        if let Some(cause) = self.turns.sent.take() {
            self.begin_unprompted(cause);
            return None;
        }
        if self.turns.waiting > 0 {
            self.turns.waiting -= 1;
            self.seen.push(Seen::Prompt("sent"));
            self.begin_turn();
            return None;
        }
        (self.ends_when_idle() && !self.awaits_background()).then(|| self.turns.conclusion())
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
            self.seen.push(Seen::Turn(self.turns.ended, outcome, self.turns.cause == Cause::Agent));
        }
    }

    fn drop_prompts(&mut self) {
        let sent = u64::from(self.turns.sent.take() == Some(Cause::Prompt));
        let dropped = sent + std::mem::take(&mut self.turns.waiting);
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
            State::Over(_) if self.turns.closing => None,
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
