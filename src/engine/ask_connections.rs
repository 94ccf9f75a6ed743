//! The callers of the ask-server: the connections to its socket, and the calls that wait for the user's answers. Moves no
//! bytes: events in; lines for the connections and questions for the run out.

use crate::agent::mcp::{Out, RequestId, Server};
use crate::agent::{Offered, Reply};
use crate::protocol::limits::KEPT_BYTES;
use crate::protocol::question::Ask;
use crate::protocol::schema::Mismatch;
use crate::protocol::text::Json;
use crossbeam_channel::Sender;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The interval of progress messages to a waiting caller. The shortest time limit of a known host is 30 s.
const PROGRESS: Duration = Duration::from_secs(10);

/// An event on the socket. The number identifies the connection.
#[derive(Debug)]
pub enum AskEvent {
    /// A connection sent the nonce. Lines for the connection go to this sender.
    Came(u64, Sender<String>),
    Line(u64, String),
    TooLong(u64),
    Gone(u64),
}

/// The meaning of an event for the run. The number identifies the call.
#[derive(Debug)]
pub enum AskOutcome {
    Came,
    Asked(u64, Vec<Ask>),
    Withdrawn(u64),
    Submitted(Result<Json, Vec<Mismatch>>),
}

#[derive(Debug)]
pub struct AskConnections {
    offered: Offered,
    peers: HashMap<u64, Peer>,
    calls: BTreeMap<u64, Call>,
    count: u64,
    progress_at: Option<Instant>,
    /// The maximum size of calls and of unsent lines, in bytes.
    budget: usize,
}

#[derive(Debug)]
struct Call {
    from: u64,
    id: RequestId,
    /// The length of its line, in bytes.
    bytes: usize,
}

#[derive(Debug)]
struct Peer {
    lines: Sender<String>,
    /// The lengths of the newest lines; at least those of all that the connection has not taken.
    lengths: VecDeque<usize>,
    server: Server,
}

impl Peer {
    /// Returns whether there was room for the line.
    fn send(&mut self, line: String) -> bool {
        let bytes = line.len();
        let taken = self.lines.try_send(line).is_ok();
        if taken {
            self.lengths.push_back(bytes);
        }
        taken
    }

    fn unsent(&mut self) -> usize {
        self.lengths.drain(..self.lengths.len().saturating_sub(self.lines.len()));
        self.lengths.iter().sum()
    }
}

impl AskConnections {
    pub fn new(offered: impl Into<Offered>) -> AskConnections {
        AskConnections {
            offered: offered.into(),
            peers: HashMap::new(),
            calls: BTreeMap::new(),
            count: 0,
            progress_at: None,
            budget: KEPT_BYTES,
        }
    }

    pub fn handle(&mut self, heard: AskEvent, now: Instant) -> Vec<AskOutcome> {
        match heard {
            AskEvent::Came(from, lines) => {
                let server = Server::new(self.offered.clone());
                self.peers.insert(from, Peer { lines, lengths: VecDeque::new(), server });
                vec![AskOutcome::Came]
            }
            AskEvent::Line(from, line) => {
                let out = self.peers.get_mut(&from).map_or(Out::Nothing, |peer| peer.server.message(&line));
                self.happened(from, out, line.len(), now)
            }
            AskEvent::TooLong(from) => {
                let line = self.peers.get(&from).map(|peer| peer.server.too_long());
                line.map_or_else(Vec::new, |line| self.send(from, line))
            }
            AskEvent::Gone(from) => self.gone(from),
        }
    }

    /// `bytes`: the length of the line that had this outcome.
    fn happened(&mut self, from: u64, out: Out, bytes: usize, now: Instant) -> Vec<AskOutcome> {
        match out {
            Out::Nothing => Vec::new(),
            Out::Send(line) => self.send(from, line),
            Out::Submitted(line, result) => {
                let mut outcomes = vec![AskOutcome::Submitted(result)];
                outcomes.extend(self.send(from, line));
                outcomes
            }
            Out::Ask(id, _) if self.held_bytes() + bytes > self.budget => {
                let line = self.peers.get_mut(&from).map(|peer| peer.server.refuse(&id));
                line.map_or_else(Vec::new, |line| self.send(from, line))
            }
            Out::Ask(id, asks) => {
                self.count += 1;
                self.calls.insert(self.count, Call { from, id, bytes });
                if self.calls.len() == 1 {
                    self.progress_at = Some(now + PROGRESS);
                }
                vec![AskOutcome::Asked(self.count, asks)]
            }
            Out::Withdrawn(id) => self.over(|call| call.from == from && call.id == id),
        }
    }

    fn held_bytes(&mut self) -> usize {
        let unsent: usize = self.peers.values_mut().map(Peer::unsent).sum();
        unsent + self.calls.values().map(|call| call.bytes).sum::<usize>()
    }

    fn over(&mut self, is: impl Fn(&Call) -> bool) -> Vec<AskOutcome> {
        let gone: Vec<u64> = self.calls.iter().filter(|(_, call)| is(call)).map(|(call, _)| *call).collect();
        gone.iter().for_each(|call| drop(self.calls.remove(call)));
        gone.into_iter().map(AskOutcome::Withdrawn).collect()
    }

    fn gone(&mut self, from: u64) -> Vec<AskOutcome> {
        self.peers.remove(&from);
        self.over(|call| call.from == from)
    }

    /// Sends a line. Drops a connection that does not read.
    fn send(&mut self, to: u64, line: String) -> Vec<AskOutcome> {
        let taken = self.peers.get_mut(&to).is_some_and(|peer| peer.send(line));
        if taken { Vec::new() } else { self.gone(to) }
    }

    pub fn reply(&mut self, call: u64, replies: &[Reply]) {
        self.end(call, |server, id| server.answer(id, replies));
    }

    pub fn withdraw(&mut self, call: u64) {
        self.end(call, Server::withdraw);
    }

    fn end(&mut self, call: u64, response: impl FnOnce(&mut Server, &str) -> Option<String>) {
        let Some(Call { from, id, .. }) = self.calls.remove(&call) else { return };
        let Some(peer) = self.peers.get_mut(&from) else { return };
        if let Some(line) = response(&mut peer.server, &id) {
            // If the connection is gone, its thread reports that, and its other calls end then.
            let _ = peer.send(line);
        }
    }

    pub fn progress_at(&self) -> Option<Instant> {
        self.progress_at.filter(|_| !self.calls.is_empty())
    }

    pub fn progress(&mut self, now: Instant) {
        if self.progress_at().is_none_or(|at| at > now) {
            return;
        }
        for peer in self.peers.values_mut() {
            for line in peer.server.progress() {
                let _ = peer.send(line);
            }
        }
        self.progress_at = Some(now + PROGRESS);
    }
}

#[cfg(test)]
mod tests {
    use super::{AskConnections, AskEvent, AskOutcome, PROGRESS};
    use crate::agent::Reply;
    use crossbeam_channel::{Receiver, bounded};
    use serde_json::json;
    use std::time::Instant;

    fn connect(callers: &mut AskConnections, number: u64) -> Receiver<String> {
        let (sender, lines) = bounded(64);
        callers.handle(AskEvent::Came(number, sender), Instant::now());
        lines
    }

    fn request(id: u64) -> String {
        let questions = json!([{"question": "x".repeat(1 << 10), "kind": "text"}]);
        let params = json!({"name": "ask_user", "arguments": {"questions": questions}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    }

    /// Makes a call of a little more than 1 KiB. Returns its number, if it is admitted.
    fn call(callers: &mut AskConnections, from: u64, id: u64) -> Option<u64> {
        call_at(callers, from, id, Instant::now())
    }

    fn call_at(callers: &mut AskConnections, from: u64, id: u64, now: Instant) -> Option<u64> {
        match callers.handle(AskEvent::Line(from, request(id)), now).pop()? {
            AskOutcome::Asked(call, _) => Some(call),
            AskOutcome::Came | AskOutcome::Withdrawn(_) | AskOutcome::Submitted(_) => None,
        }
    }

    #[test]
    fn a_further_call_does_not_delay_the_progress_of_the_first() {
        let (mut callers, now) = (AskConnections::new("ask_user"), Instant::now());
        let _lines = connect(&mut callers, 0);
        let first = call_at(&mut callers, 0, 1, now).unwrap();
        let second = call_at(&mut callers, 0, 2, now + PROGRESS / 2).unwrap();
        assert_eq!(callers.progress_at(), Some(now + PROGRESS));
        callers.withdraw(first);
        callers.withdraw(second);
        assert_eq!(callers.progress_at(), None);
        call_at(&mut callers, 0, 3, now + PROGRESS / 2).unwrap();
        assert_eq!(callers.progress_at(), Some(now + PROGRESS / 2 + PROGRESS));
    }

    #[test]
    fn a_call_that_would_exceed_the_budget_is_refused() {
        let mut callers = AskConnections { budget: 2 * request(1).len(), ..AskConnections::new("ask_user") };
        let _lines = connect(&mut callers, 0);
        let calls = [1, 2, 3].map(|id| call(&mut callers, 0, id).is_some());
        assert_eq!(calls, [true, true, false]);
    }

    #[test]
    fn open_calls_and_unread_answers_have_one_budget() {
        let mut callers = AskConnections { budget: 60 << 10, ..AskConnections::new("ask_user") };
        let lines: Vec<_> = (0..5).map(|number| connect(&mut callers, number)).collect();
        let open: Vec<u64> = (0..70).filter_map(|id| call(&mut callers, id / 14, id)).collect();
        let most = open.len();
        assert!((50..60).contains(&most), "{most}");
        let refused = lines[4].try_recv().unwrap();
        assert!(refused.contains("\"isError\":true"), "{refused}");
        // The answers repeat the questions, and nobody reads them.
        open.iter().for_each(|&call| callers.reply(call, &[Reply::NoUser]));
        assert_eq!(call(&mut callers, 0, 100), None);
        lines.iter().for_each(|lines| lines.try_iter().for_each(drop));
        assert_eq!((0..70).filter_map(|id| call(&mut callers, id / 14, 200 + id)).count(), most);
    }
}
