//! Checkpoints of a work tree, and the way back to one. They lie in a repository of their own in the folder for temporary
//! files, so the user's index, HEAD and objects stay as they are, and no setting, filter or attribute of the user's
//! repository changes a byte. What git ignores, and repositories below the work tree, are not part of a checkpoint.

use super::query::{Blob, Filters, Git, Incomplete, in_time, is_there, names};
use super::snapshot::excluded;
use super::surroundings;
use crate::io::files::{OpenFolder, open_regular};
use crate::process::query::Until;
use crate::process::scratch::Scratch;
use crate::process::tree;
use crate::protocol::ids::CheckpointId;
use crate::protocol::words::Action;
use rustix::fs::{Mode, fchmod, fstat};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The bytes of a file are those on disk: no conversion of line ends, keywords or encodings. These rules come before
/// those of the work tree.
const ATTRIBUTES: &str = "* -text !eol !ident !filter !working-tree-encoding\n";
const FILES_AT_ONCE: usize = 200;
/// The mode of a symbolic link, and of a repository below, as git writes it.
const LINK: &[u8] = b"120000";
const REPOSITORY: &[u8] = b"160000";

/// Dropping them removes their files.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    git: Git,
    folder: Scratch,
    spans: Vec<Span>,
    staged: u32,
}

/// A time in which files are ours to put back: a turn, or a rewind.
#[derive(Debug)]
struct Span {
    id: CheckpointId,
    /// The tree at its beginning.
    begin: String,
    /// `None`: unknown, so that no change in the span counts as its own.
    end: Option<String>,
    /// The file with the names that the tree at its beginning lacks: of ignored files and folders, which end in a slash, and
    /// of those that git cannot read.
    lacks: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoRewind {
    Unknown,
    /// Somebody else changed these files, too: absolute paths.
    Changed(Vec<PathBuf>),
    /// These became folders since the checkpoint, or were folders: absolute paths. One of the two names would have to go
    /// before the other could come, so that a failure between them could not be undone.
    Kind(Vec<PathBuf>),
    /// Cannot be read or written.
    File(PathBuf),
    Git(Incomplete),
}

impl From<Incomplete> for NoRewind {
    fn from(why: Incomplete) -> NoRewind {
        NoRewind::Git(why)
    }
}

/// The differing files of two trees, by their names: mode and object in each.
type Differences = BTreeMap<Vec<u8>, [Option<Blob>; 2]>;

/// The files and folders that were no part of a checkpoint, although they may look new since: a turn may have removed the
/// rule that ignored a file, or the `.git` of a repository below.
struct Apart(BTreeSet<Vec<u8>>);

impl Apart {
    fn new(lacks: &[u8], files: &Differences) -> Apart {
        let is_repository = |side: &Option<Blob>| side.as_ref().is_some_and(|(mode, _)| mode == REPOSITORY);
        let repositories = files.iter().filter(|(_, [_, after])| is_repository(after));
        let below = repositories.map(|(name, _)| [name, &b"/"[..]].concat());
        Apart(names(lacks).map(<[u8]>::to_vec).chain(below).collect())
    }

    fn holds(&self, name: &[u8], sides: &[Option<Blob>; 2]) -> bool {
        let is_repository = sides.iter().flatten().any(|(mode, _)| mode == REPOSITORY);
        let mut folders = name.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &name[..=at]);
        is_repository || sides[1].is_none() && (self.0.contains(name) || folders.any(|folder| self.0.contains(folder)))
    }
}

/// The files of which others are below.
fn names_above(files: &Differences) -> impl Iterator<Item = &[u8]> {
    let mut folders: BTreeSet<&[u8]> = BTreeSet::new();
    for name in files.keys() {
        let slashes = name.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        folders.extend(slashes.map(|(at, _)| &name[..at]));
    }
    files.keys().map(Vec::as_slice).filter(move |name| folders.contains(name))
}

/// A file to put back, made ready beside its place.
struct Change {
    path: PathBuf,
    /// The folder above it that was there before.
    kept: PathBuf,
    folder: OpenFolder,
    name: OsString,
    /// `None`: the file is to be removed.
    new: Option<OsString>,
    action: Action,
}

/// Starts no process.
pub(crate) fn is_possible(cwd: &Path) -> bool {
    is_there(&surroundings().0, cwd)
}

impl Checkpoints {
    /// `None`: git or a work tree is missing.
    pub(crate) fn of(cwd: &Path, until: &Until) -> Result<Option<Checkpoints>, Incomplete> {
        let Some(user) = Git::open(cwd, surroundings(), Filters::Empty, until)? else { return Ok(None) };
        let file =
            |name| user.line(&["rev-parse", "--git-path", name], until).map(|path| user.absolute(path.as_bytes()));
        let (objects, exclude) = (file("objects")?, file("info/exclude")?);
        let format = user.line(&["rev-parse", "--show-object-format"], until);
        let folder = Scratch::of(&tree::nonce()).map_err(|_| Incomplete::Failed)?;
        let mut git = user.beside(folder.path().join("git"));
        git.set("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects.into());
        let mut init = git.command();
        init.args(["init", "--quiet", "--bare", "--template="]);
        init.args(format.ok().filter(|format| format != "sha1").map(|format| format!("--object-format={format}")));
        init.arg(folder.path().join("git"));
        git.bytes(&mut init, until)?;
        let info = folder.path().join("git/info");
        let excluded = fs::read(exclude).unwrap_or_default();
        let written = fs::create_dir_all(&info)
            .and_then(|()| fs::write(info.join("attributes"), ATTRIBUTES))
            .and_then(|()| fs::write(info.join("exclude"), excluded));
        written.map_err(|_| Incomplete::Failed)?;
        // git does not ignore what it tracks, although a pattern may match it.
        let mut query = user.here();
        query.args(["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"]);
        let tracked = user.bytes(&mut query, until)?;
        let tracked: Vec<&OsStr> = names(&tracked)
            .filter(|name| user.absolute(name).symlink_metadata().is_ok())
            .map(OsStr::from_bytes)
            .collect();
        for tracked in tracked.chunks(FILES_AT_ONCE) {
            let mut command = git.here();
            command.args(["--literal-pathspecs", "add", "--force", "--ignore-errors", "--"]).args(tracked);
            let (Some(0 | 1), _) = git.run(&mut command, false, until)? else { return Err(Incomplete::Failed) };
        }
        Ok(Some(Checkpoints { git, folder, spans: Vec::new(), staged: 0 }))
    }

    /// Call it at the beginning of a turn. `except`: files of ours, absolute.
    pub(crate) fn begin(&mut self, id: CheckpointId, except: &[PathBuf], until: &Until) -> Result<(), Incomplete> {
        let span = self.span(id, except, until)?;
        self.spans.push(span);
        Ok(())
    }

    fn span(&self, id: CheckpointId, except: &[PathBuf], until: &Until) -> Result<Span, Incomplete> {
        let begin = self.take(except, until)?;
        let mut status = self.git.here();
        status.args(["status", "--porcelain", "-z", "--ignored=matching", "--untracked-files=all"]);
        status.args(["--no-renames", "--ignore-submodules=all"]);
        let list = self.git.bytes(&mut status, until)?;
        let lacking = names(&list).filter_map(|name| name.strip_prefix(b"!! ").or_else(|| name.strip_prefix(b"?? ")));
        let lacks = self.folder.path().join(format!("lacks-{id}"));
        fs::write(&lacks, lacking.collect::<Vec<_>>().join(&0)).map_err(|_| Incomplete::Failed)?;
        Ok(Span { id, begin, end: None, lacks })
    }

    /// Notes the state at the end of the turn that began last. Returns its checkpoint, if it has one.
    pub(crate) fn end(&mut self, except: &[PathBuf], until: &Until) -> Result<Option<CheckpointId>, Incomplete> {
        if self.spans.last().is_none_or(|span| span.end.is_some()) {
            return Ok(None);
        }
        let end = self.take(except, until)?;
        Ok(self.spans.last_mut().map(|span| {
            span.end = Some(end);
            span.id
        }))
    }

    /// Puts every file back that turns changed since a checkpoint, or none. `undo`: the checkpoint before this rewind.
    pub(crate) fn rewind(
        &mut self,
        (to, undo): (CheckpointId, CheckpointId),
        except: &[PathBuf],
        until: &Until,
    ) -> Result<Vec<(PathBuf, Action)>, NoRewind> {
        let first = self.spans.iter().position(|span| span.id == to).ok_or(NoRewind::Unknown)?;
        let mut span = self.span(undo, except, until)?;
        let now = span.begin.clone();
        let [ours, others] = self.changed_since(first, &now, until)?;
        let target = self.spans[first].begin.clone();
        let mut files = self.git.difference(Some(&now), Some(&target), until)?;
        let lacks = fs::read(&self.spans[first].lacks).map_err(|_| Incomplete::Failed)?;
        let apart = Apart::new(&lacks, &files);
        files.retain(|name, sides| ours.contains(name) && !apart.holds(name, sides));
        let changed: Vec<PathBuf> =
            files.keys().filter(|name| others.contains(*name)).map(|name| self.git.absolute(name)).collect();
        if !changed.is_empty() {
            return Err(NoRewind::Changed(changed));
        }
        let kind: Vec<PathBuf> = names_above(&files).map(|name| self.git.absolute(name)).collect();
        if !kind.is_empty() {
            return Err(NoRewind::Kind(kind));
        }
        let (old, new) = (self.stage(&now, &files, 0, until)?, self.stage(&target, &files, 1, until)?);
        let done = self.put_back(&files, (&old, &new), until)?;
        span.end = self.take(except, until).ok();
        self.spans.push(span);
        Ok(done)
    }

    /// The tree of the files as they are.
    fn take(&self, except: &[PathBuf], until: &Until) -> Result<String, Incomplete> {
        // An interrupted git leaves it.
        let _ = fs::remove_file(self.git.file("index.lock"));
        let mut command = self.git.here();
        command.args(["add", "--all", "--ignore-errors", "--", "."]);
        command.args(except.iter().filter_map(|path| path.strip_prefix(self.git.root()).ok()).map(excluded));
        // 1: a file cannot be read, or a repository below has no commit.
        let (Some(0 | 1), _) = self.git.run(&mut command, false, until)? else { return Err(Incomplete::Failed) };
        self.git.line(&["write-tree"], until)
    }

    /// The files that changed in the spans from this one on, and those that changed between them and since.
    fn changed_since(&self, first: usize, now: &str, until: &Until) -> Result<[BTreeSet<Vec<u8>>; 2], Incomplete> {
        let (mut ours, mut others) = (BTreeSet::new(), BTreeSet::new());
        let add = |to: &mut BTreeSet<Vec<u8>>, from: &str, into: &str| -> Result<(), Incomplete> {
            if from != into {
                to.extend(self.git.difference(Some(from), Some(into), until)?.into_keys());
            }
            Ok(())
        };
        let spans = &self.spans[first..];
        let end = |span: &'_ Span| span.end.clone().unwrap_or_else(|| span.begin.clone());
        for (at, span) in spans.iter().enumerate() {
            add(&mut ours, &span.begin, &end(span))?;
            let next = spans.get(at + 1).map_or(now, |next| &next.begin);
            add(&mut others, &end(span), next)?;
        }
        Ok([ours, others])
    }

    /// Writes the files of a tree into a new folder. `side`: the side of the difference that this tree is.
    fn stage(&mut self, tree: &str, files: &Differences, side: usize, until: &Until) -> Result<PathBuf, Incomplete> {
        self.staged += 1;
        let folder = self.folder.path().join(format!("files-{}", self.staged));
        let mut git = self.git.clone();
        git.set("GIT_INDEX_FILE", self.folder.path().join("index").into());
        git.bytes(git.here().args(["read-tree", tree]), until)?;
        let mut prefix = OsString::from("--prefix=");
        prefix.push(folder.join(""));
        let names: Vec<&OsStr> =
            files.iter().filter(|(_, sides)| sides[side].is_some()).map(|(name, _)| OsStr::from_bytes(name)).collect();
        for names in names.chunks(FILES_AT_ONCE) {
            let mut command = git.here();
            command.args(["checkout-index", "--force"]).arg(&prefix).arg("--").args(names);
            git.bytes(&mut command, until)?;
        }
        Ok(folder)
    }

    /// Replaces the files, or none of them. `old` and `new`: the folders with their contents before and after.
    fn put_back(
        &self,
        files: &Differences,
        (old, new): (&Path, &Path),
        until: &Until,
    ) -> Result<Vec<(PathBuf, Action)>, NoRewind> {
        let mut ready = Vec::with_capacity(files.len());
        let made = files.iter().try_for_each(|(name, sides)| {
            in_time(until)?;
            ready.push(self.make_ready(name, sides, new)?);
            Ok(())
        });
        // The last look before the files change.
        let made = made.and_then(|()| {
            files.iter().try_for_each(|(name, sides)| {
                in_time(until)?;
                let path = self.git.absolute(name);
                match is_as_in(sides[0].as_ref().map(|_| old.join(OsStr::from_bytes(name))).as_deref(), &path) {
                    true => Ok(()),
                    false => Err(NoRewind::Changed(vec![path])),
                }
            })
        });
        let done = made.and_then(|()| match ready.iter().position(|change| change.apply().is_err()) {
            None => Ok(()),
            Some(failed) => {
                // What was replaced gets its content back.
                for (name, [before, after]) in files.iter().take(failed) {
                    let sides = [after.clone(), before.clone()];
                    let _ = self.make_ready(name, &sides, old).map(|back| back.apply());
                }
                Err(NoRewind::File(ready[failed].path.clone()))
            }
        });
        if done.is_err() {
            ready.iter().for_each(Change::clear);
            ready.iter().for_each(|change| remove_empty(&change.path, &change.kept));
        }
        done?;
        let removed = ready.iter().filter(|change| change.new.is_none());
        removed.for_each(|change| remove_empty(&change.path, self.git.root()));
        Ok(ready.into_iter().map(|change| (change.path, change.action)).collect())
    }

    /// Writes the new content of a file beside it. Follows no link below the work tree.
    fn make_ready(&self, name: &[u8], sides: &[Option<Blob>; 2], new: &Path) -> Result<Change, NoRewind> {
        let (relative, path) = (Path::new(OsStr::from_bytes(name)), self.git.absolute(name));
        let failed = |_: io::Error| NoRewind::File(path.clone());
        let is_folder = |folder: &&Path| folder.symlink_metadata().is_ok();
        let kept = path.ancestors().skip(1).find(is_folder).unwrap_or(self.git.root()).to_owned();
        let [before, after] = sides;
        let name = relative.file_name().ok_or_else(|| NoRewind::File(path.clone()))?.to_owned();
        let parents = relative.parent().unwrap_or(Path::new(""));
        let step = if after.is_some() { OpenFolder::enter } else { OpenFolder::inner };
        let folder = OpenFolder::walk(self.git.root(), parents, step).map_err(failed)?;
        let action = match (before, after) {
            (Some(_), None) => Action::Deleted,
            (None, _) => Action::Created,
            (Some(_), Some(_)) => Action::Modified,
        };
        let new = match after {
            None => None,
            Some((mode, _)) => Some(written(&folder, &name, &new.join(relative), mode == LINK).map_err(failed)?),
        };
        Ok(Change { path, kept, folder, name, new, action })
    }
}

/// Removes the empty folders above a file that is gone, up to this one.
fn remove_empty(file: &Path, end: &Path) {
    let parents = file.ancestors().skip(1).take_while(|folder| *folder != end);
    let _ = parents.map(fs::remove_dir).take_while(Result::is_ok).count();
}

impl Change {
    fn apply(&self) -> io::Result<()> {
        match &self.new {
            Some(new) => self.folder.rename(new, &self.folder, &self.name),
            None => self.folder.remove(&self.name),
        }
    }

    fn clear(&self) {
        if let Some(new) = &self.new {
            let _ = self.folder.remove(new);
        }
    }
}

/// Returns the copy's name. The copy keeps the permissions of the replaced file, but for the right to execute it.
fn written(folder: &OpenFolder, name: &OsStr, from: &Path, is_link: bool) -> io::Result<OsString> {
    let new = OsString::from(format!(".spektacular-{}", tree::nonce()));
    if is_link {
        folder.symlink(&fs::read_link(from)?, &new)?;
        return Ok(new);
    }
    let (mut source, mut copy) = (open_regular(from)?, folder.create_new(&new, 0o600)?);
    let wanted = fstat(&source)?.st_mode & 0o777;
    let replaced = folder.stat(name).filter(|stat| stat.st_mode & 0o170_000 == 0o100_000);
    let mode = replaced.map_or(wanted, |stat| {
        let kept = stat.st_mode & 0o666;
        if wanted & 0o100 == 0 { kept } else { kept | (kept & 0o444) >> 2 }
    });
    let copied = io::copy(&mut source, &mut copy).and_then(|_| Ok(fchmod(&copy, Mode::from_raw_mode(mode))?));
    if copied.is_err() {
        let _ = folder.remove(&new);
    }
    copied.map(|()| new)
}

/// Whether a file on disk is the same as this copy of it. `None`: whether it does not exist.
fn is_as_in(copy: Option<&Path>, path: &Path) -> bool {
    let Some(copy) = copy else {
        return path
            .symlink_metadata()
            .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory));
    };
    let (Ok(one), Ok(other)) = (copy.symlink_metadata(), path.symlink_metadata()) else { return false };
    match (one.is_symlink(), other.is_symlink()) {
        (true, true) => fs::read_link(copy).ok() == fs::read_link(path).ok(),
        (false, false) => {
            let same_kind = other.is_file() && one.len() == other.len() && (one.mode() ^ other.mode()) & 0o100 == 0;
            same_kind && same_bytes(copy, path).unwrap_or(false)
        }
        (true, false) | (false, true) => false,
    }
}

fn same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (BufReader::new(open_regular(one)?), BufReader::new(open_regular(other)?));
    let (mut left, mut right) = ([0; 8192], [0; 8192]);
    loop {
        let count = one.read(&mut left)?;
        other.read_exact(&mut right[..count])?;
        if left[..count] != right[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(other.read(&mut right)? == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Differences, names_above, remove_empty};
    use std::fs;

    #[test]
    fn a_file_above_others_is_found_whatever_stands_between_them() {
        let files: Differences = ["a", "a-b", "a/b", "c/d", "c/d.txt", "e/f", "e/f/g/h"]
            .into_iter()
            .map(|name| (name.as_bytes().to_vec(), [None, None]))
            .collect();
        assert_eq!(names_above(&files).collect::<Vec<_>>(), [&b"a"[..], b"e/f"]);
    }

    #[test]
    fn a_folder_that_was_there_before_stays_although_it_is_empty() {
        let root = tempfile::tempdir().unwrap();
        let kept = root.path().join("kept");
        fs::create_dir_all(kept.join("new/below")).unwrap();
        remove_empty(&kept.join("new/below/file"), &kept);
        assert!(kept.is_dir() && !kept.join("new").exists());
    }
}
