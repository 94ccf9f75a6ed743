//! Worktrees for runs: a checkout of HEAD in a folder of its own, on a branch of its own.
//!
//! A checkout runs no hook and no filter of the repository, so files that git stores through a filter stay as git stores
//! them.

use super::query::{Filters, Git, Head, Incomplete, LookBelow, Status};
use super::surroundings;
use crate::io::files::OpenFolder;
use crate::process::query::Until;
use crate::protocol::workflow::HOME;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The time limit of git for the removal of a worktree that it did not complete.
const DISCARD_LIMIT: Duration = Duration::from_secs(5);
/// The maximum wait for another process that adds or removes a worktree, and the part of it that a cancel waits.
const TURN_LIMIT: Duration = Duration::from_secs(60);
const TURN_PART: Duration = Duration::from_millis(50);
/// The longest message of git that is kept, in characters.
const MESSAGE_CHARS: usize = 300;

#[derive(Debug)]
pub(crate) struct Repository {
    git: Git,
    head: String,
    /// The root of the main work tree, in which every linked one has its data.
    main: PathBuf,
    /// git's folder, which all worktrees share. Also the lock for adding and removing worktrees, so that no file is
    /// left.
    common: PathBuf,
    /// Whether the work tree has changes that are not in HEAD.
    pub(crate) is_changed: bool,
}

/// The reason why a folder has no repository to begin from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRepository {
    /// The folder is in no work tree, or git is not installed.
    Outside,
    NoCommit,
    /// git failed, for example because it does not trust the repository's owner.
    Failed,
    /// git was too slow.
    Late,
}

/// The time limit for the look whether a repository is bare.
const BARE_LIMIT: Duration = Duration::from_secs(5);

/// Whether a folder belongs to a bare repository, and to none of its worktrees.
pub(crate) fn is_bare(cwd: &Path) -> bool {
    let (path, config) = surroundings();
    Git::is_bare(cwd, path, config, &Until::deadline(Instant::now() + BARE_LIMIT))
}

impl Repository {
    /// Finds the repository around `cwd`, which must be absolute and without links.
    pub(crate) fn around(cwd: &Path, until: &Until) -> Result<Repository, NoRepository> {
        let (path, config) = surroundings();
        let failed = |why: Incomplete| match why {
            Incomplete::Late => NoRepository::Late,
            Incomplete::Failed => NoRepository::Failed,
        };
        let git = Git::open(cwd, path, config, Filters::Empty, until).map_err(failed)?.ok_or(NoRepository::Outside)?;
        let status = git.status(LookBelow::Ignored, until).map_err(failed)?;
        let head = status.head.commit.ok_or(NoRepository::NoCommit)?;
        let (code, output) =
            git.run(git.here().args(["rev-parse", "--git-common-dir"]), false, until).map_err(failed)?;
        let common = output.strip_suffix(b"\n").filter(|_| code == Some(0)).ok_or(NoRepository::Failed)?;
        let common = fs::canonicalize(git.root().join(OsStr::from_bytes(common))).map_err(|_| NoRepository::Failed)?;
        let main = match common.parent() {
            Some(parent) if common.ends_with(".git") => parent.to_owned(),
            // A repository with its data elsewhere.
            Some(_) | None => git.root().to_owned(),
        };
        Ok(Repository { git, head, main, common, is_changed: !status.files.is_empty() })
    }

    /// The root of the main work tree.
    pub(crate) fn main(&self) -> &Path {
        &self.main
    }

    /// The root of the work tree around the folder.
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

    /// Whether git lists a worktree at this path. True if that cannot be found out.
    pub(crate) fn has_worktree(&self, path: &Path, until: &Until) -> bool {
        match self.git.run(self.git.here().args(["worktree", "list", "--porcelain"]), false, until) {
            Ok((Some(0), list)) => {
                let path = [b"worktree ", path.as_os_str().as_bytes()].concat();
                list.split(|byte| *byte == b'\n').any(|line| line == path)
            }
            Ok(_) | Err(_) => true,
        }
    }

    /// Waits until no other process of ours adds or removes a worktree: git fails while another git makes the folder of
    /// one. The lock lasts until it is dropped. `None`: the file system has no locks, or another process holds it for too
    /// long; git goes on then, and may fail.
    fn turn(&self, until: &Until) -> Option<OpenFolder> {
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
        let worktree = Worktree { repository: self, path: path.to_owned(), branch };
        let git = &worktree.repository.git;
        let mut begin = git.here();
        // The empty value: the branch must not exist.
        begin.args(["update-ref", &reference(&worktree.branch), &worktree.repository.head, ""]);
        if !worktree.succeeds(&mut begin, until) {
            let is_left = fs::remove_dir(path).is_err();
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

/// The reason why a worktree could not be made.
#[derive(Debug)]
pub(crate) struct AddFailure {
    /// git's message, which may hold control characters.
    pub(crate) message: String,
    /// Whether a part of the worktree could not be removed again.
    pub(crate) is_left: bool,
}

/// A worktree that a run made.
#[derive(Debug)]
pub(crate) struct Worktree {
    repository: Repository,
    path: PathBuf,
    branch: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) head: Head,
    /// HEAD has moved since the worktree was made.
    pub(crate) has_commits: bool,
    /// There are changed, new or ignored files, other than our own data.
    pub(crate) has_files: bool,
    /// There are submodules. Their repositories go with the worktree.
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

    pub(crate) fn branch(&self) -> &str {
        &self.branch
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

    /// Looks for work. Ignored files count, because nobody else has them.
    pub(crate) fn work(&self, until: &Until) -> Result<Work, Incomplete> {
        let git = self.repository.git.at(&self.path, until)?;
        let Status { head, files, nested } = git.status(LookBelow::Included, until)?;
        let base = Head { branch: Some(self.branch.clone()), commit: Some(self.repository.head.clone()) };
        let own = self.path.join(HOME).join("local");
        let has_ignored = || Ok(git.ignored(until)?.iter().any(|path| !path.starts_with(&own)));
        Ok(Work {
            has_commits: head != base,
            head,
            has_files: !files.is_empty() || !nested.is_empty() || has_ignored()?,
            has_submodules: git.has_modules() || !git.submodules(until)?.is_empty(),
        })
    }

    /// Removes the worktree and its branch, with all work in it. The branch stays if it has moved. Returns whether both
    /// are gone.
    pub(crate) fn discard(&self, until: &Until) -> bool {
        // git would look into it first, which may run a filter.
        let is_gone = fs::remove_dir_all(&self.path).is_ok();
        let turn = self.repository.turn(until);
        let mut unregister = self.repository.git.here();
        // Twice, because git locks a worktree while it makes it.
        unregister.args(["worktree", "remove", "--force", "--force"]).arg(&self.path);
        // It fails if git has not come that far.
        let is_unregistered = self.succeeds(&mut unregister, until) || !self.repository.has_worktree(&self.path, until);
        drop(turn);
        self.forget_branch(until) && is_unregistered && is_gone
    }

    /// Deletes the branch, if it is still at the commit from which it was made.
    fn forget_branch(&self, until: &Until) -> bool {
        let repository = &self.repository;
        let mut command = repository.git.here();
        self.succeeds(command.args(["update-ref", "-d", &reference(&self.branch), &repository.head]), until)
    }

    fn succeeds(&self, command: &mut Command, until: &Until) -> bool {
        matches!(self.repository.git.run(command, false, until), Ok((Some(0), _)))
    }
}

/// The full name of a branch.
fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}
