//! The rest of an agent between two parts of a run. The agent rests only if nothing runs beside it.

use super::LocalHost;
use crate::engine::changes::{Waiting, Watch};
use crate::process::tree::Signal;
use crate::run::FoundFiles;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time that processes beside the agent get to end before it rests, and the pause between two looks. OpenCode still
/// runs git when it reports the end of a turn; a server that a tool started does not end by itself.
const ALONE_LIMIT: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Default)]
pub(super) enum Rest {
    #[default]
    None,
    /// Something runs beside the agent.
    Awaited { look_at: Instant, until: Instant },
    /// The agent's processes are suspended.
    Suspended,
}

/// The answer to [`Host::rest`](crate::engine::host::Host::rest).
pub(in crate::engine) enum Rested {
    /// The agent rests. The files that changed before.
    Files(FoundFiles),
    /// Something still runs beside the agent, so that it must end.
    NotAlone,
}

impl LocalHost {
    pub(super) fn compare_at_rest(&mut self) {
        match self.watch.compare(false) {
            Some(changes) => self.rested = Some(Rested::Files(self.watch.files(changes, false))),
            None => self.watch.wait(Waiting::Rest),
        }
    }

    pub(super) fn begin_rest(&mut self) {
        self.rest_if_alone(Instant::now() + ALONE_LIMIT);
    }

    /// The time of the next look for processes beside the agent. `None`: the agent does not wait to rest.
    pub(in crate::engine) fn next_look(&self) -> Option<Instant> {
        match self.rest {
            Rest::Awaited { look_at, .. } => Some(look_at),
            Rest::None | Rest::Suspended => None,
        }
    }

    pub(in crate::engine) fn look_again(&mut self) {
        if let Rest::Awaited { look_at, until } = self.rest
            && look_at <= Instant::now()
        {
            self.rest_if_alone(until);
        }
    }

    /// Suspends the agent if nothing runs beside it. Otherwise, the next look is due, or the agent cannot rest after
    /// `until`: tools run in process groups of their own, and what they leave running must end with the turn, before
    /// anybody looks at the agent's work.
    fn rest_if_alone(&mut self, until: Instant) {
        let Some(agent) = &self.agent else { return };
        agent.signal_marked(Signal::STOP);
        self.rest = Rest::Suspended;
        if !agent.is_alone() {
            self.resume();
            let now = Instant::now();
            if now < until {
                self.rest = Rest::Awaited { look_at: until.min(now + LOOK_AGAIN), until };
            } else {
                self.rested = Some(Rested::NotAlone);
            }
            return;
        }
        self.watch.exited();
        if self.watch.is_busy() {
            self.watch.wait(Waiting::BaselineAtRest);
        } else {
            self.compare_at_rest();
        }
    }

    /// Continues an agent that rests, for a further part of the run with a baseline of its own.
    pub(in crate::engine) fn wake(&mut self, cwd: &Path) {
        self.watch = Watch::default();
        self.watch.begin(cwd);
        self.resume();
    }

    pub(super) fn resume(&mut self) {
        match std::mem::take(&mut self.rest) {
            Rest::Suspended => self.agent.iter().for_each(|agent| agent.signal_marked(Signal::CONT)),
            Rest::None | Rest::Awaited { .. } => {}
        }
    }
}
