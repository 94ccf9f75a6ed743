//! The checkpoints of the files in a conversation: a thread does one order after the other. Until the checkpoint before a
//! turn is taken, the agent gets nothing.

use super::LocalHost;
use crate::process::background_task::BackgroundTask;
use crate::process::git::Incomplete;
use crate::process::git::checkpoints::{Checkpoints, NoRewind};
use crate::process::query::Until;
use crate::run::{CheckpointOrder, CheckpointReport};
use crossbeam_channel::{Receiver, never};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time for a checkpoint, for which the agent waits, and for a rewind.
const LIMIT: Duration = Duration::from_secs(10);
const REWIND_LIMIT: Duration = Duration::from_secs(60);
/// The time that a thread gets to stop its git, and to finish the replacement of files.
const KILL_LIMIT: Duration = Duration::from_millis(50);
const REPLACE_LIMIT: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct CheckpointWork {
    /// The folder in the work tree. `None`: the run has no checkpoints.
    pub(super) cwd: Option<PathBuf>,
    /// The checkpoints, while no thread has them. `None`: none was taken.
    kept: Option<Checkpoints>,
    running: Option<(CheckpointOrder, BackgroundTask<Done>)>,
    pub(super) waiting: VecDeque<(CheckpointOrder, Vec<PathBuf>)>,
    /// The lines for the agent that wait for a checkpoint.
    pub(super) lines: Vec<String>,
    /// Whether the agent's stdin is to be closed after them.
    pub(super) closes: bool,
}

pub(in crate::engine) struct Done {
    kept: Option<Checkpoints>,
    report: CheckpointReport,
}

impl CheckpointWork {
    pub(super) fn start_next(&mut self) {
        let (None, Some(cwd)) = (&self.running, self.cwd.clone()) else { return };
        let Some((order, except)) = self.waiting.pop_front() else { return };
        let kept = self.kept.take();
        let limit = if is_rewind(order) { REWIND_LIMIT } else { LIMIT };
        let work = move |until: &Until| {
            let mut kept = kept;
            let report = done(order, &mut kept, &cwd, &except, until);
            Done { kept, report }
        };
        self.running = Some((order, BackgroundTask::start("checkpoints", limit, work)));
    }

    pub(super) fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn holds_back(&self) -> bool {
        let running = self.running.iter().map(|(order, _)| order);
        running
            .chain(self.waiting.iter().map(|(order, _)| order))
            .any(|order| matches!(order, CheckpointOrder::Begin(_)))
    }

    /// Stops a thread that takes a checkpoint, because the agent's processes end, and forgets what waits for the agent. A
    /// rewind that replaces files already is finished.
    pub(super) fn give_up(&mut self) {
        (self.lines, self.closes) = (Vec::new(), false);
        self.waiting.retain(|(order, _)| !matches!(order, CheckpointOrder::Begin(_)));
        if let Some((order, task)) = &mut self.running {
            task.give_up();
            let _ = task.over().recv_timeout(if is_rewind(*order) { REPLACE_LIMIT } else { KILL_LIMIT });
        }
    }
}

fn is_rewind(order: CheckpointOrder) -> bool {
    matches!(order, CheckpointOrder::Rewind { .. })
}

fn done(
    order: CheckpointOrder,
    kept: &mut Option<Checkpoints>,
    cwd: &Path,
    except: &[PathBuf],
    until: &Until,
) -> CheckpointReport {
    let begun = |kept: &mut Option<Checkpoints>, id| -> Result<CheckpointReport, Incomplete> {
        if kept.is_none() {
            *kept = Some(Checkpoints::of(cwd, until)?.ok_or(Incomplete::Failed)?);
        }
        kept.iter_mut().try_for_each(|all| all.begin(id, except, until)).map(|()| CheckpointReport::Taken(id))
    };
    let taken = match (order, kept) {
        (CheckpointOrder::Begin(id), kept) => begun(kept, id),
        (CheckpointOrder::End, Some(all)) => {
            all.end(except, until).map(|id| id.map_or(CheckpointReport::Nothing, CheckpointReport::Complete))
        }
        (CheckpointOrder::End, None) => Ok(CheckpointReport::Nothing),
        (CheckpointOrder::Rewind { to, undo }, Some(all)) => Ok(match all.rewind((to, undo), except, until) {
            Ok(files) => CheckpointReport::Rewound { to, undo, files },
            Err(why) => refused(why),
        }),
        (CheckpointOrder::Rewind { .. }, None) => Ok(refused(NoRewind::Unknown)),
    };
    taken.unwrap_or_else(|why| CheckpointReport::Missing { why: words(why), lasting: true })
}

fn refused(why: NoRewind) -> CheckpointReport {
    let (why, files) = match why {
        NoRewind::Unknown => ("there is no such checkpoint", Vec::new()),
        NoRewind::Changed(files) => ("somebody else changed a file that a turn changed too", files),
        NoRewind::Kind(files) => ("a file became a folder since then, or a folder a file", files),
        NoRewind::File(file) => ("a file cannot be replaced", vec![file]),
        NoRewind::Git(why) => (words(why), Vec::new()),
    };
    CheckpointReport::Refused { why, files }
}

/// The report about an order that had no result of its own. `lasting`: no later one will have a result.
fn failed(order: CheckpointOrder, why: &'static str, lasting: bool) -> CheckpointReport {
    match order {
        CheckpointOrder::Begin(_) | CheckpointOrder::End => CheckpointReport::Missing { why, lasting },
        CheckpointOrder::Rewind { .. } => CheckpointReport::Refused { why, files: Vec::new() },
    }
}

fn words(why: Incomplete) -> &'static str {
    match why {
        Incomplete::Late => "git took too long",
        Incomplete::Failed => "git failed, or the folder for temporary files is full",
    }
}

impl LocalHost {
    pub(in crate::engine) fn checkpoints(&self) -> Receiver<Done> {
        self.checkpoints.running.as_ref().map_or_else(never, |(_, task)| task.result())
    }

    /// Takes a result. `None`: there will be none. Returns the report for the run.
    pub(in crate::engine) fn checkpoint_done(&mut self, done: Option<Done>) -> CheckpointReport {
        let (order, given_up) = match self.checkpoints.running.take() {
            Some((order, task)) => (order, task.is_given_up()),
            None => return CheckpointReport::Nothing,
        };
        let report = match done {
            Some(Done { kept, report }) => {
                self.checkpoints.kept = kept;
                report
            }
            None => failed(order, words(Incomplete::Failed), true),
        };
        self.checkpoints.start_next();
        if !self.checkpoints.holds_back() {
            let (lines, closes) =
                (std::mem::take(&mut self.checkpoints.lines), std::mem::take(&mut self.checkpoints.closes));
            if let Some(agent) = &mut self.agent {
                lines.into_iter().for_each(|line| agent.send(line));
                if closes {
                    agent.close_input();
                }
            }
        }
        match report {
            CheckpointReport::Missing { .. } | CheckpointReport::Refused { .. } if given_up => {
                failed(order, "the agent ended first", false)
            }
            CheckpointReport::Taken(_)
            | CheckpointReport::Complete(_)
            | CheckpointReport::Nothing
            | CheckpointReport::Rewound { .. }
            | CheckpointReport::Missing { .. }
            | CheckpointReport::Refused { .. } => report,
        }
    }
}
