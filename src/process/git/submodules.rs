//! Submodules of a worktree: filled from the repositories that the main work tree has of them, without the network, and
//! searched for commits that would go with the worktree.

use super::query::{Git, Incomplete};
use super::since;
use super::worktree::Worktree;
use crate::process::query::Until;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

const DEPTH: u8 = 4;

impl Git {
    /// The submodules in the index, each with its path and its commit.
    fn links(&self, until: &Until) -> Result<Vec<(Vec<u8>, String)>, Incomplete> {
        let list = self.bytes(self.here().args(["ls-files", "-s", "-z"]), until)?;
        let link = |record: &[u8]| {
            let rest = record.strip_prefix(b"160000 ")?;
            let (id, name) = (rest.split(|&byte| byte == b' ').next()?, rest.splitn(2, |&byte| byte == b'\t').nth(1)?);
            Some((name.to_vec(), String::from_utf8(id.to_vec()).ok()?))
        };
        Ok(list.split(|&byte| byte == 0).filter_map(link).collect())
    }

    /// The submodules that are checked out.
    pub(super) fn submodules(&self, until: &Until) -> Result<Vec<Vec<u8>>, Incomplete> {
        let names = self.links(until)?.into_iter().map(|(name, _)| name);
        Ok(names.filter(|name| self.absolute(name).join(".git").symlink_metadata().is_ok()).collect())
    }

    /// Whether repositories of submodules may have commits that exist nowhere else. Those in git's folder are not read:
    /// somebody else made them.
    pub(super) fn has_commits_in_submodules(&self, until: &Until) -> Result<bool, Incomplete> {
        if fs::read_dir(self.file("modules")).is_ok_and(|mut modules| modules.next().is_some()) {
            return Ok(true);
        }
        for name in self.submodules(until)? {
            let Ok(inner) = self.at(&self.absolute(&name), until) else { return Ok(true) };
            let query = ["rev-list", "--count", "--all", "--reflog", "HEAD", "--not", "--remotes"];
            if inner.line(&query, until)? != "0" || inner.has_commits_in_submodules(until)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A folder of ignored files counts too. `except`: a folder that does not count.
    pub(super) fn has_ignored_since(&self, then: SystemTime, except: &Path, until: &Until) -> Result<bool, Incomplete> {
        let mut paths = self.ignored(until)?;
        while let Some(path) = paths.pop() {
            super::query::in_time(until)?;
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            if path.starts_with(except) {
                continue;
            }
            if since(&metadata, then) {
                return Ok(true);
            }
            if metadata.is_dir() {
                paths.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
        }
        Ok(false)
    }

    /// Copies those that are checked out in another work tree. Returns the paths of the others, which stay empty.
    fn fill_submodules(&self, from: &Git, depth: u8, until: &Until) -> Vec<PathBuf> {
        let mut empty = Vec::new();
        for (name, commit) in self.links(until).unwrap_or_default() {
            let path = self.absolute(&name);
            let inner = from.at(&from.absolute(&name), until).ok();
            let filled = inner.and_then(|inner| Some((self.clone_of(&inner, &path, &commit, until)?, inner)));
            match filled {
                Some((own, inner)) if depth > 0 => empty.extend(own.fill_submodules(&inner, depth - 1, until)),
                Some(_) => {}
                None => empty.push(path),
            }
        }
        empty
    }

    /// `None`: the commit is missing there, or git failed, and the folder is empty.
    fn clone_of(&self, from: &Git, path: &Path, commit: &str, until: &Until) -> Option<Git> {
        let succeeds = |git: &Git, command: &mut Command| git.bytes(command, until).is_ok();
        if !succeeds(from, from.here().args(["cat-file", "-e", &format!("{commit}^{{commit}}")])) {
            return None;
        }
        let mut local = self.clone();
        local.set("GIT_ALLOW_PROTOCOL", "file".into());
        let mut clone = local.command();
        clone.args(["-c", "protocol.file.allow=always", "clone", "--quiet", "--local", "--no-checkout", "--no-tags"]);
        clone.args(["--template=", "--origin=origin", "--"]).arg(from.file("")).arg(path);
        let filled = succeeds(&local, &mut clone).then(|| self.at(path, until).ok()).flatten().filter(|own| {
            // What came from there is not new here.
            let known = [("head", "HEAD"), ("base", commit)];
            let known = known.map(|(name, it)| {
                succeeds(own, own.here().args(["update-ref", &format!("refs/remotes/main/{name}"), it]))
            });
            let url = from.line(&["config", "--get", "remote.origin.url"], until);
            let url = url.is_ok_and(|url| succeeds(own, own.here().args(["config", "remote.origin.url", &url])));
            let out = own
                .unfiltered(until)
                .ok()
                .is_some_and(|mut git| succeeds(own, git.args(["checkout", "--quiet", "--force", "--detach", commit])));
            // A repository that was made here has no remote.
            let _ = url || succeeds(own, own.here().args(["remote", "remove", "origin"]));
            known[1] && out
        });
        if filled.is_none() {
            let _ = fs::remove_dir_all(path);
            let _ = fs::create_dir(path);
        }
        filled
    }
}

impl Worktree {
    /// Does not use the network. Returns the paths of those that stay empty, relative to the worktree.
    pub(crate) fn fill_submodules(&self, until: &Until) -> Result<Vec<PathBuf>, Incomplete> {
        let git = self.repository.git.at(&self.path, until)?;
        let empty = git.fill_submodules(&self.repository.git, DEPTH, until);
        let inside = |path: PathBuf| path.strip_prefix(&self.path).map(Path::to_owned).ok();
        Ok(empty.into_iter().filter_map(inside).collect())
    }
}
