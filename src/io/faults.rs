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

/// A point at which a test can make this process panic. Does nothing in a build without debug assertions.
#[inline]
pub(crate) fn point(name: &str) {
    #[cfg(debug_assertions)]
    assert!(std::env::var_os(PANIC_AT).is_none_or(|wanted| wanted != name), "the test wants a panic at {name}");
    #[cfg(not(debug_assertions))]
    let _ = name;
}
