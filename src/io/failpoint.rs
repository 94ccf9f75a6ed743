//! Points at which a test can make this process panic or hang, or a signal arrive.

use rustix::process::{Signal, getpid, kill_process};
use std::ffi::OsString;

/// The environment variables of tests. Each names a [`point`].
const PANIC_AT: &str = "TEST_PANIC_AT";
const HANG_AT: &str = "TEST_HANG_AT";
const SIGNAL_AT: &str = "TEST_SIGNAL_AT";
const STALL_AT: &str = "TEST_STALL_AT";

/// Does nothing in a build without debug assertions.
#[inline]
pub(crate) fn point(name: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    let is_wanted = |variable| std::env::var_os(variable).is_some_and(|wanted| wanted == name);
    let hangs = is_wanted(HANG_AT);
    if hangs || is_wanted(SIGNAL_AT) {
        let _ = kill_process(getpid(), Signal::TERM);
    }
    if hangs || is_wanted(STALL_AT) {
        loop {
            std::thread::park();
        }
    }
    assert!(!is_wanted(PANIC_AT), "the test wants a panic at {name}");
}

/// For a helper that inherits nothing else. Empty in a build without debug assertions.
pub(crate) fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    let is_of_test = |name: &OsString| cfg!(debug_assertions) && name.as_encoded_bytes().starts_with(b"TEST_");
    std::env::vars_os().filter(move |(name, _)| is_of_test(name))
}
