//! Finds this program's own file, because the demo agent, the guard and the ask-server are this program, started again.
//!
//! The system is the best source. In a bare container image, it may not know, so `argv[0]` is the second source, as a
//! path or as a name on PATH. The program never changes its working directory, so a relative path stays valid.

use crate::io::threads;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::limits::AGENT_LINE_BYTES;
use crate::system::{OWN_FILE, hide_memory};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf, absolute};

/// For starting this program again as our child. The file's own name takes precedence, because the link may name an
/// emulator or a debugging tool that runs this program.
pub(crate) fn program() -> Option<PathBuf> {
    let link = || OWN_FILE.filter(|link| fs::read_link(link).is_ok()).map(PathBuf::from);
    own_path().or_else(link).or_else(called)
}

/// For a process that is not our child, or for display to a person.
pub(crate) fn file() -> Option<PathBuf> {
    own_path().or_else(called)
}

/// Some systems report the file as it was called, which may be relative.
fn own_path() -> Option<PathBuf> {
    absolute(env::current_exe().ok()?).ok().filter(|path| is_program(path))
}

/// Protects the secrets in this process's memory and environment from other processes of the user, such as the agent's
/// tools: they may not read it, where the system can forbid that, and it writes no core dump. A run inside a run stays
/// readable, because the outer run finds it by its environment.
pub fn keep_private() {
    let core = getrlimit(Resource::Core);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..core });
    if env::var_os(super::tree::MARKER).is_none() {
        hide_memory();
    }
}

/// In bytes. While a line is handled, it takes up to eight times its length; without that much room this process would
/// abort, so a limited address space shortens the limit.
pub(super) fn agent_line_bytes() -> usize {
    let room = threads::room().map_or(u64::MAX, |room| room / 16);
    usize::try_from(room).unwrap_or(usize::MAX).min(AGENT_LINE_BYTES)
}

pub(crate) fn not_found() -> Failure {
    let message = "spektacular cannot find its own program file: start it by its path, or mount /proc.";
    Failure::new(Code::AgentNotFound, message)
}

fn called() -> Option<PathBuf> {
    by_name(env::args_os().next()?, env::var_os("PATH"))
}

/// Returns an absolute path, because a process started with it may be in another directory.
fn by_name(name: OsString, path: Option<OsString>) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return absolute(name).ok().filter(|file| is_program(file));
    }
    let path = path?;
    // An empty name would match the folder itself, and anybody may be able to write to a relative folder.
    let folders = env::split_paths(&path).filter(|folder| !name.is_empty() && folder.is_absolute());
    folders.map(|folder| folder.join(&name)).find(|file| is_program(file))
}

pub(super) fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::{by_name, file, program};
    use std::path::PathBuf;

    #[test]
    fn the_program_is_found_by_the_name_of_the_call() {
        let found = |name: &str, path: Option<&str>| by_name(name.into(), path.map(Into::into));
        let sh = Some(PathBuf::from("/bin/sh"));
        assert_eq!(found("/bin/sh", None), sh);
        assert_eq!(found("sh", Some("/nowhere:/bin")), sh);
        // Tests run in the package's folder.
        let here = found("./.ci/run", None).unwrap();
        assert!(here.is_absolute() && here.ends_with(".ci/run"), "{here:?}");
        assert_eq!(found("run", Some("/nowhere:.ci")), None);
        for (name, path) in [("sh", None), ("", Some("/bin")), ("/bin", None), ("./Cargo.toml", None)] {
            assert_eq!(found(name, path), None, "{name}");
        }
    }

    #[test]
    fn proc_goes_first() {
        assert_eq!(program(), std::env::current_exe().ok());
        assert_eq!(file(), std::env::current_exe().ok());
    }
}
