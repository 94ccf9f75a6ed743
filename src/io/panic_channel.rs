//! A panic in any thread becomes an event for the loop, which would otherwise wait forever for a thread that is gone.

use crossbeam_channel::{Receiver, bounded};
use std::panic::{set_hook, take_hook};

/// Ready after any thread of this process has panicked. The panic hook that was set before still runs.
pub(crate) fn listen() -> Receiver<()> {
    let (panicked, panics) = bounded(1);
    let hook = take_hook();
    set_hook(Box::new(move |panic| {
        let _ = panicked.try_send(());
        hook(panic);
    }));
    panics
}
