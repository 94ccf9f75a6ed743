//! Tests of the changed files of a git work tree. A hostile repository cannot run a program of its own.

use crate::support::case::executable;
use crate::support::{in_time, limit};
use spektacular::process::git::{Baseline, Changes, Incomplete, Pending};
use spektacular::protocol::words::Action::{self, Created, Deleted, Modified};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LATE: Changes = Changes::Incomplete(Incomplete::Late);
const FAILED: Changes = Changes::Incomplete(Incomplete::Failed);

/// The program continues while git works; a test waits.
trait Blocking {
    fn changes(&mut self, within: Duration) -> Changes;
}

impl Blocking for Pending {
    fn changes(&mut self, within: Duration) -> Changes {
        self.wait_for_result(within + limit());
        self.compare(within).or_else(|| self.wait_for_result(within + limit())).unwrap_or(LATE)
    }
}

/// A repository with one commit: `a`, `sub/b`, and a `.gitignore` for `*.log`.
struct Repo {
    home: TempDir,
}

fn git_raw(root: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").current_dir(root);
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always"]);
    command.args(args).output().unwrap()
}

#[track_caller]
fn git(root: &Path, args: &[&str]) -> String {
    let output = git_raw(root, args);
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn script(file: &Path, text: &str) {
    executable(file, format!("#!/bin/sh\n{text}\n").as_bytes(), 0o755);
}

fn begin(cwd: &Path) -> Pending {
    begin_with(cwd, limit())
}

fn begin_with(cwd: &Path, within: Duration) -> Pending {
    let mut pending = Baseline::begin_with(cwd, within, std::env::var_os("PATH").unwrap(), None);
    pending.wait_for_result(2 * limit());
    pending
}

impl Repo {
    fn empty(args: &[&str]) -> Repo {
        let repo = Repo { home: TempDir::new().unwrap() };
        fs::create_dir(repo.root()).unwrap();
        let init: Vec<&str> = ["init", "-q", "-b", "main"].iter().chain(args).copied().collect();
        git(&repo.root(), &init);
        repo
    }

    fn new() -> Repo {
        Repo::with(&[])
    }

    fn with(args: &[&str]) -> Repo {
        let repo = Repo::empty(args);
        repo.write("a", "a\n").write("sub/b", "b\n").write(".gitignore", "*.log\n").commit();
        repo
    }

    fn root(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("repo")
    }

    fn git(&self, args: &[&str]) -> &Repo {
        git(&self.root(), args);
        self
    }

    fn commit(&self) -> &Repo {
        self.git(&["add", "-A"]).git(&["commit", "-q", "--allow-empty", "-m", "c"])
    }

    fn write(&self, name: impl AsRef<Path>, text: &str) -> &Repo {
        let file = self.root().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    fn remove(&self, name: &str) -> &Repo {
        fs::remove_file(self.root().join(name)).unwrap();
        self
    }

    /// Sets a file's modification time, as a later write would.
    fn touch(&self, name: &str) -> &Repo {
        let file = fs::File::options().append(true).open(self.root().join(name)).unwrap();
        let time = file.metadata().unwrap().modified().unwrap() + Duration::from_secs(5);
        file.set_modified(time).unwrap();
        self
    }

    fn config(&self, text: &str) -> &Repo {
        let file = self.root().join(".git/config");
        let old = fs::read_to_string(&file).unwrap();
        fs::write(file, old + text).unwrap();
        self
    }

    /// Returns the changes found when `agent` runs in the root.
    fn changes(&self, agent: impl FnOnce(&Repo)) -> Vec<(String, Action)> {
        let mut pending = begin(&self.root());
        agent(self);
        relative(&self.root(), pending.changes(limit()))
    }

    fn check(&self, agent: impl for<'a> FnOnce(&'a Repo) -> &'a Repo, expected: &[(&str, Action)]) {
        self.check_with(|repo| _ = agent(repo), expected);
    }

    #[track_caller]
    fn check_with(&self, agent: impl FnOnce(&Repo), expected: &[(&str, Action)]) {
        let changes = self.changes(agent);
        let changes: Vec<_> = changes.iter().map(|(name, action)| (name.as_str(), *action)).collect();
        assert_eq!(changes, expected);
    }
}

#[track_caller]
fn relative(root: &Path, changes: Changes) -> Vec<(String, Action)> {
    let Changes::Files(files) = changes else { panic!("{changes:?}") };
    let strip = |(file, action): (PathBuf, _)| (file.strip_prefix(root).unwrap().to_str().unwrap().to_string(), action);
    files.into_iter().map(strip).collect()
}

#[test]
fn nothing_happened() {
    Repo::new().check_with(|_| {}, &[]);
}

#[test]
fn created_modified_and_deleted() {
    let agent = |repo: &Repo| {
        repo.write("a", "other\n").remove("sub/b").write("new/deep/c", "").write("d", "d");
    };
    Repo::new().check_with(agent, &[("a", Modified), ("d", Created), ("new/deep/c", Created), ("sub/b", Deleted)]);
}

#[test]
fn a_change_of_the_same_size_is_seen() {
    Repo::new().check(|repo| repo.write("a", "b\n"), &[("a", Modified)]);
}

#[test]
fn a_rename_is_a_deletion_and_a_creation() {
    let expected = &[("a", Deleted), ("z", Created)];
    Repo::new().check_with(|repo| fs::rename(repo.root().join("a"), repo.root().join("z")).unwrap(), expected);
    Repo::new().check(|repo| repo.git(&["mv", "a", "z"]), expected);
    Repo::new().check(|repo| repo.git(&["mv", "a", "z"]).commit(), expected);
    // The user's settings for copies and renames make no difference.
    let repo = Repo::new();
    repo.git(&["config", "status.renames", "copies"]).git(&["config", "diff.renames", "copies"]);
    repo.git(&["config", "status.showStash", "true"]).git(&["config", "status.showUntrackedFiles", "no"]);
    repo.write("a", "stashed").git(&["stash"]);
    repo.check(|repo| repo.git(&["mv", "a", "z"]), expected);
}

#[test]
fn a_moved_folder_is_seen_though_its_files_are_not_touched() {
    let repo = Repo::new();
    let agent = |repo: &Repo| fs::rename(repo.root().join("sub"), repo.root().join("bus")).unwrap();
    repo.check_with(agent, &[("bus/b", Created), ("sub/b", Deleted)]);
}

#[test]
fn ignored_files_are_not_seen() {
    let repo = Repo::new();
    repo.write("old.log", "x");
    repo.check(|repo| repo.write("x.log", "x").write("old.log", "yy"), &[]);
    // Files that the user ignores globally are not listed either.
    let config = repo.home.path().join("config");
    fs::create_dir_all(config.join("git")).unwrap();
    fs::write(config.join("git/ignore"), "*.swp\n").unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let mut pending = Baseline::begin_with(&repo.root(), limit(), path, Some(config.into_os_string()));
    pending.wait_for_result(2 * limit());
    repo.write("x.swp", "").write("x.txt", "");
    assert_eq!(relative(&repo.root(), pending.changes(limit())), [("x.txt".to_string(), Created)]);
}

#[test]
fn changes_from_before_are_not_the_agents() {
    let repo = Repo::new();
    repo.write("a", "user\n").remove("sub/b").write("untracked", "1").write("staged", "1").git(&["add", "staged"]);
    repo.check_with(|_| {}, &[]);
    repo.check(
        |repo| repo.write("a", "agent, later\n").touch("untracked"),
        &[("a", Modified), ("untracked", Modified)],
    );
    repo.check(|repo| repo.write("sub/b", "b\n"), &[("sub/b", Created)]);
    repo.check(|repo| repo.remove("untracked").remove("staged"), &[("staged", Deleted), ("untracked", Deleted)]);
}

#[test]
fn a_revert_of_the_users_change_is_a_change() {
    let repo = Repo::new();
    repo.write("a", "user\n").write("new", "x").git(&["add", "-A"]);
    let expected = &[("a", Modified), ("new", Deleted)];
    repo.check(|repo| repo.git(&["reset", "-q", "--hard"]), expected);
}

#[test]
fn git_alone_changes_no_file() {
    let repo = Repo::new();
    repo.write("a", "user\n").write("new", "x");
    repo.check(|repo| repo.git(&["add", "-A"]), &[]);
    repo.check(|repo| repo.commit(), &[]);
    repo.check(|repo| repo.git(&["reset", "-q", "--soft", "HEAD~1"]), &[]);
    repo.check(|repo| repo.commit(), &[]);
    repo.check(|repo| repo.git(&["checkout", "-q", "-b", "other"]), &[]);
    repo.check(|repo| repo.git(&["rm", "-q", "--cached", "new"]).write(".git/info/exclude", "new\n"), &[]);
}

#[test]
fn a_reset_of_the_index_changes_no_file_that_is_old() {
    let repo = Repo::new();
    repo.write("a", "user\n").commit().write("sub/b", "user\n").commit();
    // Wait until the file system's clock has moved on since the last write: the baseline compares change times with
    // the clock.
    let written = fs::metadata(repo.root().join("sub/b")).unwrap().ctime_nsec();
    let probe = repo.home.path().join("probe");
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(50) || fs::metadata(&probe).unwrap().ctime_nsec() == written {
        fs::write(&probe, "").unwrap();
    }
    repo.check(|repo| repo.git(&["reset", "-q", "HEAD~1"]), &[]);
    repo.check(|repo| repo.git(&["reset", "-q", "HEAD~1"]).write("a", "x"), &[("a", Modified)]);
}

#[test]
fn a_touched_file_is_not_changed() {
    Repo::new().check(|repo| repo.touch("a"), &[]);
    Repo::new().check(|repo| repo.write("a", "x").write("a", "a\n").touch("a"), &[]);
}

#[test]
fn committed_by_the_agent() {
    let agent = |repo: &Repo| {
        repo.write("a", "x").write("c", "c").write("gone", "").remove("sub/b").commit();
        repo.remove("gone").write("later", "").commit().remove("later").write("a", "y");
    };
    Repo::new().check_with(agent, &[("a", Modified), ("c", Created), ("sub/b", Deleted)]);
    // The file is committed and then changed back. It counts as modified because it was written; its content is not
    // read a second time.
    Repo::new().check(|repo| repo.write("a", "x").commit().write("a", "a\n"), &[("a", Modified)]);
    let repo = Repo::new();
    repo.write("a", "user\n").write("mine", "1");
    repo.check(|repo| repo.commit().remove("mine").commit(), &[("mine", Deleted)]);
}

#[test]
fn a_commit_checked_out_by_the_agent() {
    let repo = Repo::new();
    repo.write("a", "two\n").write("two", "").commit();
    repo.check(|repo| repo.git(&["checkout", "-q", "HEAD~1"]), &[("a", Modified), ("two", Deleted)]);
    repo.check(|repo| repo.git(&["checkout", "-q", "main"]), &[("a", Modified), ("two", Created)]);
    // Checked out there and back: the times differ, the contents do not.
    repo.check(|repo| repo.git(&["checkout", "-q", "HEAD~1"]).git(&["checkout", "-q", "main"]), &[]);
}

#[test]
fn a_conflict_left_by_the_agent() {
    let repo = Repo::new();
    repo.git(&["checkout", "-q", "-b", "other"]).write("a", "theirs\n").commit();
    repo.git(&["checkout", "-q", "main"]).write("a", "ours\n").commit();
    let merge = |repo: &Repo| assert!(!git_raw(&repo.root(), &["merge", "other"]).status.success());
    repo.check_with(merge, &[("a", Modified)]);
    repo.check_with(|_| {}, &[]);
    repo.check(|repo| repo.write("a", "both\n").commit(), &[("a", Modified)]);
}

#[test]
fn no_commit_yet() {
    for format in ["sha1", "sha256"] {
        let repo = Repo::empty(&[&format!("--object-format={format}")]);
        repo.write("untracked", "1").write("added", "1").git(&["add", "added"]);
        repo.check_with(|_| {}, &[]);
        repo.check(|repo| repo.write("added", "22").write("c", ""), &[("added", Modified), ("c", Created)]);
        repo.check(|repo| repo.write("d", "").commit().remove("c"), &[("c", Deleted), ("d", Created)]);
        repo.check(|repo| repo.write("d", "dd").commit(), &[("d", Modified)]);
        // After that, HEAD has no commit.
        repo.check(|repo| repo.git(&["update-ref", "-d", "HEAD"]).remove("d"), &[("d", Deleted)]);
    }
}

#[test]
fn a_first_commit_from_an_empty_repository() {
    let agent = |repo: &Repo| {
        repo.write("x", "").commit();
    };
    Repo::empty(&[]).check_with(agent, &[("x", Created)]);
    Repo::empty(&["--object-format=sha256"]).check_with(agent, &[("x", Created)]);
}

#[test]
fn cwd_below_the_root() {
    let repo = Repo::new();
    repo.git(&["config", "status.relativePaths", "true"]).git(&["config", "diff.relative", "true"]);
    let mut pending = begin(&repo.root().join("sub"));
    repo.write("a", "x").write("sub/n", "").commit().write("sub/m", "");
    let expected = [("a", Modified), ("sub/m", Created), ("sub/n", Created)];
    assert_eq!(
        relative(&repo.root(), pending.changes(limit())),
        expected.map(|(name, action)| (name.to_string(), action))
    );
}

#[test]
fn paths_with_special_characters_are_seen() {
    let repo = Repo::new();
    let names: [&[u8]; 6] = [b"new\nline", b"not utf-8 \xff\xfe", b" space ", b"-c", b"qu\"o\\te", b"tab\tx"];
    let mut pending = begin(&repo.root());
    names.iter().for_each(|name| {
        repo.write(OsStr::from_bytes(name), "x");
    });
    let Changes::Files(untracked) = pending.changes(limit()) else { panic!() };
    let mut expected: Vec<_> = names.iter().map(|name| (repo.root().join(OsStr::from_bytes(name)), Created)).collect();
    expected.sort();
    assert_eq!(untracked, expected);
    // Committed files are listed by another git command.
    fs::remove_dir_all(repo.root()).unwrap();
    let repo = Repo::new();
    let mut pending = begin(&repo.root());
    names.iter().for_each(|name| {
        repo.write(OsStr::from_bytes(name), "x");
    });
    repo.commit();
    let Changes::Files(committed) = pending.changes(limit()) else { panic!() };
    let names_of = |files: Vec<(PathBuf, Action)>| -> Vec<OsString> {
        files.iter().map(|(file, _)| file.file_name().unwrap().to_os_string()).collect()
    };
    assert_eq!(names_of(committed), names_of(untracked));
}

#[test]
fn modes_links_and_folders() {
    let repo = Repo::new();
    let root = repo.root();
    repo.check_with(
        |_| fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o755)).unwrap(),
        &[("a", Modified)],
    );
    repo.git(&["reset", "-q", "--hard"]);
    repo.check_with(|_| symlink("/nowhere", root.join("link")).unwrap(), &[("link", Created)]);
    let retarget = |repo: &Repo| {
        repo.remove("link");
        symlink("/elsewhere", root.join("link")).unwrap();
    };
    repo.check_with(retarget, &[("link", Modified)]);
    // A file becomes a folder, and a folder becomes a link to another folder with a file of the same name.
    repo.write("c/b", "").commit();
    let agent = |repo: &Repo| {
        repo.remove("a").write("a/x", "").remove("sub/b");
        fs::remove_dir(root.join("sub")).unwrap();
        symlink("c", root.join("sub")).unwrap();
    };
    repo.check_with(agent, &[("a", Deleted), ("a/x", Created), ("sub", Created), ("sub/b", Deleted)]);
}

#[test]
fn nested_repositories_and_submodules_are_excluded() {
    let repo = Repo::new();
    let other = Repo::new();
    repo.git(&["submodule", "-q", "add", other.root().to_str().unwrap(), "module"]).commit();
    let nested = repo.root().join("nested");
    let agent = |repo: &Repo| {
        git(&repo.root(), &["clone", "-q", other.root().to_str().unwrap(), nested.to_str().unwrap()]);
        repo.write("module/a", "x").write("module/new", "").write("nested/new", "");
    };
    repo.check_with(agent, &[]);
    let commit_inside = |repo: &Repo| {
        git(&repo.root().join("module"), &["commit", "-qam", "inside"]);
        repo.git(&["commit", "-qam", "outside"]);
    };
    repo.check_with(commit_inside, &[]);
    // From the inside, the submodule is a normal repository.
    let mut pending = begin(&repo.root().join("module"));
    repo.write("module/a", "third").write("a", "outside");
    assert_eq!(relative(&repo.root(), pending.changes(limit())), [("module/a".to_string(), Modified)]);
}

#[test]
fn a_linked_work_tree() {
    let repo = Repo::new();
    repo.git(&["worktree", "add", "-q", "../tree", "-b", "tree"]).git(&["config", "core.bare", "true"]);
    let tree = repo.home.path().canonicalize().unwrap().join("tree");
    let mut pending = begin(&tree);
    fs::write(tree.join("a"), "x").unwrap();
    fs::write(tree.join("c"), "x").unwrap();
    git(&tree, &["add", "-A"]);
    git(&tree, &["commit", "-qm", "c"]);
    repo.write("elsewhere", "");
    let expected = [("a", Modified), ("c", Created)].map(|(name, action)| (name.to_string(), action));
    assert_eq!(relative(&tree, pending.changes(limit())), expected);
}

#[test]
fn no_repository() {
    let folder = TempDir::new().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    // No process may start outside a repository: the git on this PATH would claim that there is one.
    script(&folder.path().join("git"), "touch started; printf 'true\\n/\\n/\\n'");
    let plain = folder.path().join("plain");
    fs::create_dir(&plain).unwrap();
    let mut pending = Baseline::begin_with(&plain, limit(), folder.path().into(), None);
    assert_eq!(pending.changes(limit()), Changes::NotARepository);
    assert!(!folder.path().join("started").exists() && !plain.join("started").exists());
    // A `.git` that is not a repository, a bare repository, one whose root is bare, and the inside of `.git`.
    fs::create_dir(plain.join(".git")).unwrap();
    assert_eq!(begin(&plain).changes(limit()), Changes::NotARepository);
    assert_eq!(Baseline::begin(&plain, limit()).changes(limit()), Changes::NotARepository);
    let bare = folder.path().join("bare");
    git(folder.path(), &["init", "-q", "--bare", "bare"]);
    assert_eq!(begin(&bare).changes(limit()), Changes::NotARepository);
    let repo = Repo::new();
    assert_eq!(begin(&repo.root().join(".git")).changes(limit()), Changes::NotARepository);
    repo.git(&["config", "core.bare", "true"]);
    assert_eq!(begin(&repo.root()).changes(limit()), Changes::NotARepository);
    // No git at all, and a PATH with relative and missing folders.
    let repo = Repo::new();
    for none in ["", ":.:bin:/nonexistent"] {
        let mut pending = Baseline::begin_with(&repo.root(), limit(), none.into(), None);
        assert_eq!(pending.changes(limit()), Changes::NotARepository);
    }
    assert_eq!(Baseline::begin_with(&repo.root(), limit(), path, None).changes(limit()), Changes::Files(vec![]));
}

#[test]
fn a_git_in_the_work_tree_is_not_run() {
    let repo = Repo::new();
    let marker = repo.home.path().join("marker");
    repo.write("bin/git", "").commit();
    script(&repo.root().join("bin/git"), &format!("touch {}", marker.display()));
    let path = std::env::join_paths([repo.root().join("bin").as_path(), Path::new("/usr/bin")]).unwrap();
    let mut pending = Baseline::begin_with(&repo.root().join("sub"), limit(), path, None);
    assert_eq!(pending.changes(limit()), Changes::Files(vec![]));
    assert!(!marker.exists());
}

#[test]
fn an_error_of_git_makes_the_changes_incomplete() {
    let repo = Repo::new();
    repo.config("[core]\n\trepositoryFormatVersion = 99\n");
    assert_eq!(begin(&repo.root()).changes(limit()), FAILED);
    let repo = Repo::new();
    let mut pending = begin(&repo.root());
    repo.config("[broken\n");
    assert_eq!(pending.changes(limit()), FAILED);
    // Another repository replaced the first one.
    let repo = Repo::new();
    let mut pending = begin(&repo.root());
    fs::remove_dir_all(repo.root().join(".git")).unwrap();
    repo.git(&["init", "-q"]).write("other", "").commit();
    assert_eq!(pending.changes(limit()), FAILED);
    // The repository was removed. The repository around it must not be queried instead.
    let outer = Repo::new();
    outer.write("inner/x", "").git(&["init", "-q", "inner"]);
    let mut pending = begin(&outer.root().join("inner"));
    fs::remove_dir_all(outer.root().join("inner/.git")).unwrap();
    assert_eq!(pending.changes(limit()), FAILED);
}

#[test]
fn another_users_repository_is_not_trusted() {
    let repo = Repo::new();
    // Only root can change a file's owner.
    if std::os::unix::fs::chown(repo.root().join(".git"), Some(12345), None).is_ok()
        && std::os::unix::fs::chown(repo.root(), Some(12345), None).is_ok()
    {
        assert_eq!(begin(&repo.root()).changes(limit()), FAILED);
    }
}

#[test]
fn a_work_tree_elsewhere_is_not_followed() {
    let repo = Repo::new();
    let other = Repo::new();
    let mut pending = begin(&repo.root());
    repo.write("mine", "").git(&["config", "core.worktree", other.root().to_str().unwrap()]);
    assert_eq!(relative(&repo.root(), pending.changes(limit())), [("mine".to_string(), Created)]);
    assert_eq!(begin(&repo.root()).changes(limit()), Changes::NotARepository);
}

#[test]
fn too_many_files() {
    let repo = Repo::empty(&[]);
    fs::create_dir(repo.root().join("many")).unwrap();
    for index in 0..=100_000 {
        fs::File::create(repo.root().join(format!("many/{index}"))).unwrap();
    }
    assert_eq!(begin(&repo.root()).changes(limit()), FAILED);
    repo.remove("many/0");
    repo.check_with(|_| {}, &[]);
    repo.check(|repo| repo.remove("many/1"), &[("many/1", Deleted)]);
}

/// A git of ours in front of the others, and a pipe that this git and its children hold open.
struct Fake {
    path: OsString,
    /// Gets the pipe's text once nobody holds the pipe.
    gone: Receiver<String>,
    /// Holds the pipe too, because git may be killed before it opens the pipe.
    holder: fs::File,
}

impl Fake {
    /// The text that git wrote, once git and its children are gone.
    #[track_caller]
    fn said(self) -> String {
        drop(self.holder);
        self.gone.recv_timeout(limit()).unwrap()
    }
}

#[track_caller]
fn fake(repo: &Repo, text: &str) -> Fake {
    let folder = repo.home.path().join("fake");
    fs::create_dir(&folder).unwrap();
    let fifo = folder.join("alive");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    script(&folder.join("git"), &format!("exec 9>{}\n{text}", fifo.display()));
    let (sender, gone) = channel();
    let pipe = fifo.clone();
    std::thread::spawn(move || sender.send(fs::read_to_string(pipe).unwrap()).unwrap());
    let holder = fs::File::options().write(true).open(fifo).unwrap();
    let path = std::env::join_paths([folder.as_path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    Fake { path, gone, holder }
}

/// Checks that git hung until its time limit ended it. `begun`: the time after which the test could go on.
#[track_caller]
fn ended(fake: Fake, start: Instant, begun: Duration, short: Duration) -> Result<(), String> {
    let (took, said) = (start.elapsed(), fake.said());
    assert!(took >= short, "{took:?} of {short:?}");
    let hung = said == "x\n" && begun < short / 2 && took < 2 * short;
    if hung { Ok(()) } else { Err(format!("{said:?} after {begun:?} and {took:?} of {short:?}")) }
}

#[test]
fn a_git_that_hangs_is_killed_at_the_limit() {
    // git hangs itself, in a child, or after it closed its output.
    for hang in ["exec sleep 1000", "sleep 1000 & sleep 1000", "exec >&- 2>&-; sleep 1000"] {
        let mut short = Duration::from_millis(500);
        in_time(|| {
            short *= 2;
            let repo = Repo::new();
            let fake = fake(&repo, &format!("echo x >&9\n{hang}"));
            let start = Instant::now();
            let mut pending = Baseline::begin_with(&repo.root(), short, fake.path.clone(), None);
            let begun = start.elapsed();
            pending.wait_for_result(short + limit());
            assert_eq!(pending.changes(limit()), LATE);
            ended(fake, start, begun, short)
        });
    }
}

#[test]
fn a_comparison_that_hangs_is_killed_at_the_limit() {
    let mut short = Duration::from_millis(500);
    in_time(|| {
        short *= 2;
        let repo = Repo::new();
        let hangs = repo.home.path().join("hangs");
        let real = "PATH=/usr/local/bin:/usr/bin:/bin exec git \"$@\"";
        let fake = fake(&repo, &format!("test -e {} && {{ echo x >&9; sleep 1000; }}\n{real}", hangs.display()));
        let mut pending = Baseline::begin_with(&repo.root(), limit(), fake.path.clone(), None);
        pending.wait_for_result(2 * limit());
        fs::write(hangs, "").unwrap();
        let start = Instant::now();
        assert_eq!(pending.changes(short), LATE);
        ended(fake, start, Duration::ZERO, short)
    });
}

#[test]
fn an_abandoned_git_is_killed_at_once() {
    let repo = Repo::new();
    let fake = fake(&repo, "sleep 1000 & sleep 1000");
    let mut pending = Baseline::begin_with(&repo.root(), 3 * limit(), fake.path.clone(), None);
    pending.give_up();
    assert!(pending.is_busy() && pending.is_given_up());
    // This is long before the time limit.
    let told = pending.told().recv_timeout(limit()).unwrap();
    pending.finish_job(Some(told));
    assert!(!pending.is_busy());
    assert_eq!(pending.changes(limit()), LATE);
    assert_eq!(fake.said(), "");
}

#[test]
fn a_real_git_that_hangs_is_killed_too() {
    let repo = Repo::new();
    repo.remove(".git/info/exclude");
    assert!(Command::new("mkfifo").arg(repo.root().join(".git/info/exclude")).status().unwrap().success());
    let start = Instant::now();
    assert_eq!(Baseline::begin(&repo.root(), Duration::from_millis(500)).changes(limit()), LATE);
    assert!(start.elapsed() < limit(), "{:?}", start.elapsed());
}

#[test]
fn endless_output_ends() {
    let repo = Repo::new();
    let fake = fake(&repo, "exec cat /dev/zero");
    let mut pending = Baseline::begin_with(&repo.root(), limit(), fake.path.clone(), None);
    assert_eq!(pending.changes(limit()), FAILED);
    assert_eq!(fake.said(), "");
}

#[test]
fn a_limit_of_zero_leaves_the_changes_unknown() {
    let repo = Repo::new();
    assert_eq!(begin_with(&repo.root(), Duration::ZERO).changes(limit()), LATE);
    assert_eq!(begin(&repo.root()).changes(Duration::ZERO), LATE);
}

#[test]
fn the_index_is_not_written() {
    let repo = Repo::new();
    // Something for which `git status` would refresh the index.
    repo.touch("a");
    let index = repo.root().join(".git/index");
    let state = || {
        let metadata = fs::metadata(&index).unwrap();
        (fs::read(&index).unwrap(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
    };
    let before = state();
    repo.check_with(|_| {}, &[]);
    assert!(state() == before);
    assert!(!repo.root().join(".git/index.lock").exists());
    git(&repo.root(), &["status"]);
    assert!(state() != before, "the index was not worth a refresh");
}

/// Sets a trap, which creates the marker when it runs. Our own queries must not run it; then plain git must, which
/// proves that the trap works.
#[track_caller]
fn trap(set: impl FnOnce(&Repo, &str)) {
    let repo = Repo::new();
    let marker = repo.home.path().join("marker");
    let program = repo.home.path().join("program");
    script(&program, &format!("touch {}; cat", marker.display()));
    set(&repo, program.to_str().unwrap());
    repo.touch("a");
    fs::remove_file(&marker).ok();
    let mut pending = begin(&repo.root());
    repo.write("c", "").touch("a");
    let changes = relative(&repo.root(), pending.changes(limit()));
    assert!(!marker.exists(), "it ran");
    assert!(changes.contains(&("c".to_string(), Created)));
    git_raw(&repo.root(), &["status"]);
    assert!(marker.exists(), "the trap does not work");
}

#[test]
fn a_file_system_monitor_does_not_run() {
    trap(|repo, program| {
        repo.config(&format!("[core]\n\tfsmonitor = {program}\n"));
    });
}

#[test]
fn filters_do_not_run() {
    let names = ["x", "a.b", "with space", "UPPER", "\\\"quote\\\\", "\u{e9}"];
    for (name, kind) in names.iter().flat_map(|name| [(name, "clean"), (name, "process")]) {
        let attribute = name.replace('\\', "").replace(['"', ' '], "");
        trap(|repo, program| {
            repo.config(&format!("[Filter \"{name}\"]\n\t{kind} = {program}\n\trequired = true\n"));
            // Besides a filter whose name no attribute can have, configures one that an attribute has.
            repo.config(&format!("[filter \"{attribute}\"]\n\t{kind} = {program}\n\trequired\n"));
            repo.write(".git/info/attributes", &format!("a filter={attribute}\n"));
        });
    }
}

#[test]
fn a_filter_with_an_empty_name_does_not_run() {
    trap(|repo, program| {
        repo.config(&format!("[filter \"\"]\n\tclean = {program}\n")).write(".gitattributes", "a filter=\n");
    });
}

#[test]
fn a_filter_that_cannot_be_named_is_incomplete() {
    let repo = Repo::new();
    let marker = repo.home.path().join("marker");
    repo.config(&format!("[filter \"a=b\"]\n\tclean = touch {}; cat\n", marker.display()));
    repo.write(".gitattributes", "* filter=a=b\n").touch("a");
    assert_eq!(begin(&repo.root()).changes(limit()), FAILED);
    assert!(!marker.exists());
    git_raw(&repo.root(), &["status"]);
    assert!(marker.exists(), "the trap does not work");
}

#[test]
fn a_filter_set_by_the_agent_does_not_run() {
    let repo = Repo::new();
    let marker = repo.home.path().join("marker");
    let mut pending = begin(&repo.root());
    repo.config(&format!("[filter \"x\"]\n\tclean = touch {}; cat\n", marker.display()));
    repo.write(".git/info/attributes", "a filter=x\n").touch("a");
    assert_eq!(pending.changes(limit()), Changes::Files(vec![]));
    assert!(!marker.exists());
    git_raw(&repo.root(), &["status"]);
    assert!(marker.exists(), "the trap does not work");
}

#[test]
fn hooks_do_not_run() {
    trap(|repo, program| {
        symlink(program, repo.root().join(".git/hooks/post-index-change")).unwrap();
    });
    trap(|repo, program| {
        repo.write("../hooks/x", "").config("[core]\n\thooksPath = ../hooks\n");
        symlink(program, repo.root().join("../hooks/post-index-change")).unwrap();
    });
}

#[test]
fn included_configuration_does_not_run() {
    for include in ["[include]", "[includeIf \"gitdir:**\"]", "[includeIf \"onbranch:main\"]"] {
        trap(|repo, program| {
            repo.write("../evil", &format!("[core]\n\tfsmonitor = {program}\n"));
            repo.config(&format!("{include}\n\tpath = ../../evil\n"));
        });
        trap(|repo, program| {
            repo.write("../evil", &format!("[filter \"x\"]\n\tclean = {program}\n"));
            repo.config(&format!("{include}\n\tpath = ../../evil\n")).write(".git/info/attributes", "a filter=x\n");
        });
    }
    // The configuration of a single work tree.
    trap(|repo, program| {
        repo.git(&["config", "extensions.worktreeConfig", "true"]);
        repo.write(
            ".git/config.worktree",
            &format!("[core]\n\tfsmonitor = {program}\n[filter \"x\"]\n\tclean = {program}\n"),
        );
        repo.write(".git/info/attributes", "a filter=x\n");
    });
}

#[test]
fn aliases_and_pagers_do_not_run() {
    let repo = Repo::new();
    let marker = repo.home.path().join("marker");
    for name in ["status", "config", "rev-parse", "diff-tree"] {
        repo.config(&format!("[alias]\n\t{name} = !touch {0}\n[pager]\n\t{name} = touch {0}\n", marker.display()));
    }
    repo.config(&format!("[diff]\n\texternal = touch {0}\n[diff \"x\"]\n\ttextconv = touch {0}\n", marker.display()));
    repo.write(".git/info/attributes", "* diff=x\n");
    repo.check(|repo| repo.write("a", "x").commit(), &[("a", Modified)]);
    assert!(!marker.exists());
}

#[test]
fn missing_objects_are_not_fetched() {
    let origin = Repo::new();
    origin.git(&["config", "uploadpack.allowFilter", "true"]).git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    origin.write("deep/er/x", "1").commit().write("deep/er/x", "2").commit();
    let clone = Repo { home: TempDir::new().unwrap() };
    let url = format!("file://{}", origin.root().display());
    git(clone.home.path(), &["clone", "-q", "--filter=tree:0", &url, "repo"]);
    let marker = clone.home.path().join("marker");
    let program = clone.home.path().join("program");
    script(&program, &format!("touch {}; exec git-upload-pack \"$@\"", marker.display()));
    clone.git(&["config", "remote.origin.uploadpack", program.to_str().unwrap()]);
    clone.git(&["config", "protocol.allow", "always"]).git(&["config", "protocol.file.allow", "always"]);
    let mut pending = begin(&clone.root());
    // Move HEAD to a commit whose trees are not in this clone.
    clone.git(&["update-ref", "HEAD", "HEAD~1"]);
    assert_eq!(pending.changes(limit()), FAILED);
    assert!(!marker.exists());
    git_raw(&clone.root(), &["diff-tree", "-r", "HEAD", "origin/main"]);
    assert!(marker.exists(), "the trap does not work");
}
