//! Lines for a log that nobody watches: the run's circumstances at its beginning, a sign of life while nothing happens,
//! and the permissions that nobody could grant.

use super::TerminalPeer;
use super::screen::{Detail, Ink, Shown};
use super::work::span;
use crate::clean::one_line;
use crate::protocol::outbound::{Progress, Started};
use crate::protocol::request::Seconds;
use crate::protocol::words::{SandboxMode, WaitingOn};
use std::time::{Duration, Instant};

impl TerminalPeer {
    /// A person at a terminal knows these facts.
    pub(super) fn header(&self, name: &str, started: &Started) -> String {
        let permissions = &started.config.settings.permissions;
        let sandbox = match started.config.sandbox.mode {
            SandboxMode::Off => String::new(),
            mode @ (SandboxMode::ReadOnly | SandboxMode::Workspace) => format!("sandbox {}, ", mode.word()),
        };
        let cwd = one_line(started.config.cwd.shown());
        self.logged(&format!("agent {name}, permissions {permissions}, {sandbox}in {cwd}"))
    }

    /// The session's id stands at the end of the run too.
    pub(super) fn session(&self, session: Option<&str>, version: Option<&str>, model: Option<&str>) -> String {
        let session = session.filter(|_| self.look.detail == Detail::Verbose);
        let known = [("session", session), ("version", version), ("model", model)];
        let known = known.iter().filter_map(|(what, value)| Some(format!("{what} {}", one_line((*value)?))));
        let known: Vec<String> = known.collect();
        if known.is_empty() { String::new() } else { self.logged(&known.join(", ")) }
    }

    /// A line for a log or for --verbose.
    pub(super) fn logged(&self, line: &str) -> String {
        match self.look.detail {
            Detail::Quiet => String::new(),
            Detail::Normal if self.look.live => String::new(),
            Detail::Normal | Detail::Verbose => self.look.paint(Ink::Dim, line) + "\n",
        }
    }

    /// Where a status line counts down, the line stays as a record.
    pub(super) fn waits_for_limit(&mut self, progress: &Progress, now: Instant) -> Shown {
        let line = one_line(progress.text.shown());
        Shown { lines: self.look.paint(Ink::Yellow, &line) + "\n", ..self.unseen(progress, now) }
    }

    /// A CI system may stop a job that prints nothing. A status line, or the wait for a person, needs no such line.
    pub(super) fn sign_of_life(&self, idle: Seconds, waiting_on: WaitingOn) -> String {
        match waiting_on {
            WaitingOn::Agent if !self.look.live => {
                let activity = self.work.activity();
                // A heartbeat comes a moment before its full second.
                let idle = span(idle.duration() + Duration::from_millis(500));
                self.look.paint(Ink::Dim, &format!("still running: {activity} ({idle})")) + "\n"
            }
            WaitingOn::Agent | WaitingOn::Input | WaitingOn::Prompt => String::new(),
        }
    }

    pub(super) fn denials(&self) -> String {
        let count: u64 = self.denied.values().sum();
        if count == 0 || self.look.detail == Detail::Quiet {
            return String::new();
        }
        let why: Vec<&str> = self.denied.keys().copied().collect();
        let permissions = if count == 1 { "permission" } else { "permissions" };
        let line = format!("{count} {permissions} denied ({}). Allow with --yes or --permissions", why.join(", "));
        self.look.paint(Ink::Yellow, &line) + "\n"
    }
}
