//! Prompts that Claude Code gets while it works.
//!
//! Facts (measured on 2.1.330): a user line that comes while a tool runs goes to the model with the tool's result, in the
//! same turn. One that comes later begins a turn of its own after the result. Claude Code reports which, for a line with a
//! `uuid`: `command_lifecycle` with the state queued, started, completed or cancelled. An interrupt leaves such a line,
//! unless it has `cancel_queued`. The init message lists both abilities. 2.1.197 has neither.

use crate::agent::hash::hash;
use crate::json::{Object, Raw};
use std::collections::BTreeSet;

/// The abilities that steering needs.
const NEEDED: [&str; 2] = ["msg_lifecycle_v1", "interrupt_cancel_queued_v1"];

/// The prompts that Claude Code got while it worked.
#[derive(Debug, Default)]
pub(super) struct Steering {
    /// Whether this version of Claude Code can be steered. `None`: not known yet.
    possible: Option<bool>,
    /// The part of an id that differs between the runs of a session.
    run: u64,
    /// The number of prompts so far.
    count: u64,
    /// The prompts that have reached no turn.
    waiting: BTreeSet<String>,
}

impl Steering {
    /// No prompts yet. `nonce`: the run's.
    pub(super) fn of_run(nonce: &str) -> Steering {
        Steering { run: hash(nonce), ..Steering::default() }
    }

    pub(super) fn is_possible(&self) -> Option<bool> {
        self.possible
    }

    /// Reads the abilities in the init message.
    pub(super) fn opened(&mut self, init: &Object<'_>) {
        let known: Vec<String> = init.array("capabilities").filter_map(Raw::string).collect();
        self.possible = Some(NEEDED.iter().all(|needed| known.iter().any(|known| known == needed)));
    }

    /// The id of a further prompt. `None`: Claude Code cannot be steered.
    pub(super) fn next(&mut self) -> Option<String> {
        if self.possible != Some(true) {
            return None;
        }
        self.count += 1;
        let (high, low) = (self.run >> 32, self.run & 0xffff_ffff);
        let uuid = format!("{high:08x}-{:04x}-4{:03x}-8000-{:012x}", low >> 16, low & 0xfff, self.count);
        self.waiting.insert(uuid.clone());
        Some(uuid)
    }

    /// Reads what becomes of a prompt.
    pub(super) fn lifecycle(&mut self, message: &Object<'_>) -> Option<()> {
        if message.str("state")? != "queued" {
            self.waiting.remove(&*message.str("command_uuid")?);
        }
        Some(())
    }

    /// Whether a prompt has reached no turn.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Forgets the prompts that have reached no turn. Returns whether there are any.
    pub(super) fn forget(&mut self) -> bool {
        !std::mem::take(&mut self.waiting).is_empty()
    }
}
