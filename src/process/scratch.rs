//! Folders of our own among the temporary files: nobody but the user can enter them, and they go when they are done.

use super::tree;
use std::env;
use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The name of a socket in its folder.
pub(crate) const SOCKET: &str = "s";
/// The longest path of a socket, in bytes without its NUL (Linux has 108).
const PATH_BYTES: usize = 103;

/// An empty folder for a query, removed with its content when it is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one in the folder for temporary files. `None`: none could be made.
    pub fn new() -> Option<Scratch> {
        let path = env::temp_dir().join(format!("spektacular-{}", tree::nonce()));
        DirBuilder::new().mode(0o700).create(&path).ok()?;
        Some(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes a folder for a socket: below the user's runtime folder, else below that for temporary files.
///
/// # Errors
/// The last one of the system's, where none of these folders can be used.
pub(crate) fn socket_folder(name: &str) -> io::Result<PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let parents = runtime.into_iter().chain([env::temp_dir(), PathBuf::from("/tmp")]);
    let mut last = io::Error::from(ErrorKind::NotFound);
    for parent in parents.filter(|parent| parent.is_absolute()) {
        let folder = parent.join(format!("spektacular-{name}"));
        if folder.join(SOCKET).as_os_str().len() > PATH_BYTES || folder.to_str().is_none() {
            continue;
        }
        // Fails where there is anything, so nobody else can have prepared it.
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Removes the folder of a socket, and nothing else that may lie there.
pub(crate) fn remove_socket(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(SOCKET));
    let _ = std::fs::remove_dir(folder);
}
