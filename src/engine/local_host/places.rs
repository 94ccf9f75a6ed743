//! The places that a run names, on this machine.

use crate::io::files::open_regular;
use crate::protocol::question::PathFact;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// See [`Host::directory`](crate::engine::host::Host::directory).
pub(super) fn directory(cwd: Option<&Path>) -> Option<PathBuf> {
    let path = match cwd {
        Some(cwd) if cwd.is_absolute() => cwd.to_owned(),
        // The current directory may have been deleted.
        cwd => std::env::current_dir().ok()?.join(cwd.unwrap_or(Path::new(""))),
    };
    // The real path, because an agent reports the paths that it sees.
    path.is_dir().then(|| path.canonicalize().unwrap_or(path))
}

/// See [`Host::look`](crate::engine::host::Host::look).
pub(super) fn look(path: &Path) -> PathFact {
    match path.metadata() {
        Ok(meta) if meta.is_dir() => PathFact::Directory,
        Ok(_) => PathFact::File,
        Err(_) => PathFact::Missing,
    }
}

/// See [`Host::image`](crate::engine::host::Host::image).
pub(super) fn image(path: &Path, bytes: u64) -> io::Result<(u64, Vec<u8>)> {
    let file = open_regular(path)?;
    let size = file.metadata()?.len();
    let mut first = Vec::new();
    file.take(bytes).read_to_end(&mut first)?;
    Ok((size, first))
}
