//! An agent that rests between two parts of a run: its process stays, suspended, so that nothing of it runs meanwhile.

use super::local_host::LocalHost;
use super::recordings::Recordings;
use crate::process::agent_lines::AgentLines;
use crate::protocol::outbound::AgentExit;
use crate::redact::Redactor;
use crate::run::RestingSession;
use std::path::Path;

/// An agent that rests. Dropping it kills the agent's processes.
pub struct RestingAgent {
    /// The host of its process, and its unhandled lines. `None`: the next part has taken them.
    place: Option<RestingPlace>,
    recordings: Recordings,
    session: Option<RestingSession>,
}

/// The host of an agent's process, and the agent's unhandled lines.
pub(super) type RestingPlace = (LocalHost, Option<AgentLines>);

impl RestingAgent {
    pub(super) fn new(place: RestingPlace, recordings: Recordings, session: RestingSession) -> RestingAgent {
        RestingAgent { place: Some(place), recordings, session: Some(session) }
    }

    /// Whether its process lives.
    pub(crate) fn is_alive(&self) -> bool {
        self.place.as_ref().is_some_and(|(host, _)| host.process().is_empty())
    }

    /// Continues its processes, and takes its place. `cwd`: its working directory.
    pub(super) fn wake(&mut self, cwd: &Path) -> Option<RestingPlace> {
        let (mut host, lines) = self.place.take()?;
        host.wake(cwd);
        Some((host, lines))
    }

    pub(super) fn into_parts(mut self) -> (Recordings, RestingSession) {
        (std::mem::take(&mut self.recordings), self.session.take().unwrap_or_default())
    }

    /// Kills its processes at once.
    pub(crate) fn kill(mut self, redactor: &Redactor) -> Option<AgentExit> {
        self.recordings.write_complete_lines(redactor, true);
        self.recordings.flush();
        self.end()
    }

    fn end(&mut self) -> Option<AgentExit> {
        let (mut host, _) = self.place.take()?;
        let exit = host.end_now();
        host.dismiss();
        exit
    }
}

impl Drop for RestingAgent {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for RestingAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RestingAgent").finish_non_exhaustive()
    }
}
