//! Finds files that changed while the agent ran, in addition to those that the agent reports itself: compares git's
//! view before the spawn with its view after the exit.
//!
//! The repository may be hostile, so no program that it configures may run. git gets an environment of its own, and the
//! command line overrides dangerous settings, because it takes precedence over every file. Only filters may have any
//! name: we query the names first and make each filter empty. git writes nothing, not even the index; only [`worktree`]
//! writes.
//!
//! This module ends its processes by their handle and group. Like the agent's processes, they descend from us. So while
//! [`Pending::is_busy`], nothing may be killed or reaped only because it descends from us.

pub(crate) mod checkpoints;
pub(crate) mod copies;
pub(crate) mod kept;
mod query;
pub(crate) mod snapshot;
mod submodules;
pub(crate) mod worktree;

pub use self::query::{Head, Incomplete};

use self::query::{Blob, Content, FileState, Filters, Git, GitPlaces, LookBelow, Status, in_time};
use super::background_task::BackgroundTask;
use super::query::Until;
use crate::protocol::words::Action;
use crate::system::{DEFAULT_PATH, file_tick};
use crossbeam_channel::{Receiver, never};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// The folder is not in a git work tree, or git is not installed. This needs no warning.
    NotARepository,
    /// The list would be incomplete, so it is not reported.
    Incomplete(Incomplete),
    /// The changed files of the whole work tree: absolute paths, sorted, without duplicates.
    Files(Vec<(PathBuf, Action)>),
}

/// `None`: outside a work tree, or without git.
pub type BaselineResult = Result<Option<Arc<Baseline>>, Incomplete>;

#[derive(Debug)]
pub struct Baseline {
    git: Git,
    begun: SystemTime,
    head: Head,
    /// Files that were already changed or untracked, with their state on disk. Includes submodules with another commit
    /// or with changed files.
    dirty: BTreeMap<Vec<u8>, Option<State>>,
    looks: LookBelow,
    /// Keyed by folder. Empty if the repositories are ignored.
    below: BTreeMap<Vec<u8>, Repository>,
}

#[derive(Debug)]
struct Repository {
    tree: Baseline,
    /// Whether the repository around it has a commit of it. Otherwise, git does not know its files.
    is_submodule: bool,
}

/// The queries run in a separate thread, so no method waits for git except [`Pending::wait_for_result`].
#[derive(Debug)]
pub struct Pending {
    baseline: BaselineResult,
    job: Option<BackgroundTask<GitResult>>,
}

#[derive(Debug)]
pub enum GitResult {
    Baseline(BaselineResult),
    Changes(Changes),
}

/// The properties of a file whose change means that the file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    size: u64,
    modified: (i64, i64),
    mode: u32,
}

impl Baseline {
    /// Never blocks. `cwd`: absolute and without symbolic links, so that the found paths equal the agent's.
    pub fn begin(cwd: &Path, limit: Duration) -> Pending {
        let (path, config) = surroundings();
        Baseline::begin_with(cwd, limit, path, config)
    }

    /// Includes the repositories below. Waits for git.
    pub fn now(cwd: &Path, until: &Until) -> BaselineResult {
        Baseline::look(cwd, Filters::Empty, until)
    }

    /// Runs the filters that a commit runs. Without them, a file that is stored through a filter may look changed.
    pub fn for_commit(cwd: &Path, until: &Until) -> BaselineResult {
        Baseline::look(cwd, Filters::Own, until)
    }

    fn look(cwd: &Path, filters: Filters, until: &Until) -> BaselineResult {
        let begun = file_tick();
        let git = Git::open(cwd, surroundings(), filters, until)?;
        git.map(|git| Baseline::of(git, begun, LookBelow::Included, until).map(Arc::new)).transpose()
    }

    pub fn root(&self) -> &Path {
        self.git.root()
    }

    pub fn program(&self) -> &Path {
        &self.git.program
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The changed and untracked files and the changed submodules, relative to the root.
    pub fn changed(&self) -> impl Iterator<Item = &Path> {
        self.dirty.keys().map(|name| path_of(name))
    }

    /// The folders of the repositories below that nobody added as a submodule, relative to the root.
    pub fn nested(&self) -> Vec<PathBuf> {
        let nested = self.below.iter().flat_map(|(name, repository)| match repository.is_submodule {
            true => repository.tree.nested().iter().map(|inner| path_of(name).join(inner)).collect(),
            false => vec![path_of(name).to_owned()],
        });
        nested.collect()
    }

    /// The files that the submodule at this path has not committed, relative to the root.
    pub fn uncommitted_in(&self, submodule: &Path) -> Vec<PathBuf> {
        let files = self.repository(submodule).into_iter().flat_map(Baseline::changed);
        files.map(|file| submodule.join(file)).collect()
    }

    /// A text that changes with the repository below at this path. `None`: there is none.
    pub fn state_below(&self, path: &Path) -> Option<String> {
        self.repository(path).map(Baseline::state)
    }

    fn repository(&self, path: &Path) -> Option<&Baseline> {
        self.below.iter().find_map(|(name, repository)| {
            let inner = path.strip_prefix(path_of(name)).ok()?;
            if inner.as_os_str().is_empty() { Some(&repository.tree) } else { repository.tree.repository(inner) }
        })
    }

    fn state(&self) -> String {
        let below: Vec<String> = self.below.values().map(|repository| repository.tree.state()).collect();
        format!("{:?} {:?} {below:?}", self.head, self.dirty)
    }

    /// `path`: relative to the root.
    pub fn has(&self, path: &Path) -> bool {
        self.dirty.contains_key(path.as_os_str().as_bytes())
    }

    pub fn differs(&self, then: &Baseline, path: &Path) -> bool {
        let of = |tree: &Baseline| (tree.dirty.get(path.as_os_str().as_bytes()).copied(), tree.state_below(path));
        of(self) != of(then)
    }

    /// `path`: the PATH on which to find git. `config`: the folder that holds the user's ignore file.
    pub fn begin_with(cwd: &Path, limit: Duration, path: OsString, config: Option<OsString>) -> Pending {
        let begun = file_tick();
        let cwd = cwd.to_path_buf();
        let job = BackgroundTask::start("git-baseline", limit, move |until| {
            let take = || {
                let git = Git::open(&cwd, (path, config), Filters::Empty, until)?;
                git.map(|git| Baseline::of(git, begun, LookBelow::Ignored, until).map(Arc::new)).transpose()
            };
            GitResult::Baseline(take())
        });
        Pending { baseline: Err(Incomplete::Late), job: Some(job) }
    }

    fn of(git: Git, begun: SystemTime, looks: LookBelow, until: &Until) -> Result<Baseline, Incomplete> {
        let Status { head, files, nested } = git.status(looks, until)?;
        if git.head_files().into_iter().flatten().any(|file| since(&file, begun)) {
            // A fast agent may have committed already, so the state at its start is unknown.
            return Err(Incomplete::Late);
        }
        let (mut dirty, mut below) = (BTreeMap::new(), BTreeMap::new());
        for (name, is_submodule) in folders_below(&git, looks, nested, until)? {
            let tree = Baseline::of(git.at(&git.absolute(&name), until)?, begun, looks, until)?;
            if is_submodule && (files.contains_key(&name) || !tree.dirty.is_empty()) {
                dirty.insert(name.clone(), None);
            }
            below.insert(name, Repository { tree, is_submodule });
        }
        for (name, seen) in files.into_iter().filter(|(name, _)| !below.contains_key(name)) {
            let metadata = git.look(&name, Some(&seen));
            let folder = || git.folder_of(&name).is_some_and(|folder| since(&folder, begun));
            if metadata.is_none() && seen.in_head.is_some() && folder() {
                // A fast agent may have deleted the file already, so it counts as unchanged before.
                continue;
            }
            let state = metadata.and_then(|metadata| State::before(&metadata, begun, seen.in_head.is_some()));
            dirty.insert(name, state);
            in_time(until)?;
        }
        Ok(Baseline { git, begun, head, dirty, looks, below })
    }

    /// Lists absolute paths, and the repositories below that came or went. Waits for git.
    pub fn compare(&self, until: &Until) -> Result<Vec<(PathBuf, Action)>, Incomplete> {
        let Status { head, files, nested } = self.git.status(self.looks, until)?;
        let below = folders_below(&self.git, self.looks, nested, until)?;
        let moved = match (&self.head.commit, &head.commit) {
            (old, new) if old == new => BTreeMap::new(),
            (old, new) => self.git.difference(old.as_deref(), new.as_deref(), until)?,
        };
        let mut names: Vec<&Vec<u8>> = self.dirty.keys().chain(files.keys()).chain(moved.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let mut changed = Vec::new();
        for name in below.keys().filter(|name| !self.below.contains_key(*name)) {
            changed.push((self.git.absolute(name), Action::Created));
        }
        for (name, repository) in &self.below {
            match below.contains_key(name) {
                true => changed.extend(repository.tree.compare(until)?),
                false => changed.push((self.git.absolute(name), Action::Deleted)),
            }
        }
        for name in names.into_iter().filter(|name| !below.contains_key(*name) && !self.below.contains_key(*name)) {
            let action = self.action(name, files.get(name), moved.get(name));
            changed.extend(action.map(|action| (self.git.absolute(name), action)));
            in_time(until)?;
        }
        changed.sort_unstable();
        Ok(changed)
    }

    /// A folder of ignored files counts too. `except`: a folder that does not count.
    pub fn has_ignored_changes(&self, except: &Path, until: &Until) -> Result<bool, Incomplete> {
        self.git.has_ignored_since(self.begun, except, until)
    }

    /// `None`: unchanged. `moved`: the file in the old and the new HEAD, if HEAD moved and the file differs there.
    fn action(&self, name: &[u8], seen: Option<&FileState>, moved: Option<&[Option<Blob>; 2]>) -> Option<Action> {
        let now = self.git.look(name, seen);
        if let Some(before) = self.dirty.get(name) {
            return match (before, now.as_ref().map(State::from_metadata)) {
                (None, None) => None,
                (None, Some(_)) => Some(Action::Created),
                (Some(_), None) => Some(Action::Deleted),
                (Some(before), Some(now)) => (*before != now).then_some(Action::Modified),
            };
        }
        // The file was not in the status before: its content equalled the old HEAD, or it did not exist.
        let old = match moved {
            Some([old, _]) => old.as_ref(),
            None => seen.and_then(|seen| seen.in_head.as_ref()),
        };
        match (old, now) {
            (None, None) => None,
            (None, Some(_)) => Some(Action::Created),
            (Some(_), None) => Some(Action::Deleted),
            (Some(old), Some(now)) => {
                let differs = match (seen.map(|seen| &seen.content), moved) {
                    (Some(Content::Is(content)), _) | (None, Some([_, Some(content)])) => content != old,
                    (Some(Content::IsNot(content)), _) if content == old => true,
                    // git compared the file with another version, as a reset does. The inode's change time decides,
                    // which no program can set.
                    _ => since(&now, self.begun),
                };
                differs.then_some(Action::Modified)
            }
        }
    }
}

/// `None`: HEAD is on the branch of `from`, perhaps with commits on top, or there is no work tree. Waits for git.
pub fn moved_head(cwd: &Path, from: &Head, until: &Until) -> Result<Option<Head>, Incomplete> {
    let Some(git) = Git::open(cwd, surroundings(), Filters::Empty, until)? else { return Ok(None) };
    let now = git.head(until)?;
    let goes_on = now.branch == from.branch
        && match (&from.commit, &now.commit) {
            (Some(old), Some(new)) => old == new || git.is_ancestor(old, new, until)?,
            (None, _) => true,
            (Some(_), None) => false,
        };
    Ok((!goes_on).then_some(now))
}

/// The folders of the repositories below a work tree, and whether each is a submodule. `nested`: those that are not.
fn folders_below(
    git: &Git,
    looks: LookBelow,
    nested: Vec<Vec<u8>>,
    until: &Until,
) -> Result<BTreeMap<Vec<u8>, bool>, Incomplete> {
    Ok(match looks {
        LookBelow::Ignored => BTreeMap::new(),
        LookBelow::Included => {
            let submodules = git.submodules(until)?.into_iter().map(|name| (name, true));
            nested.into_iter().map(|name| (name, false)).chain(submodules).collect()
        }
    })
}

fn path_of(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

/// Those of this process, with the PATH by the rule for agents.
fn surroundings() -> GitPlaces {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let home = || set("HOME").map(|home| Path::new(&home).join(".config").into_os_string());
    (path, set("XDG_CONFIG_HOME").or_else(home))
}

impl Pending {
    pub fn is_busy(&self) -> bool {
        self.job.is_some()
    }

    pub fn is_given_up(&self) -> bool {
        self.job.as_ref().is_some_and(BackgroundTask::is_given_up)
    }

    /// A receive error: there will be no answer. Both belong into [`Pending::finish_job`].
    pub fn told(&self) -> Receiver<GitResult> {
        self.job.as_ref().map_or_else(never, BackgroundTask::result)
    }

    /// `told`: `None` if there will be no answer. Returns the changes if the job was the comparison.
    pub fn finish_job(&mut self, told: Option<GitResult>) -> Option<Changes> {
        self.job = None;
        match told? {
            GitResult::Baseline(taken) => {
                self.baseline = taken;
                None
            }
            GitResult::Changes(changes) => Some(changes),
        }
    }

    pub fn give_up(&mut self) {
        self.job.iter_mut().for_each(BackgroundTask::give_up);
    }

    /// Waits until no git process of ours is left. Returns the changes if the job was the comparison.
    pub fn wait_for_result(&mut self, limit: Duration) -> Option<Changes> {
        let told = self.job.as_ref()?.wait_for_result(limit);
        self.finish_job(told)
    }

    /// Call it after a process of the agent has ended and the last job is done. Returns at once without a baseline.
    pub fn compare(&mut self, limit: Duration) -> Option<Changes> {
        match &self.baseline {
            Ok(Some(baseline)) => {
                let baseline = Arc::clone(baseline);
                let work = move |until: &Until| {
                    let compared = baseline.compare(until);
                    GitResult::Changes(compared.map_or_else(Changes::Incomplete, Changes::Files))
                };
                self.job = Some(BackgroundTask::start("git-compare", limit, work));
                None
            }
            Ok(None) => Some(Changes::NotARepository),
            Err(why) => Some(Changes::Incomplete(*why)),
        }
    }
}

impl State {
    /// Derived from a later look: a fast agent may have changed the file. `tracked`: in HEAD. `None`: no file then.
    fn before(metadata: &Metadata, begun: SystemTime, tracked: bool) -> Option<State> {
        let state = State::from_metadata(metadata);
        if !since(metadata, begun) {
            return Some(state);
        }
        if !tracked && metadata.created().is_ok_and(|born| born >= begun) {
            return None;
        }
        // The earlier state is unknown, but differs from the present one.
        Some(State { modified: (i64::MIN, 0), ..state })
    }

    fn from_metadata(metadata: &Metadata) -> State {
        State { size: metadata.size(), modified: (metadata.mtime(), metadata.mtime_nsec()), mode: metadata.mode() }
    }
}

/// Whether a file's inode changed at or after `then`.
fn since(metadata: &Metadata, then: SystemTime) -> bool {
    let then = then.duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanoseconds = i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec());
    i128::try_from(then.as_nanos()).is_ok_and(|then| nanoseconds >= then)
}

#[cfg(test)]
mod tests {
    use super::{Baseline, State, Until, file_tick};
    use crate::protocol::words::Action;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;
    use std::sync::Arc;
    use std::time::{Duration, Instant, UNIX_EPOCH};

    #[test]
    fn a_change_right_before_the_start_is_older_and_one_right_after_it_is_not() {
        let folder = crate::process::scratch::Scratch::of(&crate::process::tree::nonce()).unwrap();
        let look = |name: &str| {
            let file = folder.path().join(name);
            fs::write(&file, "1").unwrap();
            file.metadata().unwrap()
        };
        for number in 0..100 {
            let before = look(&format!("before-{number}"));
            let begun = file_tick();
            assert!(State::before(&before, begun, false).is_some(), "{begun:?} {before:?}");
            let after = look(&format!("after-{number}"));
            assert_eq!(State::before(&after, begun, false), None, "{begun:?} {after:?}");
        }
    }

    #[test]
    fn a_file_changed_after_the_start_is_modified_although_head_moved_back() {
        let folder = crate::process::scratch::Scratch::of(&crate::process::tree::nonce()).unwrap();
        let root = folder.path().canonicalize().unwrap();
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").current_dir(&root);
            command.args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"]).args(args);
            assert!(command.status().unwrap().success(), "git {args:?}");
        };
        let file = root.join("a");
        git(&["init", "-q"]);
        for text in ["1", "2"] {
            fs::write(&file, text).unwrap();
            git(&["add", "a"]);
            git(&["commit", "-q", "-m", text]);
        }
        let until = Until::deadline(Instant::now() + Duration::from_secs(60));
        let mut baseline = Arc::into_inner(Baseline::now(&root, &until).unwrap().unwrap()).unwrap();
        git(&["reset", "-q", "HEAD~1"]);
        fs::write(&file, "3").unwrap();
        let metadata = file.metadata().unwrap();
        let changed = Duration::new(metadata.ctime().try_into().unwrap(), metadata.ctime_nsec().try_into().unwrap());
        baseline.begun = UNIX_EPOCH + changed;
        assert_eq!(baseline.compare(&until), Ok(vec![(file, Action::Modified)]));
        // The change is older, so only HEAD moved.
        baseline.begun += Duration::from_millis(1);
        assert_eq!(baseline.compare(&until), Ok(Vec::new()));
    }
}
