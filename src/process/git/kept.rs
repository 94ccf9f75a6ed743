//! Worktrees that earlier runs left: their state, their merge, and their removal, which loses no commit.

use super::query::{Content, FileState, Filters, Head, Incomplete, LookBelow, Status};
use super::worktree::{Repository, is_incomplete, reference, state_file};
use crate::io::files::FileLock;
use crate::process::query::Until;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registered {
    pub(crate) path: PathBuf,
    pub(crate) head: Head,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TreeState {
    /// Somebody removed its folder.
    Missing,
    Incomplete,
    Unreadable,
    Whole(TreeContents),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeContents {
    pub(crate) head: Head,
    /// The changed and new files that nobody has committed, and repositories that nobody added, relative to its root.
    pub(crate) changed: Vec<PathBuf>,
    pub(crate) nested: bool,
    /// Whether repositories of its submodules may have commits that exist nowhere else.
    pub(crate) in_submodules: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    Done,
    /// git did not merge, and the work tree is as it was before.
    Refused,
    /// git did not merge, and the attempt could not be undone.
    Stuck,
}

impl Repository {
    /// Lists the main one first.
    pub(crate) fn registered(&self, until: &Until) -> Result<Vec<Registered>, Incomplete> {
        let list = self.git.bytes(self.git.here().args(["worktree", "list", "--porcelain"]), until)?;
        let mut all: Vec<Registered> = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        for line in list.split(|&byte| byte == b'\n') {
            if let Some(path) = line.strip_prefix(b"worktree ") {
                all.push(Registered { path: OsStr::from_bytes(path).into(), head: Head::default() });
            } else if let Some(last) = all.last_mut() {
                if let Some(commit) = line.strip_prefix(b"HEAD ") {
                    last.head.commit = text(commit).filter(|commit| commit.bytes().any(|byte| byte != b'0'));
                } else if let Some(branch) = line.strip_prefix(b"branch refs/heads/") {
                    last.head.branch = text(branch);
                }
            }
        }
        Ok(all)
    }

    pub(crate) fn state_of(&self, path: &Path, until: &Until) -> TreeState {
        if path.symlink_metadata().is_err() {
            return TreeState::Missing;
        }
        if is_incomplete(path) {
            return TreeState::Incomplete;
        }
        self.contents(path, until).map_or(TreeState::Unreadable, TreeState::Whole)
    }

    fn contents(&self, path: &Path, until: &Until) -> Result<TreeContents, Incomplete> {
        let git = self.git.at(path, until)?;
        let Status { head, files, nested } = git.status(LookBelow::Included, until)?;
        let in_submodules = git.has_commits_in_submodules(until)?;
        let is_nested = !nested.is_empty();
        let changed = files.into_keys().chain(nested).map(|name| super::path_of(&name).to_owned()).collect();
        Ok(TreeContents { head, changed, nested: is_nested, in_submodules })
    }

    pub(crate) fn unmerged(&self, commit: &str, until: &Until) -> Result<u64, Incomplete> {
        let count = self.git.line(&["rev-list", "--count", &format!("HEAD..{commit}"), "--"], until)?;
        count.parse().map_err(|_| Incomplete::Failed)
    }

    /// The last commits that HEAD lacks, with their ids, the newest first.
    pub(crate) fn subjects(&self, commit: &str, most: usize, until: &Until) -> Result<Vec<String>, Incomplete> {
        let (most, range) = (format!("-{most}"), format!("HEAD..{commit}"));
        let query = ["log", "--no-color", "--no-decorate", "--oneline", &most, &range, "--"];
        let text = self.git.output(&query, until)?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The commits of this branch alone. Without a branch (HEAD is detached), those that no branch, tag or remote has.
    pub(crate) fn only_there(&self, commit: &str, branch: Option<&str>, until: &Until) -> Result<u64, Incomplete> {
        let except = branch.map(|branch| format!("--exclude={branch}"));
        let mut query = vec!["rev-list", "--count", commit, "--not", "HEAD"];
        query.extend(except.as_deref());
        query.extend(["--branches", "--remotes", "--tags", "--"]);
        self.git.line(&query, until)?.parse().map_err(|_| Incomplete::Failed)
    }

    pub(crate) fn commit_of(&self, branch: &str, until: &Until) -> Option<String> {
        let name = format!("{}^{{commit}}", reference(branch));
        self.git.line(&["rev-parse", "--verify", "--quiet", &name], until).ok()
    }

    /// HEAD of the work tree around the folder, and whether a file that git knows is changed.
    pub(crate) fn tree_around(&self, until: &Until) -> Result<(Head, bool), Incomplete> {
        let status = self.git.status(LookBelow::Ignored, until)?;
        let is_known = |file: &FileState| file.in_head.is_some() || !matches!(file.content, Content::Unknown);
        let is_changed = status.files.values().any(is_known);
        Ok((status.head, is_changed))
    }

    /// Merges a branch or a commit, as the user's own git does.
    pub(crate) fn merge(&self, commit: &str, until: &Until) -> Merged {
        let mut own = self.git.clone();
        own.filters = Filters::Own;
        let run = |args: &[&str]| own.bytes(own.as_typed().args(args), until).is_ok();
        if run(&["merge", "--no-edit", "--quiet", commit]) {
            return Merged::Done;
        }
        let is_begun = self.git.file("MERGE_HEAD").exists();
        if !is_begun || run(&["merge", "--abort"]) { Merged::Refused } else { Merged::Stuck }
    }

    /// `None`: a run uses the worktree.
    pub(crate) fn take(&self, path: &Path) -> Option<Taken> {
        match FileLock::open(&state_file(path)) {
            Ok(lock) => lock.take(Duration::ZERO).then_some(Taken { _lock: Some(lock) }),
            Err(_) => Some(Taken { _lock: None }),
        }
    }

    /// Removes all files in it. Returns whether it is gone.
    pub(crate) fn remove_kept(&self, path: &Path, _taken: &Taken, until: &Until) -> bool {
        self.remove(path, until)
    }
}

/// A worktree that no run can begin to use until this is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    _lock: Option<FileLock>,
}
