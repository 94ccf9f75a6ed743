//! The calls of the model, which Claude Code's own limit counts anew in each turn (2.1.330).

use crate::agent::hash::hash;
use crate::agent::{AgentEvent, DriverOutput};

/// The calls of the model that the run talks to. Nothing is counted unless the run limits them.
#[derive(Debug, Default)]
pub(super) struct ModelCalls {
    limited: bool,
    /// The last call, by the hash of its message's id, until it is reported.
    last: Option<u64>,
}

impl ModelCalls {
    pub(super) fn of_run(limited: bool) -> ModelCalls {
        ModelCalls { limited, last: None }
    }

    /// Reports the call before this message's.
    pub(super) fn message(&mut self, id: &str, out: &mut DriverOutput) {
        if !self.limited || id.is_empty() {
            return;
        }
        let id = hash(id);
        if self.last.replace(id).is_some_and(|last| last != id) {
            out.events.push(AgentEvent::ModelCalled);
        }
    }

    /// Reports the turn's last call.
    pub(super) fn over(&mut self, out: &mut DriverOutput) {
        if self.last.take().is_some() {
            out.events.push(AgentEvent::ModelCalled);
        }
    }
}
