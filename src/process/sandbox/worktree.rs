//! The part of a repository's git folder that a linked worktree needs.

use crate::io::files::read_regular;
use std::path::{Path, PathBuf};

/// The longest file that names a folder of git, in bytes.
const NAME_BYTES: u64 = 8 << 10;

/// git's folders for a worktree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WorktreePart {
    /// The folder of the repository, which all its worktrees share.
    pub(super) common: PathBuf,
    /// The folder of this worktree alone.
    pub(super) own: PathBuf,
}

impl WorktreePart {
    /// The folders of the linked worktree around `cwd`. `None`: it is in none. The agent of an earlier run may have written
    /// the file `.git`, so that only a folder that names this file in turn counts.
    pub(super) fn of(cwd: &Path) -> Option<WorktreePart> {
        let link = cwd.ancestors().map(|folder| folder.join(".git")).find(|git| git.symlink_metadata().is_ok())?;
        let own = named(&link, "gitdir: ")?;
        let back = named(&own.join("gitdir"), "")?;
        let worktrees = own.parent().filter(|folder| folder.ends_with("worktrees"))?;
        let common = worktrees.parent()?.to_owned();
        (back == link.canonicalize().ok()?).then_some(WorktreePart { common, own })
    }

    /// The folders that the worktree changes: its own, and those of objects, branches and their logs. The hooks and the
    /// settings of the repository are not among them.
    pub(super) fn writes(&self) -> impl Iterator<Item = PathBuf> {
        ["objects", "refs", "logs"].map(|name| self.common.join(name)).into_iter().chain([self.own.clone()])
    }
}

/// The real path that a file of git names.
fn named(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = read_regular(file, NAME_BYTES).ok()?;
    let path = text.trim_end_matches('\n').strip_prefix(prefix)?;
    file.parent()?.join(path).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::WorktreePart;
    use std::fs;

    #[test]
    fn only_a_folder_that_names_the_worktree_is_its_part() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("main/.git/worktrees/one")).unwrap();
        fs::create_dir_all(at("one/below")).unwrap();
        fs::write(at("one/.git"), format!("gitdir: {}\n", at("main/.git/worktrees/one").display())).unwrap();
        assert_eq!(WorktreePart::of(&at("one")), None);
        fs::write(at("main/.git/worktrees/one/gitdir"), format!("{}\n", at("one/.git").display())).unwrap();
        let part = WorktreePart { common: at("main/.git"), own: at("main/.git/worktrees/one") };
        assert_eq!(WorktreePart::of(&at("one/below")), Some(part));
        assert_eq!(WorktreePart::of(&at("main")), None);
        fs::create_dir_all(at("victim/worktrees/one")).unwrap();
        fs::write(at("one/.git"), format!("gitdir: {}\n", at("victim/worktrees/one").display())).unwrap();
        assert_eq!(WorktreePart::of(&at("one")), None);
    }
}
