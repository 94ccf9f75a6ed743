//! Whether programs can make namespaces here, in which some agents put their commands and a sandbox its files. Only an
//! attempt shows it, in a process with one thread: this program with a hidden argument.

use super::own_executable;
use crate::system::{Access, Grants, enter_namespaces, protect};
use std::ffi::OsString;
use std::process::{Command, Stdio};

pub(super) const ARGUMENT: &str = "__namespaces";

/// The second argument of an attempt to keep a file unchanged.
const FIXED: &str = "fixed";

const FORBIDDEN: i32 = 1;

/// `args`: [`FIXED`] or nothing. Returns the exit code.
pub(super) fn attempt(args: &[OsString]) -> i32 {
    let mut grants = Grants::default();
    grants.add(Access::Fixed, "/");
    let attempt = if args.is_empty() { enter_namespaces() } else { protect(&grants) };
    attempt.map_or(FORBIDDEN, |()| 0)
}

/// False if the attempt itself cannot be made.
pub(super) fn are_forbidden() -> bool {
    code(&[]) == Some(FORBIDDEN)
}

/// Whether files can be kept unchanged for one process and all that it starts.
pub(super) fn can_fix_files() -> bool {
    code(&[FIXED]) == Some(0)
}

fn code(args: &[&str]) -> Option<i32> {
    let mut attempt = Command::new(own_executable::program()?);
    // Others of the user can read its memory for a moment.
    attempt.env_clear();
    attempt.arg(ARGUMENT).args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    attempt.status().ok()?.code()
}
