//! The files that a person trusts although the agent may change their folder: hooks and settings, which run commands when
//! git, an agent or spektacular is used there later. A grant cannot leave them out. Where the system can keep them unchanged,
//! it does. The run compares them in any case, because a file that does not exist yet cannot be kept.

use super::given;
use crate::agent::native::IN_PROJECT;
use crate::io::files::{open_regular, read_regular};
use crate::protocol::request::Settings;
use crate::protocol::sandbox::Domain;
use crate::protocol::words::SandboxMode;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Such files and folders below a folder that the agent changes, beside those of agents.
const BELOW: &[&str] = &[
    ".git/config",
    ".git/config.worktree",
    ".git/hooks",
    ".git/info/attributes",
    ".git/commondir",
    ".spektacular/config.json",
    ".spektacular/prompts",
];

/// Those that are compared alone, because work on a project may change them. With a file HEAD, a folder can become a
/// repository with hooks and settings.
const COMPARED: &[&str] = &[".mcp.json", ".vscode/tasks.json", ".envrc", "HEAD"];

/// Such files in git's folder of a linked worktree.
const OF_WORKTREE: &[&str] = &["commondir", "gitdir", "config.worktree"];

const NAMED: usize = 20;

/// The most files that are compared, and the most bytes of each.
const FILES: usize = 2000;
const FILE_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Trusted {
    roots: Vec<PathBuf>,
    cwd: PathBuf,
    /// A hash of each file. Its keys are random, so that no other content has a hash that somebody chose.
    found: BTreeMap<PathBuf, u64>,
    hashes: RandomState,
}

impl Trusted {
    /// `None`: the run has no sandbox.
    pub(crate) fn before(settings: &Settings) -> Option<Trusted> {
        let domain = settings.sandbox.domain()?;
        let mut trusted = Trusted {
            roots: all(settings, domain),
            cwd: settings.cwd.clone(),
            found: BTreeMap::new(),
            hashes: RandomState::new(),
        };
        trusted.found = trusted.look();
        Some(trusted)
    }

    /// Begins with those in the working directory. The next call reports the changes since this one.
    fn changed(&mut self) -> Vec<PathBuf> {
        let now = self.look();
        let before = std::mem::replace(&mut self.found, now);
        let all = before.keys().chain(self.found.keys().filter(|path| !before.contains_key(*path)));
        let mut changed: Vec<PathBuf> =
            all.filter(|path| before.get(*path) != self.found.get(*path)).cloned().collect();
        // An agent may renew many files of its own.
        changed.sort_by_key(|path| (!path.starts_with(&self.cwd), path.clone()));
        changed
    }

    /// `None`: no file has changed since the last look.
    pub(crate) fn warning(&mut self) -> Option<String> {
        let changed = self.changed();
        // A name is the agent's.
        let names = changed.iter().take(NAMED).map(|path| path.to_string_lossy().replace(char::is_control, "?"));
        let names = names.collect::<Vec<_>>().join(", ");
        let more = changed.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text = "Files that may run commands later changed during the run. Look at them before you use git, an agent or \
                    spektacular there";
        (!changed.is_empty()).then(|| format!("{text}: {names}{more}"))
    }

    fn look(&self) -> BTreeMap<PathBuf, u64> {
        let mut found = BTreeMap::new();
        self.roots.iter().for_each(|root| self.look_at(root, 0, &mut found));
        found
    }

    fn look_at(&self, path: &Path, depth: usize, found: &mut BTreeMap<PathBuf, u64>) {
        let Ok(meta) = path.symlink_metadata() else { return };
        if found.len() >= FILES {
            return;
        }
        if meta.is_dir() {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            return entries.filter(|_| depth < 4).for_each(|entry| self.look_at(&entry.path(), depth + 1, found));
        }
        let mut content = Vec::new();
        // Another program may write the target of a link, but only the agent can have made a new link here.
        let target = fs::read_link(path).ok();
        let read = open_regular(path).map(|file| file.take(FILE_BYTES).read_to_end(&mut content));
        let state = (meta.permissions().mode(), meta.len(), target, read.is_ok(), content);
        found.insert(path.to_owned(), self.hashes.hash_one(state));
    }
}

fn all(settings: &Settings, domain: &Domain) -> Vec<PathBuf> {
    let compared = worked(settings).flat_map(|folder| COMPARED.iter().map(move |name| folder.join(name)));
    let hooks = worked(settings).filter_map(|folder| own_hooks(&folder));
    fixed(settings, domain).into_iter().chain(compared).chain(hooks).collect()
}

/// The places that the system keeps unchanged, where it can.
pub(super) fn fixed(settings: &Settings, domain: &Domain) -> Vec<PathBuf> {
    let mut places = domain.settings.clone();
    for folder in worked(settings) {
        let git = folder.join(".git");
        // In a worktree, `.git` is a file, which leads to git's folder.
        if !git.is_dir() {
            places.push(git);
        }
        places.extend(BELOW.iter().chain(IN_PROJECT).map(|name| folder.join(name)));
    }
    if settings.sandbox.mode == SandboxMode::Workspace {
        let worktree = WorktreePart::of(&settings.cwd);
        places.extend(worktree.iter().flat_map(|part| OF_WORKTREE.iter().map(|name| part.own.join(name))));
    }
    places
}

/// The folders that the agent may change.
pub(super) fn worked(settings: &Settings) -> impl Iterator<Item = PathBuf> {
    let others = settings.add_dirs.iter().chain(&settings.sandbox.write);
    let others = others.filter_map(|path| given(path, &settings.cwd, None));
    let all = std::iter::once(settings.cwd.clone()).chain(others);
    all.filter(|_| settings.sandbox.mode == SandboxMode::Workspace)
}

/// The folder of hooks that a repository's own settings name.
fn own_hooks(folder: &Path) -> Option<PathBuf> {
    let config = read_regular(&folder.join(".git/config"), FILE_BYTES).ok()?;
    let values = config.lines().filter_map(|line| line.split_once('='));
    let mut named = values.filter(|(key, _)| key.trim().eq_ignore_ascii_case("hookspath"));
    named.next_back().map(|(_, path)| folder.join(path.trim().trim_matches('"')))
}

const NAME_BYTES: u64 = 8 << 10;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct WorktreePart {
    /// The folder of the repository, which all its worktrees share.
    pub(super) common: PathBuf,
    /// The folder of this worktree alone.
    pub(super) own: PathBuf,
}

impl WorktreePart {
    /// `None`: `cwd` is in no linked worktree. The agent of an earlier run may have written the file `.git`, so that
    /// only a folder that names this file in turn counts.
    pub(super) fn of(cwd: &Path) -> Option<WorktreePart> {
        let link = cwd.ancestors().map(|folder| folder.join(".git")).find(|git| git.symlink_metadata().is_ok())?;
        let own = named(&link, "gitdir: ")?;
        let back = named(&own.join("gitdir"), "")?;
        let worktrees = own.parent().filter(|folder| folder.ends_with("worktrees"))?;
        let common = worktrees.parent()?.to_owned();
        (back == link.canonicalize().ok()?).then_some(WorktreePart { common, own })
    }

    /// Its own folder, and those of objects, branches and their logs; not the hooks and settings of the repository.
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
    use super::{Trusted, WorktreePart};
    use crate::protocol::request::Options;
    use crate::protocol::sandbox::{Domain, Force, Kernel, Sandbox};
    use crate::protocol::words::SandboxMode;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::Arc;

    #[test]
    fn each_change_of_a_trusted_file_is_noticed_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at(".git/hooks")).unwrap();
        fs::write(at(".git/config"), "[core]").unwrap();
        fs::write(at(".git/hooks/pre-push"), "old").unwrap();
        let sandbox = Some(Sandbox::of(SandboxMode::Workspace));
        let options = Options { sandbox, ..Options::default() };
        let mut settings = options.resolve("x".into(), "a".into(), folder.path().into());
        assert!(Trusted::before(&settings).is_none());
        let kernel = Kernel { abi: 3, signals: false, sockets: false, files: false };
        let none = Vec::new;
        let (reads, folders, files, made, settings_of) = (none(), none(), none(), none(), none());
        let domain = Domain { kernel, reads, folders, files, made, variables: Vec::new(), settings: settings_of };
        settings.sandbox.force = Force::Kept(Arc::new(domain));
        let mut trusted = Trusted::before(&settings).unwrap();
        fs::write(at(".git/index"), "x").unwrap();
        assert!(trusted.changed().is_empty());
        fs::write(at(".git/config"), "[wild]").unwrap();
        fs::write(at(".git/hooks/pre-commit"), "evil").unwrap();
        fs::remove_file(at(".git/hooks/pre-push")).unwrap();
        symlink("/bin/true", at(".envrc")).unwrap();
        let wanted = [".envrc", ".git/config", ".git/hooks/pre-commit", ".git/hooks/pre-push"].map(at);
        assert_eq!(trusted.changed(), wanted);
        assert!(trusted.changed().is_empty());
        fs::set_permissions(at(".git/hooks/pre-commit"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(trusted.changed(), [at(".git/hooks/pre-commit")]);
    }

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
