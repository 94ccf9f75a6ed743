//! Faults of our own: a panic in any thread becomes an event for the loop, which would otherwise wait forever for a
//! thread that is gone.

use crossbeam_channel::{Receiver, bounded};
use std::panic::{set_hook, take_hook};

/// The environment variable that makes a build for tests panic at the [`point`] that it names.
#[cfg(debug_assertions)]
const PANIC_AT: &str = "TEST_PANIC_AT";

/// Returns a channel that is ready after any thread of this process has panicked. The panic hook that was set before
/// still runs.
pub(crate) fn listen() -> Receiver<()> {
    let (faulted, faults) = bounded(1);
    let hook = take_hook();
    set_hook(Box::new(move |panic| {
        let _ = faulted.try_send(());
        hook(panic);
    }));
    faults
}

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
