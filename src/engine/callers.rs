//! The callers of the ask-server: the connections to its socket, and the calls that wait for the user's answers. Moves no
//! bytes: events in; lines for the connections and questions for the run out.

use crate::agent::Reply;
use crate::agent::mcp::{Out, RequestId, Server};
use crate::protocol::question::Ask;
use crossbeam_channel::Sender;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// The interval of progress messages to a waiting caller. The shortest time limit of a known host is 30 s.
const PROGRESS: Duration = Duration::from_secs(10);

/// An event on the socket. The number identifies the connection.
#[derive(Debug)]
pub enum AskEvent {
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
pub enum AskOutcome {
    /// The model asks these questions.
    Asked(u64, Vec<Ask>),
    /// The caller no longer waits for the answers.
    Withdrawn(u64),
}

/// All connections and calls.
#[derive(Debug)]
pub struct Callers {
    /// The name of the tool that is offered.
    tool: &'static str,
    peers: HashMap<u64, Peer>,
    /// The waiting calls, with their connections.
    calls: BTreeMap<u64, (u64, RequestId)>,
    /// The number of calls so far.
    count: u64,
    progress_at: Option<Instant>,
}

#[derive(Debug)]
struct Peer {
    lines: Sender<String>,
    server: Server,
}

impl Callers {
    /// No connection yet. `tool`: the name of the offered tool.
    pub fn new(tool: &'static str) -> Callers {
        Callers { tool, peers: HashMap::new(), calls: BTreeMap::new(), count: 0, progress_at: None }
    }

    /// Handles an event. Returns its meaning for the run.
    pub fn hear(&mut self, heard: AskEvent, now: Instant) -> Vec<AskOutcome> {
        match heard {
            AskEvent::Came(from, lines) => {
                self.peers.insert(from, Peer { lines, server: Server::new(self.tool) });
                Vec::new()
            }
            AskEvent::Line(from, line) => {
                let out = self.peers.get_mut(&from).map_or(Out::Nothing, |peer| peer.server.message(&line));
                self.happened(from, out, now)
            }
            AskEvent::TooLong(from) => {
                let line = self.peers.get(&from).map(|peer| peer.server.too_long());
                line.map_or_else(Vec::new, |line| self.send(from, line))
            }
            AskEvent::Gone(from) => self.gone(from),
        }
    }

    fn happened(&mut self, from: u64, out: Out, now: Instant) -> Vec<AskOutcome> {
        match out {
            Out::Nothing => Vec::new(),
            Out::Send(line) => self.send(from, line),
            Out::Ask(id, asks) => {
                self.count += 1;
                self.calls.insert(self.count, (from, id));
                if self.calls.len() == 1 {
                    self.progress_at = Some(now + PROGRESS);
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
    pub fn reply(&mut self, call: u64, replies: &[Reply]) {
        self.end(call, |server, id| server.answer(id, replies));
    }

    /// Ends a call that nobody answers.
    pub fn withdraw(&mut self, call: u64) {
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
    pub fn progress_at(&self) -> Option<Instant> {
        self.progress_at.filter(|_| !self.calls.is_empty())
    }

    /// Sends progress messages, if they are due.
    pub fn progress(&mut self, now: Instant) {
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
