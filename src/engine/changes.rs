//! The files that changed during a run, as git tells them, without anything else waiting for git.
//!
//! The baseline is taken beside the agent. It has all the time that the agent runs, and a little more after the agent's
//! end; then what changed is looked for. All that is ours to wait is counted from the agent's end, and a stop waits for
//! nothing.

use super::machine::Departed;
use crate::process::git::{Baseline, Changes, Incomplete, Pending, Told};
use crate::protocol::words::Action;
use crate::run::Unseen;
use crossbeam_channel::{Receiver, never};
use std::path::{Path, PathBuf};
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

/// What waits for git.
pub(super) enum Waiting {
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
    /// The end is wanted now. A run that is being stopped tells no changes; one that has its result still may.
    pub(super) fn hurry(&mut self, stopping: bool) {
        if stopping {
            return self.give_up();
        }
        self.hurried = true;
        self.until = self.until.map(|until| until.min(Instant::now() + HURRIED));
    }

    /// The agent's process ended: from here on git is waited for.
    pub(super) fn exited(&mut self) {
        self.left = if self.hurried { HURRIED } else { LIMIT };
    }

    /// The changes, if git need not be asked for them. Else it is asked.
    pub(super) fn compare(&mut self, stopped: bool) -> Option<Changes> {
        let git = self.git.as_mut().filter(|_| !stopped);
        git.map_or(Some(Changes::NotARepository), |git| git.compare(self.left))
    }

    /// git said something, or never will: the changes, if that is what it was asked for.
    pub(super) fn hear(&mut self, told: Option<Told>) -> Option<Changes> {
        self.git.as_mut().and_then(|git| git.hear(told))
    }

    /// What a run learns of the changes. `Err`: not all can be known, which is said once.
    pub(super) fn files(&mut self, changes: Changes, stopped: bool) -> Result<Vec<(PathBuf, Action)>, Unseen> {
        match changes {
            // After a stop nothing is looked for, and nothing is missed.
            _ if stopped => Ok(Vec::new()),
            Changes::NotARepository => Ok(Vec::new()),
            Changes::Incomplete(_) if std::mem::replace(&mut self.warned, true) => Ok(Vec::new()),
            Changes::Incomplete(Incomplete::Late) => Err(Unseen::Late),
            Changes::Incomplete(Incomplete::Failed) => Err(Unseen::Failed),
            Changes::Files(files) => Ok(files),
        }
    }

    fn give_up(&mut self) {
        self.git.iter_mut().for_each(Pending::give_up);
        self.until = self.until.map(|_| Instant::now());
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

    pub(super) fn wait(&mut self, waiting: Waiting) {
        self.waiting = Some(waiting);
        self.until = Instant::now().checked_add(self.left);
    }

    /// What waited, if it need not any more.
    pub(super) fn waited(&mut self) -> Option<Waiting> {
        let until = self.until.take()?;
        self.left = until.saturating_duration_since(Instant::now());
        self.waiting.take()
    }
}
