//! The state of the work tree before a plan's work and before the current phase, and what has changed since. It is
//! remembered in `local/`, so that a later run of the plan knows it too.

use super::project::{HOME, LOCAL, Project};
use crate::json::to_line;
use crate::process::background_task::BackgroundTask;
use crate::process::git::snapshot::Snapshots;
use crate::process::query::Until;
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The maximum time for a snapshot or a difference.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// The time after which a plan's record is forgotten, unless a run of the plan renews it.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
const RECORD_BYTES: u64 = 4096;

/// The snapshots that a plan's work began from.
#[derive(Clone, Debug, Deserialize)]
struct Record {
    /// Before the first phase.
    plan: String,
    /// Before the current phase.
    phase: String,
    number: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    Plan,
    /// The phase with this number.
    Phase(u16),
}

fn record_of(plan: &Path) -> Option<PathBuf> {
    Some(Path::new(LOCAL).join("started").join(plan.file_name()?).with_extension("json"))
}

fn load(project: &Project, plan: &Path) -> Option<Record> {
    let bytes = project.read(&record_of(plan)?, RECORD_BYTES).ok().flatten()?;
    let record: Record = serde_json::from_slice(&bytes).ok()?;
    let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id(&record.plan) && is_id(&record.phase)).then_some(record)
}

fn snapshots(project: &Project, until: &Until) -> Option<Snapshots> {
    let store = Path::new(LOCAL).join("objects");
    project.make_room_for(&store.join("_")).ok()?;
    let folder = project.folder();
    Snapshots::of(folder, &folder.join(store), &folder.join(HOME), until).ok().flatten()
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PhaseStart {
    pub(crate) number: u16,
    /// Whether an earlier run began the phase.
    pub(crate) begun: bool,
    /// Whether no phase of the plan was begun before.
    pub(crate) is_first: bool,
    pub(crate) reviews: bool,
}

/// Forgets what no record needs any more. `None`: the start of the phase is not needed, or it is too late.
pub(crate) fn begin(project: &Project, plan: &Path, start: PhaseStart) -> Option<BackgroundTask<Option<()>>> {
    let earlier = load(project, plan).filter(|_| !start.is_first);
    // Only a review needs the state before a phase, and nobody knows that of a phase which is under way.
    if earlier.is_some() && (start.begun || !start.reviews) {
        return None;
    }
    let (project, file) = (project.clone(), record_of(plan)?);
    Some(BackgroundTask::start("started", LIMIT, move |until| {
        let snapshots = snapshots(&project, until)?;
        let now = snapshots.take(until).ok()?;
        let plan = earlier.map_or_else(|| now.clone(), |record| record.plan);
        let record = json!({"plan": plan, "phase": now, "number": start.number});
        project.write(&file, to_line(&record).as_bytes()).ok()?;
        snapshots.prune(&needed(&project), until);
        Some(())
    }))
}

/// The snapshots of all plans. Records that are older than [`KEPT`] go.
fn needed(project: &Project) -> Vec<String> {
    let folder = project.folder().join(LOCAL).join("started");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut all = Vec::new();
    for entry in entries {
        let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > KEPT) {
            let _ = std::fs::remove_file(entry.path());
        } else if let Some(record) = load(project, Path::new(&entry.file_name())) {
            all.extend([record.plan, record.phase]);
        }
    }
    all
}

/// As a unified diff. `None`: the beginning of the work is not known, or git cannot tell.
pub(crate) fn difference(project: &Project, plan: &Path, since: Since, until: &Until) -> Option<String> {
    let record = load(project, plan);
    let all = snapshots(project, until)?;
    let from = match since {
        Since::Plan => match record {
            Some(record) => record.plan,
            // The plan was begun on another machine, or its commits are all that is left.
            None => all.before_commit_with(&format!("Plan: {}", plan.join("plan.md").display()), until).ok()??,
        },
        Since::Phase(number) => record.filter(|record| record.number == number)?.phase,
    };
    all.difference(&from, &all.take(until).ok()?, until).ok()
}
