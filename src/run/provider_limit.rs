//! Carries out the wait for the end of a provider's limit, which `limit_wait` describes. The turn stays open while the
//! agent's process is ended, and goes on in a new process with the same session.

use super::active_run::ActiveRun;
use super::agent_side::ProcessState;
pub(super) use super::limit_wait::AfterProcess;
use super::limit_wait::LimitWait;
use super::turns::{StopCause, TurnState};
use super::{Effect, StopSignal};
use crate::agent::LEAVE;
use crate::agent::pause::pause_in;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::Outcome;
use crate::protocol::terms::sentence;
use crate::protocol::utc::UtcTime;
use crate::protocol::words::{OnRateLimit, Status, ToolState};
use std::time::Duration;

/// The longest time without a look at the date, because the run's clock stands still while the machine sleeps.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

impl ActiveRun {
    /// Dates the end of a limit of which the agent only says how long it lasts.
    pub(super) fn date_limit(&self, outcome: &mut Outcome) {
        let Outcome::Failed(failure) = outcome else { return };
        let pause = failure.agent_message.as_ref().and_then(|said| pause_in(&said.redacted(&self.texts.redactor)));
        // A moment has whole seconds.
        let end = pause.and_then(|pause| UtcTime::of_seconds((self.effects.date + pause).as_secs_f64().ceil()));
        if end.is_some() {
            *failure = failure.clone().until(end);
        }
    }

    /// Returns whether the run begins to wait.
    pub(super) fn awaits_limit_of(&mut self, outcome: &mut Outcome) -> bool {
        let Outcome::Failed(failure) = outcome else { return false };
        let ends = matches!(failure.code, Code::RateLimited | Code::QuotaExceeded | Code::ProviderUnavailable);
        let waits = ends && self.settings.on_rate_limit == OnRateLimit::Wait && self.turns.current.is_running();
        if !waits || !self.agent.can_begin_again(&self.turns.current, &self.settings) {
            return false;
        }
        let longest = self.settings.max_wait_s.duration();
        let Some(until) = self.turns.limits.until(failure, self.effects.date, longest) else {
            let too_long =
                sentence!("The limit does not end within {max_wait_s:#}: raise it, or try again later.", max_wait_s);
            failure.message = too_long;
            return false;
        };
        let failure = failure.clone();
        self.effects.waits_for_limit(until, failure.code.name());
        self.leave_turn_open(until, failure, AfterProcess::GoOn);
        true
    }

    /// Ends the agent's process, but not the turn. `until`: the date at which the turn goes on.
    pub(super) fn leave_turn_open(&mut self, until: Duration, failure: Failure, then: AfterProcess) {
        self.end_open_work(ToolState::Failed);
        self.turns.current.marked.asks = Default::default();
        (self.deadlines.start, self.servers.due) = (None, None);
        let leaves_until = self.effects.now + self.features().leave_time;
        let next = Some((leaves_until, StopSignal::Terminate));
        let wait = LimitWait { until, next, failure: Box::new(failure), then };
        self.turns.current.state = TurnState::AwaitingLimit(wait);
        if self.agent.process == ProcessState::Running {
            self.finish_agent();
        }
    }

    pub(super) fn limit_due(&self) -> Option<Duration> {
        let TurnState::AwaitingLimit(wait) = &self.turns.current.state else { return None };
        match self.agent.process {
            ProcessState::Running => wait.next.map(|(due, _)| due),
            ProcessState::Ended => {
                Some(self.effects.now + wait.until.saturating_sub(self.effects.date).min(LOOK_AGAIN))
            }
            ProcessState::Due | ProcessState::TreeGone | ProcessState::Resting => None,
        }
    }

    pub(super) fn tick_limit(&mut self) {
        let TurnState::AwaitingLimit(wait) = &mut self.turns.current.state else { return };
        match self.agent.process {
            ProcessState::Running => {
                let Some((due, signal)) = wait.next.take_if(|(due, _)| *due <= self.effects.now) else { return };
                wait.next = match signal {
                    StopSignal::Terminate => Some((due + LEAVE, StopSignal::Kill)),
                    StopSignal::Kill => None,
                };
                self.effects.push(Effect::SignalTree(signal));
            }
            ProcessState::Ended if wait.until <= self.effects.date => self.go_on(),
            ProcessState::Ended | ProcessState::Due | ProcessState::TreeGone | ProcessState::Resting => {}
        }
    }

    fn go_on(&mut self) {
        let state = std::mem::replace(&mut self.turns.current.state, TurnState::Running);
        let TurnState::AwaitingLimit(wait) = state else { return };
        self.deadlines.active = self.effects.now;
        if wait.then == AfterProcess::HandOver {
            return self.hand_over(&wait.failure);
        }
        // The agent may have lost its session with its process.
        if !self.agent.can_begin_again(&self.turns.current, &self.settings) {
            return self.end_turn_without_process(Outcome::Failed(*wait.failure));
        }
        self.agent.drop_lost_session(&self.settings);
        self.effects.status(Status::Running, "The limit is over, and the agent goes on", None);
        let prompt = self.turns.prompt_after_limit(&self.settings);
        self.pass_prompt(prompt);
    }

    pub(super) fn end_limit_wait(&mut self, why: StopCause) {
        self.turns.interrupt(why, self.effects.now);
        if self.agent.process == ProcessState::Ended {
            self.end_turn_without_process(why.outcome());
        } else {
            self.turns.signal_tree(&mut self.effects);
        }
    }

    pub(super) fn end_turn_without_process(&mut self, outcome: Outcome) {
        if let Some(outcome) = self.end_turn(outcome) {
            self.decide(outcome);
        }
    }
}
