//! The files that changed during a run, as git tells them, without anything else waiting for git.
//!
//! The baseline is taken beside the agent. It has all the time that the agent runs, and a little more after the agent's
//! end; then what changed is looked for. All that is ours to wait is counted from the agent's end, and a stop waits for
//! nothing.

use super::git::{Baseline, Changes, Incomplete, Pending, Told};
use super::{LEAK_LIMIT, LEAK_LIMIT_STOPPED, Session};
use crate::protocol::outbound::AgentExit;
use crate::run::{Event, Gone, Unseen};
use crossbeam_channel::{Receiver, never};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long git is waited for after the end of the agent's process, for the baseline and the comparison together.
const LIMIT: Duration = Duration::from_secs(2);
/// The same once somebody wants a run to end that has its result.
const HURRIED: Duration = Duration::from_millis(200);
/// The longest that a baseline may take. What takes longer could not be compared in [`LIMIT`] either, and meanwhile no
/// orphan is reaped.
const BASELINE_LIMIT: Duration = Duration::from_secs(60);
/// How long a git that was killed may take to be gone. One that the kernel holds longer is left to it.
const KILL_LIMIT: Duration = Duration::from_millis(50);

/// What is asked of git in a run, and what waits for it.
#[derive(Default)]
pub(super) struct Watch {
    git: Option<Pending>,
    waiting: Option<Waiting>,
    /// What is left of the limit.
    left: Duration,
    until: Option<Instant>,
    hurried: bool,
    /// The run knows that not all can be known.
    warned: bool,
}

/// The end of a process of the agent's, but for the files: see [`Gone`].
pub(super) struct Departed {
    pub(super) exit: AgentExit,
    pub(super) leaked: bool,
    pub(super) stderr_tail: String,
}

/// What waits for git.
enum Waiting {
    /// The sweep of what outlived the agent: git could be taken for that.
    Sweep,
    /// The run, which does not know yet that the agent is gone.
    Run(Departed),
}

impl Watch {
    /// Whether no baseline was begun yet.
    pub(super) fn is_idle(&self) -> bool {
        self.git.is_none()
    }

    /// Begins to take the baseline: before the first process of the agent's.
    pub(super) fn begin(&mut self, cwd: &Path) {
        self.git = Some(Baseline::begin(cwd, BASELINE_LIMIT));
    }

    /// Ready when git has something to say.
    pub(super) fn told(&self) -> Receiver<Told> {
        self.git.as_ref().map_or_else(never, Pending::told)
    }

    /// When git has been waited for long enough.
    pub(super) fn due(&self) -> Option<Instant> {
        self.until
    }

    /// Nothing is wanted of git any more.
    fn give_up(&mut self) {
        self.git.iter_mut().for_each(Pending::give_up);
        self.until = self.until.map(|_| Instant::now());
    }

    fn hurry(&mut self) {
        self.hurried = true;
        self.until = self.until.map(|until| until.min(Instant::now() + HURRIED));
    }

    /// Whether a git of ours may run; one that was given up is gone now.
    pub(super) fn is_busy(&mut self) -> bool {
        let Some(git) = &mut self.git else { return false };
        if git.is_given_up() {
            git.settle(KILL_LIMIT);
        }
        git.is_busy()
    }

    /// Ends every git of ours.
    pub(super) fn end(&mut self) {
        self.give_up();
        self.is_busy();
    }

    fn wait(&mut self, waiting: Waiting) {
        self.waiting = Some(waiting);
        self.until = Instant::now().checked_add(self.left);
    }

    /// What waited, if it need not any more.
    fn waited(&mut self) -> Option<Waiting> {
        let until = self.until.take()?;
        self.left = until.saturating_duration_since(Instant::now());
        self.waiting.take()
    }
}

impl Session {
    /// The end is wanted now. A run that is being stopped tells no changes; one that has its result still may.
    pub(super) fn hurry_git(&mut self) {
        if self.run.is_stopping() { self.watch.give_up() } else { self.watch.hurry() }
    }

    /// The agent's process ended: what outlived it is swept, but no git of ours with it.
    pub(super) fn exited(&mut self) {
        self.watch.left = if self.watch.hurried { HURRIED } else { LIMIT };
        if self.run.is_stopping() {
            self.watch.end();
        }
        if self.watch.is_busy() {
            return self.watch.wait(Waiting::Sweep);
        }
        self.sweep();
    }

    fn sweep(&mut self) {
        let limit = if self.run.is_stopping() { LEAK_LIMIT_STOPPED } else { LEAK_LIMIT };
        if let Some(agent) = &self.agent {
            agent.sweep(limit);
        }
    }

    /// The agent's process is gone, and all that came from it: the run learns of it once the files are known.
    pub(super) fn look_for_changes(&mut self, departed: Departed) {
        self.step(Event::Drained);
        let git = self.watch.git.as_mut().filter(|_| !self.run.is_stopping());
        let known = git.map_or(Some(Changes::NotARepository), |git| git.compare(self.watch.left));
        match known {
            Some(changes) => self.looked(departed, changes),
            None => self.watch.wait(Waiting::Run(departed)),
        }
    }

    /// git said something, or never will.
    pub(super) fn git_told(&mut self, told: Option<Told>) {
        let changes = self.watch.git.as_mut().and_then(|git| git.hear(told));
        match self.watch.waited() {
            // What it left to us while git was busy.
            None => self.reap_orphans(),
            Some(Waiting::Sweep) => self.sweep(),
            Some(Waiting::Run(departed)) => {
                self.looked(departed, changes.unwrap_or(Changes::Incomplete(Incomplete::Late)))
            }
        }
    }

    /// git has been waited for long enough, if the time is over.
    pub(super) fn tire_of_git(&mut self) {
        if self.watch.due().is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.watch.end();
        match self.watch.waited() {
            None => {}
            Some(Waiting::Sweep) => self.sweep(),
            Some(Waiting::Run(departed)) => self.looked(departed, Changes::Incomplete(Incomplete::Late)),
        }
    }

    fn looked(&mut self, departed: Departed, changes: Changes) {
        let files = match changes {
            // After a stop nothing is looked for, and nothing is missed.
            _ if self.run.is_stopping() => Ok(Vec::new()),
            Changes::NotARepository => Ok(Vec::new()),
            Changes::Incomplete(_) if std::mem::replace(&mut self.watch.warned, true) => Ok(Vec::new()),
            Changes::Incomplete(Incomplete::Late) => Err(Unseen::Late),
            Changes::Incomplete(Incomplete::Failed) => Err(Unseen::Failed),
            Changes::Files(mut files) => {
                let ours = self.recorded.as_ref().and_then(|path| path.canonicalize().ok());
                files.retain(|(path, _)| Some(path) != ours.as_ref());
                Ok(files)
            }
        };
        let Departed { exit, leaked, stderr_tail } = departed;
        self.step(Event::Gone(Gone { exit, leaked, stderr_tail, files }));
    }
}
