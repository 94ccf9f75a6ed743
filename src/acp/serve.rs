//! The edge: stdin, stdout, the children and the signals around an [`AcpServer`].
//!
//! One loop holds all state. A thread reads stdin, one writes stdout, and each child has a reader and a writer. A client
//! that does not read stops the children, whose runs then stop their agents; only the client's own messages are still
//! read, so that a cancel is served. A child that does not read stops nobody else.

use super::server::{AcpServer, ClientLine};
use super::shared::{ChildKey, ServerEffect};
use crate::io::failpoint::point;
use crate::io::lines::{Framed, LineReader};
use crate::io::outbox::Outbox;
use crate::io::output::{Order, StdoutWriter, Written, diagnose, stdout_is_closed, write_lines};
use crate::io::signals::{self, Signal, SignalChannels};
use crate::io::spawn_thread;
use crate::process::own_run::{self, OwnRun};
use crate::protocol::failure::{Code, EXIT_UNDELIVERED};
use crate::protocol::limits::INBOUND_LINE_BYTES;
use crate::system::Killer;
use crossbeam_channel::{Receiver, Sender, at, bounded, never, select_biased, unbounded};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};

/// The time in which all children must end once the client is gone. Their runs need at most 4 s.
const CLOSING_LIMIT: Duration = Duration::from_millis(3800);
/// The time in which a child must end once its stdin is closed.
const ENDING_LIMIT: Duration = Duration::from_secs(10);
/// The time in which a cancelled turn must end. A run needs at most 4 s.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);
/// The time that the last lines get after all children have ended.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);
/// The bytes that wait for the client before the children wait too.
const CHILDREN_WAIT_BYTES: usize = 1 << 20;
/// The bytes that wait for the client before its own messages wait too.
const CLIENT_WAITS_BYTES: usize = 16 << 20;
const FRAMES_WAITING: usize = 32;

enum Heard {
    Line(ChildKey, String),
    Ended(ChildKey),
}

struct Running {
    /// For its stdin. `None`: it is closed, or closes once everything is written.
    lines: Option<Sender<String>>,
    killer: Killer,
    /// The time at which it is killed.
    due: Option<Instant>,
}

struct Serve {
    server: AcpServer,
    children: BTreeMap<ChildKey, Running>,
    heard: Receiver<Heard>,
    tell: Sender<Heard>,
    outbox: Outbox,
    /// Whether the client is gone.
    closing: bool,
    /// Whether stdout takes nothing any more.
    lost: bool,
    panicked: bool,
}

/// Serves the client of stdin and stdout until it is gone. Returns the exit code.
pub(crate) fn serve(server: AcpServer) -> u8 {
    if stdout_is_closed() {
        return EXIT_UNDELIVERED;
    }
    let mut signals = signals::listen().ok();
    let panics = signals.as_ref().map_or_else(never, |signals| signals.panics.clone());
    let signals_come = signals.as_mut().is_some_and(|signals| signals.start().is_ok());
    let (line_in, lines) = bounded(1);
    if !signals_come || spawn_thread("stdin", move || read_client(&line_in)).is_err() {
        diagnose("spektacular: resource_exhausted: no thread can be started");
        return 70;
    }
    let (tell, heard) = bounded(FRAMES_WAITING);
    let (outbox, children) = (Outbox::default(), BTreeMap::new());
    let mut serve = Serve { server, children, heard, tell, outbox, closing: false, lost: false, panicked: false };
    // The children end with this process: their stdin closes, and they cancel themselves.
    let ended = catch_unwind(AssertUnwindSafe(|| serve.run(lines, panics, signals.as_ref())));
    match ended {
        Ok(()) if serve.lost => EXIT_UNDELIVERED,
        Ok(()) if !serve.panicked => 0,
        Ok(()) | Err(_) => {
            diagnose("spektacular: internal_error: a fault of spektacular itself ended all sessions");
            Code::InternalError.exit_code()
        }
    }
}

fn read_client(lines: &Sender<ClientLine>) {
    let mut reader = LineReader::new(io::stdin(), INBOUND_LINE_BYTES);
    while let Some(framed) = reader.next() {
        let line = match framed {
            Framed::Line(line) => ClientLine::Whole(line.into_owned()),
            Framed::TooLong(head) => ClientLine::TooLong(head),
            // A line without its end was not delivered.
            Framed::Rest(_) => return,
        };
        if lines.send(line).is_err() {
            return;
        }
    }
}

impl Serve {
    /// Handles all events. Nothing in this loop returns early: the children must end first.
    fn run(&mut self, mut lines: Receiver<ClientLine>, mut panics: Receiver<()>, signals: Option<&SignalChannels>) {
        let mut out = StdoutWriter::new();
        out.watch(true);
        let signals = signals.map_or_else(never, |signals| signals.signals.clone());
        let (never_ready, _kept) = bounded(0);
        let mut close_by = None;
        while !(self.closing && self.children.is_empty()) && close_by.is_none_or(|by| by > Instant::now()) {
            point("acp loop");
            let client = if self.outbox.bytes() < CLIENT_WAITS_BYTES { lines.clone() } else { never() };
            let heard =
                if self.outbox.bytes() < CHILDREN_WAIT_BYTES || self.closing { self.heard.clone() } else { never() };
            let writer = if self.outbox.is_empty() || self.lost { never_ready.clone() } else { out.orders.clone() };
            let due = self.children.values().filter_map(|child| child.due).chain(close_by).min();
            select_biased! {
                recv(signals) -> signal => match signal {
                    Ok(Signal::Stop(_) | Signal::Fatal(_)) => self.close(&mut close_by),
                    Ok(Signal::Suspend) => signals::suspend_ourselves(),
                    Ok(Signal::Continued | Signal::Resized) | Err(_) => {}
                },
                recv(panics) -> _ => {
                    (self.panicked, panics) = (true, never());
                    self.close(&mut close_by);
                }
                recv(client) -> line => match line {
                    Ok(line) => {
                        let effects = self.server.client(&line);
                        self.carry_out(effects);
                    }
                    Err(_) => {
                        lines = never();
                        self.close(&mut close_by);
                    }
                },
                recv(out.written) -> report => match report {
                    Ok(Written::Lost | Written::Closed) | Err(_) => {
                        self.lost = true;
                        self.close(&mut close_by);
                    }
                    Ok(Written::Flushed) => {}
                },
                send(writer, out.order(|| Order::Write(self.outbox.pop()))) -> _ => {}
                recv(heard) -> heard => self.handle_child(heard),
                recv(due.map_or_else(never, at)) -> _ => self.kill_late(),
            }
        }
        self.children.values().for_each(|child| child.killer.kill());
        self.flush(&mut out);
    }

    fn handle_child(&mut self, heard: Result<Heard, crossbeam_channel::RecvError>) {
        let effects = match heard {
            Ok(Heard::Line(key, line)) => self.server.child(key, &line),
            Ok(Heard::Ended(key)) => {
                self.children.remove(&key);
                self.server.ended(key)
            }
            Err(_) => return,
        };
        self.carry_out(effects);
    }

    fn close(&mut self, close_by: &mut Option<Instant>) {
        if !std::mem::replace(&mut self.closing, true) {
            *close_by = Some(Instant::now() + CLOSING_LIMIT);
            let effects = self.server.close();
            self.carry_out(effects);
        }
    }

    fn kill_late(&mut self) {
        let now = Instant::now();
        for child in self.children.values_mut().filter(|child| child.due.is_some_and(|due| due <= now)) {
            child.killer.kill();
            child.due = None;
        }
    }

    fn carry_out(&mut self, effects: Vec<ServerEffect>) {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                ServerEffect::Say(line) => self.outbox.line(|out| out.extend(line.bytes().chain(*b"\n"))),
                ServerEffect::Start(key, cwd) => match self.start(key, &cwd) {
                    Ok(child) => _ = self.children.insert(key, child),
                    Err(error) => {
                        diagnose(&format!("spektacular: a run cannot be started: {}", error.kind()));
                        effects.extend(self.server.ended(key));
                    }
                },
                ServerEffect::Tell(key, line) => {
                    let lines = self.children.get(&key).and_then(|child| child.lines.as_ref());
                    lines.into_iter().for_each(|lines| _ = lines.send(line.clone()));
                }
                ServerEffect::End(key) => {
                    if let Some(child) = self.children.get_mut(&key) {
                        child.lines = None;
                        child.due = Some(Instant::now() + ENDING_LIMIT);
                    }
                }
                ServerEffect::Limit(key) => self.set_due(key, Some(Instant::now() + CANCEL_LIMIT)),
                ServerEffect::Unlimit(key) => self.set_due(key, None),
                ServerEffect::Diagnose(text) => diagnose(&format!("spektacular: warning: {text}")),
            }
        }
    }

    fn set_due(&mut self, key: ChildKey, due: Option<Instant>) {
        if let Some(child) = self.children.get_mut(&key).filter(|child| child.lines.is_some()) {
            child.due = due;
        }
    }

    fn start(&self, key: ChildKey, cwd: &str) -> io::Result<Running> {
        let OwnRun { mut stdin, stdout, child, killer } = own_run::start(Path::new(cwd))?;
        let (lines, queued) = unbounded();
        let tell = self.tell.clone();
        // Closes the child's stdin at the end. The child's own end is seen on its stdout.
        let started = spawn_thread("run-stdin", move || write_lines(&queued, &mut stdin, |_| {}))
            .and_then(|()| spawn_thread("run-stdout", move || read_run(key, stdout, child, &tell)));
        if let Err(error) = started {
            killer.kill();
            return Err(error);
        }
        Ok(Running { lines: Some(lines), killer, due: None })
    }

    fn flush(&mut self, out: &mut StdoutWriter) {
        let until = at(Instant::now() + FLUSH_LIMIT);
        let mut asked = false;
        while !self.lost {
            let has_order = !self.outbox.is_empty() || !asked;
            let (never_ready, _kept) = bounded(0);
            let writer = if has_order { out.orders.clone() } else { never_ready };
            let next = |serve: &mut Serve, asked: &mut bool| {
                if serve.outbox.is_empty() {
                    *asked = true;
                    return Order::Flush;
                }
                Order::Write(serve.outbox.pop())
            };
            select_biased! {
                send(writer, out.order(|| next(self, &mut asked))) -> _ => {}
                recv(out.written) -> report => match report {
                    Ok(Written::Flushed) => return,
                    Ok(Written::Lost | Written::Closed) | Err(_) => self.lost = true,
                },
                recv(until) -> _ => self.lost = true,
            }
        }
    }
}

fn read_run(key: ChildKey, stdout: ChildStdout, mut child: Child, tell: &Sender<Heard>) {
    let mut reader = LineReader::new(stdout, INBOUND_LINE_BYTES);
    while let Some(framed) = reader.next() {
        let Framed::Line(line) = framed else { continue };
        if tell.send(Heard::Line(key, String::from_utf8_lossy(&line).into_owned())).is_err() {
            break;
        }
    }
    while child.wait().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {}
    let _ = tell.send(Heard::Ended(key));
}
