//! Locks: only one workflow at a time works on a name. The system frees the lock of a process that has exited.

use super::project::{LOCAL, Project};
use crate::protocol::failure::Failure;
use crate::protocol::words::RefusalReason;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A lock, held until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock with this name. `what`: the locked thing, as the message names it. Error: another process holds
    /// the lock, or the file cannot be created.
    pub(crate) fn take(project: &Project, name: &str, what: &str) -> Result<Lock, Failure> {
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
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let message = format!("Another workflow is using {what}: wait until it ends, or stop it.");
            Failure::refused_for(RefusalReason::Locked, message)
        })?;
        Ok(Lock { _file: file })
    }
}

/// Creates the folder for this machine's data, which git ignores. Error: the folder cannot be created, or is a link.
pub(crate) fn make_local(project: &Project) -> Result<(), Failure> {
    let ignore: PathBuf = Path::new(LOCAL).join(".gitignore");
    project.create(&ignore, b"*\n").map(drop).map_err(|problem| problem.refusal("The folder .spektacular/local"))
}
