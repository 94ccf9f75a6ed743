//! Copies of ignored files for a new worktree. No link is followed on either side: the repository may be hostile, and the
//! files that it ignores too.

use super::query::{Incomplete, names};
use super::worktree::Worktree;
use crate::io::files::OpenFolder;
use crate::process::query::Until;
use crate::system::share_blocks;
use rustix::fs::{FileType, Mode, OFlags, fchmod, fstat};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The maximum number of files to take along, and their maximum size in bytes where the file system has to copy them.
const FILES_MAX: usize = 100_000;
pub(crate) const BYTES_MAX: u64 = 2 << 30;
/// The size of a piece of a copy, in bytes. Between two pieces, the copy can be ended.
const PIECE: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct TakenAlong {
    pub(crate) files: usize,
    /// The links, special files, repositories and unreadable files that stay behind, relative to the root.
    pub(crate) left: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// There are more than [`FILES_MAX`] files, or [`BYTES_MAX`] bytes.
    TooMuch,
    Git(Incomplete),
}

impl Worktree {
    /// Copies ignored files that the checkout lacks. `base`: the folder of the globs, relative to the root.
    pub(crate) fn take_along(&self, base: &Path, globs: &[String], until: &Until) -> Result<TakenAlong, NotTaken> {
        let mut taken = TakenAlong::default();
        if globs.is_empty() {
            return Ok(taken);
        }
        let git = &self.repository.git;
        let mut query = git.here();
        query.args(["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"]);
        query.args(globs.iter().map(|glob| pathspec(base, glob)));
        // Our own data belongs to one work tree.
        query.arg(":(top,exclude,glob)**/.spektacular/**");
        let list = git.bytes(&mut query, until).map_err(NotTaken::Git)?;
        let names: Vec<&[u8]> = names(&list).collect();
        if names.len() > FILES_MAX {
            return Err(NotTaken::TooMuch);
        }
        let mut room = BYTES_MAX;
        for name in names {
            let path = super::path_of(name);
            match copy(git.root(), &self.path, path, &mut room, until) {
                Ok(()) => taken.files += 1,
                // The checkout has it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => return Err(NotTaken::TooMuch),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(NotTaken::Git(Incomplete::Late)),
                Err(_) => taken.left.push(path.to_owned()),
            }
        }
        Ok(taken)
    }
}

/// The pathspec for a glob below a folder, whose own name is no glob.
fn pathspec(base: &Path, glob: &str) -> OsString {
    let mut spec = b":(top,glob)".to_vec();
    for part in base.components() {
        for byte in part.as_os_str().as_bytes() {
            if b"*?[]\\".contains(byte) {
                spec.push(b'\\');
            }
            spec.push(*byte);
        }
        spec.push(b'/');
    }
    spec.extend(glob.bytes());
    std::os::unix::ffi::OsStringExt::from_vec(spec)
}

/// Shares the blocks of the file if the file system can. `room`: the bytes that may still be copied otherwise. Error:
/// the system's; `QuotaExceeded` without room, `TimedOut` once the time is up.
fn copy(from: &Path, to: &Path, path: &Path, room: &mut u64, until: &Until) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folders = path.parent().unwrap_or(Path::new(""));
    let source = OpenFolder::walk(from, folders, OpenFolder::inner)?.file(name, OFlags::RDONLY, 0)?;
    let mode = fstat(&source)?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let folder = OpenFolder::walk(to, folders, OpenFolder::enter)?;
    let target = folder.create_new(name, 0o600)?;
    let copied = match share_blocks(&target, &source) {
        Ok(()) => Ok(()),
        Err(_) => copy_bytes(source, &target, room, until),
    };
    let copied = copied.and_then(|()| Ok(fchmod(&target, Mode::from_raw_mode(mode & 0o777))?));
    if copied.is_err() {
        // A part of a file must not pass for the file.
        let _ = folder.remove(name);
    }
    copied
}

fn copy_bytes(mut source: File, mut target: &File, room: &mut u64, until: &Until) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        if until.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let read = source.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        *room = room.checked_sub(read as u64).ok_or(io::ErrorKind::QuotaExceeded)?;
        target.write_all(&piece[..read])?;
    }
}

#[cfg(test)]
mod tests {
    use super::copy;
    use crate::process::query::Until;
    use crate::process::scratch::Scratch;
    use std::fs;
    use std::io::ErrorKind;
    use std::path::Path;
    use std::time::{Duration, Instant};

    #[test]
    fn a_part_of_a_file_does_not_stay() {
        let folder = Scratch::of("a-part-of-a-file").unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("a"), "text").unwrap();
        let until = Until::deadline(Instant::now() + Duration::from_secs(60));
        match copy(&from, &to, Path::new("a"), &mut 3, &until) {
            Ok(()) => assert_eq!(fs::read(to.join("a")).unwrap(), b"text", "its blocks are shared"),
            Err(error) => assert_eq!((error.kind(), to.join("a").exists()), (ErrorKind::QuotaExceeded, false)),
        }
    }
}
