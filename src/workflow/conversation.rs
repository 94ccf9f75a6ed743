//! A session of the agent with several turns: a further turn continues the session if possible, and otherwise starts a
//! new one.

use super::observer::{BlockedMarker, Observation, Observer};
use super::part::{Session, SessionStart, Wrap};
use super::prompts::SessionPrompt;
use super::stop::Stop;
use super::workflow_run::WorkflowRun;
use crate::agent::Driver;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::SessionId;
use crate::protocol::question::Judge;
use crate::run::Remake;
use crossbeam_channel::unbounded;
use std::sync::Arc;
use std::time::Duration;

/// The result of a successful turn of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentTurn {
    /// Whether the agent did something, as far as that is visible.
    pub(crate) acted: bool,
    /// The agent's reason if it says that it cannot continue.
    pub(crate) blocked: Option<String>,
}

/// The session of a phase or of a draft.
#[derive(Default)]
pub(super) struct Conversation {
    session_id: Option<SessionId>,
    /// The driver of the last turn.
    driver: Option<Box<dyn Driver>>,
    /// Whether the agent wrote anything in the last turn.
    heard: bool,
}

/// The settings of a turn.
pub(super) struct Terms {
    pub(super) judge: Arc<dyn Judge>,
    pub(super) limit: Option<Duration>,
    pub(super) marker: BlockedMarker,
    /// Whether a further turn may follow, for which the agent's process stays.
    pub(super) keeps_process: bool,
}

impl Conversation {
    /// Starts a new session.
    pub(super) fn begin(
        &mut self,
        outer: &mut WorkflowRun<'_>,
        prompt: SessionPrompt,
        terms: &Terms,
    ) -> Result<AgentTurn, Stop> {
        self.leave(outer)?;
        *self = Conversation::default();
        self.turn(outer, prompt, terms, How::Begin)
    }

    /// Runs a further turn of the same session: in the same process if it stayed, otherwise in a new one. If the agent
    /// cannot continue the session, starts a new one with `whole`.
    pub(super) fn further_turn(
        &mut self,
        outer: &mut WorkflowRun<'_>,
        prompt: SessionPrompt,
        whole: impl FnOnce() -> SessionPrompt,
        terms: &Terms,
    ) -> Result<AgentTurn, Stop> {
        if outer.has_process_for(&prompt)
            && let Some(driver) = self.driver.take()
        {
            self.heard = false;
            match self.turn(outer, prompt.clone(), terms, How::SameProcess(driver)) {
                // The process ended while it rested.
                Err(Stop::Failed(failure)) if failure.code == Code::AgentExited && !self.heard => {}
                other => return other,
            }
        }
        self.leave(outer)?;
        let driver = self.driver.take().filter(|driver| driver.takes_turns());
        if let (true, Some(driver)) = (outer.features().process_per_turn, driver) {
            return self.turn(outer, prompt, terms, How::Driver(driver));
        }
        let resumable = outer.resumable().cloned();
        let Some(id) = self.session_id.clone().filter(|id| resumable.as_ref() == Some(id)) else {
            return self.begin(outer, whole(), terms);
        };
        self.resume(outer, id, prompt, whole, terms)
    }

    /// Resumes a session. If the agent cannot resume it, starts a new one with `whole`.
    pub(super) fn resume(
        &mut self,
        outer: &mut WorkflowRun<'_>,
        id: SessionId,
        prompt: SessionPrompt,
        whole: impl FnOnce() -> SessionPrompt,
        terms: &Terms,
    ) -> Result<AgentTurn, Stop> {
        match self.turn(outer, prompt, terms, How::Resume(id)) {
            Err(Stop::Failed(failure)) if is_lost(&failure) => self.begin(outer, whole(), terms),
            other => other,
        }
    }

    /// Ends the agent's process if it stayed after the last turn. Returns whether it did.
    pub(super) fn leave(&mut self, outer: &mut WorkflowRun<'_>) -> Result<bool, Stop> {
        let stayed = outer.has_process();
        if stayed && let Some(driver) = self.driver.take() {
            outer.leave(driver)?;
        }
        Ok(stayed)
    }

    fn turn(
        &mut self,
        outer: &mut WorkflowRun<'_>,
        prompt: SessionPrompt,
        terms: &Terms,
        how: How,
    ) -> Result<AgentTurn, Stop> {
        let (sender, over) = unbounded();
        let marker = terms.marker;
        let (agent, again) = (outer.agent().clone(), sender.clone());
        let remake: Remake = Box::new(move || Box::new(Observer::new(agent.driver(), false, marker, again.clone())));
        let (start, known, goes_on) = match how {
            How::Begin => (SessionStart::New, None, false),
            How::Resume(id) => (SessionStart::Resume(id), None, false),
            How::SameProcess(driver) => (SessionStart::SameProcess, Some(driver), false),
            How::Driver(driver) => (SessionStart::New, Some(driver), true),
        };
        let wrap: Wrap =
            Box::new(move |inner| Box::new(Observer::new(known.unwrap_or(inner), goes_on, marker, sender)));
        let keeps_process = terms.keeps_process;
        let (judge, limit) = (Some(Arc::clone(&terms.judge)), terms.limit);
        let (wrap, remake) = (Some(wrap), Some(remake));
        let answer = outer.session(Session { prompt, start, keeps_process, judge, limit, wrap, remake });
        // Each process of the turn has been observed.
        let observed = over.try_iter().reduce(Observation::then);
        self.heard = observed.as_ref().is_some_and(|observed| observed.heard);
        self.session_id = answer?.or(self.session_id.take());
        let Some(Observation { acted, blocked, driver, .. }) = observed else { return Ok(AgentTurn::default()) };
        self.driver = Some(driver);
        Ok(AgentTurn { acted, blocked })
    }
}

/// The way a turn begins.
enum How {
    Begin,
    Resume(SessionId),
    SameProcess(Box<dyn Driver>),
    /// In a new process of an agent that has one process per turn.
    Driver(Box<dyn Driver>),
}

/// Whether the session to resume is missing, or the agent cannot resume it.
fn is_lost(failure: &Failure) -> bool {
    matches!(failure.code, Code::SessionNotFound | Code::InvalidRequest)
}
