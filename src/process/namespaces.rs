//! Whether programs can make namespaces here, in which some agents put their commands. Only an attempt shows it, in a process
//! with one thread: this program with a hidden argument.

use super::own_executable;
use crate::system::enter_namespaces;
use std::process::{Command, Stdio};

/// The hidden first argument of the attempt.
pub(super) const ARGUMENT: &str = "__namespaces";

/// The exit code of a failed attempt.
const FORBIDDEN: i32 = 1;

/// Makes the attempt. Returns the exit code.
pub(super) fn attempt() -> i32 {
    enter_namespaces().map_or(FORBIDDEN, |()| 0)
}

/// Whether the system forbids namespaces. False if the attempt itself cannot be made.
pub(super) fn are_forbidden() -> bool {
    let Some(program) = own_executable::program() else { return false };
    let mut attempt = Command::new(program);
    attempt.arg(ARGUMENT).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    attempt.status().is_ok_and(|status| status.code() == Some(FORBIDDEN))
}
