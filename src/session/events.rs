//! What comes to a session (signals, messages, lines of the agent, the ends of its processes), turned into the events
//! of a run.

use super::ask_socket::{Happened, Heard};
use super::changes::Departed;
use super::child::{Data, Process};
use super::sources::Control;
use super::tty::LineModes;
use super::writer::write_now;
use super::{AgentEnd, Session, prepare, sources, stderr};
use crate::agent::Line;
use crate::failure::{Code, Failure};
use crate::protocol::inbound::{Inbound, Message, is_run_id};
use crate::protocol::outbound::Json;
use crate::protocol::request::Options;
use crate::protocol::words::Source as CancelSource;
use crate::recording::Moment;
use crate::run::{Answered, Event, Input, Origin, Refusal};
use rustix::process::Signal;
use std::time::Instant;

impl Session {
    pub(super) fn signalled(&mut self, signal: i32) {
        if sources::is_suspend(signal) {
            return self.suspend();
        }
        if sources::is_child(signal) {
            return self.reap_orphans();
        }
        if sources::is_resized(signal) {
            let chunk = self.front.woken();
            return self.push(chunk);
        }
        if sources::is_continued(signal) {
            self.modes.iter_mut().for_each(LineModes::switch);
            let chunk = self.front.back();
            return self.push(chunk);
        }
        if self.signal.is_none() {
            self.signal = Some(signal);
        }
        if self.finished {
            // The outcome is out; whoever does not read it is not waited for any longer.
            self.stopping = self.stopping.or(Some(Instant::now()));
            return;
        }
        self.step(Event::Cancel(Origin::default(), None, self.signal_source));
        // Also where there is no agent to stop: a signal asks for an end now.
        self.stopping = self.stopping.or(Some(Instant::now()));
    }

    /// As subreaper we inherit what the agent's tools leave behind; as zombies they would stay to the end. A git of ours
    /// could be taken for one of them: it is done first.
    pub(super) fn reap_orphans(&mut self) {
        if self.watch.is_busy() {
            return;
        }
        if let Some(agent) = &self.agent {
            agent.reap_orphans();
        }
    }

    /// Ctrl-Z: the agent stops with us, and goes on with us.
    pub(super) fn suspend(&mut self) {
        self.signal_agent(Signal::STOP);
        write_now(&self.front.leave());
        self.modes.iter_mut().for_each(LineModes::restore);
        sources::stop_ourselves();
        self.signal_agent(Signal::CONT);
    }

    pub(super) fn signal_agent(&mut self, signal: Signal) {
        // To stop a git of ours for a while does no harm.
        let spares_git = !matches!(signal, Signal::STOP | Signal::CONT) && self.watch.is_busy();
        match &self.agent {
            Some(agent) if spares_git => agent.signal_marked(signal),
            Some(agent) => agent.signal(signal),
            None => {}
        }
    }

    pub(super) fn controlled(&mut self, control: Control) {
        self.controls_in_row += 1;
        match control {
            Control::Inbound(inbound) => self.inbound(inbound),
            Control::Typed(typed, read) => {
                let (chunk, meant) = self.front.typed(typed, read);
                self.push(chunk);
                for inbound in meant {
                    self.inbound(inbound);
                }
            }
            Control::Pressed => {
                let chunk = self.front.pressed();
                self.push(chunk);
            }
            Control::Foreground => {
                self.modes.iter_mut().for_each(LineModes::switch);
                let chunk = self.front.fetched();
                self.push(chunk);
            }
            Control::Refused(failure) => self.refuse(failure),
            Control::Ended => self.step(Event::InputEnded),
        }
    }

    /// A run.start that could not even be made. Of the flags there is still something to give back and to hide.
    pub(super) fn refuse(&mut self, failure: Failure) {
        let (options, _) = self.layers.under(Options::default());
        let metadata = options.metadata.clone().map(Json);
        let redactor = Some(prepare::redactor_for(&options, None).0);
        self.step(Event::Start(Origin::default(), Err(Box::new(Refusal { failure, metadata, redactor }))));
    }

    pub(super) fn inbound(&mut self, inbound: Inbound) {
        if self.outbox.is_overfull() && self.is_noise(&inbound.message) {
            self.ignored += 1;
            return;
        }
        if self.ignored > 0 {
            let ignored = std::mem::take(&mut self.ignored);
            self.step(Event::Ignored(ignored));
        }
        let origin = Origin { id: inbound.id, run_id: inbound.run_id };
        let event = match inbound.message {
            Message::Malformed => Event::Malformed(origin),
            Message::Unsupported => Event::Unsupported(origin),
            Message::UnknownType => Event::UnknownType(origin),
            Message::Cancel { reason } => Event::Cancel(origin, reason, CancelSource::Orchestrator),
            Message::Start(_) if !self.run.is_waiting() => {
                let failure = Failure::new(Code::InvalidRequest, "A second run.start.");
                Event::Start(origin, Err(Refusal::new(failure)))
            }
            Message::Start(start) => {
                let (options, wrong) = *start;
                let (options, agent) = self.layers.under(options);
                // Known before anything is checked: a refusal gives metadata back.
                let (redactor, short_secrets) = prepare::redactor_for(&options, agent);
                let metadata = options.metadata.clone().map(Json);
                let bad_id = origin.run_id.as_ref().is_some_and(|id| !is_run_id(id));
                let start = if bad_id {
                    let message = "run.start: `run_id` must match ^[A-Za-z0-9._:-]{1,128}$.";
                    Err(Failure::new(Code::InvalidRequest, message))
                } else {
                    prepare::settings(options, wrong, agent, &self.layers.agents)
                };
                Event::Start(
                    origin,
                    match start {
                        Ok(ready) => {
                            let (start, asking) = ready.start(redactor, short_secrets);
                            self.asking = asking;
                            Ok(Box::new(start))
                        }
                        Err(failure) => Err(Box::new(Refusal { failure, metadata, redactor: Some(redactor) })),
                    },
                )
            }
            Message::Input(input) => {
                let cwd = input.question_id.as_deref().and_then(|id| self.run.path_question(id));
                let answered: Option<Answered> = input.given.map(|given| prepare::answer(given, cwd.as_deref()));
                Event::Input(origin, Input { question_id: input.question_id, answered, message: input.message })
            }
        };
        self.step(event);
    }

    /// Whether a message would only be answered by a warning. While stdout is not read there is no room for those.
    pub(super) fn is_noise(&self, message: &Message) -> bool {
        match message {
            Message::Malformed | Message::UnknownType => true,
            Message::Input(input) => !input.question_id.as_deref().is_some_and(|id| self.run.is_open(id)),
            Message::Start(_) => !self.run.is_waiting(),
            Message::Unsupported | Message::Cancel { .. } => false,
        }
    }

    pub(super) fn process(&mut self, event: Process) {
        match event {
            Process::Exited => self.exited(),
            Process::Swept(swept) => {
                self.end.swept = Some(swept);
                self.swept_at = Some(Instant::now());
                self.gone();
            }
        }
    }

    pub(super) fn data(&mut self, item: Data) {
        match item {
            Data::Line(line) => {
                self.record(|| Moment::Agent(line.clone()));
                self.taken += line.len();
                self.step(Event::Line(Line::Text(line.into())));
                self.line_done();
            }
            Data::TooLong => self.step(Event::Line(Line::TooLong)),
            Data::Stderr(line) => {
                let clean = self.stderr.push(self.run.redactor(), &line);
                self.said_on_stderr(clean);
            }
            Data::End => {
                self.end.stdout = true;
                self.gone();
            }
            Data::StderrEnd(tail) => {
                let rest = self.stderr.finish(self.run.redactor());
                self.said_on_stderr(rest);
                self.end.stderr = Some(tail);
                self.gone();
            }
        }
    }

    /// Whole lines of the agent's stderr, redacted.
    pub(super) fn said_on_stderr(&mut self, lines: Vec<String>) {
        for line in lines {
            if self.mirror_stderr {
                let chunk = self.front.note(&line);
                self.push(chunk);
            }
            self.record(|| Moment::Stderr(line));
        }
        self.settle_recording(false);
    }

    /// The agent's model asks, or does not wait any more.
    pub(super) fn heard(&mut self, heard: Heard) {
        for happened in self.asking.as_mut().map(|socket| socket.hear(heard)).unwrap_or_default() {
            self.step(match happened {
                Happened::Asked(call, asks) => Event::ToolAsk { call, asks },
                Happened::Withdrawn(call) => Event::ToolAskWithdrawn { call },
            });
        }
    }

    pub(super) fn more(&mut self) {
        self.step(Event::More);
        self.line_done();
    }

    /// Once a line is taken as a whole, the next may be read.
    pub(super) fn line_done(&mut self) {
        if self.run.has_more() {
            return;
        }
        let taken = std::mem::take(&mut self.taken);
        if let Some(agent) = &self.agent {
            agent.taken(taken);
        }
        self.settle_recording(false);
    }

    /// Once every part of the agent's end is there, the run learns of it.
    pub(super) fn gone(&mut self) {
        let AgentEnd { swept: Some(swept), stdout: true, stderr: Some(tail) } = &self.end else { return };
        let leaked = swept.killed > 0;
        let stderr_tail = stderr::tail(tail, self.run.redactor());
        let Some(mut agent) = self.agent.take() else { return };
        let exit = agent.reap();
        self.record(|| match exit.signal {
            Some(signal) => Moment::Signal(signal),
            None => Moment::Exit(exit.code.unwrap_or_default()),
        });
        self.settle_recording(true);
        self.look_for_changes(Departed { exit, leaked, stderr_tail });
    }

    pub(super) fn record(&mut self, moment: impl FnOnce() -> Moment) {
        let at = self.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.moment(at, moment());
        }
    }

    /// Once an event is dealt with, what came of it belongs into the recording.
    pub(super) fn settle_recording(&mut self, end: bool) {
        let Some(recorder) = &mut self.recorder else { return };
        recorder.pieces(std::mem::take(&mut self.said));
        recorder.settle(self.run.redactor(), end);
    }
}
