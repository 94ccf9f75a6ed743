//! The parts of a workflow's run, as the workflow sees them.

use super::RunLoop;
use crate::engine::conductor::Recorded;
use crate::engine::job::{Report, Successor};
use crate::io::backstop::Backstop;
use crate::protocol::outbound::{Artifact, Outcome, Progress, WorkflowEnd};
use crate::redact::Redactor;
use crate::run::{Closing, Event, Part, PartEnd, PartWork, Turn, TurnBegin};
use crossbeam_channel::{Receiver, never};
use std::convert::Infallible;
use std::time::{Duration, Instant};

impl RunLoop<'_, '_> {
    pub(in crate::engine) fn is_open(&self) -> bool {
        self.conductor.run().is_between() && self.conductor.waiting().is_empty() && !self.conductor.is_lost()
    }

    /// `None`: frames can no longer be delivered.
    pub fn part(&mut self, part: Part, recorded: Recorded) -> Option<PartEnd> {
        if self.conductor.is_lost() {
            return None;
        }
        self.read_clocks();
        match &part.work {
            PartWork::Turn(Turn { start: TurnBegin::SameProcess, .. }) | PartWork::Leave => {
                self.conductor.host_mut().wake(&part.settings.cwd);
            }
            PartWork::Turn(_) | PartWork::Rest(_) | PartWork::Step(_) => self.conductor.host_mut().begin_part(),
        }
        self.serve_anew(|run_loop| run_loop.conductor.begin_part(part, recorded));
        self.task = never();
        self.note_request();
        // After a signal, nothing but the end of the process follows.
        self.backstop.take().filter(|_| self.conductor.signal.is_some()).into_iter().for_each(Backstop::keep);
        let is_open = self.is_open();
        let end = self.conductor.take_part_end().filter(|_| is_open)?;
        if !end.stays {
            self.conductor.host_mut().watch.end();
        }
        Some(*end)
    }

    /// Carries out a session that is the rest of the run.
    pub fn rest(mut self, session: Part, recorded: Recorded) -> Report {
        if !self.conductor.is_lost() {
            self.read_clocks();
            self.conductor.host_mut().begin_part();
            self.serve_anew(|run_loop| run_loop.conductor.begin_part(session, recorded));
        }
        self.finish()
    }

    /// Serves a part, or the end of the run after the last one.
    fn serve_anew(&mut self, begin: impl FnOnce(&mut Self)) {
        self.unread = Default::default();
        self.serve(|run_loop| {
            begin(run_loop);
            Ok(())
        });
    }

    /// Lets the next part, which has no process, wait until this channel is disconnected.
    pub fn wait_for(&mut self, task: Receiver<Infallible>) {
        self.task = task;
    }

    pub(super) fn note_request(&mut self) {
        let due = self.backstop.as_ref().map(|backstop| backstop.due).filter(|due| *due <= Instant::now());
        self.asked_at = self.asked_at.or(due);
    }

    /// Emits a progress frame, if the run's level includes its kind.
    pub fn tell(&mut self, progress: Progress) {
        self.read_clocks();
        self.conductor.step(Event::Tell(Box::new(progress)));
    }

    /// The run sets the id.
    pub fn wrote(&mut self, artifact: Artifact) {
        self.read_clocks();
        self.conductor.step(Event::Wrote(Box::new(artifact)));
    }

    /// Keeps these files out of all reports, as frames show their paths. A folder ends with a slash.
    pub fn hide(&mut self, paths: Vec<String>) {
        self.conductor.run.hide(paths);
    }

    pub fn redactor(&self) -> Redactor {
        self.conductor.run().redactor().clone()
    }

    /// Whether the agent's process stayed after its last turn, and lives.
    pub fn has_process(&self) -> bool {
        self.conductor.host().agent.is_some() && self.conductor.host().process().is_empty()
    }

    /// The agent that reviews, if it is another one than that of the run.
    pub fn reviewer(&self) -> Option<&Successor> {
        self.conductor.reviewer.as_ref()
    }

    /// The agent that took over last.
    pub fn took_over(&self) -> Option<&Successor> {
        self.conductor.took_over.as_ref()
    }

    /// The time since the run began, by the clock of limits.
    pub fn elapsed(&self) -> Duration {
        self.conductor.host().elapsed().saturating_sub(self.conductor.run().begun())
    }

    /// The time since the first process started, by the clock of limits. `None`: no process has started.
    pub fn worked(&self) -> Option<Duration> {
        self.conductor.worked(self.conductor.host().elapsed())
    }

    pub fn close(mut self, outcome: Outcome, workflow: Option<WorkflowEnd>) -> Report {
        if self.conductor.is_lost() {
            return self.finish();
        }
        self.read_clocks();
        // The run was stopped while the agent rested. It must end soon.
        let killed = self.conductor.host_mut().end_now();
        let closing = Box::new(Closing { outcome, workflow, killed });
        self.serve_anew(|run_loop| run_loop.conductor.step(Event::Close(closing)));
        self.finish()
    }
}
