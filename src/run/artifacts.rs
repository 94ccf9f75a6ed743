//! The files that changed during a run, and the frames about them.

use super::FoundFiles;
use super::effects::Effects;
use super::frame_texts::FrameTexts;
use crate::protocol::limits::{ARTIFACTS, REPORTED};
use crate::protocol::outbound::{Artifact, ArtifactRef, Text};
use crate::protocol::words::{Action, Warning};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

/// The maximum size of a path that systems accept, in bytes.
const PATH_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Artifacts {
    /// Hashes of the path and the action of every reported change, each with the last part of the run that made it.
    seen: HashMap<u64, u32>,
    part: u32,
    /// The first changes of the part, also those that an earlier part made too.
    pub(super) of_part: Vec<ArtifactRef>,
    /// Files that are never reported, as frames show their paths. A folder ends with a slash.
    pub(super) hidden: Vec<String>,
    hasher: RandomState,
    /// The first changes, for the terminal frame.
    pub(super) list: Vec<ArtifactRef>,
    count: u64,
}

impl Artifacts {
    pub(super) fn begin_part(&mut self) {
        self.part += 1;
        self.of_part.clear();
    }

    /// Reports a change, unless it was reported before.
    pub(super) fn report(&mut self, path: &Path, action: Action, texts: &FrameTexts, effects: &mut Effects) {
        let shown = texts.relative(path);
        if shown == "." {
            // An agent that names no file, or a folder, changed none that it names.
            return;
        }
        if self.part > 0 {
            let path = shown.redacted(&texts.redactor);
            if self.hides(&path) {
                return;
            }
            if self.of_part.len() < ARTIFACTS {
                self.of_part.push(ArtifactRef { path: path.into(), action });
            }
        }
        let Some(artifact_id) = self.add(&shown, action) else { return };
        let artifact = Artifact { artifact_id, path: shown, action, kind: "file", size_bytes: None, truncated: false };
        effects.artifact(artifact, (action != Action::Deleted).then(|| texts.absolute(path)));
        if self.is_full() {
            let text = format!("No further changed files are reported: the limit is {REPORTED}");
            effects.warn(Warning::ArtifactsIncomplete, text, None);
        }
    }

    /// Reports a file that the workflow itself changed, which sets everything but the id.
    pub(super) fn report_own(&mut self, artifact: Artifact, effects: &mut Effects) {
        if let Some(artifact_id) = self.add(&artifact.path, artifact.action) {
            effects.artifact(Artifact { artifact_id, ..artifact }, None);
        }
    }

    fn hides(&self, path: &str) -> bool {
        let is = |hidden: &String| match hidden.strip_suffix('/') {
            Some(folder) => path == folder || path.starts_with(hidden.as_str()),
            None => path == hidden,
        };
        self.hidden.iter().any(is)
    }

    /// Reports the changes that a search found, except for those that the agent reported.
    pub(super) fn report_found(&mut self, found: FoundFiles, texts: &FrameTexts, effects: &mut Effects) {
        let files = match found {
            Ok(files) => files,
            Err(text) => return effects.warn(Warning::ArtifactsIncomplete, text, None),
        };
        for (path, action) in files {
            if !self.covers(&texts.relative(&path), action) {
                self.report(&path, action, texts, effects);
            }
        }
    }

    /// `None`: it was reported before, or the limit is reached.
    fn add(&mut self, path: &Text, action: Action) -> Option<String> {
        if self.is_full() || self.seen.insert(self.hasher.hash_one((path, action)), self.part).is_some() {
            return None;
        }
        self.count += 1;
        if self.list.len() < ARTIFACTS && path.size() <= PATH_BYTES {
            self.list.push(ArtifactRef { path: path.clone(), action });
        }
        Some(format!("a_{}", self.count))
    }

    fn is_full(&self) -> bool {
        self.seen.len() >= REPORTED
    }

    /// Whether this part of the run reported a change. A file is not reported as both created and modified.
    fn covers(&self, path: &Text, action: Action) -> bool {
        let reported = |action| self.seen.get(&self.hasher.hash_one((path, action))) == Some(&self.part);
        match action {
            Action::Deleted => reported(Action::Deleted),
            Action::Created | Action::Modified => reported(Action::Created) || reported(Action::Modified),
        }
    }

    pub(super) fn list(&mut self) -> (Vec<ArtifactRef>, bool) {
        let list = std::mem::take(&mut self.list);
        let is_cut = self.count > list.len() as u64;
        (list, is_cut)
    }
}

#[cfg(test)]
mod tests {
    use super::{Artifacts, Effects, FrameTexts};
    use crate::protocol::limits::REPORTED;
    use crate::protocol::request::Options;
    use crate::protocol::words::Action;
    use crate::redact::Redactor;
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn a_change_that_names_no_file_is_not_reported() {
        let settings = Options::default().resolve("Go".into(), "agent".into(), "/w".into());
        let texts = FrameTexts::new(&settings.cwd, Redactor::new());
        let (mut artifacts, mut effects) = (Artifacts::default(), Effects::new(Duration::ZERO, &settings));
        for path in ["", ".", "/w", "/w/a.txt"] {
            artifacts.report(Path::new(path), Action::Modified, &texts, &mut effects);
        }
        assert_eq!(artifacts.list.iter().map(|it| it.path.unredacted()).collect::<Vec<_>>(), ["a.txt"]);
    }

    #[test]
    fn a_million_changes_are_reported_and_no_more() {
        let mut artifacts = Artifacts::default();
        for file in 0..REPORTED {
            assert!(!artifacts.is_full() && artifacts.add(&file.to_string().into(), Action::Created).is_some());
        }
        assert!(artifacts.is_full());
        assert_eq!(artifacts.add(&"one more".to_owned().into(), Action::Created), None);
        assert_eq!(artifacts.count, REPORTED as u64);
    }
}
