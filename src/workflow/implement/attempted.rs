//! The files that the attempts at a phase changed. They belong to the phase's commit, even if a later run makes it, so
//! they are remembered in `local/` with digests until that commit.
//!
//! A run that is killed leaves its record open, because nobody could list its changes. Then every change since the phase
//! began counts as the attempts'.

use super::protect::{bytes, hex};
use crate::io::files::open_regular;
use crate::json::to_line;
use crate::process::background_task::BackgroundTask;
use crate::process::git::{Baseline, Head};
use crate::process::query::Until;
use crate::workflow::plan::Digest;
use crate::workflow::project::{HOME, LOCAL, Project};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const RECORD_BYTES: u64 = 64 << 20;
/// The maximum size of a file whose contents count. Of a larger one, its size and time do.
const CONTENT_BYTES: u64 = 64 << 20;
/// The maximum time for a look at the changed files.
const LIMIT: Duration = Duration::from_secs(5);

/// The beginning of the digest of a repository below the work tree.
const REPOSITORY: &str = "repository ";

/// Files by their path from the root of the work tree, each with the digest of what it holds.
type Digests = BTreeMap<PathBuf, String>;

/// The work tree with the digests of its changed files, without those of spektacular's own.
#[derive(Debug)]
pub(super) struct Seen {
    /// Includes the repositories below, by their folders.
    files: Digests,
    pub(super) head: Head,
}

impl Seen {
    /// Looks at the work tree around a folder, in a thread of its own. `None`: git is missing, failed or was too slow.
    pub(super) fn look(project: &Project) -> BackgroundTask<Option<Seen>> {
        let folder = project.folder().to_owned();
        BackgroundTask::start("attempted", LIMIT, move |until| {
            let tree = Baseline::now(&folder, until).ok().flatten()?;
            Seen::read(&tree, &folder, until)
        })
    }

    /// `None`: reading took too long, or the project is outside of the tree.
    pub(super) fn read(tree: &Arc<Baseline>, project: &Path, until: &Until) -> Option<Seen> {
        let own = project.strip_prefix(tree.root()).ok()?.join(HOME);
        let mut files = Digests::new();
        let nested = tree.nested();
        let paths = tree.changed().chain(nested.iter().map(PathBuf::as_path));
        for path in paths.filter(|path| !path.starts_with(&own)) {
            if until.is_over() {
                return None;
            }
            let below = tree.state_below(path).map(|state| format!("{REPOSITORY}{}", Digest::of(state.as_bytes())));
            files.insert(path.to_owned(), below.unwrap_or_else(|| digest(&tree.root().join(path))));
        }
        Some(Seen { files, head: tree.head().clone() })
    }
}

/// The digest of a file: of its kind, mode and contents.
fn digest(file: &Path) -> String {
    let Ok(metadata) = file.symlink_metadata() else { return "gone".to_owned() };
    let contents = if metadata.is_symlink() {
        fs::read_link(file).map(|target| Digest::of(target.as_os_str().as_bytes()).to_string())
    } else if metadata.is_file() && metadata.len() <= CONTENT_BYTES {
        let mut bytes = Vec::new();
        let read = open_regular(file).and_then(|file| file.take(CONTENT_BYTES).read_to_end(&mut bytes));
        read.map(|_| Digest::of(&bytes).to_string())
    } else {
        Ok(format!("{} {} {}", metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
    };
    format!("{:o} {}", metadata.mode(), contents.unwrap_or_default())
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EarlierWork {
    pub(super) files: BTreeSet<PathBuf>,
    /// The files that another hand has changed since, and those of passed phases that no commit will have.
    pub(super) foreign: BTreeSet<PathBuf>,
    /// The number of the passed phase whose commit is missing: git refused it, or the run ended before it.
    pub(super) due: Option<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attempted {
    phase: u16,
    commits: bool,
    /// Whether the changes since `before` are not listed yet.
    open: bool,
    /// The files that had changed before the phase, or by another hand.
    before: Digests,
    /// The files that the attempts changed, as they left them.
    changed: Digests,
    /// The files that earlier phases changed and no commit has.
    left: BTreeSet<PathBuf>,
}

impl Attempted {
    pub(super) fn load(project: &Project, plan: &Path) -> Option<Attempted> {
        let bytes = project.read(&file(plan)?, RECORD_BYTES).ok().flatten()?;
        let record: Value = serde_json::from_slice(&bytes).ok()?;
        let digests = |key: &str| -> Option<Digests> {
            let files = record.get(key)?.as_object()?;
            files.iter().map(|(path, digest)| Some((path_of(path)?, digest.as_str()?.to_owned()))).collect()
        };
        Some(Attempted {
            phase: u16::try_from(record.get("phase")?.as_u64()?).ok()?,
            commits: record.get("commits")?.as_bool()?,
            open: record.get("open")?.as_bool()?,
            before: digests("before")?,
            changed: digests("changed")?,
            left: record.get("left")?.as_array()?.iter().map(|path| path_of(path.as_str()?)).collect::<Option<_>>()?,
        })
    }

    /// `earlier`: the last record of the plan. `commits`: whether the run makes commits.
    pub(super) fn begin(phase: u16, commits: bool, seen: &Seen, earlier: Option<&Attempted>) -> Attempted {
        let share = earlier.map(|earlier| earlier.share(seen)).unwrap_or_default();
        let mut left = earlier.map(|earlier| earlier.left.clone()).unwrap_or_default();
        let is_same = earlier.is_some_and(|earlier| earlier.is_of(phase));
        if !is_same {
            left.extend(share.files.iter().cloned());
        }
        let (changed, before) = seen
            .files
            .clone()
            .into_iter()
            .partition(|(path, _): &(PathBuf, String)| is_same && share.files.contains(path));
        Attempted { phase, commits, open: true, before, changed, left }
    }

    pub(super) fn is_of(&self, phase: u16) -> bool {
        self.phase == phase
    }

    /// For a run with commits. `open`: the phase that it continues, if an earlier run began it.
    pub(super) fn earlier_work(&self, seen: &Seen, open: Option<u16>, is_done: impl Fn(u16) -> bool) -> EarlierWork {
        let mut work = self.share(seen);
        let continues = open == Some(self.phase);
        let is_due = !continues && self.commits && is_done(self.phase) && !work.files.is_empty();
        work.due = is_due.then_some(self.phase);
        if !continues && !is_due {
            work.foreign.append(&mut work.files);
        }
        work.foreign.extend(self.left.iter().filter(|path| seen.files.contains_key(*path)).cloned());
        work
    }

    /// Lists the changes, at the end of a run.
    pub(super) fn close(&mut self, seen: &Seen) {
        let is_changed = |(path, digest): &(&PathBuf, &String)| self.before.get(*path) != Some(*digest);
        let changed = seen.files.iter().filter(is_changed).map(|(path, digest)| (path.clone(), digest.clone()));
        (self.changed, self.open) = (changed.collect(), false);
    }

    pub(super) fn share(&self, seen: &Seen) -> EarlierWork {
        let mut share = EarlierWork::default();
        for (path, now) in &seen.files {
            // Only a person can commit the files that an attempt made in another repository, or move them out of it.
            let was_below = || path.ancestors().skip(1).any(|folder| self.changed.contains_key(folder)).then_some(true);
            let is_ours = match self.open {
                true => Some(self.before.get(path) != Some(now)),
                false => {
                    let is_same = |then: &String| then == now || then.starts_with(REPOSITORY);
                    self.changed.get(path).map(is_same).or_else(was_below)
                }
            };
            match is_ours {
                Some(true) => share.files.insert(path.clone()),
                Some(false) if !self.open => share.foreign.insert(path.clone()),
                Some(false) | None => false,
            };
        }
        share
    }

    pub(super) fn store(&self, project: &Project, plan: &Path) -> bool {
        let digests =
            |files: &Digests| -> Value { files.iter().map(|(path, digest)| (name_of(path), json!(digest))).collect() };
        let record = json!({
            "phase": self.phase, "commits": self.commits, "open": self.open,
            "before": digests(&self.before), "changed": digests(&self.changed),
            "left": self.left.iter().map(|path| name_of(path)).collect::<Vec<_>>(),
        });
        file(plan).is_some_and(|file| project.write(&file, to_line(&record).as_bytes()).is_ok())
    }
}

fn file(plan: &Path) -> Option<PathBuf> {
    Some(Path::new(LOCAL).join("attempts").join(plan.file_name()?).with_extension("json"))
}

fn name_of(path: &Path) -> String {
    hex(path.as_os_str().as_bytes())
}

fn path_of(name: &str) -> Option<PathBuf> {
    Some(PathBuf::from(OsString::from_vec(bytes(name)?)))
}

#[cfg(test)]
mod tests {
    use super::{Attempted, Digests, Seen, name_of, path_of};
    use crate::process::git::Head;
    use crate::workflow::project::Project;
    use std::path::{Path, PathBuf};

    fn seen(files: &[(&str, &str)]) -> Seen {
        let files: Digests = files.iter().map(|(path, digest)| (PathBuf::from(path), (*digest).to_owned())).collect();
        Seen { files, head: Head::default() }
    }

    fn names<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<&'a str> {
        paths.into_iter().map(|path| path.to_str().unwrap()).collect()
    }

    #[test]
    fn a_closed_record_knows_what_another_hand_changed() {
        let mut record = Attempted::begin(2, true, &seen(&[("mine", "1")]), None);
        record.close(&seen(&[("mine", "1"), ("a", "1"), ("b", "1")]));
        let share = record.share(&seen(&[("mine", "2"), ("a", "1"), ("b", "2"), ("c", "1")]));
        assert_eq!((names(&share.files), names(&share.foreign)), (vec!["a"], vec!["b"]));
        // The next run keeps that out for good.
        let mut next = Attempted::begin(2, true, &seen(&[("mine", "2"), ("a", "1"), ("b", "2")]), Some(&record));
        next.close(&seen(&[("mine", "2"), ("a", "3"), ("b", "2"), ("d", "1")]));
        let share = next.share(&seen(&[("mine", "2"), ("a", "3"), ("b", "2"), ("d", "1")]));
        assert_eq!((names(&share.files), names(&share.foreign)), (vec!["a", "d"], vec![]));
    }

    #[test]
    fn after_a_kill_every_change_since_the_phase_began_counts() {
        let record = Attempted::begin(1, true, &seen(&[("mine", "1"), ("touched", "1")]), None);
        let share = record.share(&seen(&[("mine", "1"), ("touched", "2"), ("new", "1")]));
        assert_eq!((names(&share.files), share.foreign.len()), (vec!["new", "touched"], 0));
    }

    #[test]
    fn the_files_of_a_passed_phase_are_committed_or_named() {
        let (before, after) = (seen(&[("mine", "1")]), seen(&[("mine", "1"), ("a", "1")]));
        for (commits, is_done, files, foreign, due) in [
            (true, true, vec!["a"], vec![], Some(1)),
            (true, false, vec![], vec!["a"], None),
            (false, true, vec![], vec!["a"], None),
        ] {
            let record = Attempted::begin(1, commits, &before, None);
            let work = record.earlier_work(&after, None, |_| is_done);
            assert_eq!((names(&work.files), names(&work.foreign), work.due), (files, foreign, due));
        }
        // The work tree is clean: nothing is due.
        let record = Attempted::begin(1, true, &before, None);
        assert_eq!(record.earlier_work(&before, None, |_| true), super::EarlierWork::default());
        // The next phase knows the files of the passed one.
        let record = Attempted::begin(1, false, &before, None);
        let next = Attempted::begin(2, true, &after, Some(&record));
        let work = next.earlier_work(&seen(&[("a", "1"), ("b", "1")]), Some(2), |_| false);
        assert_eq!((names(&work.files), names(&work.foreign), work.due), (vec!["b"], vec!["a"], None));
    }

    #[test]
    fn a_record_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let (project, plan) = (Project::around(folder.path()).unwrap(), Path::new(".spektacular/plans/x"));
        assert_eq!(Attempted::load(&project, plan), None);
        let mut record = Attempted::begin(1, true, &seen(&[("a\n\u{e9}", "1")]), None);
        record.left.insert("\u{e9}".into());
        record.close(&seen(&[("a\n\u{e9}", "2")]));
        assert!(record.store(&project, plan));
        assert_eq!(Attempted::load(&project, plan), Some(record));
        project.write(Path::new(".spektacular/local/attempts/x.json"), b"{\"phase\":1}").unwrap();
        assert_eq!(Attempted::load(&project, plan), None);
        assert_eq!(path_of(&name_of(Path::new("a/\u{e9}"))), Some(PathBuf::from("a/\u{e9}")));
        assert!(path_of("6").is_none() && path_of("zz").is_none());
    }
}
