//! A session of the agent with several turns: a further turn continues the session if possible, and otherwise starts a
//! new one.

use super::part::Session;
use super::prompts::SessionPrompt;
use super::stop::Stop;
use super::workflow_run::WorkflowRun;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::SessionId;
use crate::protocol::question::Judge;
use crate::run::TurnBegin;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentTurn {
    /// Whether the agent did something, as far as that is visible.
    pub(crate) acted: bool,
    /// The agent's reason if it says that it cannot continue.
    pub(crate) blocked: Option<String>,
}

#[derive(Default)]
pub(super) struct Conversation {
    session_id: Option<SessionId>,
    /// Whether a further turn can go on where the last one ended, without the session's id.
    goes_on: bool,
}

pub(super) struct Terms {
    pub(super) judge: Arc<dyn Judge>,
    pub(super) limit: Option<Duration>,
    pub(super) offers_blocked: bool,
    pub(super) keeps_process: bool,
}

impl Conversation {
    pub(super) fn begin(
        &mut self,
        outer: &mut WorkflowRun<'_>,
        prompt: SessionPrompt,
        terms: &Terms,
    ) -> Result<AgentTurn, Stop> {
        self.leave(outer)?;
        *self = Conversation::default();
        self.turn(outer, (prompt, None), terms, TurnBegin::NewSession)
    }

    /// Stays in the same process if possible. If the agent cannot continue the session, begins a new one with `whole`.
    pub(super) fn further_turn(
        &mut self,
        outer: &mut WorkflowRun<'_>,
        prompt: SessionPrompt,
        whole: SessionPrompt,
        terms: &Terms,
    ) -> Result<AgentTurn, Stop> {
        let both = || (prompt.clone(), Some(whole.clone()));
        if self.goes_on && outer.has_process_for(&prompt) {
            match self.turn(outer, both(), terms, TurnBegin::SameProcess) {
                // The process ended while it rested.
                Err(Stop::Failed(failure)) if failure.code == Code::AgentExited && !outer.seen().heard => {}
                other => return other,
            }
        }
        self.leave(outer)?;
        if outer.features().process_per_turn && self.goes_on {
            return self.turn(outer, both(), terms, TurnBegin::NextProcess);
        }
        let resumable = outer.resumable().cloned();
        let Some(id) = self.session_id.clone().filter(|id| resumable.as_ref() == Some(id)) else {
            return self.begin(outer, whole, terms);
        };
        self.resume(outer, id, prompt, whole, terms)
    }

    /// If the agent cannot resume the session, starts a new one with `whole`.
    pub(super) fn resume(
        &mut self,
        outer: &mut WorkflowRun<'_>,
        id: SessionId,
        prompt: SessionPrompt,
        whole: SessionPrompt,
        terms: &Terms,
    ) -> Result<AgentTurn, Stop> {
        match self.turn(outer, (prompt, Some(whole.clone())), terms, TurnBegin::Resume(id)) {
            Err(Stop::Failed(failure)) if is_lost(&failure) => self.begin(outer, whole, terms),
            other => other,
        }
    }

    /// Ends the agent's process if it stayed after the last turn. Returns whether it did.
    pub(super) fn leave(&mut self, outer: &mut WorkflowRun<'_>) -> Result<bool, Stop> {
        let stayed = outer.has_process();
        if stayed {
            outer.leave()?;
        }
        Ok(stayed)
    }

    fn turn(
        &mut self,
        outer: &mut WorkflowRun<'_>,
        (prompt, whole): (SessionPrompt, Option<SessionPrompt>),
        terms: &Terms,
        start: TurnBegin,
    ) -> Result<AgentTurn, Stop> {
        self.goes_on = false;
        let Terms { limit, offers_blocked, keeps_process, .. } = *terms;
        let judge = Arc::clone(&terms.judge);
        let id = outer.session(Session { prompt, start, whole, keeps_process, offers_blocked, judge, limit })?;
        self.session_id = id.or(self.session_id.take());
        self.goes_on = outer.takes_turns();
        let seen = outer.seen();
        Ok(AgentTurn { acted: seen.acted, blocked: seen.blocked.clone() })
    }
}

/// Whether the session to resume is missing, or the agent cannot resume it.
fn is_lost(failure: &Failure) -> bool {
    matches!(failure.code, Code::SessionNotFound | Code::InvalidRequest)
}
