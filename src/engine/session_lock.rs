//! The lock of an agent's session, so that two runs do not write one session at the same time. Agents do not see to it
//! themselves: Claude Code, Gemini CLI and OpenCode let two processes write one session, which then has the turns of both.

use crate::agent::Launch;
use crate::protocol::failure::Failure;
use crate::protocol::ids::SessionId;
use crate::protocol::request::Settings;
use crate::system::{Reservation, reserve};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// The locks of the sessions that the agent's process writes, until it is gone.
#[derive(Debug, Default)]
pub(super) struct SessionLocks {
    /// The agent's program and its working directory. An id is unique only there.
    place: Option<(String, PathBuf)>,
    held: Vec<(SessionId, Reservation)>,
}

impl SessionLocks {
    /// Takes the lock of the session that a process resumes. Error: another process has it.
    pub(super) fn before_spawn(launch: &Launch, settings: &Settings) -> Result<SessionLocks, Failure> {
        let program = launch.words().next().unwrap_or_default().to_owned();
        let mut locks = SessionLocks { place: Some((program, settings.cwd.clone())), held: Vec::new() };
        match &settings.session_id {
            // The agent only reads a session from which it begins another one.
            Some(id) if !settings.fork && !locks.hold(id) => Err(Failure::session_busy()),
            Some(_) | None => Ok(locks),
        }
    }

    /// Takes the lock of a session, if the system has such locks. Returns false if another process has it.
    pub(super) fn hold(&mut self, id: &SessionId) -> bool {
        if self.held.iter().any(|(held, _)| held == id) {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        (&self.place, &**id).hash(&mut hasher);
        let user = rustix::process::geteuid().as_raw();
        let reserved = reserve(&format!("spektacular-session-{user}-{:016x}", hasher.finish()));
        let is_free = reserved.is_ok();
        self.held.extend(reserved.ok().flatten().map(|reserved| (id.clone(), reserved)));
        is_free
    }
}
