//! Files that changed while the agent ran, for those that it does not report itself: git's view before the spawn
//! against the one after the end.
//!
//! The repository may be hostile, so nothing that it configures may run. git gets an environment of its own and its
//! dangerous settings are overridden on the command line, which wins over every file. Only the names of filters are
//! free, so they are asked for first, and each is made empty. Nothing is written either, the index included.
//!
//! The processes started here are ended here, by their own handle and group. See [`Pending::settle`] for what else
//! may want to end them.

mod query;

use self::query::{Blob, Content, Git, Incomplete, Seen, Status, in_time, left};
use crate::protocol::words::Action;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// By how much a file system's clock may be behind ours.
const CLOCK_SLACK: Duration = Duration::from_millis(20);

/// What the agent changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// Not a git work tree, or no git: nothing can be said, and nothing needs to be.
    NotARepository,
    /// Took too long, was too much, or git failed (also where the repository is another user's and git does not
    /// trust it): the list would not be complete.
    Incomplete,
    /// The files of the whole work tree, by absolute path, each once, sorted.
    Files(Vec<(PathBuf, Action)>),
}

type Taken = Result<Option<Arc<Baseline>>, Incomplete>;

/// The state of the work tree before the agent ran.
#[derive(Debug)]
pub struct Baseline {
    git: Git,
    begun: SystemTime,
    head: Option<String>,
    /// Files that were changed or untracked already, with their state on disk.
    dirty: BTreeMap<Vec<u8>, Option<State>>,
}

/// A baseline that is being taken.
#[derive(Debug)]
pub struct Pending {
    receiver: Receiver<Taken>,
    taken: Option<Taken>,
    until: Instant,
}

/// What tells that a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    size: u64,
    modified: (i64, i64),
    mode: u32,
}

impl Baseline {
    /// Starts taking it, in a thread of its own, beside the spawn. Never blocks the caller. `cwd` is the agent's,
    /// absolute and without symbolic links, or the paths found do not compare with the agent's.
    pub fn begin(cwd: &Path, limit: Duration) -> Pending {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = || set("HOME").map(|home| Path::new(&home).join(".config").into_os_string());
        Baseline::begin_with(cwd, limit, set("PATH").unwrap_or_default(), set("XDG_CONFIG_HOME").or_else(home))
    }

    /// As `begin`, with the path that git is searched on and the folder that has the user's ignore file.
    pub fn begin_with(cwd: &Path, limit: Duration, path: OsString, config: Option<OsString>) -> Pending {
        let (begun, start) = (SystemTime::now(), Instant::now());
        let (sender, receiver) = channel();
        let cwd = cwd.to_path_buf();
        let take = move || {
            let _ = sender.send(Baseline::take(&cwd, begun, start + share(limit), path, config));
        };
        // Without a thread the sender is gone, which counts as incomplete.
        let _ = thread::Builder::new().name("git-baseline".into()).spawn(take);
        Pending { receiver, taken: None, until: start + limit }
    }

    fn take(cwd: &Path, begun: SystemTime, deadline: Instant, path: OsString, config: Option<OsString>) -> Taken {
        let Some(git) = Git::open(cwd, path, config, deadline)? else { return Ok(None) };
        let Status { head, files } = git.status(deadline)?;
        let mut dirty = BTreeMap::new();
        for (name, seen) in files {
            let state = git
                .look(&name, Some(&seen))
                .and_then(|metadata| State::before(&metadata, begun, seen.in_head.is_some()));
            dirty.insert(name, state);
            in_time(deadline)?;
        }
        Ok(Some(Arc::new(Baseline { git, begun, head, dirty })))
    }

    fn compare(&self, deadline: Instant) -> Result<Vec<(PathBuf, Action)>, Incomplete> {
        let Status { head, files } = self.git.status(deadline)?;
        let moved = match (&self.head, &head) {
            (old, new) if old == new => BTreeMap::new(),
            (old, new) => self.git.difference(old.as_deref(), new.as_deref(), deadline)?,
        };
        let mut names: Vec<&Vec<u8>> = self.dirty.keys().chain(files.keys()).chain(moved.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let mut changed = Vec::new();
        for name in names {
            let action = self.action(name, files.get(name), moved.get(name));
            changed.extend(action.map(|action| (self.git.absolute(name), action)));
            in_time(deadline)?;
        }
        changed.sort_unstable();
        Ok(changed)
    }

    /// `moved` is the file before and after in HEAD, if HEAD moved and the file differs there.
    fn action(&self, name: &[u8], seen: Option<&Seen>, moved: Option<&[Option<Blob>; 2]>) -> Option<Action> {
        let now = self.git.look(name, seen);
        if let Some(before) = self.dirty.get(name) {
            return match (before, now.as_ref().map(State::of)) {
                (None, None) => None,
                (None, Some(_)) => Some(Action::Created),
                (Some(_), None) => Some(Action::Deleted),
                (Some(before), Some(now)) => (*before != now).then_some(Action::Modified),
            };
        }
        // It was not in the status before: on disk it was as in the old HEAD, or not at all.
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
                    // Git compared it with something else (a reset does that).
                    _ => self.was_touched(&now),
                };
                differs.then_some(Action::Modified)
            }
        }
    }

    /// By the time of the inode's change, which no program can set.
    fn was_touched(&self, now: &Metadata) -> bool {
        since(now, self.begun - CLOCK_SLACK)
    }
}

impl Pending {
    /// Waits until no git of the baseline is left: to the end of its limit, counted from `begin`, and mostly not at
    /// all. To be called before anything is signalled, killed or reaped by descent from us, which could hit this
    /// git. The comparison's git comes after all that.
    pub fn settle(&mut self) {
        self.settle_by(self.until);
    }

    fn settle_by(&mut self, until: Instant) {
        if self.taken.is_none() {
            self.taken = Some(self.receiver.recv_timeout(left(until)).unwrap_or(Err(Incomplete)));
        }
    }

    /// Compares. Called after the end of a process of the agent's. Blocks at most `limit`.
    pub fn changes(&mut self, limit: Duration) -> Changes {
        let start = Instant::now();
        self.settle_by(start + limit);
        let baseline = match &self.taken {
            Some(Ok(Some(baseline))) => Arc::clone(baseline),
            Some(Ok(None)) => return Changes::NotARepository,
            Some(Err(Incomplete)) | None => return Changes::Incomplete,
        };
        // In a thread, since a dead file system may hold it for ever.
        let (sender, receiver) = channel();
        let compare = move || {
            let _ = sender.send(baseline.compare(start + share(limit)));
        };
        let _ = thread::Builder::new().name("git-compare".into()).spawn(compare);
        match receiver.recv_timeout(left(start + limit)) {
            Ok(Ok(files)) => Changes::Files(files),
            Ok(Err(Incomplete)) | Err(_) => Changes::Incomplete,
        }
    }
}

impl State {
    /// That of a file as it was at this time, though it is looked at later: a fast agent may already have changed it.
    /// `tracked`: it is in HEAD. `None`: it was not there.
    fn before(metadata: &Metadata, begun: SystemTime, tracked: bool) -> Option<State> {
        if !tracked && metadata.created().is_ok_and(|born| born >= begun) {
            return None;
        }
        let state = State::of(metadata);
        // What it was is not known, but that it is not the same.
        Some(if since(metadata, begun) { State { modified: (i64::MIN, 0), ..state } } else { state })
    }

    fn of(metadata: &Metadata) -> State {
        State { size: metadata.size(), modified: (metadata.mtime(), metadata.mtime_nsec()), mode: metadata.mode() }
    }
}

/// Whether a file's inode was changed since then.
fn since(metadata: &Metadata, then: SystemTime) -> bool {
    let then = then.duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanoseconds = i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec());
    i128::try_from(then.as_nanos()).is_ok_and(|then| nanoseconds >= then)
}

/// What of a limit may be used before killing starts, which takes time too.
fn share(limit: Duration) -> Duration {
    limit * 9 / 10
}
