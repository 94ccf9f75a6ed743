//! The time limits of a run, and the time of the agent's last output.

use crate::protocol::failure::{Code, Failure};
use crate::protocol::request::Settings;
use crate::protocol::terms::sentence;
use crate::protocol::words::LimitField;
use std::time::Duration;

/// The times of past events, and of deadlines.
pub(super) struct Deadlines {
    /// The time when the run began.
    begun: Duration,
    /// The deadline of the run. Set when the agent starts.
    pub(super) run: Option<Duration>,
    /// The deadline of the agent's first output. `None` after that output, or without a limit.
    pub(super) start: Option<Duration>,
    /// The time of the agent's last output, or of the last answer to it.
    pub(super) active: Duration,
}

impl Deadlines {
    pub(super) fn new(now: Duration) -> Deadlines {
        Deadlines { begun: now, run: None, start: None, active: now }
    }

    /// Begins a part of the run.
    pub(super) fn begin_part(&mut self, now: Duration) {
        *self = Deadlines { begun: self.begun, ..Deadlines::new(now) };
    }

    /// The time since the run began.
    pub(super) fn begun(&self) -> Duration {
        self.begun
    }

    /// Starts the clock of the run.
    pub(super) fn begin_run(&mut self, now: Duration, settings: &Settings) {
        self.run = settings.timeout_s.map(|limit| now + limit.duration());
    }

    /// Starts the clock of the agent's first output.
    pub(super) fn await_output(&mut self, now: Duration, settings: &Settings) {
        self.start = settings.start_timeout_s.map(|limit| now + limit.duration());
    }

    /// Restarts the idle timeout: the agent wrote, or its output waits because nobody reads stdout. `is_opening`: whether
    /// its session is not open yet.
    pub(super) fn note_output(&mut self, now: Duration, is_opening: bool) {
        self.active = now;
        self.start.take_if(|_| !is_opening);
    }

    /// The deadline of the agent's next output. A tool that has been running since `tool` stops the clock for at most
    /// `tool_timeout_s`.
    pub(super) fn idle_at(&self, settings: &Settings, tool: Option<Duration>) -> Option<Duration> {
        let limit = settings.idle_timeout_s.duration();
        let held = tool.map(|since| since + settings.tool_timeout_s.duration());
        let is_limited = !limit.is_zero() && !self.active.is_zero();
        is_limited.then(|| self.active.max(held.unwrap_or_default()) + limit)
    }

    /// The failure of the deadline that passed first. `idle_at`: of the agent's next output.
    pub(super) fn passed(&self, now: Duration, idle_at: Option<Duration>) -> Option<Failure> {
        let all: [(_, fn() -> Failure); 3] = [
            (self.run, Failure::took_too_long),
            (self.start, || {
                let message = sentence!(
                    "The agent was not ready within {start_timeout_s:#}: check its installation.",
                    start_timeout_s
                );
                Failure::new(Code::StartTimeout, message).at(LimitField::StartTimeout)
            }),
            (idle_at, || {
                let message = sentence!(
                    "The agent was silent for longer than {idle_timeout_s:#}: raise it, or check what the agent is \
                     waiting for.",
                    idle_timeout_s
                );
                Failure::new(Code::IdleTimeout, message).at(LimitField::IdleTimeout)
            }),
        ];
        let passed = all.into_iter().filter(|(at, _)| at.is_some_and(|at| at <= now));
        passed.min_by_key(|(at, _)| *at).map(|(_, failure)| failure())
    }

    /// The duration of the run, in milliseconds.
    pub(super) fn elapsed_ms(&self, now: Duration) -> u64 {
        u64::try_from(now.saturating_sub(self.begun).as_millis()).unwrap_or(u64::MAX)
    }
}
