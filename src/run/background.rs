//! The agent's own life: its work that outlives a turn, and the turns that it begins without a prompt.

use super::active_run::ActiveRun;
use super::turns::{TurnCause, TurnState};
use crate::protocol::outbound::Text;
use crate::protocol::sentence::Sentence;
use crate::protocol::words::{Background, Status, TurnOrigin, Warning};
use std::time::Duration;

/// The maximum number of names in the warning.
const SHOWN: usize = 20;

impl ActiveRun {
    /// Takes all of the agent's work in the background, and ends the run if it waited for the last of it.
    pub(super) fn change_background(&mut self, work: Vec<Text>) {
        if self.ladder.is_decided() {
            return;
        }
        self.background = work;
        if self.background.is_empty() && self.turns.is_over() && self.ends_when_idle() {
            self.conclude();
        }
    }

    pub(super) fn ends_when_idle(&self) -> bool {
        self.turns.closing || !self.settings.conversation
    }

    pub(super) fn awaits_background(&self) -> bool {
        self.settings.background == Background::Wait && !self.background.is_empty()
    }

    pub(super) fn background_since(&self) -> Option<Duration> {
        match self.turns.current.state {
            TurnState::Over { since } if self.ends_when_idle() && self.awaits_background() => Some(since),
            TurnState::Over { .. } | TurnState::Running | TurnState::Stopping { .. } | TurnState::AwaitingLimit(_) => {
                None
            }
        }
    }

    pub(super) fn await_background(&mut self) {
        self.effects.status(Status::WaitingForAgent, "Waiting for the agent's work in the background", None);
    }

    pub(super) fn note_turn(&mut self, origin: TurnOrigin) {
        match (origin, &self.turns.current.state) {
            _ if self.ladder.is_decided() => {}
            (TurnOrigin::Agent, TurnState::Over { .. }) => self.begin_unprompted(TurnCause::Agent),
            (TurnOrigin::Agent, TurnState::Running) => self.turns.precede(),
            (TurnOrigin::Prompt, TurnState::Running) => self.turns.join(),
            // The turn of a prompt began before the prompt was sent, and a turn that stops has its end already.
            (TurnOrigin::Prompt, TurnState::Over { .. }) => {}
            (TurnOrigin::Agent | TurnOrigin::Prompt, TurnState::Stopping { .. } | TurnState::AwaitingLimit(_)) => {}
        }
    }

    /// Begins a turn for which the agent needs no prompt, or has it already.
    pub(super) fn begin_unprompted(&mut self, cause: TurnCause) {
        self.turns.begin_next(cause, self.effects.now, self.budget.usage);
        // The agent has what it needs, so that after a limit it only goes on.
        self.turns.current.worked = true;
        self.deadlines.active = self.effects.now;
        self.effects.status(Status::Running, "The agent is working", None);
    }

    pub(super) fn warn_of_background(&mut self) {
        let work = std::mem::take(&mut self.background);
        if work.is_empty() {
            return;
        }
        let names: Vec<&str> = work.iter().take(SHOWN).map(Text::unredacted).collect();
        let more = match work.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let text = format!("Work in the background was stopped: {}{more}", names.join(", "));
        self.effects.warn(Warning::BackgroundStopped, Sentence::from(text), None);
    }
}
