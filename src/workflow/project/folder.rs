//! Files below the project's folder. Every function opens the path folder by folder and follows no link.

use super::{HOME, LOCAL, Project, shown};
use crate::io::files::OpenFolder;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::{MovedFile, Text};
use crate::protocol::words::RefusalReason;
use crate::workflow::spec::FILE_BYTES_MAX;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use time::UtcDateTime;
use time::macros::format_description;

/// The maximum number of folders for files that are replaced in the same second.
const TRIES: u32 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    File,
    Folder,
    Link,
    /// A pipe, a socket or a device.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileProblem {
    /// The path leaves the project, passes through a link, or does not name a regular file.
    Outside,
    TooLarge,
    /// The system has no room: a full disk, or a limit of file sizes or of open files.
    Exhausted,
    Io(ErrorKind),
}

impl FileProblem {
    /// `what`: the file, as the subject of a sentence.
    pub fn refusal(self, what: &str) -> Failure {
        match self {
            FileProblem::Outside => Failure::refused_for(
                RefusalReason::Outside,
                format!(
                    "{what} must be a regular file or folder of the project, and must not be reached through a link."
                ),
            ),
            FileProblem::TooLarge => Failure::refused_for(
                RefusalReason::TooLarge,
                format!("{what} is larger than {} KiB. Shorten it.", FILE_BYTES_MAX >> 10),
            ),
            FileProblem::Exhausted => Failure::new(
                Code::ResourceExhausted,
                format!(
                    "{what} cannot be opened or written: free disk space, or raise the limit of open files or of file sizes."
                ),
            )
            .retryable(),
            FileProblem::Io(ErrorKind::NotFound) => {
                Failure::refused_for(RefusalReason::NotFound, format!("{what} does not exist: check its name."))
            }
            FileProblem::Io(_) => {
                Failure::refused_for(RefusalReason::NotFound, format!("{what} cannot be read. Check its permissions."))
            }
        }
    }
}

fn problem(error: io::Error) -> FileProblem {
    match Errno::from_io_error(&error) {
        // A link, or a link to a folder; a socket, or a device without a driver.
        Some(Errno::LOOP | Errno::NOTDIR | Errno::NXIO | Errno::NODEV) => FileProblem::Outside,
        Some(Errno::MFILE | Errno::NFILE | Errno::FBIG | Errno::NOSPC | Errno::DQUOT) => FileProblem::Exhausted,
        Some(_) | None => FileProblem::Io(error.kind()),
    }
}

struct Place {
    folder: OpenFolder,
    name: OsString,
}

impl Project {
    /// `None`: the entry does not exist.
    pub fn entry(&self, path: &Path) -> Result<Option<Entry>, FileProblem> {
        Ok(self.place(path)?.and_then(|place| place.entry()))
    }

    /// The bytes of a regular file of at most `limit` bytes. `None`: the entry does not exist.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Option<Vec<u8>>, FileProblem> {
        let Some(place) = self.place(path)? else { return Ok(None) };
        let file = match place.folder.file(&place.name, OFlags::RDONLY, 0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(problem)?,
        };
        if !file.metadata().map_err(problem)?.is_file() {
            return Err(FileProblem::Outside);
        }
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).map_err(problem)?;
        if bytes.len() as u64 > limit { Err(FileProblem::TooLarge) } else { Ok(Some(bytes)) }
    }

    /// Writes a file completely or not at all. Creates missing folders. A link of this name is replaced, not followed.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FileProblem> {
        let Place { folder, name } = &self.place_for(path)?;
        match entry_of(folder, name) {
            Some(Entry::Folder | Entry::Other) => Err(FileProblem::Outside),
            Some(Entry::File | Entry::Link) | None => {
                folder.replace(name, &temporary(name), 0o666, bytes).map_err(problem)
            }
        }
    }

    /// Creates a file and the missing folders of its path, unless the file exists. Returns whether it created the file.
    pub fn create(&self, path: &Path, bytes: &[u8]) -> Result<bool, FileProblem> {
        if self.entry(path)?.is_some() {
            return Ok(false);
        }
        self.write(path, bytes).map(|()| true)
    }

    /// Creates the missing folders of the new path, and replaces a file or an empty folder there.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), FileProblem> {
        let from = self.place(from)?.ok_or(FileProblem::Io(ErrorKind::NotFound))?;
        let to = self.place_for(to)?;
        from.folder.rename(&from.name, &to.folder, &to.name).map_err(problem)
    }

    /// A new path in `.spektacular/local/old/STAMP/` for a file that is replaced now.
    fn old_path(&self, path: &Path) -> Result<PathBuf, FileProblem> {
        let form = format_description!("[year][month][day]T[hour][minute][second]Z");
        let stamp = UtcDateTime::now().format(form).unwrap_or_default();
        for number in 1..=TRIES {
            let stamp = if number == 1 { stamp.clone() } else { format!("{stamp}-{number}") };
            let folder = Path::new(LOCAL).join("old").join(stamp);
            if self.entry(&folder)?.is_none() {
                return Ok(folder.join(path.strip_prefix(HOME).unwrap_or(path)));
            }
        }
        Err(FileProblem::Io(ErrorKind::AlreadyExists))
    }

    /// Moves a file or a folder of any kind out of the way. `None`: the path did not exist.
    pub fn give_way(&self, path: &Path) -> Result<Option<MovedFile>, FileProblem> {
        if self.entry(path)?.is_none() {
            return Ok(None);
        }
        let to = self.old_path(path)?;
        self.rename(path, &to)?;
        Ok(Some(MovedFile { path: Text::from(shown(path)), to: Text::from(shown(&to)) }))
    }

    /// Creates the missing folders of a path, but not its entry.
    pub(crate) fn make_room_for(&self, path: &Path) -> Result<(), FileProblem> {
        self.place_for(path).map(drop)
    }

    /// Removes a folder if it is empty. Anything else stays.
    pub(crate) fn remove_empty(&self, path: &Path) {
        if let Ok(Some(Place { folder, name })) = self.place(path) {
            folder.remove_empty(&name);
        }
    }

    /// The entries of a folder, sorted, at most `limit`. Empty if the folder is missing.
    pub fn list(&self, path: &Path, limit: usize) -> Result<Vec<(OsString, Entry)>, FileProblem> {
        let Some(Place { folder, .. }) = self.place(&path.join("_"))? else { return Ok(Vec::new()) };
        let names = folder.names(limit).map_err(problem)?;
        let mut found: Vec<_> =
            names.into_iter().filter_map(|name| entry_of(&folder, &name).map(|kind| (name, kind))).collect();
        found.sort();
        Ok(found)
    }

    /// The open folder that holds the entry of a path. `None`: the folder does not exist.
    fn place(&self, path: &Path) -> Result<Option<Place>, FileProblem> {
        match self.walk(path, OpenFolder::inner) {
            Err(FileProblem::Io(ErrorKind::NotFound)) => Ok(None),
            place => place.map(Some),
        }
    }

    /// Creates missing folders.
    fn place_for(&self, path: &Path) -> Result<Place, FileProblem> {
        self.walk(path, OpenFolder::enter)
    }

    fn walk(
        &self,
        path: &Path,
        step: impl Fn(&OpenFolder, &OsStr) -> io::Result<OpenFolder>,
    ) -> Result<Place, FileProblem> {
        let mut names: Vec<&OsStr> = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::ParentDir => return Err(FileProblem::Outside),
            }
        }
        let name = names.pop().ok_or(FileProblem::Outside)?.to_owned();
        let top = OpenFolder::open(&self.folder);
        let folder = names.into_iter().try_fold(top.map_err(problem)?, |folder, name| step(&folder, name));
        Ok(Place { folder: folder.map_err(problem)?, name })
    }
}

impl Place {
    fn entry(&self) -> Option<Entry> {
        entry_of(&self.folder, &self.name)
    }
}

fn entry_of(folder: &OpenFolder, name: &OsStr) -> Option<Entry> {
    Some(match FileType::from_raw_mode(folder.stat(name)?.st_mode) {
        FileType::RegularFile => Entry::File,
        FileType::Directory => Entry::Folder,
        FileType::Symlink => Entry::Link,
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            Entry::Other
        }
    })
}

/// The temporary name of a file that is being written. It ends in `.tmp`, which git ignores.
fn temporary(name: &OsStr) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    temporary
}
