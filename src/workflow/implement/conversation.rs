//! The sessions of the agent: each phase gets a new one, and a retry continues it if possible.

use super::machine::AgentTurn;
use super::observer::{Observation, Observer};
use crate::agent::Driver;
use crate::agent::registry::Dialect;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::SessionId;
use crate::protocol::question::Judge;
use crate::workflow::outer::{Outer, Session, Wrap};
use crate::workflow::prompts::SessionPrompt;
use crate::workflow::stop::Stop;
use crossbeam_channel::bounded;
use std::sync::Arc;
use std::time::Duration;

/// The session of a phase.
#[derive(Default)]
pub(super) struct Conversation {
    session_id: Option<SessionId>,
    /// The driver of an agent that has one process per turn.
    driver: Option<Box<dyn Driver>>,
}

/// The settings that all sessions of a phase share.
pub(super) struct Terms {
    pub(super) judge: Arc<dyn Judge>,
    pub(super) limit: Option<Duration>,
}

impl Conversation {
    /// Starts a new session.
    pub(super) fn begin(
        &mut self,
        outer: &mut Outer<'_>,
        prompt: SessionPrompt,
        terms: &Terms,
    ) -> Result<AgentTurn, Stop> {
        *self = Conversation::default();
        self.turn(outer, prompt, terms, How::Begin)
    }

    /// Runs a further turn of the same session. If the agent cannot continue it, starts a new one with `whole`.
    pub(super) fn go_on(
        &mut self,
        outer: &mut Outer<'_>,
        prompt: SessionPrompt,
        whole: impl FnOnce() -> SessionPrompt,
        terms: &Terms,
    ) -> Result<AgentTurn, Stop> {
        let driver = self.driver.take().filter(|driver| driver.takes_turns());
        if let (Dialect::Lines, Some(driver)) = (outer.agent().dialect, driver) {
            return self.turn(outer, prompt, terms, How::Driver(driver));
        }
        let resumable = outer.resumable().cloned();
        let Some(id) = self.session_id.clone().filter(|id| resumable.as_ref() == Some(id)) else {
            return self.begin(outer, whole(), terms);
        };
        match self.turn(outer, prompt, terms, How::Resume(id)) {
            Err(Stop::Failed(failure)) if is_lost(&failure) => self.begin(outer, whole(), terms),
            other => other,
        }
    }

    fn turn(
        &mut self,
        outer: &mut Outer<'_>,
        prompt: SessionPrompt,
        terms: &Terms,
        how: How,
    ) -> Result<AgentTurn, Stop> {
        let (sender, over) = bounded(1);
        let (resume, wrap): (Option<SessionId>, Wrap) = match how {
            How::Begin => (None, Box::new(move |inner| Box::new(Observer::new(inner, sender)))),
            How::Resume(id) => (Some(id), Box::new(move |inner| Box::new(Observer::new(inner, sender)))),
            How::Driver(driver) => (None, Box::new(move |_| Box::new(Observer::going_on(driver, sender)))),
        };
        let session =
            Session { prompt, resume, judge: Some(Arc::clone(&terms.judge)), limit: terms.limit, wrap: Some(wrap) };
        let answer = outer.session(session);
        let observed = over.try_recv().ok();
        self.session_id = answer?.or(self.session_id.take());
        let Some(Observation { acted, blocked, driver }) = observed else { return Ok(AgentTurn::default()) };
        self.driver = Some(driver);
        Ok(AgentTurn { acted, blocked })
    }
}

/// The way a turn begins.
enum How {
    Begin,
    Resume(SessionId),
    Driver(Box<dyn Driver>),
}

/// Whether the session to resume is missing, or the agent cannot resume it.
fn is_lost(failure: &Failure) -> bool {
    matches!(failure.code, Code::SessionNotFound | Code::InvalidRequest)
}
