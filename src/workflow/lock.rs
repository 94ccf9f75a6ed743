//! Locks: only one workflow at a time works on a name. The system frees the lock of a process that has exited.

use super::plan::Digest;
use super::project::{LOCAL, Project};
use crate::protocol::failure::Failure;
use crate::protocol::words::RefusalReason;
use crate::system::{Reservation, reserve};
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A lock, held until it is dropped or the process ends. Nothing that removes files ends it sooner.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
    _name: Option<Reservation>,
}

impl Lock {
    /// Takes the lock for `implement`, on the project's own folder. Error: another process holds it.
    pub(crate) fn of_project(project: &Project) -> Result<Lock, Failure> {
        make_local(project)?;
        let folder = File::open(project.folder()).map_err(|_| locked("this project"))?;
        flock(&folder, FlockOperation::NonBlockingLockExclusive).map_err(|_| locked("a plan of this project"))?;
        Ok(Lock { _file: folder, _name: None })
    }

    /// Takes the lock of a name. Error: another process holds the lock, or the file cannot be created.
    pub(crate) fn of_name(project: &Project, name: &str) -> Result<Lock, Failure> {
        make_local(project)?;
        let path = Path::new(LOCAL).join("locks").join(format!("{name}.lock"));
        project.create(&path, b"").map_err(|problem| problem.refusal("The folder of locks"))?;
        // The folders were walked without following a link; the file itself must be none either. A pipe must not block
        // the open.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened =
            OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(project.folder().join(&path));
        let file = opened.ok().filter(|file| file.metadata().is_ok_and(|meta| meta.is_file())).ok_or_else(|| {
            Failure::refused_for(RefusalReason::Outside, format!("{} must be a regular file.", path.display()))
        })?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| locked(name))?;
        let reserved = reserve_in(project.folder(), name).map_err(|_| locked(name))?;
        Ok(Lock { _file: file, _name: reserved })
    }
}

fn locked(what: &str) -> Failure {
    let message = format!("Another workflow is using {what}: wait until it ends, or stop it.");
    Failure::refused_for(RefusalReason::Locked, message)
}

/// Reserves a name of this project, because an agent or git may remove the file of a lock, after which another process
/// would lock a new file. `None`: the system has no such names. Error: another process has reserved it.
fn reserve_in(folder: &Path, name: &str) -> io::Result<Option<Reservation>> {
    let Ok(metadata) = folder.metadata() else { return Ok(None) };
    // The system's names have at most 107 bytes.
    let name = Digest::of(name.as_bytes());
    reserve(&format!("spektacular-{}-{}-{name}", metadata.dev(), metadata.ino()))
}

/// Creates the folder for this machine's data, which git ignores. Error: the folder cannot be created, or is a link.
pub(crate) fn make_local(project: &Project) -> Result<(), Failure> {
    let ignore: PathBuf = Path::new(LOCAL).join(".gitignore");
    project.create(&ignore, b"*\n").map(drop).map_err(|problem| problem.refusal("The folder .spektacular/local"))
}
