//! The parts of a workflow's run, and the end of a run.

use super::Conductor;
use crate::engine::host::Host;
use crate::engine::job::Report;
use crate::engine::peer::Peer;
use crate::engine::prepare;
use crate::engine::recordings::{DebugLog, Recordings};
use crate::io::output::Chunk;
use crate::protocol::failure::{EXIT_UNDELIVERED, Failure};
use crate::protocol::outbound::Json;
use crate::protocol::request::Options;
use crate::redact::Redactor;
use crate::run::{Event, FoundFiles, Origin, Part, PartEnd, PartWork, Refusal, Remake, Start, TurnBegin};
use std::ops::DerefMut;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The recordings of a turn.
#[derive(Debug, Default)]
pub struct Recorded {
    pub file: Option<PathBuf>,
    pub debug_log: Option<DebugLog>,
}

impl<P: DerefMut<Target: Peer>, H: Host> Conductor<P, H> {
    pub(in crate::engine) fn begin_part(&mut self, mut part: Part, recorded: Recorded) {
        let mut unopened = None;
        if let PartWork::Turn(turn) | PartWork::Rest(turn) = &mut part.work {
            let Recorded { file, debug_log } = recorded;
            let (recordings, opened) = Recordings::open(file, self.project.as_deref(), debug_log);
            unopened = opened.is_err().then(Failure::no_recording);
            let header = self.end_recordings();
            self.recordings = recordings;
            if turn.start == TurnBegin::SameProcess {
                self.open_debug_log(&part.settings.agent);
                header.into_iter().for_each(|header| self.recordings.header(header));
            } else if let Some(features) = match &turn.guest {
                Some(guest) => Some(guest().features(&part.settings)),
                None => self.run.features_at_start(&part.settings),
            } {
                turn.asking_failed = prepare::offer(&mut part.settings, &features, &mut self.host);
            }
        }
        self.step(Event::Part(Box::new(part)));
        unopened.into_iter().for_each(|failure| self.step(Event::Refused(failure)));
        if self.recordings.is_on() {
            self.run.recorded();
        }
    }

    pub(super) fn hand_over(&mut self) {
        let Some(next) = self.successors.pop_front() else {
            return self.step(Event::Refused(Failure::of_our_own()));
        };
        let ready = prepare::Ready::of(next.clone());
        let start = ready.start(Redactor::new(), 0, &mut self.host);
        let agent = next.agent.clone();
        self.took_over = Some(next);
        let remake: Remake = Box::new(move || agent.driver());
        self.step(Event::TakesOver(Box::new(Start { remake: Some(remake), ..start })));
    }

    pub fn is_finished(&self) -> bool {
        self.frame_out.finished
    }

    /// Takes the end of the part, and completes its recordings unless its process stays.
    pub fn take_part_end(&mut self) -> Option<Box<PartEnd>> {
        let end = self.run.take_part_end()?;
        if !end.stays {
            self.end_recordings();
        }
        Some(end)
    }

    fn end_recordings(&mut self) -> Option<crate::recording::Header> {
        let (header, is_complete) = std::mem::take(&mut self.recordings).finish(self.run.redactor());
        self.incomplete_recording |= !is_complete;
        header
    }

    pub(in crate::engine) fn rested(&mut self, files: FoundFiles) {
        let files = files.map(|files| self.recordings.without_own(files));
        self.step(Event::Rested(files));
    }

    /// The time since the first process started, by the clock of limits, if it shows `now`. `None`: no process started.
    pub(in crate::engine) fn worked(&self, now: Duration) -> Option<Duration> {
        self.agent.spawned_at.map(|at| now.saturating_sub(at))
    }

    /// Fails a run that cannot begin. The flags may still contain metadata to return and secrets to redact.
    pub fn refuse(&mut self, failure: Failure) {
        let (options, _) = self.layers.under(Options::default());
        let metadata = options.metadata.clone().map(Json::from);
        let redactor = Some(prepare::redactor_for(self.run.redactor().clone(), &options, None, &self.host).0);
        self.step(Event::Start(Origin::default(), Err(Box::new(Refusal { failure, metadata, redactor }))));
    }

    pub fn output_lost(&mut self) {
        let err = self.leave();
        self.frame_out.outbox.close(Chunk { err, ..Chunk::default() });
        self.step(Event::OutputLost);
    }

    /// `delivered`: every frame was written. Also returns whether all recordings are complete.
    pub(in crate::engine) fn end(mut self, delivered: bool, asked_at: Option<Instant>) -> (H, Report, bool) {
        self.end_recordings();
        let code = self.run.exit_code().filter(|_| delivered && !self.is_lost());
        let report = Report {
            code: code.unwrap_or(EXIT_UNDELIVERED),
            terminal: self.frame_out.terminal.filter(|_| code.is_some()),
            signal: self.signal,
            asked_at,
            last_resort: None,
            unused_answers: self.answers.unused(),
            redactor: self.run.redactor().clone(),
            took_over: self.took_over.map(|next| next.agent.name),
        };
        (self.host, report, !self.incomplete_recording)
    }
}
