//! The state of a run's checkpoints.

use crate::protocol::ids::InboundId;

#[derive(Default)]
pub(super) struct RewindState {
    /// Whether they are taken. `None`: nobody asked for them.
    pub(super) on: Option<bool>,
    pub(super) rewinds: u64,
    /// The message that asked for the rewind that is running.
    pub(super) running: Option<Option<InboundId>>,
}

impl RewindState {
    pub(super) fn new(on: Option<bool>) -> RewindState {
        RewindState { on, ..RewindState::default() }
    }

    pub(super) fn is_rewinding(&self) -> bool {
        self.running.is_some()
    }
}
