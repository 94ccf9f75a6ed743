//! Worktrees for runs: a checkout of HEAD in a folder of its own, on a branch of its own.
//!
//! A checkout runs no hook and no filter of the repository, so files that git stores through a filter stay as git stores
//! them.

use super::query::{Git, Incomplete};
use super::surroundings;
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
/// The longest message of git that is kept, in characters.
const MESSAGE_CHARS: usize = 300;

/// A repository with a commit.
#[derive(Debug)]
pub(crate) struct Repository {
    git: Git,
    head: String,
    /// The root of the main work tree, in which every linked one has its data.
    main: PathBuf,
    /// Whether the work tree has changes that are not in HEAD.
    pub(crate) is_changed: bool,
}

/// The reason why a folder has no repository to begin from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRepository {
    /// The folder is in no work tree, or git is not installed.
    Outside,
    NoCommit,
    /// git failed, for example because it does not trust the repository's owner, or was too slow.
    Failed,
}

impl Repository {
    /// Finds the repository around `cwd`, which must be absolute and without links.
    pub(crate) fn around(cwd: &Path, until: &Until) -> Result<Repository, NoRepository> {
        let (path, config) = surroundings();
        let failed = |_: Incomplete| NoRepository::Failed;
        let git = Git::open(cwd, path, config, until).map_err(failed)?.ok_or(NoRepository::Outside)?;
        let status = git.status(until).map_err(failed)?;
        let head = status.head.ok_or(NoRepository::NoCommit)?;
        let (code, output) =
            git.run(git.here().args(["rev-parse", "--git-common-dir"]), false, until).map_err(failed)?;
        let common = output.strip_suffix(b"\n").filter(|_| code == Some(0)).ok_or(NoRepository::Failed)?;
        let common = fs::canonicalize(git.root().join(OsStr::from_bytes(common))).map_err(|_| NoRepository::Failed)?;
        let main = match common.parent() {
            Some(parent) if common.ends_with(".git") => parent.to_owned(),
            // A repository with its data elsewhere.
            Some(_) | None => git.root().to_owned(),
        };
        Ok(Repository { git, head, main, is_changed: !status.files.is_empty() })
    }

    /// The root of the main work tree.
    pub(crate) fn main(&self) -> &Path {
        &self.main
    }

    /// The root of the work tree around the folder.
    pub(crate) fn root(&self) -> &Path {
        self.git.root()
    }

    /// The commit of HEAD.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    pub(crate) fn has_branch(&self, branch: &str, until: &Until) -> Result<bool, Incomplete> {
        let (code, _) =
            self.git.run(self.git.here().args(["show-ref", "--quiet", &reference(branch)]), false, until)?;
        Ok(code == Some(0))
    }

    /// Checks out HEAD at `path`, on the new branch. The branch and the folder must not exist: making them first keeps
    /// another process from using them too, and everything in them is ours to remove if git fails or is ended.
    pub(crate) fn add(self, path: &Path, branch: String, until: &Until) -> Result<Worktree, AddFailure> {
        let failed = |message: &str| AddFailure { message: message.to_owned(), is_left: false };
        let late = |_: Incomplete| failed("it took too long, or could not be started");
        let mut command = self.git.unfiltered(until).map_err(late)?;
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
        command.args(["worktree", "add", "--quiet"]).arg(path).arg(&worktree.branch);
        let message = match git.run(&mut command, true, until) {
            Ok((Some(0), _)) => return Ok(worktree),
            Ok((_, output)) => {
                let text = String::from_utf8_lossy(&output);
                let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed");
                last.chars().take(MESSAGE_CHARS).collect()
            }
            Err(incomplete) => late(incomplete).message,
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

/// The work in a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// HEAD has moved since the worktree was made.
    pub(crate) has_commits: bool,
    /// There are changed, new or ignored files, other than our own data.
    pub(crate) has_files: bool,
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

    /// Looks for work. Ignored files count, because nobody else has them.
    pub(crate) fn work(&self, until: &Until) -> Result<Work, Incomplete> {
        let (path, config) = surroundings();
        let git = Git::open(&self.path, path, config, until)?.filter(|git| git.root() == self.path);
        let git = git.ok_or(Incomplete::Failed)?;
        let mut command = git.unfiltered(until)?;
        command.args(["status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--untracked-files=all"]);
        command.args(["--ignored=traditional", "--no-renames", "--ignore-submodules=none"]);
        let (Some(0), output) = git.run(&mut command, false, until)? else { return Err(Incomplete::Failed) };
        let (heads, files): (Vec<&[u8]>, Vec<&[u8]>) =
            output.split(|byte| *byte == 0).filter(|record| !record.is_empty()).partition(|record| record[0] == b'#');
        let head = |name: &str| {
            let prefix = format!("# branch.{name} ");
            heads.iter().find_map(|record| record.strip_prefix(prefix.as_bytes()))
        };
        let is_at_base =
            head("oid") == Some(self.repository.head.as_bytes()) && head("head") == Some(self.branch.as_bytes());
        let own = format!("! {HOME}/local/");
        let has_files = files.iter().any(|record| !record.starts_with(own.as_bytes()));
        Ok(Work { has_commits: !is_at_base, has_files })
    }

    /// Removes a worktree without work, and its branch. git refuses if there is work after all. Returns whether both are
    /// gone.
    pub(crate) fn remove(&self, until: &Until) -> bool {
        self.unregister(&[], until) && self.forget_branch(until)
    }

    /// Removes a worktree that git did not complete, and its branch. Returns whether both are gone.
    fn discard(&self, until: &Until) -> bool {
        let is_gone = fs::remove_dir_all(&self.path).is_ok();
        // Twice, because git locks a worktree while it makes it. It fails if git has not come that far.
        let unregistered = self.unregister(&["--force", "--force"], until) || !self.is_registered(until);
        self.forget_branch(until) && unregistered && is_gone
    }

    fn unregister(&self, flags: &[&str], until: &Until) -> bool {
        let Ok(mut command) = self.repository.git.unfiltered(until) else { return false };
        self.succeeds(command.args(["worktree", "remove"]).args(flags).arg(&self.path), until)
    }

    /// Whether git lists the worktree. True if that cannot be found out.
    fn is_registered(&self, until: &Until) -> bool {
        let git = &self.repository.git;
        match git.run(git.here().args(["worktree", "list", "--porcelain"]), false, until) {
            Ok((Some(0), list)) => {
                let path = [b"worktree ", self.path.as_os_str().as_bytes()].concat();
                list.split(|byte| *byte == b'\n').any(|line| line == path)
            }
            Ok(_) | Err(_) => true,
        }
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
