//! The reports about the MCP servers that the agent starts: each is started by a launcher, which is this program, and which
//! reports to the run through a socket in a folder that only the user can enter.
//!
//! A launcher reports before the agent can notice the same. So that the run hears it in this order too, the loop reads the
//! socket itself before it handles the agent's lines; the thread here only wakes it.

use crate::io::spawn_thread;
use crate::process::own_executable;
use crate::process::scratch::{REPORTS, SocketFolder};
use crate::protocol::limits::STDERR_TAIL_BYTES;
use crate::protocol::request::Launcher;
use crate::protocol::words::McpState;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;

/// The first argument that makes this program a launcher. The address of its server follows, and then the server's
/// command.
pub(crate) const LAUNCH: &str = "launch-mcp-server";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    /// The server's position in `mcp_servers`.
    pub position: usize,
    /// Whether it runs. Never [`McpState::Pending`].
    pub state: McpState,
    /// The end of what it wrote to stderr, or the reason why it did not start.
    pub words: String,
}

impl ServerReport {
    fn parse(text: &str) -> Option<ServerReport> {
        let (head, words) = text.split_once('\n')?;
        let (position, state) = head.split_once(' ')?;
        Some(ServerReport {
            position: position.parse().ok()?,
            state: McpState::from_word(state)?,
            words: words.to_owned(),
        })
    }

    /// `address`: the launcher's first argument. An error means that the run has ended.
    pub(crate) fn send(address: &str, state: McpState, words: &str) -> io::Result<()> {
        let (position, path) = address.split_once(':').ok_or(ErrorKind::InvalidInput)?;
        let report = format!("{position} {}\n{words}", state.word());
        UnixDatagram::unbound()?.send_to(report.as_bytes(), Path::new(path)).map(|_| ())
    }
}

pub(crate) struct ServerReports {
    folder: Arc<SocketFolder>,
    socket: Arc<UnixDatagram>,
    /// Ready when reports wait.
    pub(crate) heard: Receiver<()>,
    read: Sender<()>,
}

impl ServerReports {
    /// Error: the system's, also if no thread can be started.
    pub(crate) fn open(folder: Arc<SocketFolder>) -> io::Result<ServerReports> {
        let socket = Arc::new(UnixDatagram::bind(folder.path().join(REPORTS))?);
        socket.set_nonblocking(true)?;
        let (heard_in, heard) = bounded(1);
        let (read, was_read) = unbounded();
        let watched = Arc::clone(&socket);
        spawn_thread("servers", move || {
            loop {
                let ready = poll(&mut [PollFd::new(&*watched, PollFlags::IN)], None);
                if matches!(ready, Err(error) if error != rustix::io::Errno::INTR) {
                    return;
                }
                if heard_in.send(()).is_err() || was_read.recv().is_err() {
                    return;
                }
            }
        })?;
        Ok(ServerReports { folder, socket, heard, read })
    }

    /// `None`: this program's own file is unknown.
    pub(crate) fn launcher(&self, position: usize) -> Option<Launcher> {
        let program = own_executable::file()?.into_os_string().into_string().ok()?;
        let address = format!("{position}:{}", self.folder.path().join(REPORTS).to_str()?);
        Some(Launcher { program, args: vec![LAUNCH.into(), address] })
    }

    /// `woken`: whether [`ServerReports::heard`] was received.
    pub(crate) fn take(&self, woken: bool) -> Vec<ServerReport> {
        let mut bytes = [0; STDERR_TAIL_BYTES + 64];
        let mut reports = Vec::new();
        while let Ok(count) = self.socket.recv(&mut bytes) {
            reports.extend(ServerReport::parse(&String::from_utf8_lossy(&bytes[..count])));
        }
        if woken {
            let _ = self.read.send(());
        }
        reports
    }
}

impl Drop for ServerReports {
    fn drop(&mut self) {
        // Wakes the thread, which then ends.
        self.heard = crossbeam_channel::never();
        self.read = unbounded().0;
        if let Ok(waker) = UnixDatagram::unbound() {
            let _ = waker.send_to(b"", self.folder.path().join(REPORTS));
        }
    }
}
