//! Files that changed while the agent ran, for those that it does not report itself: git's view before the spawn
//! against the one after the end.
//!
//! The repository may be hostile, so nothing that it configures may run. git gets an environment of its own and its
//! dangerous settings are overridden on the command line, which wins over every file. Only the names of filters are
//! free, so they are asked for first, and each is made empty. Nothing is written either, the index included.
//!
//! The processes started here are ended here, by their own handle and group. They descend from us like those of the
//! agent, so while [`Pending::is_busy`] nothing may be killed or reaped for its descent from us.

mod query;

pub use self::query::Incomplete;

use self::query::{Blob, Content, Git, Seen, Status, in_time};
use super::query::Until;
use crate::protocol::words::Action;
use crossbeam_channel::{Receiver, Sender, bounded, never};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// By how much a file system's clock may be behind ours.
const CLOCK_SLACK: Duration = Duration::from_millis(20);

/// What the agent changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// Not a git work tree, or no git: nothing can be said, and nothing needs to be.
    NotARepository,
    /// The list would not be complete.
    Incomplete(Incomplete),
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

/// What git is asked about a run: first for a baseline, then for what changed. Nothing here waits for it, but for
/// [`Pending::settle`]: it works in a thread.
#[derive(Debug)]
pub struct Pending {
    baseline: Result<Option<Arc<Baseline>>, Incomplete>,
    job: Option<Job>,
}

/// A thread that asks git.
#[derive(Debug)]
struct Job {
    told: Receiver<Told>,
    /// `None`: it was given up, and kills its git.
    wanted: Option<Sender<Infallible>>,
}

/// What such a thread has to say, once.
#[derive(Debug)]
pub struct Told(Found);

#[derive(Debug)]
enum Found {
    Baseline(Taken),
    Changes(Changes),
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
        let begun = SystemTime::now();
        let cwd = cwd.to_path_buf();
        let job = Job::start("git-baseline", limit, move |until| {
            Found::Baseline(Baseline::take(&cwd, begun, until, path, config))
        });
        Pending { baseline: Err(Incomplete::Late), job: Some(job) }
    }

    fn take(cwd: &Path, begun: SystemTime, until: &Until, path: OsString, config: Option<OsString>) -> Taken {
        let Some(git) = Git::open(cwd, path, config, until)? else { return Ok(None) };
        let Status { head, files } = git.status(until)?;
        let mut dirty = BTreeMap::new();
        for (name, seen) in files {
            let state = git
                .look(&name, Some(&seen))
                .and_then(|metadata| State::before(&metadata, begun, seen.in_head.is_some()));
            dirty.insert(name, state);
            in_time(until)?;
        }
        Ok(Some(Arc::new(Baseline { git, begun, head, dirty })))
    }

    fn compare(&self, until: &Until) -> Result<Vec<(PathBuf, Action)>, Incomplete> {
        let Status { head, files } = self.git.status(until)?;
        let moved = match (&self.head, &head) {
            (old, new) if old == new => BTreeMap::new(),
            (old, new) => self.git.difference(old.as_deref(), new.as_deref(), until)?,
        };
        let mut names: Vec<&Vec<u8>> = self.dirty.keys().chain(files.keys()).chain(moved.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let mut changed = Vec::new();
        for name in names {
            let action = self.action(name, files.get(name), moved.get(name));
            changed.extend(action.map(|action| (self.git.absolute(name), action)));
            in_time(until)?;
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

impl Job {
    fn start(name: &str, limit: Duration, work: impl FnOnce(&Until) -> Found + Send + 'static) -> Job {
        let (told_in, told) = bounded(1);
        let (until, wanted) = Until::wanted(Instant::now() + limit);
        let work = move || {
            let _ = told_in.send(Told(work(&until)));
        };
        // Without a thread the sender is gone, which is told as well.
        let _ = thread::Builder::new().name(name.into()).spawn(work);
        Job { told, wanted: Some(wanted) }
    }
}

impl Pending {
    /// Whether a git of ours may run.
    pub fn is_busy(&self) -> bool {
        self.job.is_some()
    }

    /// Whether it was given up.
    pub fn is_given_up(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.wanted.is_none())
    }

    /// Ready when git has something to say; an error says that it never will. Hand either to [`Pending::hear`].
    pub fn told(&self) -> Receiver<Told> {
        self.job.as_ref().map_or_else(never, |job| job.told.clone())
    }

    /// Takes what was told. Gives the changes, if it was those.
    pub fn hear(&mut self, told: Option<Told>) -> Option<Changes> {
        self.job = None;
        match told?.0 {
            Found::Baseline(taken) => {
                self.baseline = taken;
                None
            }
            Found::Changes(changes) => Some(changes),
        }
    }

    /// Has the thread kill its git, and say no more that counts.
    pub fn give_up(&mut self) {
        self.job.iter_mut().for_each(|job| job.wanted = None);
    }

    /// Waits until no git of ours is left, at most so long. Gives the changes, if they were being looked for.
    pub fn settle(&mut self, limit: Duration) -> Option<Changes> {
        let told = self.job.as_ref()?.told.recv_timeout(limit).ok();
        self.hear(told)
    }

    /// Begins to compare. To be called after the end of a process of the agent's, once nothing is busy. Gives the
    /// changes where there is nothing to compare with.
    pub fn compare(&mut self, limit: Duration) -> Option<Changes> {
        match &self.baseline {
            Ok(Some(baseline)) => {
                let baseline = Arc::clone(baseline);
                let work = move |until: &Until| {
                    let compared = baseline.compare(until);
                    Found::Changes(compared.map_or_else(Changes::Incomplete, Changes::Files))
                };
                self.job = Some(Job::start("git-compare", limit, work));
                None
            }
            Ok(None) => Some(Changes::NotARepository),
            Err(why) => Some(Changes::Incomplete(*why)),
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
