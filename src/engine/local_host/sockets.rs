//! The sockets of a run: that of the ask-server, and that of the launchers of MCP servers.

use super::LocalHost;
use crate::engine::ask_connections::{AskConnections, AskEvent};
use crate::engine::server_reports::ServerReport;
use crate::process::scratch::SocketFolder;
use crossbeam_channel::{Receiver, never};
use std::sync::Arc;
use std::time::Instant;

impl LocalHost {
    /// The channel of the ask-server's events.
    pub(in crate::engine) fn asks(&self) -> Receiver<AskEvent> {
        self.asking.as_ref().map_or_else(never, |socket| socket.heard.clone())
    }

    /// The channel that wakes the loop for reports about MCP servers.
    pub(in crate::engine) fn reports(&self) -> Receiver<()> {
        self.reports.as_ref().map_or_else(never, |reports| reports.heard.clone())
    }

    /// The reports that wait. `woken`: whether their channel woke the loop.
    pub(in crate::engine) fn take_reports(&self, woken: bool) -> Vec<ServerReport> {
        self.reports.as_ref().map(|reports| reports.take(woken)).unwrap_or_default()
    }

    /// The folder of the run's sockets.
    pub(super) fn sockets(&mut self) -> Option<Arc<SocketFolder>> {
        if self.sockets.is_none() {
            self.sockets = SocketFolder::create().ok().map(Arc::new);
        }
        self.sockets.clone()
    }

    pub(in crate::engine) fn asking(&mut self) -> Option<&mut AskConnections> {
        self.asking.as_mut().map(|socket| &mut socket.callers)
    }

    /// The time at which the tool's callers get the next progress message.
    pub(in crate::engine) fn progress_at(&self) -> Option<Instant> {
        self.asking.as_ref().and_then(|socket| socket.callers.progress_at())
    }
}
