//! Worktrees for runs: a checkout of HEAD in a folder of its own, on a branch of its own.
//!
//! A checkout runs no hook and no filter of the repository, so files that git stores through a filter stay as git stores
//! them.

use super::query::{Filters, Git, Head, Incomplete, LookBelow, Status};
use super::surroundings;
use crate::io::files::{FileLock, OpenFolder, read_text, worktrees_folder};
use crate::process::query::Until;
use crate::protocol::workflow::HOME;
use crate::system::file_tick;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::ops::Not;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

const DISCARD_LIMIT: Duration = Duration::from_secs(5);
/// The maximum wait for another process that adds or removes a worktree, and the part of it that a cancel waits.
const TURN_LIMIT: Duration = Duration::from_secs(60);
const TURN_PART: Duration = Duration::from_millis(50);
const MESSAGE_CHARS: usize = 300;

/// The maximum wait for another process that removes a worktree.
const HOLD_LIMIT: Duration = Duration::from_secs(1);

/// Keeps the worktree of a run around this directory from being merged or removed, until it is dropped or the process
/// ends. `None`: there is none, or its file system has no locks.
pub(crate) fn hold(cwd: &Path) -> Option<FileLock> {
    let all = worktrees_folder()?;
    let root = cwd.ancestors().find(|folder| folder.parent() == Some(&*all))?;
    FileLock::open(&state_file(root)).ok().filter(|lock| lock.share(HOLD_LIMIT))
}

/// The file beside a worktree that runs lock. It says [`INCOMPLETE`] until the worktree is complete.
pub(super) fn state_file(path: &Path) -> PathBuf {
    path.with_added_extension("state")
}

const INCOMPLETE: &str = "incomplete\n";

pub(crate) fn is_incomplete(path: &Path) -> bool {
    read_text(&state_file(path), INCOMPLETE.len() as u64).is_ok_and(|text| text == INCOMPLETE)
}

/// The worktrees of all repositories in a folder, by their state files.
pub(crate) fn known_in(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .filter(|file| file.extension().is_some_and(|end| end == "state"))
        .map(|file| file.with_extension(""))
        .collect()
}

#[derive(Debug)]
pub(crate) struct Repository {
    pub(super) git: Git,
    head: String,
    /// The root of the main work tree, in which every linked one has its data.
    main: PathBuf,
    /// git's folder, which all worktrees share. Also the lock for adding and removing worktrees, so that no file is
    /// left.
    common: PathBuf,
    pub(crate) is_changed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRepository {
    /// The folder is in no work tree, or git is not installed.
    Outside,
    NoCommit,
    /// git failed, for example because it does not trust the repository's owner.
    Failed,
    Late,
}

const BARE_LIMIT: Duration = Duration::from_secs(5);

/// Whether a folder belongs to a bare repository, and to none of its worktrees.
pub(crate) fn is_bare(cwd: &Path) -> bool {
    Git::is_bare(cwd, surroundings(), &Until::deadline(Instant::now() + BARE_LIMIT))
}

impl Repository {
    /// `cwd`: absolute and without links.
    pub(crate) fn around(cwd: &Path, until: &Until) -> Result<Repository, NoRepository> {
        let failed = |why: Incomplete| match why {
            Incomplete::Late => NoRepository::Late,
            Incomplete::Failed => NoRepository::Failed,
        };
        let git =
            Git::open(cwd, surroundings(), Filters::Empty, until).map_err(failed)?.ok_or(NoRepository::Outside)?;
        let status = git.status(LookBelow::Ignored, until).map_err(failed)?;
        let head = status.head.commit.ok_or(NoRepository::NoCommit)?;
        let output = git.bytes(git.here().args(["rev-parse", "--git-common-dir"]), until).map_err(failed)?;
        let common = output.strip_suffix(b"\n").ok_or(NoRepository::Failed)?;
        let common = fs::canonicalize(git.root().join(OsStr::from_bytes(common))).map_err(|_| NoRepository::Failed)?;
        let main = match common.parent() {
            Some(parent) if common.ends_with(".git") => parent.to_owned(),
            // A repository with its data elsewhere.
            Some(_) | None => git.root().to_owned(),
        };
        Ok(Repository { git, head, main, common, is_changed: !status.files.is_empty() })
    }

    pub(crate) fn main(&self) -> &Path {
        &self.main
    }

    pub(crate) fn root(&self) -> &Path {
        self.git.root()
    }

    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    pub(crate) fn has_branch(&self, branch: &str, until: &Until) -> Result<bool, Incomplete> {
        let (code, _) =
            self.git.run(self.git.here().args(["show-ref", "--quiet", &reference(branch)]), false, until)?;
        Ok(code == Some(0))
    }

    /// True if that cannot be found out.
    pub(crate) fn has_worktree(&self, path: &Path, until: &Until) -> bool {
        self.registered(until).is_ok_and(|all| all.iter().all(|one| one.path != path)).not()
    }

    /// git fails while another git makes the folder of a worktree. The lock lasts until it is dropped. `None`: the file
    /// system has no locks, or another process holds it for too long; git goes on then, and may fail.
    pub(super) fn turn(&self, until: &Until) -> Option<OpenFolder> {
        let folder = OpenFolder::open(&self.common).ok()?;
        let given_up = Instant::now() + TURN_LIMIT;
        while Instant::now() < given_up && !until.is_over() {
            if folder.lock(TURN_PART).is_some() {
                return Some(folder);
            }
        }
        None
    }

    /// Checks out HEAD at `path`, on the new branch. The branch and the folder must not exist: making them first keeps
    /// another process from using them too, and everything in them is ours to remove if git fails or is ended.
    pub(crate) fn add(self, path: &Path, branch: String, until: &Until) -> Result<Worktree, AddFailure> {
        let failed = |message: &str| AddFailure { message: message.to_owned(), is_left: false };
        fs::create_dir(path).map_err(|_| failed("its folder cannot be created"))?;
        // Without the mark, the next command takes an incomplete worktree for a complete one.
        if fs::write(state_file(path), INCOMPLETE).is_err() {
            let is_left = fs::remove_dir(path).is_err();
            return Err(AddFailure { is_left, ..failed("its folder cannot be written") });
        }
        let held = hold(path);
        let worktree = Worktree { repository: self, path: path.to_owned(), branch, ready: None, held };
        let git = &worktree.repository.git;
        let mut begin = git.here();
        // The empty value: the branch must not exist.
        begin.args(["update-ref", &reference(&worktree.branch), &worktree.repository.head, ""]);
        if git.bytes(&mut begin, until).is_err() {
            let is_left = fs::remove_dir(path).is_err() || fs::remove_file(state_file(path)).is_err();
            return Err(AddFailure { is_left, ..failed("its branch cannot be created") });
        }
        let message = match worktree.check_out(until) {
            Ok((Some(0), _)) => return Ok(worktree),
            Ok((_, output)) => {
                let text = String::from_utf8_lossy(&output);
                let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed");
                last.chars().take(MESSAGE_CHARS).collect()
            }
            Err(_) => "it took too long, or could not be started".to_owned(),
        };
        // The caller may have cancelled `until`.
        let is_left = !worktree.discard(&Until::deadline(Instant::now() + DISCARD_LIMIT));
        Err(AddFailure { message, is_left })
    }
}

#[derive(Debug)]
pub(crate) struct AddFailure {
    /// git's message, which may hold control characters.
    pub(crate) message: String,
    /// Whether a part of the worktree could not be removed again.
    pub(crate) is_left: bool,
}

#[derive(Debug)]
pub(crate) struct Worktree {
    pub(super) repository: Repository,
    pub(super) path: PathBuf,
    branch: String,
    /// The time from which a change of an ignored file is work. `None`: it is not complete.
    ready: Option<SystemTime>,
    held: Option<FileLock>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) head: Head,
    /// HEAD has moved since the worktree was made.
    pub(crate) has_commits: bool,
    /// There are files that changed since the worktree was complete, other than our own data.
    pub(crate) has_files: bool,
    /// Repositories of submodules may have commits, which would go with the worktree.
    pub(crate) has_submodules: bool,
}

impl Work {
    /// Whether the worktree must stay.
    pub(crate) fn is_any(&self) -> bool {
        self.has_commits || self.has_files || self.has_submodules
    }
}

impl Worktree {
    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Registers the worktree, and fills it. A separate step, because conditional includes of the configuration may
    /// apply only there: the filters that it brings are known once git can read it there.
    fn check_out(&self, until: &Until) -> Result<(Option<i32>, Vec<u8>), Incomplete> {
        let git = &self.repository.git;
        let mut register = git.here();
        register.args(["worktree", "add", "--quiet", "--no-checkout"]).arg(&self.path).arg(&self.branch);
        let turn = self.repository.turn(until);
        let registered = git.run(&mut register, true, until)?;
        drop(turn);
        if registered.0 != Some(0) {
            return Ok(registered);
        }
        let git = self.repository.git.at(&self.path, until)?;
        git.run(git.unfiltered(until)?.args(["reset", "--hard", "--quiet"]), true, until)
    }

    /// From now on, a change of an ignored file is work. Error: its state file cannot be written, and a removal would
    /// not spare what is in the worktree.
    pub(crate) fn complete(&mut self) -> io::Result<()> {
        fs::write(state_file(&self.path), "")?;
        self.ready = Some(file_tick());
        Ok(())
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.ready.is_some()
    }

    /// Ignored files count, because nobody else has them.
    pub(crate) fn work(&self, until: &Until) -> Result<Work, Incomplete> {
        let git = self.repository.git.at(&self.path, until)?;
        let Status { head, files, nested } = git.status(LookBelow::Included, until)?;
        let base = Head { branch: Some(self.branch.clone()), commit: Some(self.repository.head.clone()) };
        let own = self.path.join(HOME).join("local");
        Ok(Work {
            has_commits: head != base,
            head,
            has_files: !files.is_empty()
                || !nested.is_empty()
                || git.has_ignored_since(self.ready.unwrap_or(SystemTime::UNIX_EPOCH), &own, until)?,
            has_submodules: git.has_commits_in_submodules(until)?,
        })
    }

    /// The branch stays if it has moved, and both stay if another run uses the worktree. Returns whether both are gone.
    pub(crate) fn discard(&self, until: &Until) -> bool {
        let is_alone = self.held.as_ref().is_none_or(|held| held.take(Duration::ZERO));
        let is_gone = is_alone && self.repository.remove(&self.path, until);
        is_gone && self.repository.delete_branch(&self.branch, &self.repository.head, until)
    }
}

impl Repository {
    /// Removes all files in it. Returns whether it is gone.
    pub(super) fn remove(&self, path: &Path, until: &Until) -> bool {
        // git would look into it first, which may run a filter.
        let is_gone = fs::remove_dir_all(path).is_ok() || path.symlink_metadata().is_err();
        let turn = self.turn(until);
        let mut unregister = self.git.here();
        // Twice, because git locks a worktree while it makes it.
        unregister.args(["worktree", "remove", "--force", "--force"]).arg(path);
        // It fails if git has not come that far.
        let is_unregistered = self.git.bytes(&mut unregister, until).is_ok() || !self.has_worktree(path, until);
        drop(turn);
        let is_removed = is_gone && is_unregistered;
        if is_removed {
            let _ = fs::remove_file(state_file(path));
        }
        is_removed
    }

    /// Keeps a branch that is not at this commit. Returns whether it is gone.
    pub(crate) fn delete_branch(&self, branch: &str, commit: &str, until: &Until) -> bool {
        self.git.bytes(self.git.here().args(["update-ref", "-d", &reference(branch), commit]), until).is_ok()
    }
}

pub(super) fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}
