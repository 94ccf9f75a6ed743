//! The socket that connects a run with the ask-server, which the agent starts for its model.
//!
//! The socket is in a folder that only the user can enter. The kernel must confirm that a client belongs to the
//! same user, and the client must first send the nonce from the server's configuration. The threads here move lines;
//! [`AskConnections`] interprets them, and the loop owns all state.

use super::ask_connections::{AskConnections, AskEvent};
use crate::agent::Offered;
use crate::io::lines::{Framed, LineReader};
use crate::io::output::write_lines;
use crate::io::spawn_thread;
use crate::process::scratch::{SOCKET, SocketFolder};
pub(crate) use crate::process::variables::ASK as ADDRESS;
use crate::process::{own_executable, tree};
use crate::protocol::limits::TOOL_LINE_BYTES;
use crate::protocol::request::{McpAccess, McpServer};
use crate::system::is_same_user;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

/// The first argument that makes this program the ask-server.
const COMMAND: &str = "ask-server";
/// The maximum number of concurrent connections. An agent needs one; some open a second to list the tools.
const CONNECTIONS: usize = 8;
/// The time limit for a connection to send the nonce.
const NONCE_LIMIT: Duration = Duration::from_secs(5);
const LINES_WAITING: usize = 64;

pub(crate) struct AskSocket {
    folder: Arc<SocketFolder>,
    nonce: String,
    pub(crate) heard: Receiver<AskEvent>,
    /// Keeps the channel open even if all threads have ended.
    _kept: Sender<AskEvent>,
    /// Dropped first, so that the listening thread accepts no further connection.
    open: Option<Sender<()>>,
    pub(crate) callers: AskConnections,
}

impl AskSocket {
    /// Error: the system's, also if no thread can be started.
    pub(crate) fn open(folder: Arc<SocketFolder>, offered: Offered) -> io::Result<AskSocket> {
        let nonce = tree::nonce();
        let (heard_in, heard) = bounded(32);
        let (open, closed) = bounded(0);
        let socket = AskSocket {
            folder,
            nonce,
            heard,
            _kept: heard_in.clone(),
            open: Some(open),
            callers: AskConnections::new(offered),
        };
        let listener = UnixListener::bind(socket.folder.path().join(SOCKET))?;
        let nonce = socket.nonce.clone();
        spawn_thread("ask", move || accept(&listener, &nonce, &heard_in, &closed))?;
        Ok(socket)
    }

    /// The caller sets the server's name. `None`: this program's own file is unknown.
    pub(crate) fn server(&self) -> Option<McpServer> {
        let command = own_executable::file()?.into_os_string().into_string().ok()?;
        let address = format!("{}:{}", self.nonce, self.folder.path().join(SOCKET).to_str()?);
        let env = BTreeMap::from([(ADDRESS.to_owned(), address)]);
        Some(McpServer::new("", McpAccess::Stdio { command, args: vec![COMMAND.into()], env }))
    }
}

impl Drop for AskSocket {
    fn drop(&mut self) {
        self.open = None;
        // Wakes the listening thread, which then ends.
        let _ = UnixStream::connect(self.folder.path().join(SOCKET));
    }
}

/// Accepts connections, at most [`CONNECTIONS`] at the same time, until the socket is dropped.
fn accept(listener: &UnixListener, nonce: &str, heard: &Sender<AskEvent>, closed: &Receiver<()>) {
    let (taken, slots) = bounded(CONNECTIONS);
    for number in 1.. {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => continue,
            // An error such as a lack of descriptors would repeat without end.
            Err(_) => return,
        };
        if closed.try_recv() == Err(TryRecvError::Disconnected) {
            return;
        }
        if !is_same_user(&stream) || taken.try_send(()).is_err() {
            continue;
        }
        let (nonce, heard, slot) = (nonce.to_owned(), heard.clone(), Slot(slots.clone()));
        let serve = move || {
            let _slot = slot;
            serve(number, stream, &nonce, &heard);
        };
        let _ = spawn_thread("ask-peer", serve);
    }
}

/// One of the allowed connections. Dropping it frees the slot.
struct Slot(Receiver<()>);

impl Drop for Slot {
    fn drop(&mut self) {
        let _ = self.0.try_recv();
    }
}

fn serve(number: u64, mut stream: UnixStream, nonce: &str, heard: &Sender<AskEvent>) {
    let mut given = vec![0; nonce.len() + 1];
    let timely = stream.set_read_timeout(Some(NONCE_LIMIT)).is_ok() && stream.read_exact(&mut given).is_ok();
    if !timely || given != format!("{nonce}\n").as_bytes() || stream.set_read_timeout(None).is_err() {
        return;
    }
    let Ok(mut answers) = stream.try_clone() else { return };
    let (lines_in, lines) = bounded::<String>(LINES_WAITING);
    let write = move || {
        write_lines(&lines, &mut answers, |_| {});
        // Nothing more will be sent: shutting down ends the reader's wait too.
        let _ = answers.shutdown(Shutdown::Both);
    };
    if spawn_thread("ask-answers", write).is_err() || heard.send(AskEvent::Came(number, lines_in)).is_err() {
        return;
    }
    let mut lines = LineReader::new(stream, TOOL_LINE_BYTES);
    while let Some(framed) = lines.next() {
        let said = match framed {
            Framed::Line(line) if line.trim_ascii().is_empty() => continue,
            Framed::Line(line) => AskEvent::Line(number, String::from_utf8_lossy(&line).into_owned()),
            Framed::TooLong(_) => AskEvent::TooLong(number),
            // A last line without LF is incomplete.
            Framed::Rest(_) => break,
        };
        if heard.send(said).is_err() {
            return;
        }
    }
    let _ = heard.send(AskEvent::Gone(number));
}
