//! Files below the project's folder. Every function walks from the open folder and follows no link.

use super::Project;
use crate::failure::Failure;
use crate::protocol::words::RefusalReason;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

/// The kind of an entry in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, wherever it leads.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

/// Why a file cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileProblem {
    /// The path leads out of the project or over a link, or names no regular file.
    Outside,
    /// The file is larger than its limit.
    TooLarge,
    /// The system refused.
    Io(ErrorKind),
}

impl FileProblem {
    /// The refusal of a workflow that needs the file. `what`: the file, as the subject of a sentence.
    pub fn refusal(self, what: &str) -> Failure {
        match self {
            FileProblem::Outside => Failure::refused_for(
                RefusalReason::Outside,
                format!(
                    "{what} must be a regular file or folder of the project, and must not be reached through a link."
                ),
            ),
            FileProblem::TooLarge => {
                Failure::refused_for(RefusalReason::TooLarge, format!("{what} is too large. Shorten it."))
            }
            FileProblem::Io(ErrorKind::NotFound) => {
                Failure::refused_for(RefusalReason::NotFound, format!("{what} does not exist."))
            }
            FileProblem::Io(_) => {
                Failure::refused_for(RefusalReason::NotFound, format!("{what} cannot be read. Check its permissions."))
            }
        }
    }
}

fn io(errno: Errno) -> FileProblem {
    match errno {
        Errno::LOOP => FileProblem::Outside,
        errno => FileProblem::Io(std::io::Error::from(errno).kind()),
    }
}

/// A folder of the project that is open, and the name of an entry in it.
struct Place {
    folder: OwnedFd,
    name: OsString,
}

impl Project {
    /// The kind of entry that a path names. `None`: there is none.
    pub fn entry(&self, path: &Path) -> Result<Option<Entry>, FileProblem> {
        Ok(self.place(path)?.and_then(|place| place.entry()))
    }

    /// The bytes of a regular file of at most `limit` bytes. `None`: there is no entry of this name.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Option<Vec<u8>>, FileProblem> {
        let Some(place) = self.place(path)? else { return Ok(None) };
        // A pipe must not block the open.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&place.folder, &place.name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            // A socket or a device without a driver.
            Err(Errno::NXIO | Errno::NODEV) => return Err(FileProblem::Outside),
            Err(errno) => return Err(io(errno)),
        };
        let is_file = fstat(&file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if !is_file {
            return Err(FileProblem::Outside);
        }
        let mut bytes = Vec::new();
        let read = File::from(file).take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|error| FileProblem::Io(error.kind()))?;
        if bytes.len() as u64 > limit { Err(FileProblem::TooLarge) } else { Ok(Some(bytes)) }
    }

    /// Writes a file as a whole or not at all: a new file beside it takes its place. Creates missing folders. A link
    /// in its place is replaced, and never written through.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FileProblem> {
        let place = self.place_for(path)?;
        let entry = place.entry();
        if matches!(entry, Some(Entry::Folder | Entry::Other)) {
            return Err(FileProblem::Outside);
        }
        let temporary = temporary(&place.name);
        // A file of this name was left by a killed process with the same id.
        let _ = unlinkat(&place.folder, &temporary, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&place.folder, &temporary, flags, Mode::from_raw_mode(0o666)).map_err(io)?;
        let written = (|| {
            let mut file = File::from(file);
            file.write_all(bytes)?;
            if let Some(mode) = place.mode().filter(|_| entry == Some(Entry::File)) {
                file.set_permissions(Permissions::from_mode(mode))?;
            }
            file.sync_all()?;
            renameat(&place.folder, &temporary, &place.folder, &place.name)?;
            Ok::<_, std::io::Error>(())
        })();
        written.map_err(|error| {
            let _ = unlinkat(&place.folder, &temporary, AtFlags::empty());
            FileProblem::Io(error.kind())
        })
    }

    /// Creates a file that must not exist yet, and missing folders on the way. Returns whether it created the file.
    pub fn create(&self, path: &Path, bytes: &[u8]) -> Result<bool, FileProblem> {
        if self.entry(path)?.is_some() {
            return Ok(false);
        }
        self.write(path, bytes).map(|()| true)
    }

    /// Moves a file or a folder by one rename. Creates missing folders on the way. What is at the new path gives way if
    /// it is a file or an empty folder.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), FileProblem> {
        let from = self.place(from)?.ok_or(FileProblem::Io(ErrorKind::NotFound))?;
        let to = self.place_for(to)?;
        renameat(&from.folder, &from.name, &to.folder, &to.name).map_err(io)
    }

    /// The entries of a folder, sorted, at most `limit`. Empty if the folder is missing.
    pub fn list(&self, path: &Path, limit: usize) -> Result<Vec<(OsString, Entry)>, FileProblem> {
        let Some(place) = self.place(&path.join("_"))? else { return Ok(Vec::new()) };
        let entries = rustix::fs::Dir::read_from(&place.folder).map_err(io)?;
        let mut found = Vec::new();
        for entry in entries.take(limit.saturating_add(2)) {
            use std::os::unix::ffi::OsStrExt;
            let name = OsStr::from_bytes(entry.map_err(io)?.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            let Place { folder, .. } = &place;
            if let Some(kind) = entry_of(folder, &name) {
                found.push((name, kind));
            }
        }
        found.sort();
        found.truncate(limit);
        Ok(found)
    }

    /// The open folder that holds what a path names. `None`: the folder does not exist.
    fn place(&self, path: &Path) -> Result<Option<Place>, FileProblem> {
        match self.walk(path, false) {
            Ok(place) => Ok(Some(place)),
            Err(FileProblem::Io(ErrorKind::NotFound)) => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// The same, with the missing folders created.
    fn place_for(&self, path: &Path) -> Result<Place, FileProblem> {
        self.walk(path, true)
    }

    fn walk(&self, path: &Path, create: bool) -> Result<Place, FileProblem> {
        let mut names: Vec<&OsStr> = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::ParentDir => return Err(FileProblem::Outside),
            }
        }
        let name = names.pop().ok_or(FileProblem::Outside)?.to_owned();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = openat(CWD, &self.folder, flags, Mode::empty()).map_err(io)?;
        for name in names {
            let open = || openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty());
            let below = match open() {
                Err(Errno::NOENT) if create => match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => open(),
                    Err(errno) => Err(errno),
                },
                below => below,
            };
            // A link to a folder counts as no folder.
            folder = match below {
                Err(Errno::NOTDIR) => return Err(FileProblem::Outside),
                below => below.map_err(io)?,
            };
        }
        Ok(Place { folder, name })
    }
}

impl Place {
    fn entry(&self) -> Option<Entry> {
        entry_of(&self.folder, &self.name)
    }

    fn mode(&self) -> Option<u32> {
        statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| stat.st_mode & 0o777)
    }
}

fn entry_of(folder: &OwnedFd, name: &OsStr) -> Option<Entry> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Entry::File,
        FileType::Directory => Entry::Folder,
        FileType::Symlink => Entry::Link,
        _ => Entry::Other,
    })
}

/// The name of a file that is being written. It ends in `.tmp`, which git ignores.
fn temporary(name: &OsStr) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    temporary
}
