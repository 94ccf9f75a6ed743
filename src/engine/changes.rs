//! The files that changed during a run, as git reports them. Only the end of a run waits for git.
//!
//! git records the baseline while the agent runs. After the agent's end, git may finish the baseline, and then
//! compares. The limits count from the agent's end. A stopped run does not wait.

use crate::process::git::{Baseline, Changes, GitResult, Incomplete, Pending};
use crate::run::{AgentEnd, FoundFiles};
use crossbeam_channel::{Receiver, never};
use std::path::Path;
use std::time::{Duration, Instant};

/// The time that the run waits for git after the agent's process ended, for baseline and comparison together.
const LIMIT: Duration = Duration::from_secs(2);
/// The limit that replaces [`LIMIT`] after a request to end a run that already has its result.
const HURRIED: Duration = Duration::from_millis(200);
/// The time limit of a baseline. A slower repository could not be compared within [`LIMIT`] either, and orphans are not
/// reaped meanwhile.
const BASELINE_LIMIT: Duration = Duration::from_secs(60);
/// The time that a killed git may take to exit. After that, it is left to the kernel.
const KILL_LIMIT: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(super) struct Watch {
    git: Option<Pending>,
    waiting: Option<Waiting>,
    left: Duration,
    /// The end of the wait for git. `None`: nothing waits for git.
    pub(super) until: Option<Instant>,
    hurried: bool,
    /// Whether the run was warned that the list of files is incomplete.
    warned: bool,
}

pub(super) enum Waiting {
    /// The sweep of processes that outlived the agent, because git could be mistaken for one of them.
    Sweep,
    /// The report to the run that the agent is gone.
    Run(AgentEnd),
    /// The comparison for an agent that rests.
    BaselineAtRest,
    /// The report to the run that the agent rests.
    Rest,
}

impl Watch {
    pub(super) fn is_idle(&self) -> bool {
        self.git.is_none()
    }

    pub(super) fn begin(&mut self, cwd: &Path) {
        self.git = Some(Baseline::begin(cwd, BASELINE_LIMIT));
    }

    pub(super) fn told(&self) -> Receiver<GitResult> {
        self.git.as_ref().map_or_else(never, Pending::told)
    }

    /// A stopped run reports no changes; a run with a result still may.
    pub(super) fn hurry(&mut self, stopping: bool) {
        if stopping {
            return self.give_up();
        }
        self.hurried = true;
        self.until = self.until.map(|until| until.min(Instant::now() + HURRIED));
    }

    pub(super) fn exited(&mut self) {
        self.left = if self.hurried { HURRIED } else { LIMIT };
    }

    /// Returns the changes if they are known without git. `None`: git is comparing.
    pub(super) fn compare(&mut self, stopping: bool) -> Option<Changes> {
        let git = self.git.as_mut().filter(|_| !stopping);
        git.map_or(Some(Changes::NotARepository), |git| git.compare(self.left))
    }

    /// Handles git's answer or its failure. Returns the changes, if the answer contains them.
    pub(super) fn finish_job(&mut self, told: Option<GitResult>) -> Option<Changes> {
        self.git.as_mut().and_then(|git| git.finish_job(told))
    }

    /// The changed files for the run. `Err`: the list is incomplete, which is reported once per run.
    pub(super) fn files(&mut self, changes: Changes, stopping: bool) -> FoundFiles {
        match changes {
            // A stopped run reports no changes, so its list is not incomplete.
            _ if stopping => Ok(Vec::new()),
            Changes::NotARepository => Ok(Vec::new()),
            Changes::Incomplete(_) if std::mem::replace(&mut self.warned, true) => Ok(Vec::new()),
            Changes::Incomplete(Incomplete::Late) => {
                Err("git was too slow: the list of changed files may be incomplete")
            }
            Changes::Incomplete(Incomplete::Failed) => {
                Err("git failed: the list of changed files may be incomplete; see `git status`")
            }
            Changes::Files(files) => Ok(files),
        }
    }

    fn give_up(&mut self) {
        self.git.iter_mut().for_each(Pending::give_up);
        self.until = self.until.map(|_| Instant::now());
    }

    /// Whether a git process of this run may still run. Also reaps one that was abandoned.
    pub(super) fn is_busy(&mut self) -> bool {
        let Some(git) = &mut self.git else { return false };
        if git.is_given_up() {
            git.wait_for_result(KILL_LIMIT);
        }
        git.is_busy()
    }

    pub(super) fn end(&mut self) {
        self.give_up();
        self.is_busy();
    }

    pub(super) fn wait(&mut self, waiting: Waiting) {
        self.waiting = Some(waiting);
        self.until = Instant::now().checked_add(self.left);
    }

    /// Takes the step that waited for git, once it may continue.
    pub(super) fn waited(&mut self) -> Option<Waiting> {
        let until = self.until.take()?;
        self.left = until.saturating_duration_since(Instant::now());
        self.waiting.take()
    }
}
