//! The files that changed during a run, and the frames about them.

use super::Unseen;
use super::effects::Effects;
use super::frame_texts::FrameTexts;
use crate::protocol::limits::{ARTIFACTS, REPORTED};
use crate::protocol::outbound::{Artifact, ArtifactRef, Text};
use crate::protocol::words::{Action, Warning};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

/// The changed files that a search found.
pub(super) type FoundChanges = Result<Vec<(PathBuf, Action)>, Unseen>;

/// The maximum size of a path that systems accept, in bytes.
const PATH_BYTES: usize = 4096;

/// The changed files of a run.
#[derive(Debug, Default)]
pub(super) struct Artifacts {
    /// Hashes of the path and the action of every reported change.
    seen: HashSet<u64>,
    hasher: RandomState,
    /// The first changes, for the terminal frame.
    list: Vec<ArtifactRef>,
    count: u64,
    /// The number of artifacts of earlier runs.
    before: u64,
}

impl Artifacts {
    /// Creates an empty list that continues the numbers of earlier runs.
    pub(super) fn after(count: u64) -> Artifacts {
        Artifacts { count, before: count, ..Artifacts::default() }
    }

    /// The number of artifacts, including those of earlier runs.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Reports a change, unless it was reported before.
    pub(super) fn report(&mut self, path: &Path, action: Action, texts: &FrameTexts, effects: &mut Effects) {
        let shown = texts.relative(path);
        let Some(artifact_id) = self.add(&shown, action) else { return };
        let artifact = Artifact { artifact_id, path: shown, action, kind: "file", size_bytes: None, truncated: false };
        effects.artifact(artifact, (action != Action::Deleted).then(|| texts.absolute(path)));
        if self.is_full() {
            let text = format!("No further changed files are reported: the limit is {REPORTED}");
            effects.warn(Warning::ArtifactsIncomplete, text, None);
        }
    }

    /// Reports the changes that a search found, except for those that the agent reported.
    pub(super) fn report_found(&mut self, found: FoundChanges, texts: &FrameTexts, effects: &mut Effects) {
        let files = match found {
            Ok(files) => files,
            Err(why) => return effects.warn(Warning::ArtifactsIncomplete, incomplete(why), None),
        };
        for (path, action) in files {
            if !self.covers(&texts.relative(&path), action) {
                self.report(&path, action, texts, effects);
            }
        }
    }

    /// Adds a change and returns its id. `None`: the change was reported before.
    fn add(&mut self, path: &Text, action: Action) -> Option<String> {
        if self.is_full() || !self.seen.insert(self.hasher.hash_one((path, action))) {
            return None;
        }
        self.count += 1;
        if self.list.len() < ARTIFACTS && path.size() <= PATH_BYTES {
            self.list.push(ArtifactRef { path: path.clone(), action });
        }
        Some(format!("a_{}", self.count))
    }

    /// Whether the limit of reported changes is reached.
    fn is_full(&self) -> bool {
        self.seen.len() >= REPORTED
    }

    /// Whether a change was reported. A file is not reported as both created and modified.
    fn covers(&self, path: &Text, action: Action) -> bool {
        let reported = |action| self.seen.contains(&self.hasher.hash_one((path, action)));
        match action {
            Action::Deleted => reported(Action::Deleted),
            Action::Created | Action::Modified => reported(Action::Created) || reported(Action::Modified),
        }
    }

    /// Takes the list for the terminal frame, and whether it is cut.
    pub(super) fn list(&mut self) -> (Vec<ArtifactRef>, bool) {
        let list = std::mem::take(&mut self.list);
        let is_cut = self.count - self.before > list.len() as u64;
        (list, is_cut)
    }
}

fn incomplete(why: Unseen) -> &'static str {
    match why {
        Unseen::Late => "git was too slow: the list of changed files may be incomplete",
        Unseen::Failed => "git failed: the list of changed files may be incomplete; see `git status`",
    }
}

#[cfg(test)]
mod tests {
    use super::Artifacts;
    use crate::protocol::limits::REPORTED;
    use crate::protocol::words::Action;

    #[test]
    fn a_million_changes_are_reported_and_no_more() {
        let mut artifacts = Artifacts::default();
        for file in 0..REPORTED {
            assert!(!artifacts.is_full() && artifacts.add(&file.to_string().into(), Action::Created).is_some());
        }
        assert!(artifacts.is_full());
        assert_eq!(artifacts.add(&"one more".to_owned().into(), Action::Created), None);
        assert_eq!(artifacts.count(), REPORTED as u64);
    }
}
