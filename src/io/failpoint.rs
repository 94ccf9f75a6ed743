//! Points at which a test can make this process panic, or a signal arrive.

/// The environment variable that makes a build for tests panic at the [`point`] that it names.
#[cfg(debug_assertions)]
const PANIC_AT: &str = "TEST_PANIC_AT";

/// The environment variable that makes a build for tests send itself a SIGTERM at the [`point`] that it names.
#[cfg(debug_assertions)]
const SIGNAL_AT: &str = "TEST_SIGNAL_AT";

/// A point at which a test can make this process panic, or a signal arrive. Does nothing in a build without debug
/// assertions.
#[inline]
pub(crate) fn point(name: &str) {
    #[cfg(debug_assertions)]
    {
        use rustix::process::{Signal, getpid, kill_process};
        let is_wanted = |variable| std::env::var_os(variable).is_some_and(|wanted| wanted == name);
        if is_wanted(SIGNAL_AT) {
            let _ = kill_process(getpid(), Signal::TERM);
        }
        assert!(!is_wanted(PANIC_AT), "the test wants a panic at {name}");
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}
