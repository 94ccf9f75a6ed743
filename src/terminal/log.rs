//! Lines for a log that nobody watches: the run's circumstances at its beginning, a sign of life while nothing happens,
//! and the end of a failed tool's output.

use super::TerminalFront;
use super::screen::{Detail, Ink};
use super::width;
use super::work::span;
use crate::clean::{one_line, whole};
use crate::protocol::outbound::{Started, Text};
use crate::protocol::request::Seconds;
use crate::protocol::words::WaitingOn;

/// The number of lines of a failed tool's output that a person sees.
const LAST_LINES: usize = 2;

impl TerminalFront {
    /// The first line of a log: agent, permissions and directory. A person at a terminal knows them.
    pub(super) fn header(&self, name: &str, started: &Started) -> String {
        let permissions = &started.settings.permissions;
        self.logged(&format!("agent {name}, permissions {permissions}, in {}", one_line(started.cwd.shown())))
    }

    /// A line for a log or for --verbose.
    pub(super) fn logged(&self, line: &str) -> String {
        match self.look.detail {
            Detail::Quiet => String::new(),
            Detail::Normal if self.look.live => String::new(),
            Detail::Normal | Detail::Verbose => self.look.paint(Ink::Dim, line) + "\n",
        }
    }

    /// The line of a heartbeat: a CI system may stop a job that prints nothing. Where a status line shows the elapsed
    /// time, and while a person is asked, no line is needed.
    pub(super) fn sign_of_life(&self, idle: Seconds, waiting_on: WaitingOn) -> String {
        match waiting_on {
            WaitingOn::Agent if !self.look.live => {
                let activity = self.work.activity();
                self.look.paint(Ink::Dim, &format!("still running: {activity} ({})", span(idle.duration()))) + "\n"
            }
            WaitingOn::Agent | WaitingOn::Input => String::new(),
        }
    }

    /// The last lines of a failed tool's output.
    pub(super) fn last_lines(&self, output: Option<&Text>) -> String {
        let text = output.map(|text| whole(text.shown())).unwrap_or_default();
        let mut last: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(LAST_LINES).collect();
        last.reverse();
        let room = self.width().saturating_sub(5).max(8);
        let line = |line: &&str| self.look.paint(Ink::Dim, &format!("    {}", width::cut(line, room))) + "\n";
        last.iter().map(line).collect()
    }
}
