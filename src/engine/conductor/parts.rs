//! The parts of a run: how one begins with what the earlier ones left, and what it leaves.

use super::Conductor;
use crate::engine::host::Host;
use crate::engine::job::{Carried, Next, NextProcess, Over};
use crate::engine::peer::Peer;
use crate::engine::prepare;
use crate::engine::recordings::Recordings;
use crate::protocol::inbound::Addressee;
use crate::protocol::outbound::Terminal;
use crate::protocol::words::Action;
use crate::run::{Event, FirstProcess, Ids, Late, Origin, RestingSession, Start, Unseen};
use std::ops::DerefMut;
use std::path::PathBuf;
use std::time::{Duration, Instant};

impl<P: DerefMut<Target: Peer>, H: Host> Conductor<P, H> {
    /// Begins a further part of a run.
    pub(in crate::engine) fn begin_part(&mut self, next: Next) {
        let Next { run_id, settings, display_name, driver, process, keeps_process, remake } = next;
        let redactor = self.run.take_redactor();
        let process = match process {
            NextProcess::New => FirstProcess::New,
            NextProcess::Resting(agent) => {
                let (earlier, session) = agent.into_parts();
                self.open_debug_log(&settings.agent);
                self.incomplete_recording |= !self.recordings.follow(earlier, &redactor);
                FirstProcess::Resting(session)
            }
            NextProcess::Leaving(agent) => {
                let session;
                (self.recordings, session) = agent.into_parts();
                FirstProcess::Leaving(session)
            }
        };
        let start = match process {
            FirstProcess::New => prepare::start((settings, display_name, driver), redactor, 0, &mut self.host),
            // The agent has its tools already.
            FirstProcess::Resting(_) | FirstProcess::Leaving(_) => Start::new(settings, display_name, driver, redactor),
        };
        if !matches!(process, FirstProcess::New) {
            self.agent.spawned_at = Some(self.host.now());
        }
        let granted = std::mem::take(&mut self.granted);
        let start = Start { granted, process, keeps_process, remake, ..start };
        let origin = Origin { id: None, run: Addressee::Run(run_id) };
        self.step(Event::Start(origin, Ok(Box::new(start))));
        if self.recordings.is_on() {
            self.run.recorded();
        }
    }

    /// Ends a run of several parts.
    pub(in crate::engine) fn close(&mut self, over: Over) {
        self.frame_out.frame_limit = over.max_frame_bytes;
        let origin = Origin { id: None, run: Addressee::Run(over.run_id) };
        self.step(Event::Over(origin, Box::new(over.terminal)));
    }

    /// Handles the files that changed before the agent rests. See [`AgentEnded::files`].
    pub(in crate::engine) fn rested(&mut self, files: Result<Vec<(PathBuf, Action)>, Unseen>) {
        let files = files.map(|files| self.recordings.without_own(files));
        self.step(Event::Rested(files));
    }

    /// Completes the recording. Returns the host and the result of the run.
    pub(in crate::engine) fn end(mut self) -> (H, RunSummary) {
        let rested = self.run.take_resting();
        self.recordings.write_complete_lines(self.run.redactor(), rested.is_none());
        let failed = rested.is_none() && self.recordings.failed();
        let incomplete_recording = self.incomplete_recording || failed;
        let ending = RunSummary {
            rested: rested.map(|session| (self.recordings, session)),
            code: self.run.exit_code(),
            ids: self.run.ids(),
            terminal: self.frame_out.terminal,
            lost: self.frame_out.outbox.is_closed(),
            signal: self.signal,
            asked_at: None,
            late: self.run.late().cloned(),
            worked: self.agent.spawned_at.map(|at| self.host.now().saturating_sub(at)),
            carried: Carried {
                redactor: self.run.take_redactor(),
                granted: self.run.take_granted(),
                answers: self.answers,
            },
            incomplete_recording,
        };
        (self.host, ending)
    }
}

pub(in crate::engine) struct RunSummary {
    pub(in crate::engine) code: Option<u8>,
    pub(in crate::engine) ids: Ids,
    pub(in crate::engine) terminal: Option<Terminal>,
    pub(in crate::engine) lost: bool,
    pub(in crate::engine) signal: Option<i32>,
    pub(in crate::engine) asked_at: Option<Instant>,
    pub(in crate::engine) late: Option<Late>,
    pub(in crate::engine) worked: Option<Duration>,
    pub(in crate::engine) carried: Carried,
    pub(in crate::engine) incomplete_recording: bool,
    pub(in crate::engine) rested: Option<(Recordings, RestingSession)>,
}
