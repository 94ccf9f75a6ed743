//! Careful access to files: regular files only, and our own files in a directory that may come from a stranger.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RawMode, Stat, fchmod, flock, mkdirat, openat, renameat,
    statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Never waits for a pipe's writer. Error: the system's; `InvalidInput` if this is not a regular file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
}

/// Error: the system's; those of [`open_regular`]; `FileTooLarge` above `bytes`; `InvalidData` if it is not UTF-8.
pub(crate) fn read_regular(path: &Path, bytes: u64) -> io::Result<String> {
    whole_text(open_regular(path)?, bytes)
}

/// Error: the system's; those of [`FileOrPipe`]; `FileTooLarge` above `bytes`; `InvalidData` if it is not UTF-8.
pub(crate) fn read_text(path: &Path, bytes: u64) -> io::Result<String> {
    whole_text(FileOrPipe::open(path)?, bytes)
}

fn whole_text(source: impl Read, bytes: u64) -> io::Result<String> {
    let mut text = Vec::new();
    source.take(bytes + 1).read_to_end(&mut text)?;
    if text.len() as u64 > bytes {
        return Err(ErrorKind::FileTooLarge.into());
    }
    String::from_utf8(text).map_err(|_| ErrorKind::InvalidData.into())
}

/// Waits as long as the pipe has a writer. A read fails with `TimedOut` if none comes within [`WRITER_LIMIT`].
pub(crate) struct FileOrPipe {
    file: File,
    /// The time until which a first writer may come. After it, an end of the input is final.
    awaited: Option<Instant>,
}

impl FileOrPipe {
    pub(crate) fn open(path: &Path) -> io::Result<FileOrPipe> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(openat(CWD, path, flags, Mode::empty())?);
        let is_pipe = file.metadata()?.file_type().is_fifo();
        Ok(FileOrPipe { file, awaited: is_pipe.then(|| Instant::now() + WRITER_LIMIT) })
    }
}

impl Read for FileOrPipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match (self.file.read(buffer), self.awaited) {
                (Ok(0), Some(until)) if until <= Instant::now() => return Err(ErrorKind::TimedOut.into()),
                // Without a writer a poll may return at once, again and again.
                (Ok(0), Some(_)) => std::thread::sleep(LOOK_AGAIN),
                (Err(error), _) if error.kind() == ErrorKind::WouldBlock => {
                    self.awaited = None;
                    // A signal ends the wait early, and the next read starts it again.
                    let _ = poll(&mut [PollFd::new(&self.file, PollFlags::IN)], None);
                }
                (read, _) => {
                    self.awaited = None;
                    return read;
                }
            }
        }
    }
}

const WRITER_LIMIT: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// `None`: the environment does not name one.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

/// `None`: the environment names no home directory.
pub(crate) fn worktrees_folder() -> Option<PathBuf> {
    let folder = state_folder()?.join("spektacular/worktrees");
    Some(folder.canonicalize().unwrap_or(folder))
}

const LINK_BYTES: u64 = 8 << 10;

/// The main work tree of the repository of a linked one, without asking git. `None`: the path is no linked work tree.
pub(crate) fn main_of(path: &Path) -> Option<PathBuf> {
    let link = read_text(&path.join(".git"), LINK_BYTES).ok()?;
    let data = Path::new(link.strip_prefix("gitdir: ")?.trim_end_matches('\n'));
    data.parent()?.parent()?.parent().map(Path::to_owned)
}

/// Opening an entry of it follows no link.
#[derive(Debug)]
pub(crate) struct OpenFolder(OwnedFd);

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl OpenFolder {
    /// Follows the links of the path.
    pub(crate) fn open(path: &Path) -> io::Result<OpenFolder> {
        Ok(OpenFolder(openat(CWD, path, DIRECTORY, Mode::empty())?))
    }

    /// Creates what is missing. Follows links on the way to the project, and none below it. Error: the system's; below
    /// the project `ELOOP` or `ENOTDIR` for a link.
    pub(crate) fn create(path: &Path, project: Option<&Path>) -> io::Result<OpenFolder> {
        let Some((root, rest)) = project.and_then(|project| below(path, project)) else {
            std::fs::create_dir_all(path)?;
            return OpenFolder::open(path);
        };
        OpenFolder::walk(&root, &rest, OpenFolder::enter)
    }

    /// The folder to which these names lead. `step`: [`OpenFolder::enter`] or [`OpenFolder::inner`].
    pub(crate) fn walk(
        root: &Path,
        names: &Path,
        step: fn(&OpenFolder, &OsStr) -> io::Result<OpenFolder>,
    ) -> io::Result<OpenFolder> {
        names.iter().try_fold(OpenFolder::open(root)?, |folder, name| step(&folder, name))
    }

    /// Opens a directory, or creates it.
    pub(crate) fn enter(&self, name: &OsStr) -> io::Result<OpenFolder> {
        match mkdirat(&self.0, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        self.inner(name)
    }

    pub(crate) fn inner(&self, name: &OsStr) -> io::Result<OpenFolder> {
        Ok(OpenFolder(openat(&self.0, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?))
    }

    pub(crate) fn file(&self, name: &OsStr, flags: OFlags, mode: RawMode) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.0, name, flags, Mode::from_raw_mode(mode))?))
    }

    /// Fails if the name is taken, even by a link.
    pub(crate) fn create_new(&self, name: &OsStr, mode: RawMode) -> io::Result<File> {
        self.file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode)
    }

    /// Tells git to ignore everything in this directory.
    pub(crate) fn ignore(&self) -> io::Result<()> {
        match self.create_new(OsStr::new(".gitignore"), 0o666) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            made => made?.write_all(b"*\n"),
        }
    }

    /// Writes the file completely or not at all: `temporary`, or a name made from it if a folder has that one, is
    /// written first and then renamed. A link of this name is replaced, not followed. `mode`: the mode of a new file;
    /// an existing one keeps its permissions.
    pub(crate) fn replace(&self, name: &OsStr, temporary: &OsStr, mode: RawMode, bytes: &[u8]) -> io::Result<()> {
        self.swap(name, temporary, mode, bytes, true)
    }

    /// Does not wait for the disk: a crash of the machine may lose the file.
    pub(crate) fn replace_unsynced(
        &self,
        name: &OsStr,
        temporary: &OsStr,
        mode: RawMode,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.swap(name, temporary, mode, bytes, false)
    }

    fn swap(&self, name: &OsStr, temporary: &OsStr, mode: RawMode, bytes: &[u8], is_synced: bool) -> io::Result<()> {
        let create = |temporary: &OsStr| {
            // A killed process may have left one.
            let _ = self.remove(temporary);
            self.create_new(temporary, mode)
        };
        let kept = self.stat(name).filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        let (mut file, temporary) = first_free(temporary, create)?;
        let written = kept
            .map_or(Ok(()), |kept| Ok(fchmod(&file, Mode::from_raw_mode(kept.st_mode & 0o777))?))
            .and_then(|()| file.write_all(bytes))
            .and_then(|()| if is_synced { file.sync_all() } else { Ok(()) })
            .and_then(|()| self.rename(&temporary, self, name));
        if written.is_err() {
            let _ = self.remove(&temporary);
        }
        written
    }

    /// Locks against other processes of this program, for as long as the directory stays open. Returns false if its
    /// file system has no locks: there, the later of two simultaneous changes wins. `None`: another process keeps the
    /// lock.
    pub(crate) fn lock(&self, limit: Duration) -> Option<bool> {
        lock(&self.0, FlockOperation::NonBlockingLockExclusive, limit)
    }

    pub(crate) fn rename(&self, name: &OsStr, to: &OpenFolder, new: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, name, &to.0, new)?)
    }

    pub(crate) fn symlink(&self, target: &Path, name: &OsStr) -> io::Result<()> {
        Ok(symlinkat(target, &self.0, name)?)
    }

    /// Removes a file or a link, but no directory.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(crate) fn remove_empty(&self, name: &OsStr) {
        let _ = unlinkat(&self.0, name, AtFlags::REMOVEDIR);
    }

    /// Does not follow a link. `None`: the entry does not exist.
    pub(crate) fn stat(&self, name: &OsStr) -> Option<Stat> {
        statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Returns at most `limit` names, in the order of the file system.
    pub(crate) fn names(&self, limit: usize) -> io::Result<Vec<OsString>> {
        let names =
            Dir::read_from(&self.0)?.map(|entry| Ok(OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned()));
        names.filter(|name| !matches!(name, Ok(name) if name == "." || name == "..")).take(limit).collect()
    }
}

fn lock(file: &OwnedFd, operation: FlockOperation, limit: Duration) -> Option<bool> {
    let began = Instant::now();
    loop {
        match flock(file, operation) {
            Ok(()) => return Some(true),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if began.elapsed() >= limit => return None,
            // A blocking lock has no time limit.
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOOK_AGAIN),
            Err(_) => return Some(false),
        }
    }
}

/// A file that processes of this program lock, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct FileLock(OwnedFd);

impl FileLock {
    /// Does not follow a link.
    pub(crate) fn open(path: &Path) -> io::Result<FileLock> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(FileLock(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Locks the file beside others that share it. Returns whether it is locked.
    pub(crate) fn share(&self, limit: Duration) -> bool {
        lock(&self.0, FlockOperation::NonBlockingLockShared, limit) == Some(true)
    }

    /// Returns false if another process keeps a lock of the file.
    pub(crate) fn take(&self, limit: Duration) -> bool {
        lock(&self.0, FlockOperation::NonBlockingLockExclusive, limit).is_some()
    }
}

/// A folder may have the first name.
const TEMPORARY_NAMES: u32 = 100;

fn first_free(name: &OsStr, create: impl Fn(&OsStr) -> io::Result<File>) -> io::Result<(File, OsString)> {
    let mut number = 1;
    let mut tried = name.to_owned();
    loop {
        match create(&tried) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < TEMPORARY_NAMES => {
                number += 1;
                tried = OsString::from(format!(".{number}"));
                tried.push(name);
            }
            created => return created.map(|file| (file, tried)),
        }
    }
}

/// Only its owner can read the file. Follows links on the way to the project, and none below it. Error: the system's;
/// `InvalidInput` for a pipe or a terminal, because perhaps nobody reads it.
pub(crate) fn create_private(path: &Path, project: Option<&Path>) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let file = match project.and_then(|project| below(path, project)) {
        Some((root, rest)) => {
            let name = rest.file_name().ok_or(ErrorKind::InvalidInput)?;
            let folder = OpenFolder::walk(&root, rest.parent().unwrap_or(Path::new("")), OpenFolder::inner)?;
            folder.file(name, flags, 0o600)?
        }
        None => {
            let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            File::from(openat(CWD, path, flags, Mode::from_raw_mode(0o600))?)
        }
    };
    let kind = file.metadata()?.file_type();
    let takes_all = kind.is_file() || (kind.is_char_device() && !file.is_terminal());
    if takes_all { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
}

/// Splits a path where it enters the project: the directory there, and the rest. `None`: the path does not lead into the
/// project. A link before that point is the user's own.
fn below(path: &Path, project: &Path) -> Option<(PathBuf, PathBuf)> {
    let project = project.canonicalize().ok()?;
    let path = std::path::absolute(path).ok()?;
    let mut inside = None;
    let mut root = PathBuf::new();
    let mut parts = path.components();
    for part in parts.by_ref() {
        root.push(part);
        if root.canonicalize().is_ok_and(|real| real.starts_with(&project)) {
            inside = Some(parts.as_path().to_owned());
            break;
        }
    }
    inside.map(|rest| (root, rest))
}

#[cfg(test)]
mod tests {
    use super::OpenFolder;
    use std::time::Duration;

    #[test]
    fn a_lock_lasts_as_long_as_its_folder_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let open = || OpenFolder::open(folder.path()).unwrap();
        let (first, late) = (open(), open());
        assert_eq!(first.lock(Duration::ZERO), Some(true));
        assert_eq!(late.lock(Duration::ZERO), None);
        drop(first);
        assert_eq!(late.lock(Duration::ZERO), Some(true));
    }
}
