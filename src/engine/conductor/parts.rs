//! The parts of a workflow's run, and the end of a run.

use super::Conductor;
use crate::engine::debug_log::DebugLog;
use crate::engine::host::Host;
use crate::engine::peer::Peer;
use crate::engine::prepare;
use crate::engine::recordings::Recordings;
use crate::protocol::failure::Failure;
use crate::protocol::outbound::Terminal;
use crate::protocol::words::Action;
use crate::redact::Redactor;
use crate::run::{Event, Part, PartEnd, PartWork, TurnBegin, Unseen};
use std::ops::DerefMut;
use std::path::PathBuf;
use std::time::Duration;

/// The recordings of a turn.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The file for the recording of the dialogue with the agent.
    pub file: Option<PathBuf>,
    /// The folder with a recording of each turn.
    pub debug_log: Option<DebugLog>,
}

impl<P: DerefMut<Target: Peer>, H: Host> Conductor<P, H> {
    /// Begins a part of the run.
    pub(in crate::engine) fn begin_part(&mut self, mut part: Part, recorded: Recorded) {
        let mut unopened = None;
        if let PartWork::Turn(turn) = &mut part.work {
            let Recorded { file, debug_log } = recorded;
            let (recordings, opened) = Recordings::open(file, self.project.as_deref(), debug_log);
            unopened = opened.is_err().then(Failure::no_recording);
            let header = self.end_recordings();
            self.recordings = recordings;
            if turn.start == TurnBegin::SameProcess {
                self.open_debug_log(&part.settings.agent);
                header.into_iter().for_each(|header| self.recordings.header(header));
            } else if let Some(features) = self.run.features_at_start(&part.settings) {
                turn.asking_failed = prepare::offer(&mut part.settings, &features, &mut self.host);
            }
        }
        self.step(Event::Part(Box::new(part)));
        unopened.into_iter().for_each(|failure| self.step(Event::Refused(failure)));
        if self.recordings.is_on() {
            self.run.recorded();
        }
    }

    /// Takes the end of the part, and completes its recordings unless its process stays.
    pub fn take_part_end(&mut self) -> Option<Box<PartEnd>> {
        let end = self.run.take_part_end()?;
        if !end.stays {
            self.end_recordings();
        }
        Some(end)
    }

    /// Ends the recordings. Returns their header.
    fn end_recordings(&mut self) -> Option<crate::recording::Header> {
        let (header, is_complete) = std::mem::take(&mut self.recordings).finish(self.run.redactor());
        self.incomplete_recording |= !is_complete;
        header
    }

    /// Handles the files that changed before the agent rests. See [`AgentEnded::files`](crate::run::AgentEnded::files).
    pub(in crate::engine) fn rested(&mut self, files: Result<Vec<(PathBuf, Action)>, Unseen>) {
        let files = files.map(|files| self.recordings.without_own(files));
        self.step(Event::Rested(files));
    }

    /// The time since the first process started, by the clock of limits, if it shows `now`. `None`: no process started.
    pub(in crate::engine) fn worked(&self, now: Duration) -> Option<Duration> {
        self.agent.spawned_at.map(|at| now.saturating_sub(at))
    }

    /// Completes the recording. Returns the host and the result of the run.
    pub(in crate::engine) fn end(mut self) -> (H, RunSummary) {
        self.end_recordings();
        let ending = RunSummary {
            code: self.run.exit_code(),
            terminal: self.frame_out.terminal,
            lost: self.frame_out.outbox.is_closed(),
            signal: self.signal,
            unused_answers: self.answers.unused(),
            redactor: self.run.redactor().clone(),
            incomplete_recording: self.incomplete_recording,
        };
        (self.host, ending)
    }
}

pub(in crate::engine) struct RunSummary {
    pub(in crate::engine) code: Option<u8>,
    pub(in crate::engine) terminal: Option<Terminal>,
    pub(in crate::engine) lost: bool,
    pub(in crate::engine) signal: Option<i32>,
    pub(in crate::engine) unused_answers: Option<String>,
    pub(in crate::engine) redactor: Redactor,
    pub(in crate::engine) incomplete_recording: bool,
}
