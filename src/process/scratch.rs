//! Temporary folders that only the user can enter, and that are removed after use.

use super::tree;
use crate::agent::{FoundBy, LaunchFile};
use crate::protocol::failure::{Code, Failure};
use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The name of the ask-server's socket in its folder.
pub(crate) const SOCKET: &str = "s";
/// The name of the socket for reports about MCP servers, in the same folder.
pub(crate) const REPORTS: &str = "r";
/// The maximum size of a socket's path, in bytes, without the NUL. Linux allows 108 with it.
const PATH_BYTES: usize = 103;

/// Dropping this removes the folder with its contents.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Lies in the system's folder for temporary files. The guard of the nonce removes it if this process is killed.
    pub(crate) fn of(nonce: &str) -> io::Result<Scratch> {
        let path = folder_of(nonce);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Scratch(path))
    }

    /// Creates the agent's own folder for temporary files in it.
    pub(super) fn temporary(&self) -> Result<PathBuf, Failure> {
        let path = self.0.join("tmp");
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| unusable(&error))?;
        Ok(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn folder_of(nonce: &str) -> PathBuf {
    env::temp_dir().join(format!("spektacular-{nonce}"))
}

pub(super) fn remove_left(nonce: &str) {
    let _ = fs::remove_dir_all(folder_of(nonce));
}

#[derive(Default)]
pub(super) struct AgentFiles {
    pub(super) folder: Option<Scratch>,
    pub(super) arguments: Vec<OsString>,
    pub(super) file_variables: Vec<(&'static str, PathBuf)>,
    /// The variables that name a file, unless the user has set them.
    pub(super) free_variables: Vec<(&'static str, PathBuf)>,
}

pub(crate) fn unusable(error: &io::Error) -> Failure {
    let message = format!(
        "Cannot write to the directory for temporary files ({}): set TMPDIR to a directory with free space that you can write to.",
        error.kind()
    );
    Failure::new(Code::ResourceExhausted, message)
}

/// `needed`: creates the folder even if there is no file.
pub(super) fn write_files(files: &[LaunchFile], needed: bool, nonce: &str) -> Result<AgentFiles, Failure> {
    let mut written = AgentFiles::default();
    if files.is_empty() && !needed {
        return Ok(written);
    }
    let folder = Scratch::of(nonce).map_err(|error| unusable(&error))?;
    for LaunchFile { found, name, text } in files {
        let path = folder.path().join(name);
        path.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| unusable(&error))?;
        match found {
            FoundBy::Flag(flag) => {
                let mut argument = OsString::from(flag);
                argument.push(path);
                written.arguments.push(argument);
            }
            FoundBy::Variable(variable) => written.file_variables.push((variable, path)),
            FoundBy::FreeVariable(variable) => written.free_variables.push((variable, path)),
            FoundBy::Sibling => {}
        }
    }
    written.folder = Some(folder);
    Ok(written)
}

/// Dropping this removes it.
#[derive(Debug)]
pub(crate) struct SocketFolder(PathBuf);

impl SocketFolder {
    pub(crate) fn create() -> io::Result<SocketFolder> {
        let name = tree::nonce();
        socket_folder(&name[..12.min(name.len())]).map(SocketFolder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        remove_sockets(&self.0);
    }
}

/// Only the user can enter it. Tries the user's runtime folder first, then the folders for temporary files. Skips one
/// in which the socket's path would exceed 103 bytes or would not be UTF-8. Error: the last one.
fn socket_folder(name: &str) -> io::Result<PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let parents = runtime.into_iter().chain([env::temp_dir(), PathBuf::from("/tmp")]);
    let mut last = io::Error::from(ErrorKind::NotFound);
    for parent in parents.filter(|parent| parent.is_absolute()) {
        let folder = parent.join(format!("spektacular-{name}"));
        if folder.join(SOCKET).as_os_str().len() > PATH_BYTES || folder.to_str().is_none() {
            continue;
        }
        // Fails if the path exists, so nobody else can have prepared the folder.
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Removes the sockets and their folder, but no other file in it.
pub(crate) fn remove_sockets(folder: &Path) {
    for name in [SOCKET, REPORTS] {
        let _ = fs::remove_file(folder.join(name));
    }
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::Scratch;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_user_can_enter_a_temporary_folder_which_is_removed() {
        let folder = Scratch::of(&crate::process::tree::nonce()).unwrap();
        let path = folder.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("file"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
