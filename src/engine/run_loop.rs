//! The loop: the events that wake it, and their handling.

mod end_in_time;
mod parts;
mod signals;

use self::end_in_time::{UNREAD_DROP, UNREAD_LIMIT, UnreadOutput};
use super::ask_connections::AskEvent;
use super::conductor::Conductor;
use super::job::{Begin, Job, Prepared, Report, start_of};
use super::local_host::{Done, EndWithFiles, LocalHost, Rested};
use super::peer::{Peer, ScreenChange};
use super::{Engine, UNDELIVERED};
use crate::agent::Line;
use crate::io::backstop::Backstop;
use crate::io::failpoint::point;
use crate::io::inbox::Arrival;
use crate::io::output::{Order, Written, diagnose, reader_has_left};
use crate::io::signals::Signal;
use crate::process::agent_lines::AgentLines;
use crate::process::child::ProcessEvent;
use crate::process::git::GitResult;
use crate::process::readers::AgentOutput;
use crate::protocol::failure::{EXIT_UNDELIVERED, Failure};
use crate::run::{AgentEnd, Event, Origin};
use crossbeam_channel::{Receiver, Select, Sender, at, bounded, never, select_biased};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The number of messages handled in a row while lines of the agent wait.
const CONTROLS_IN_ROW: u32 = 16;
/// The number of lines handled in a row, before a message or a signal has its turn.
const LINES_IN_ROW: usize = 64;
/// The delay of a timer that suggests that the process was suspended.
const LATE: Duration = Duration::from_millis(200);
/// The longest wait for the signal that confirms a suspension.
const CONTINUED: Duration = Duration::from_millis(500);

enum Wake {
    Signal(Signal),
    Children,
    Timer,
    Process(ProcessEvent),
    /// The writer accepted a chunk.
    Taken,
    Written(Written),
    Prepared(Result<Box<Prepared>, Failure>),
    Input(Arrival),
    Ask(AskEvent),
    Servers,
    Git(Option<GitResult>),
    /// A checkpoint is taken, or a rewind is over.
    Checkpoint(Option<Done>),
    /// The outbox has room again, so the loop continues with lines already read or with a long line.
    Ready,
    TaskOver,
    Agent(AgentOutput),
    InternalFault,
}

/// A fault of our own, after which the loop ends.
struct InternalFault;

/// Files that a thread reads. The loop does not read stdin before they arrive.
type AwaitedStart = Option<Receiver<Result<Box<Prepared>, Failure>>>;

pub struct RunLoop<'e, 'p> {
    engine: &'e mut Engine,
    conductor: Conductor<&'p mut dyn Peer, LocalHost>,
    awaited: AwaitedStart,
    /// Disconnected once the work that the part waits for is over.
    task: Receiver<Infallible>,
    /// Whether the run knows that the input has ended.
    input_ended: bool,
    controls_in_row: u32,
    /// Whether the writer was asked to report when everything is written.
    flushing: bool,
    /// Whether everything was written after the run's end.
    delivered: bool,
    /// The agent's lines, until those that were read are handled.
    lines: Option<AgentLines>,
    unread: UnreadOutput,
    /// Ends this process if a stop or the run's deadline is not served in time.
    backstop: Option<Backstop>,
    /// The first request to end the run, or deadline, that came in a part that is over.
    asked_at: Option<Instant>,
    /// Whether this process was suspended before this wake-up.
    was_suspended: bool,
    /// A channel that is never ready, because its receiver is kept and never read.
    nowhere: (Sender<Order>, Receiver<Order>),
    /// A channel that is always ready, because its sender is gone.
    always: Receiver<Infallible>,
}

impl<'e, 'p> RunLoop<'e, 'p> {
    /// Begins the run, and drives it to its end, or until it waits for its first part.
    pub(super) fn begin(engine: &'e mut Engine, job: Job, peer: &'p mut dyn Peer) -> Self {
        let (conductor, begin) = engine.conductor(job, peer);
        let mut run_loop = RunLoop {
            engine,
            conductor,
            awaited: None,
            task: never(),
            input_ended: false,
            controls_in_row: 0,
            flushing: false,
            delivered: false,
            lines: None,
            unread: UnreadOutput::default(),
            backstop: None,
            asked_at: None,
            was_suspended: false,
            nowhere: bounded(0),
            always: bounded(0).1,
        };
        run_loop.serve(|run_loop| {
            match begin {
                Begin::FromInput => run_loop.hear_first()?,
                Begin::Refused(failure) => run_loop.conductor.refuse(failure),
                Begin::Awaited(work) => run_loop.awaited = Some(start_of(work)),
            }
            Ok(())
        });
        run_loop
    }

    /// Serves events until the run is over, or waits for its next part. Every error is an event, so that draining and the
    /// terminal frame always happen.
    fn serve(&mut self, begin: impl FnOnce(&mut Self) -> Result<(), InternalFault>) {
        let served = catch_unwind(AssertUnwindSafe(|| {
            begin(self)?;
            self.prepare();
            while !self.is_over() {
                self.handle_next()?;
                if !self.engine.output.has_thread {
                    return Err(InternalFault);
                }
            }
            Ok(())
        }));
        if !matches!(served, Ok(Ok(()))) {
            self.give_up();
        }
    }

    pub fn finish(mut self) -> Report {
        self.note_request();
        let is_screen = self.conductor.peer.screen().is_some();
        let (host, mut report, is_recorded) = self.conductor.end(self.delivered, self.asked_at);
        report.last_resort = self.engine.signals.as_ref().map(|signals| signals.last_resort.clone());
        // After a signal, nothing but the end of the process follows.
        self.backstop.filter(|_| report.signal.is_some()).into_iter().for_each(Backstop::keep);
        host.dismiss();
        if !is_recorded {
            diagnose("spektacular: warning: the recording is incomplete: the file could not be written");
        }
        // A person who ends a pipe, as `head` does, needs no word about it.
        if report.code == EXIT_UNDELIVERED && !(is_screen && reader_has_left()) {
            diagnose(UNDELIVERED);
        }
        report
    }

    /// Handles the first line of stdin, and writes the frames that it causes, before any thread starts.
    fn hear_first(&mut self) -> Result<(), InternalFault> {
        let Some(line) = self.engine.inbox.first() else { return Ok(()) };
        self.conductor.host_mut().read_clocks(|| false);
        self.handle(Wake::Input(line))?;
        while !self.is_over()
            && let Some(wake) = self.write()
        {
            self.handle(wake)?;
        }
        Ok(())
    }

    fn handle_next(&mut self) -> Result<(), InternalFault> {
        self.conductor.recordings.flush();
        let wake = self.next();
        self.read_clocks();
        point("loop");
        self.handle(wake)?;
        self.prepare();
        if let Some(backstop) = &self.backstop {
            point("loop with a deadline");
            backstop.note_served();
        }
        Ok(())
    }

    fn read_clocks(&mut self) {
        let heard = self.engine.signals.as_ref();
        let suspended = || heard.is_some_and(|heard| heard.continued.swap(false, Ordering::Relaxed));
        self.conductor.host_mut().read_clocks(suspended);
    }

    fn prepare(&mut self) {
        self.conductor.spawn_if_due();
        match self.conductor.host_mut().rested.take() {
            Some(Rested::Files(files)) => self.conductor.rested(files),
            Some(Rested::NotAlone) => self.conductor.step(Event::CannotRest),
            None => {}
        }
        self.tell_troubles();
        self.conductor.answer_in_advance();
        self.listen();
        self.secure_end();
    }

    fn tell_troubles(&mut self) {
        while let Some((warning, text)) = self.conductor.host_mut().troubles.pop() {
            self.conductor.step(Event::Warn(Origin::default(), warning, text));
        }
    }

    fn is_over(&self) -> bool {
        let is_between = self.conductor.run().is_between();
        let lost = self.conductor.is_lost() && (self.conductor.is_finished() || is_between);
        let is_written = self.conductor.waiting().is_empty() && !self.engine.output.has_rest();
        self.delivered || lost || (is_between && is_written) || self.unread_left(UNREAD_LIMIT) == Some(Duration::ZERO)
    }

    /// Whether the run takes no input: it is over, or waits for its next part.
    fn is_at_rest(&self) -> bool {
        self.conductor.is_finished() || self.conductor.run().is_between()
    }

    fn listen(&mut self) {
        if self.engine.signals.as_mut().is_some_and(|signals| signals.start().is_err()) {
            self.engine.signals = None;
            self.conductor.step(Event::Refused(Failure::no_thread()));
        }
        if self.awaited.is_some() || self.is_at_rest() {
            return;
        }
        if self.engine.inbox.open().is_err() {
            self.conductor.step(Event::Refused(Failure::no_thread()));
        }
        if self.engine.inbox.closed && !std::mem::replace(&mut self.input_ended, true) {
            self.conductor.step(Event::InputEnded);
        }
    }

    fn next(&mut self) -> Wake {
        if let Some(wake) = self.write() {
            return wake;
        }
        let leaving = self.unread_left(UNREAD_LIMIT).map(|_| Instant::now());
        let due = self.wake_at();
        let timer = due.map_or_else(never, at);
        let (ready, data) = self.data();
        let input = self.input(ready.is_some() || !data.is_empty());
        let ready = ready.unwrap_or_else(never);
        let asks = if self.conductor.waiting().is_full() { never() } else { self.conductor.host().asks() };
        let reports = self.conductor.host().reports();
        let awaited = self.awaited.clone().unwrap_or_else(never);
        let heard = self.engine.signals.as_ref();
        let signals = heard.map_or_else(never, |heard| heard.signals.clone());
        let reaps = self.conductor.host_mut().can_reap();
        let children = heard.filter(|_| reaps).map_or_else(never, |heard| heard.children.clone());
        let host = self.conductor.host();
        let (process, git, checkpoints) = (host.process(), host.watch.told(), host.checkpoints());
        let output = &mut self.engine.output;
        let (orders, written) = (output.orders.clone(), output.written.clone());
        let to_write = output.has_rest() || !self.conductor.waiting().is_empty();
        let to_flush = self.conductor.is_finished() && !self.flushing && !self.conductor.is_lost();
        output.watch(to_write || to_flush);
        if !output.has_thread {
            return Wake::InternalFault;
        }
        let sink = if to_write || to_flush { &orders } else { &self.nowhere.0 };
        let conductor = &mut self.conductor;
        let next = || if to_write { Order::Write(conductor.outbox().pop()) } else { Order::Flush };
        let wake = select_biased! {
            recv(self.engine.panics) -> _ => Wake::InternalFault,
            recv(signals) -> signal => signal.map_or(Wake::InternalFault, Wake::Signal),
            recv(timer) -> _ => Wake::Timer,
            recv(process) -> event => event.map_or(Wake::InternalFault, Wake::Process),
            send(sink, output.order(next)) -> _ => Wake::Taken,
            recv(written) -> done => Wake::Written(done.unwrap_or(Written::Lost)),
            recv(awaited) -> start => start.map_or(Wake::InternalFault, Wake::Prepared),
            recv(input) -> heard => Wake::Input(heard.unwrap_or(Arrival::Closed)),
            recv(children) -> ended => ended.map_or(Wake::InternalFault, |()| Wake::Children),
            recv(asks) -> event => event.map_or(Wake::InternalFault, Wake::Ask),
            recv(reports) -> ready => ready.map_or(Wake::InternalFault, |()| Wake::Servers),
            recv(git) -> told => Wake::Git(told.ok()),
            recv(checkpoints) -> done => Wake::Checkpoint(done.ok()),
            recv(self.task) -> _ => Wake::TaskOver,
            recv(ready) -> _ => Wake::Ready,
            recv(data) -> output => output.map_or(Wake::InternalFault, Wake::Agent),
        };
        self.flushing |= matches!(wake, Wake::Taken) && !to_write;
        if matches!(wake, Wake::Timer) && due.is_some_and(|due| due.elapsed() > LATE) {
            // The signal that ends a suspension may arrive a moment after the timer.
            let mut select = Select::new();
            select.recv(&signals);
            let _ = select.ready_timeout(CONTINUED);
        }
        let heard = self.engine.signals.as_ref();
        self.was_suspended = heard.is_some_and(|heard| heard.continued.load(Ordering::Relaxed));
        self.count_unread(leaving);
        if matches!(wake, Wake::Agent(_) | Wake::Ready) || self.conductor.waiting().is_full() {
            self.conductor.host_mut().busy_with_output();
        }
        wake
    }

    /// Writes what stdout accepts at once. `None`: no bytes wait, or only the writer thread can write them.
    fn write(&mut self) -> Option<Wake> {
        let output = &mut self.engine.output;
        if !output.is_direct() {
            return None;
        }
        if !self.conductor.waiting().is_empty() {
            let written = output.write(self.conductor.outbox().pop());
            let Ok(memory) = written else { return Some(Wake::Written(Written::Lost)) };
            self.conductor.outbox().reuse(memory);
            return Some(Wake::Taken);
        }
        let over = self.conductor.is_finished() && !self.flushing && !self.conductor.is_lost();
        over.then_some(Wake::Written(Written::Flushed))
    }

    /// The source of the agent's output while the outbox has room: the lines already read, or the channel.
    fn data(&self) -> (Option<Receiver<Infallible>>, Receiver<AgentOutput>) {
        let waiting = self.conductor.waiting();
        // A flood of messages fills the outbox with replies, which must not keep the agent waiting forever.
        let flooded = self.controls_in_row >= CONTROLS_IN_ROW && !self.conductor.run().has_more();
        let full = if flooded { waiting.is_overfull() } else { waiting.is_full() };
        let in_hand = self.conductor.run().has_more() || self.lines.is_some();
        match (full, in_hand) {
            (true, _) => (None, never()),
            (false, true) => (Some(self.always.clone()), never()),
            (false, false) => (None, self.conductor.host().output()),
        }
    }

    /// The source of input. Messages take precedence over the agent's lines, but a flood of messages must not delay the
    /// lines forever. Input between two parts belongs to the next one. `data`: whether output of the agent waits.
    fn input(&mut self, data: bool) -> Receiver<Arrival> {
        let flooded = self.controls_in_row >= CONTROLS_IN_ROW && data;
        if flooded {
            self.controls_in_row = 0;
        }
        let closed = flooded || self.awaited.is_some() || self.is_at_rest();
        if closed { never() } else { self.engine.inbox.heard() }
    }

    fn handle(&mut self, wake: Wake) -> Result<(), InternalFault> {
        match wake {
            Wake::Signal(signal) => self.signal(signal),
            Wake::Children => self.conductor.host_mut().children_ended(),
            Wake::Timer => self.timer(),
            Wake::Process(ProcessEvent::Exited) => {
                let stopping = self.conductor.run().is_stopping();
                self.conductor.host_mut().exited(stopping);
            }
            Wake::Process(ProcessEvent::Swept(swept)) => self.tree_gone(|host| host.swept(swept)),
            Wake::Taken => {}
            Wake::Written(written) => self.written(written),
            Wake::Prepared(prepared) => {
                self.awaited = None;
                match prepared {
                    Ok(prepared) => self.conductor.prepared(*prepared),
                    Err(failure) => self.conductor.refuse(failure),
                }
            }
            Wake::Input(Arrival::Message(message)) => {
                self.controls_in_row += 1;
                self.conductor.heard(*message);
            }
            Wake::Input(Arrival::Cut) => self.conductor.peer.input_cut(),
            Wake::Input(Arrival::Keys(keys, at)) => {
                self.controls_in_row += 1;
                self.conductor.typed(&keys, at);
            }
            Wake::Input(Arrival::Pressed) => self.conductor.screen_changed(ScreenChange::Enter),
            Wake::Input(Arrival::Foreground) => {
                self.engine.switch_modes();
                self.conductor.screen_changed(ScreenChange::Foreground);
            }
            Wake::Input(Arrival::Closed) => {
                self.take_earlier_signal();
                self.engine.inbox.closed = true;
            }
            Wake::Ask(event) => {
                let outcomes = self.conductor.host_mut().asking().map(|callers| callers.handle(event, Instant::now()));
                outcomes.into_iter().flatten().for_each(|outcome| self.conductor.asked(outcome));
            }
            Wake::Servers => self.hear_servers(true),
            Wake::Git(told) => self.agent_ended(|host, stopping| host.git_told(told, stopping)),
            Wake::Checkpoint(done) => {
                let report = self.conductor.host_mut().checkpoint_done(done);
                self.conductor.step(Event::Checkpoint(report));
            }
            Wake::TaskOver => {
                self.task = never();
                self.conductor.step(Event::TaskOver);
            }
            Wake::Ready if self.conductor.run().has_more() => self.conductor.more(),
            Wake::Ready => self.take_lines(),
            Wake::Agent(output) => self.agent(output),
            Wake::InternalFault => return Err(InternalFault),
        }
        Ok(())
    }

    fn agent(&mut self, output: AgentOutput) {
        match output {
            AgentOutput::Lines(lines) => {
                self.lines = Some(lines);
                self.take_lines();
            }
            AgentOutput::Stderr(text) => self.conductor.stderr_text(&text),
            AgentOutput::End => self.tree_gone(LocalHost::stdout_ended),
            AgentOutput::StderrEnd(tail) => {
                self.conductor.stderr_ended();
                self.tree_gone(|host| host.stderr_ended(tail));
            }
        }
    }

    fn hear_servers(&mut self, woken: bool) {
        let reports = self.conductor.host().take_reports(woken);
        reports.into_iter().for_each(|report| self.conductor.server_reported(report));
    }

    fn take_lines(&mut self) {
        self.hear_servers(false);
        for _ in 0..LINES_IN_ROW {
            match self.lines.as_mut().and_then(AgentLines::next) {
                None => break,
                Some(Line::Text(line)) => self.conductor.line(line),
                Some(Line::TooLong) => self.conductor.step(Event::Line(Line::TooLong)),
            }
            let conductor = &self.conductor;
            if conductor.run().has_more() || conductor.waiting().is_full() || !conductor.answers.due.is_empty() {
                break;
            }
        }
        self.give_back();
    }

    fn give_back(&mut self) {
        let has_more = self.conductor.run().has_more();
        if let Some(lines) = self.lines.take_if(|lines| !has_more && !lines.has_next()) {
            self.conductor.host_mut().taken(lines);
        }
    }

    fn tree_gone(&mut self, take: impl FnOnce(&mut LocalHost) -> Option<AgentEnd>) {
        if let Some(end) = take(self.conductor.host_mut()) {
            self.conductor.tree_gone(&end);
            self.agent_ended(|host, stopping| host.find_changes(end, stopping));
        }
    }

    /// `take` gets whether the run is stopping.
    fn agent_ended(&mut self, take: impl FnOnce(&mut LocalHost, bool) -> Option<EndWithFiles>) {
        let stopping = self.conductor.run().is_stopping();
        if let Some((end, files)) = take(self.conductor.host_mut(), stopping) {
            self.tell_troubles();
            self.conductor.agent_ended(end, files);
        }
    }

    fn timer(&mut self) {
        let has_output = self.lines.is_some() || self.conductor.host().has_output();
        if self.conductor.waiting().is_full() && has_output {
            // The agent is not silent: its output waits because nobody reads stdout.
            self.conductor.step(Event::NotRead);
        }
        if let Some(callers) = self.conductor.host_mut().asking() {
            callers.progress(Instant::now());
        }
        self.conductor.tick();
        self.conductor.host_mut().look_again();
        self.tire_of_readers();
        self.agent_ended(LocalHost::tire_of_git);
    }

    fn written(&mut self, written: Written) {
        match written {
            Written::Flushed => self.delivered = true,
            Written::Lost | Written::Closed if self.conductor.is_lost() => {}
            // A reader that leaves after the last frame has everything. Otherwise the writer reports a loss.
            Written::Closed if self.conductor.is_finished() && self.conductor.waiting().is_empty() => {}
            Written::Lost | Written::Closed => self.output_lost(),
        }
    }

    fn output_lost(&mut self) {
        self.conductor.output_lost();
        if self.conductor.host().agent.is_none() && !self.conductor.run().is_between() {
            self.conductor.frame_out.finished = true;
        }
    }

    fn wake_at(&mut self) -> Option<Instant> {
        let repaint = self.conductor.repaint_at();
        let host = self.conductor.host();
        let run = self.conductor.run().next_deadline().map(|deadline| host.at(deadline));
        let limit = if self.unread.waited < UNREAD_DROP { UNREAD_DROP } else { UNREAD_LIMIT };
        let unread = self.unread_left(limit).map(|left| Instant::now() + left);
        let times = [run, host.progress_at(), unread, repaint, host.watch.until, host.next_look(), self.readers_due()];
        times.into_iter().flatten().min()
    }
}
