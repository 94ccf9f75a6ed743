//! The socket that connects a run with the ask-server, which the agent starts for its model.
//!
//! The socket is in a new folder that only the user can enter. The kernel must confirm that a client belongs to the
//! same user, and the client must first send the nonce from the server's configuration. The threads here move lines;
//! [`Server`] interprets them, and the loop owns all state.

use crate::agent::Reply;
use crate::agent::mcp::{Out, RequestId, Server};
use crate::io::lines::{Framed, LineReader};
use crate::io::output::write_whole;
use crate::io::spawn_thread;
use crate::process::myself;
use crate::process::scratch::{SOCKET, remove_socket, socket_folder};
use crate::process::tree;
use crate::protocol::limits::TOOL_LINE_BYTES;
use crate::protocol::question::Ask;
use crate::protocol::request::McpServer;
pub(super) use crate::protocol::variables::ASK as ADDRESS;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, ErrorKind, Read};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The first argument that makes this program the ask-server.
const COMMAND: &str = "ask-server";
/// The maximum number of concurrent connections. An agent needs one; some open a second to list the tools.
const CONNECTIONS: usize = 8;
/// The time limit for a connection to send the nonce.
const NONCE_LIMIT: Duration = Duration::from_secs(5);
/// The maximum number of lines queued for a connection that does not read.
const LINES_WAITING: usize = 64;
/// The interval of progress messages to a waiting caller. The shortest time limit of a known host is 30 s.
const PROGRESS: Duration = Duration::from_secs(10);

/// An event on the socket. The number identifies the connection.
#[derive(Debug)]
pub(crate) enum AskEvent {
    /// A connection sent the nonce. Lines for the connection go to this sender.
    Came(u64, Sender<String>),
    /// A line from the connection.
    Line(u64, String),
    /// A line that was too long.
    TooLong(u64),
    /// The connection ended.
    Gone(u64),
}

/// The meaning of an event for the run. The number identifies the call.
#[derive(Debug)]
pub(crate) enum AskOutcome {
    /// The model asks these questions.
    Asked(u64, Vec<Ask>),
    /// The caller no longer waits for the answers.
    Withdrawn(u64),
}

/// The open socket. Dropping it removes its folder.
pub(crate) struct AskSocket {
    folder: PathBuf,
    nonce: String,
    /// The name of the tool that is offered.
    tool: &'static str,
    /// Events on the socket.
    pub(crate) heard: Receiver<AskEvent>,
    /// Keeps the channel open even if all threads have ended.
    _kept: Sender<AskEvent>,
    /// Dropped first, so that the listening thread accepts no further connection.
    open: Option<Sender<()>>,
    peers: HashMap<u64, Peer>,
    /// The waiting calls, with their connections.
    calls: BTreeMap<u64, (u64, RequestId)>,
    /// The number of calls so far.
    count: u64,
    progress_at: Option<Instant>,
}

struct Peer {
    lines: Sender<String>,
    server: Server,
}

impl AskSocket {
    /// Creates the folder and the socket, and listens. `tool`: the name of the offered tool.
    ///
    /// # Errors
    /// The system's error if no folder is usable or no thread can be started.
    pub(crate) fn open(tool: &'static str) -> io::Result<AskSocket> {
        let (nonce, name) = (tree::nonce(), tree::nonce());
        let folder = socket_folder(&name[..12.min(name.len())])?;
        let (heard_in, heard) = bounded(32);
        let (open, closed) = bounded(0);
        let socket = AskSocket {
            folder,
            nonce,
            tool,
            heard,
            _kept: heard_in.clone(),
            open: Some(open),
            peers: HashMap::new(),
            calls: BTreeMap::new(),
            count: 0,
            progress_at: None,
        };
        // From here on dropping the value removes the folder, also after an error.
        let listener = UnixListener::bind(socket.folder.join(SOCKET))?;
        let nonce = socket.nonce.clone();
        spawn_thread("ask", move || accept(&listener, &nonce, &heard_in, &closed))?;
        Ok(socket)
    }

    /// The command with which the agent starts the ask-server. The caller sets the server's name. `None`: this
    /// program's own file is unknown.
    pub(crate) fn server(&self) -> Option<McpServer> {
        let command = myself::file()?.into_os_string().into_string().ok()?;
        let address = format!("{}:{}", self.nonce, self.folder.join(SOCKET).to_str()?);
        Some(McpServer {
            name: String::new(),
            command,
            args: vec![COMMAND.into()],
            env: BTreeMap::from([(ADDRESS.to_owned(), address)]),
        })
    }

    /// The folder, which the guard removes if this process is killed.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Handles an event. Returns its meaning for the run.
    pub(crate) fn hear(&mut self, heard: AskEvent) -> Vec<AskOutcome> {
        match heard {
            AskEvent::Came(from, lines) => {
                self.peers.insert(from, Peer { lines, server: Server::new(self.tool) });
                Vec::new()
            }
            AskEvent::Line(from, line) => {
                let out = self.peers.get_mut(&from).map_or(Out::Nothing, |peer| peer.server.message(&line));
                self.happened(from, out)
            }
            AskEvent::TooLong(from) => {
                let line = self.peers.get(&from).map(|peer| peer.server.too_long());
                line.map_or_else(Vec::new, |line| self.send(from, line))
            }
            AskEvent::Gone(from) => self.gone(from),
        }
    }

    fn happened(&mut self, from: u64, out: Out) -> Vec<AskOutcome> {
        match out {
            Out::Nothing => Vec::new(),
            Out::Send(line) => self.send(from, line),
            Out::Ask(id, asks) => {
                self.count += 1;
                self.calls.insert(self.count, (from, id));
                if self.calls.len() == 1 {
                    self.progress_at = Some(Instant::now() + PROGRESS);
                }
                vec![AskOutcome::Asked(self.count, asks)]
            }
            Out::Withdrawn(id) => self.over(|(peer, of)| *peer == from && *of == id),
        }
    }

    /// Ends the calls for which `is` returns true.
    fn over(&mut self, is: impl Fn(&(u64, RequestId)) -> bool) -> Vec<AskOutcome> {
        let gone: Vec<u64> = self.calls.iter().filter(|(_, call)| is(call)).map(|(call, _)| *call).collect();
        gone.iter().for_each(|call| drop(self.calls.remove(call)));
        gone.into_iter().map(AskOutcome::Withdrawn).collect()
    }

    fn gone(&mut self, from: u64) -> Vec<AskOutcome> {
        self.peers.remove(&from);
        self.over(|(peer, _)| *peer == from)
    }

    /// Sends a line. Drops a connection that does not read.
    fn send(&mut self, to: u64, line: String) -> Vec<AskOutcome> {
        let taken = self.peers.get(&to).is_some_and(|peer| peer.lines.try_send(line).is_ok());
        if taken { Vec::new() } else { self.gone(to) }
    }

    /// Sends the answer to a call.
    pub(crate) fn reply(&mut self, call: u64, replies: &[Reply]) {
        self.end(call, |server, id| server.answer(id, replies));
    }

    /// Ends a call that nobody answers.
    pub(crate) fn withdraw(&mut self, call: u64) {
        self.end(call, Server::withdraw);
    }

    fn end(&mut self, call: u64, response: impl FnOnce(&mut Server, &str) -> Option<String>) {
        let Some((from, id)) = self.calls.remove(&call) else { return };
        let line = self.peers.get_mut(&from).and_then(|peer| response(&mut peer.server, &id));
        if let Some(line) = line {
            // If the connection is gone, its thread reports that, and its other calls end then.
            let _ = self.peers.get(&from).map(|peer| peer.lines.try_send(line));
        }
    }

    /// The time at which the next progress messages are due.
    pub(crate) fn progress_at(&self) -> Option<Instant> {
        self.progress_at.filter(|_| !self.calls.is_empty())
    }

    /// Sends progress messages, if they are due.
    pub(crate) fn progress(&mut self) {
        let now = Instant::now();
        if self.progress_at().is_none_or(|at| at > now) {
            return;
        }
        for peer in self.peers.values_mut() {
            for line in peer.server.progress() {
                let _ = peer.lines.try_send(line);
            }
        }
        self.progress_at = Some(now + PROGRESS);
    }
}

impl Drop for AskSocket {
    fn drop(&mut self) {
        self.open = None;
        // Wakes the listening thread, which then ends.
        let _ = UnixStream::connect(self.folder.join(SOCKET));
        remove_socket(&self.folder);
    }
}

/// Whether the other end of a socket belongs to the same user as this process.
pub(super) fn is_same_user(stream: &UnixStream) -> bool {
    #[cfg(target_os = "linux")]
    {
        let peer = rustix::net::sockopt::socket_peercred(stream);
        peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
    }
    // Other systems lack this check, and only the folder's mode keeps other users out.
    #[cfg(not(target_os = "linux"))]
    {
        let _ = stream;
        true
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
        for line in &lines {
            if write_whole(&mut answers, format!("{line}\n").as_bytes()).is_err() {
                break;
            }
        }
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
            Framed::TooLong => AskEvent::TooLong(number),
            // A last line without LF is incomplete.
            Framed::Rest(_) => break,
        };
        if heard.send(said).is_err() {
            return;
        }
    }
    let _ = heard.send(AskEvent::Gone(number));
}
