//! Runs git so that a hostile repository can do no harm, and parses its output.

use super::super::environment::inherited;
use super::super::own_executable::is_program;
use super::super::query::{self, Until};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const OUTPUT_BYTES_MAX: u64 = 32 << 20;
const FILES_MAX: usize = 100_000;
/// Each filter takes four settings.
const FILTERS_MAX: usize = 64;
/// Overrides of the settings that run a program, access the network or write. Old versions of git take
/// `core.fsmonitor=false` for the name of a program, so its value is empty.
const OVERRIDES: [&str; 14] = [
    "core.fsmonitor=",
    "core.untrackedCache=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.alternateRefsCommand=false",
    "credential.helper=",
    "diff.external=",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "submodule.recurse=false",
];

/// The rest of git's environment. `GIT_ALLOW_PROTOCOL` takes precedence over `protocol.NAME.allow`, and
/// `protocol.allow` does not. That matters because a clone with missing objects must not fetch them: even a local fetch
/// runs a configured program.
const ENVIRONMENT: [(&str, &str); 11] = [
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LC_ALL", "C"),
];

/// The variables of a git that works like the user's own.
const QUIET: [(&str, &str); 3] = [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incomplete {
    Late,
    /// git failed, for example because the repository belongs to another user and git does not trust it. Or a limit on
    /// output, files or filters was exceeded.
    Failed,
}

#[derive(Clone, Debug)]
pub(super) struct Git {
    pub(super) program: PathBuf,
    environment: Vec<(&'static str, OsString)>,
    pub(super) filters: Filters,
    folder: PathBuf,
    root: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filters {
    /// None: the repository may be hostile.
    Empty,
    /// The repository's and the user's, which a commit runs anyway. The caller has asked for commits.
    Own,
}

/// The mode and the object id of a blob, as git prints them.
pub(super) type Blob = (Vec<u8>, Vec<u8>);

/// The content on disk according to git.
#[derive(Debug)]
pub(super) enum Content {
    Is(Blob),
    IsNot(Blob),
    Unknown,
}

#[derive(Debug)]
pub(super) struct FileState {
    pub(super) in_head: Option<Blob>,
    pub(super) content: Content,
    pub(super) deleted: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// `None`: HEAD is detached.
    pub branch: Option<String>,
    /// `None`: the branch has no commit, because it is new or was deleted.
    pub commit: Option<String>,
}

const SHORT_COMMIT: usize = 12;

impl fmt::Display for Head {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.branch {
            Some(branch) => write!(out, "on the branch {branch}")?,
            None => out.write_str("detached")?,
        }
        match &self.commit {
            Some(commit) => write!(out, " at {}", commit.get(..SHORT_COMMIT).unwrap_or(commit)),
            None => out.write_str(", which has no commit"),
        }
    }
}

/// The PATH for finding git, and the folder of the user's ignore file.
pub(super) type GitPlaces = (OsString, Option<OsString>);

/// The place of HEAD, and the files that differ from it.
pub(super) struct Status {
    pub(super) head: Head,
    pub(super) files: BTreeMap<Vec<u8>, FileState>,
    /// The folders of untracked repositories. git does not list the files in them.
    pub(super) nested: Vec<Vec<u8>>,
}

/// Whether the look at a work tree includes the repositories below it: submodules, and repositories that nobody added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookBelow {
    Ignored,
    Included,
}

impl Git {
    /// `None`: git or a work tree is missing. Outside any repository, the usual case, this starts no process.
    pub(super) fn open(
        cwd: &Path,
        (path, config): GitPlaces,
        filters: Filters,
        until: &Until,
    ) -> Result<Option<Git>, Incomplete> {
        let Some(near) = cwd.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok()) else {
            return Ok(None);
        };
        let Some(program) = find(&path, near) else { return Ok(None) };
        Git::in_folder(cwd, program, (path, config), filters).locate(until)
    }

    pub(super) fn is_bare(cwd: &Path, (path, config): GitPlaces, until: &Until) -> bool {
        let Some(program) = find(&path, cwd) else { return false };
        let git = Git::in_folder(cwd, program, (path, config), Filters::Empty);
        let answer = git.bytes(git.command().args(["rev-parse", "--is-bare-repository"]), until);
        answer.is_ok_and(|answer| answer == b"true\n")
    }

    /// The program in a folder whose repository is not known yet.
    fn in_folder(cwd: &Path, program: PathBuf, (path, config): GitPlaces, filters: Filters) -> Git {
        let mut environment: Vec<_> = ENVIRONMENT.iter().map(|&(name, value)| (name, value.into())).collect();
        environment.push(("PATH", path));
        environment.extend(config.map(|config| ("XDG_CONFIG_HOME", config)));
        let (folder, root) = (PathBuf::new(), cwd.to_path_buf());
        Git { program, environment, filters, folder, root }
    }

    /// The repository whose work tree is this folder. git is the same: a program in this work tree must not run.
    pub(super) fn at(&self, root: &Path, until: &Until) -> Result<Git, Incomplete> {
        let git = Git { folder: PathBuf::new(), root: root.to_owned(), ..self.clone() }.locate(until)?;
        git.filter(|git| git.root == root).ok_or(Incomplete::Failed)
    }

    /// The repository in another folder, of the same work tree.
    pub(super) fn beside(&self, folder: PathBuf) -> Git {
        Git { folder, ..self.clone() }
    }

    fn locate(mut self, until: &Until) -> Result<Option<Git>, Incomplete> {
        let query = ["rev-parse", "--is-inside-work-tree", "--absolute-git-dir", "--show-toplevel"];
        let (code, output) = self.run(self.command().args(query), true, until)?;
        // The cases: outside the work tree, in a bare repository or inside `.git`; or the `.git` is not a repository,
        // or is on another file system.
        let refusals: [&[u8]; 2] = [b"must be run in a work tree", b"not a git repository"];
        let says = |part: &[u8]| output.windows(part.len()).any(|window| window == part);
        let refused = code != Some(0) && refusals.into_iter().any(says);
        if refused || output.starts_with(b"false\n") {
            return Ok(None);
        }
        let lines: Vec<&[u8]> = output.split(|&byte| byte == b'\n').collect();
        // A newline in a path produces more lines. That case does not justify a second query.
        let (Some(0), [b"true", folder, root, b""]) = (code, &lines[..]) else { return Err(Incomplete::Failed) };
        (self.folder, self.root) = (OsStr::from_bytes(folder).into(), OsStr::from_bytes(root).into());
        Ok(Some(self))
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--no-pager");
        for setting in OVERRIDES {
            command.args(["-c", setting]);
        }
        command
    }

    /// Without our settings, for what the user's own git would do.
    pub(super) fn as_typed(&self) -> Command {
        Command::new(&self.program)
    }

    /// Names the repository: the agent may have created one closer to the folder, or moved `core.worktree`.
    pub(super) fn here(&self) -> Command {
        let mut command = self.command();
        command.arg("--git-dir").arg(&self.folder).arg("--work-tree").arg(&self.root);
        command
    }

    /// Like [`Git::here`], with each filter that the repository configures made empty, unless its own may run.
    pub(super) fn unfiltered(&self, until: &Until) -> Result<Command, Incomplete> {
        if self.filters == Filters::Own {
            return Ok(self.here());
        }
        let query = ["config", "-z", "--name-only", "--get-regexp", "^filter\\."];
        let keys = match self.run(self.here().args(query), false, until)? {
            (Some(0), keys) => keys,
            // No filter is configured.
            (Some(1), keys) if keys.is_empty() => keys,
            _ => return Err(Incomplete::Failed),
        };
        let mut command = self.here();
        for setting in without_filters(&keys)? {
            command.arg("-c").arg(setting);
        }
        Ok(command)
    }

    pub(super) fn status(&self, below: LookBelow, until: &Until) -> Result<Status, Incomplete> {
        let mut command = self.unfiltered(until)?;
        command.args(["status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind"]);
        command.args(["--untracked-files=all", "--no-renames"]);
        // `dirty` compares the commit of a submodule, and starts no git in it, where filters of its own could run.
        command.arg(match below {
            LookBelow::Ignored => "--ignore-submodules=all",
            LookBelow::Included => "--ignore-submodules=dirty",
        });
        parse_status(&self.bytes(&mut command, until)?).ok_or(Incomplete::Failed)
    }

    pub(super) fn ignored(&self, until: &Until) -> Result<Vec<PathBuf>, Incomplete> {
        let query =
            ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--no-empty-directory"];
        let list = self.bytes(self.here().args(query), until)?;
        Ok(names(&list).map(|name| self.absolute(name)).collect())
    }

    pub(super) fn head(&self, until: &Until) -> Result<Head, Incomplete> {
        let ask = |query: &[&str]| -> Result<Option<String>, Incomplete> {
            let (code, output) = self.run(self.here().args(query), false, until)?;
            let text = || String::from_utf8(output).map_err(|_| Incomplete::Failed);
            (code == Some(0)).then(text).transpose().map(|text| text.map(|text| text.trim_end().to_owned()))
        };
        let branch = ask(&["symbolic-ref", "--quiet", "HEAD"])?;
        let branch = branch.map(|name| name.strip_prefix("refs/heads/").map_or(name.clone(), str::to_owned));
        Ok(Head { branch, commit: ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])? })
    }

    pub(super) fn is_ancestor(&self, old: &str, new: &str, until: &Until) -> Result<bool, Incomplete> {
        let (code, _) = self.run(self.here().args(["merge-base", "--is-ancestor", old, new]), false, until)?;
        Ok(code == Some(0))
    }

    /// A missing commit counts as an empty tree.
    pub(super) fn difference(
        &self,
        old: Option<&str>,
        new: Option<&str>,
        until: &Until,
    ) -> Result<BTreeMap<Vec<u8>, [Option<Blob>; 2]>, Incomplete> {
        let empty = match old.or(new).map_or(0, str::len) {
            64 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
            _ => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        };
        let mut command = self.here();
        command.args(["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff"]);
        command.args(["--ignore-submodules=all", old.unwrap_or(empty), new.unwrap_or(empty), "--"]);
        parse_difference(&self.bytes(&mut command, until)?).ok_or(Incomplete::Failed)
    }

    pub(super) fn set(&mut self, name: &'static str, value: OsString) {
        self.environment.push((name, value));
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn output(&self, query: &[&str], until: &Until) -> Result<String, Incomplete> {
        String::from_utf8(self.bytes(self.here().args(query), until)?).map_err(|_| Incomplete::Failed)
    }

    pub(super) fn line(&self, query: &[&str], until: &Until) -> Result<String, Incomplete> {
        self.output(query, until).map(|output| output.trim_end_matches('\n').to_owned())
    }

    /// The stdout of a git that succeeds.
    pub(super) fn bytes(&self, command: &mut Command, until: &Until) -> Result<Vec<u8>, Incomplete> {
        let (Some(0), output) = self.run(command, false, until)? else { return Err(Incomplete::Failed) };
        Ok(output)
    }

    /// Returns the exit code (`None`: a signal ended git) and stdout, interleaved with stderr if `errors` is set. Kills
    /// git once the time is up.
    pub(super) fn run(
        &self,
        command: &mut Command,
        errors: bool,
        until: &Until,
    ) -> Result<(Option<i32>, Vec<u8>), Incomplete> {
        in_time(until)?;
        command.env_clear();
        match self.filters {
            Filters::Empty => command.envs(self.environment.iter().map(|(name, value)| (name, value))),
            // The user's configuration may have the filters, as that of Git LFS.
            Filters::Own => command.envs(inherited()).envs(QUIET),
        };
        command.current_dir(&self.root);
        match query::run_git(command, errors, OUTPUT_BYTES_MAX, until) {
            Ok(answer) => Ok((answer.code, answer.output)),
            Err(_) => in_time(until).and(Err(Incomplete::Failed)),
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn absolute(&self, name: &[u8]) -> PathBuf {
        self.root.join(OsStr::from_bytes(name))
    }

    /// The file on disk. `None`: a folder. If git reports a file as deleted, it counts as deleted, although it may seem
    /// to exist behind a link that replaced a folder.
    pub(super) fn look(&self, name: &[u8], seen: Option<&FileState>) -> Option<Metadata> {
        let deleted = seen.is_some_and(|seen| seen.deleted);
        let metadata = if deleted { None } else { fs::symlink_metadata(self.absolute(name)).ok() };
        metadata.filter(|metadata| !metadata.is_dir())
    }

    /// The files that a change of HEAD writes, as far as they exist.
    pub(super) fn head_files(&self) -> [Option<Metadata>; 2] {
        ["HEAD", "logs/HEAD"].map(|name| fs::symlink_metadata(self.folder.join(name)).ok())
    }

    /// The nearest folder of this file that still exists.
    pub(super) fn folder_of(&self, name: &[u8]) -> Option<Metadata> {
        self.absolute(name).ancestors().skip(1).find_map(|folder| fs::symlink_metadata(folder).ok())
    }
}

pub(super) fn in_time(until: &Until) -> Result<(), Incomplete> {
    if until.is_over() { Err(Incomplete::Late) } else { Ok(()) }
}

/// The first git on the path that is not in the work tree.
fn find(path: &OsStr, root: &Path) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute() && !folder.starts_with(root));
    folders.map(|folder| folder.join("git")).find(|file| is_program(file))
}

pub(super) fn is_there(path: &OsStr, cwd: &Path) -> bool {
    // A worktree has a file; a folder without HEAD is no repository.
    let is_one = |git: PathBuf| git.is_file() || git.join("HEAD").symlink_metadata().is_ok();
    let near = cwd.ancestors().find(|folder| is_one(folder.join(".git")));
    near.is_some_and(|near| find(path, near).is_some())
}

/// The parts of a list in which a NUL ends each.
pub(super) fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|&byte| byte == 0).filter(|name| !name.is_empty())
}

/// The settings that make every filter empty, from the config keys of all filters.
fn without_filters(keys: &[u8]) -> Result<Vec<OsString>, Incomplete> {
    let mut settings = Vec::new();
    let mut filters: Vec<&[u8]> = keys.split(|&byte| byte == 0).filter_map(filter).collect();
    filters.sort_unstable();
    filters.dedup();
    // A name with `=` in it would override another setting.
    if filters.len() > FILTERS_MAX || filters.iter().any(|filter| filter.contains(&b'=')) {
        return Err(Incomplete::Failed);
    }
    for filter in filters {
        for end in [".clean=", ".smudge=", ".process=", ".required=false"] {
            settings.push(OsString::from_vec([filter, end.as_bytes()].concat()));
        }
    }
    Ok(settings)
}

/// `filter.NAME` of `filter.NAME.KEY`. The name may contain dots.
fn filter(key: &[u8]) -> Option<&[u8]> {
    let end = key.iter().rposition(|&byte| byte == b'.')?;
    (end >= b"filter.".len()).then(|| &key[..end])
}

fn parse_status(output: &[u8]) -> Option<Status> {
    let mut status = Status { head: Head::default(), files: BTreeMap::new(), nested: Vec::new() };
    for record in names(output) {
        let head = |key: &[u8], none: &str| {
            let text = record.strip_prefix(key).map(str::from_utf8)?.ok()?;
            Some((text != none).then(|| text.to_owned()))
        };
        if let Some(commit) = head(b"# branch.oid ", "(initial)") {
            status.head.commit = commit;
        } else if let Some(branch) = head(b"# branch.head ", "(detached)") {
            status.head.branch = branch;
        }
        let fields = |count| record.splitn(count, |&byte| byte == b' ').collect::<Vec<_>>();
        let (name, seen) = match record.first()? {
            b'#' => continue,
            b'?' => {
                let seen = FileState { in_head: None, content: Content::Unknown, deleted: false };
                (record.get(2..)?, seen)
            }
            b'1' => {
                let [_, states, _, in_head, in_index, _, head, index, name] = fields(9)[..] else { return None };
                let content = match (states.get(1)?, blob(in_index, index)) {
                    (b'.', Some(index)) => Content::Is(index),
                    (b'M' | b'T', Some(index)) => Content::IsNot(index),
                    _ => Content::Unknown,
                };
                (name, FileState { in_head: blob(in_head, head), content, deleted: states.get(1) == Some(&b'D') })
            }
            b'u' => {
                // The second of the three sides is HEAD.
                let [_, _, _, _, mode, _, _, _, id, _, name] = fields(11)[..] else { return None };
                (name, FileState { in_head: blob(mode, id), content: Content::Unknown, deleted: false })
            }
            _ => return None,
        };
        match name.strip_suffix(b"/") {
            Some(folder) => status.nested.push(folder.to_vec()),
            // A file may be listed twice: deleted in the index, and untracked.
            None => _ = status.files.entry(name.to_vec()).or_insert(seen),
        }
        if status.files.len() > FILES_MAX {
            return None;
        }
    }
    Some(status)
}

fn parse_difference(output: &[u8]) -> Option<BTreeMap<Vec<u8>, [Option<Blob>; 2]>> {
    let mut files = BTreeMap::new();
    let mut parts = output.split(|&byte| byte == 0);
    while let Some(record) = parts.next().filter(|record| !record.is_empty()) {
        let fields: Vec<&[u8]> = record.strip_prefix(b":")?.splitn(5, |&byte| byte == b' ').collect();
        let [old_mode, new_mode, old, new, _] = fields[..] else { return None };
        files.insert(parts.next()?.to_vec(), [blob(old_mode, old), blob(new_mode, new)]);
        if files.len() > FILES_MAX {
            return None;
        }
    }
    Some(files)
}

/// `None`: the mode that stands for a missing file.
fn blob(mode: &[u8], id: &[u8]) -> Option<Blob> {
    (mode != b"000000").then(|| (mode.to_vec(), id.to_vec()))
}
