//! Snapshots of a work tree, with what is not committed, and the difference between two of them. Their objects lie in a
//! folder of their own, so that nothing is written to the repository. Submodules are left out.

use super::query::{Filters, Git, Incomplete, names};
use super::surroundings;
use crate::process::query::Until;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The size above which a new file is in no snapshot, in bytes, and the maximum number of such files.
const LARGE_BYTES: u64 = 16 << 20;
const LARGE_MAX: usize = 1000;
/// The age of an object that no snapshot needs. A younger one may belong to a difference that is just being made.
const UNUSED: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(crate) struct Snapshots {
    git: Git,
    store: PathBuf,
    /// The folder that no snapshot shows, relative to the root.
    hidden: PathBuf,
}

impl Snapshots {
    /// `store` exists. `hidden`: absolute, shown in no difference. `None`: git or a work tree is missing.
    pub(crate) fn of(cwd: &Path, store: &Path, hidden: &Path, until: &Until) -> Result<Option<Snapshots>, Incomplete> {
        let Some(mut git) = Git::open(cwd, surroundings(), Filters::Empty, until)? else { return Ok(None) };
        let objects = git.line(&["rev-parse", "--git-path", "objects"], until)?;
        let hidden = hidden.strip_prefix(git.root()).map_err(|_| Incomplete::Failed)?.to_owned();
        git.set("GIT_OBJECT_DIRECTORY", store.into());
        git.set("GIT_ALTERNATE_OBJECT_DIRECTORIES", git.absolute(objects.as_bytes()).into());
        Ok(Some(Snapshots { git, store: store.to_owned(), hidden }))
    }

    pub(crate) fn take(&self, until: &Until) -> Result<String, Incomplete> {
        let index = self.store.join(format!("index.{}", std::process::id()));
        // With git's own index, only changed files are read.
        let copied = fs::copy(self.git.file("index"), &index);
        if copied.is_err() {
            let _ = fs::remove_file(&index);
        }
        let taken = self.take_into(&index, until);
        let _ = fs::remove_file(&index);
        taken
    }

    fn take_into(&self, index: &Path, until: &Until) -> Result<String, Incomplete> {
        let mut git = self.git.clone();
        git.set("GIT_INDEX_FILE", index.into());
        let mut command = git.unfiltered(until)?;
        command.args(["add", "--all", "--ignore-errors", "--", "."]).arg(excluded(&self.hidden));
        for name in git.submodules(until)?.into_iter().chain(self.large(until)?) {
            command.arg(excluded(Path::new(&OsString::from_vec(name))));
        }
        // Files that cannot be read stay as they were.
        git.run(&mut command, false, until)?;
        git.line(&["write-tree", "--missing-ok"], until)
    }

    fn large(&self, until: &Until) -> Result<Vec<Vec<u8>>, Incomplete> {
        let query = ["ls-files", "-z", "--others", "--exclude-standard"];
        let list = self.git.bytes(self.git.here().args(query), until)?;
        let is_large = |name: &&[u8]| {
            self.git.absolute(name).symlink_metadata().is_ok_and(|metadata| metadata.len() > LARGE_BYTES)
        };
        Ok(names(&list).filter(is_large).take(LARGE_MAX).map(<[u8]>::to_vec).collect())
    }

    /// Removes the objects and left files that are older than [`UNUSED`] and that none of these snapshots needs.
    pub(crate) fn prune(&self, needed: &[String], until: &Until) {
        let mut query = self.git.here();
        query.args(["rev-list", "--objects", "--no-object-names", "--missing=allow-any"]).args(needed).arg("--");
        let Ok(list) = self.git.bytes(&mut query, until) else { return };
        let used: HashSet<&[u8]> = list.split(|&byte| byte == b'\n').collect();
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let is_unused = |file: &DirEntry| {
            let age = file.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
            age.is_some_and(|age| age > UNUSED)
        };
        for entry in entries(&self.store) {
            let path = entry.path();
            // Not behind a link.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if is_unused(&entry) {
                    let _ = fs::remove_file(path);
                }
                continue;
            }
            for file in entries(&path) {
                let id = [entry.file_name().into_vec(), file.file_name().into_vec()].concat();
                if !used.contains(&*id) && is_unused(&file) {
                    let _ = fs::remove_file(file.path());
                }
            }
            // It fails unless the folder is empty.
            let _ = fs::remove_dir(path);
        }
    }

    /// The difference between two snapshots or commits, as a unified diff.
    pub(crate) fn difference(&self, from: &str, to: &str, until: &Until) -> Result<String, Incomplete> {
        let mut command = self.git.unfiltered(until)?;
        command.args(["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"]);
        command.args(["--ignore-submodules=dirty", from, to, "--", "."]).arg(excluded(&self.hidden));
        Ok(String::from_utf8_lossy(&self.git.bytes(&mut command, until)?).into_owned())
    }

    /// The tree before the first commit in the history of HEAD whose message has this line. `None`: there is none.
    pub(crate) fn before_commit_with(&self, line: &str, until: &Until) -> Result<Option<String>, Incomplete> {
        let pattern = format!("--grep={line}");
        let all = self.git.output(&["log", "--format=%H", "--fixed-strings", &pattern, "HEAD", "--"], until);
        let Some(first) = all?.lines().last().map(str::to_owned) else { return Ok(None) };
        Ok(self.git.line(&["rev-parse", "--verify", "--quiet", &format!("{first}^1^{{tree}}")], until).ok())
    }
}

/// The part of a command that leaves a path out.
pub(super) fn excluded(path: &Path) -> OsString {
    let mut word = OsString::from(":(top,literal,exclude)");
    word.push(path);
    word
}
