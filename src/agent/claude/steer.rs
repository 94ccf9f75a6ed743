//! Prompts that Claude Code gets while it works, and the turns that it begins by itself.
//!
//! Facts (measured on 2.1.330): a user line that comes while a tool runs goes to the model with the tool's result, in the
//! same turn. One that comes later begins a turn of its own after the result. Claude Code reports which, for a line with a
//! `uuid`: `command_lifecycle` with the state queued, started, completed or cancelled. An interrupt leaves such a line,
//! unless it has `cancel_queued`. The init message lists both abilities. 2.1.197 has neither.
//!
//! Each further turn begins with an init message, after the state started of the prompt that it answers, if there is one.

use crate::agent::text::hash;
use crate::agent::{AgentEvent, DriverOutput};
use crate::json::{Object, Raw};
use crate::protocol::words::TurnOrigin;
use std::collections::BTreeSet;

const NEEDED: [&str; 2] = ["msg_lifecycle_v1", "interrupt_cancel_queued_v1"];

#[derive(Debug, Default)]
pub(super) struct Steering {
    /// `None`: not known yet.
    pub(super) possible: Option<bool>,
    /// The part of an id that differs between the runs of a session.
    run: u64,
    count: u64,
    /// The prompts that have reached no turn.
    waiting: BTreeSet<String>,
    next: NextPrompt,
    /// Whether no turn runs.
    between: bool,
    /// Whether Claude Code began the running turn by itself.
    by_itself: bool,
}

#[derive(Debug, Default)]
enum NextPrompt {
    #[default]
    None,
    /// It was sent without an id.
    Unnamed,
    /// It was sent with this id.
    Named(String),
    /// It has reached its turn.
    Started,
}

impl Steering {
    pub(super) fn of_run(nonce: &str) -> Steering {
        Steering { run: hash(nonce), ..Steering::default() }
    }

    pub(super) fn opened(&mut self, init: &Object<'_>) {
        let known: Vec<String> = init.array("capabilities").filter_map(Raw::string).collect();
        self.possible = Some(NEEDED.iter().all(|needed| known.iter().any(|known| known == needed)));
    }

    /// `None`: Claude Code cannot be steered.
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

    /// `None`: the prompt needs no id. `may_come_second`: whether Claude Code may begin a turn by itself before it.
    pub(super) fn follow_up(&mut self, may_come_second: bool) -> Option<String> {
        let uuid = if may_come_second { self.next() } else { None };
        self.next = match &uuid {
            Some(uuid) => {
                self.waiting.remove(uuid);
                NextPrompt::Named(uuid.clone())
            }
            None => NextPrompt::Unnamed,
        };
        uuid
    }

    pub(super) fn lifecycle(&mut self, message: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let (state, uuid) = (message.str("state")?, message.str("command_uuid")?);
        if state == "queued" {
            return Some(());
        }
        let is_next = matches!(&self.next, NextPrompt::Named(next) if *next == *uuid);
        if is_next && state == "started" {
            out.events.push(AgentEvent::TurnBegan(TurnOrigin::Prompt));
        }
        if (self.waiting.remove(&*uuid) || is_next) && state == "started" {
            self.next = NextPrompt::Started;
        }
        Some(())
    }

    pub(super) fn turn_begins(&mut self, out: &mut DriverOutput) {
        if !std::mem::take(&mut self.between) {
            return;
        }
        self.by_itself = match self.next {
            NextPrompt::Unnamed | NextPrompt::Started => {
                self.next = NextPrompt::None;
                false
            }
            NextPrompt::None | NextPrompt::Named(_) => {
                out.events.push(AgentEvent::TurnBegan(TurnOrigin::Agent));
                true
            }
        };
    }

    pub(super) fn turn_ends(&mut self) {
        self.between = true;
        if let NextPrompt::Started = self.next {
            self.next = NextPrompt::None;
        }
    }

    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether any prompt was forgotten.
    pub(super) fn forget(&mut self) -> bool {
        let is_early = self.by_itself && matches!(self.next, NextPrompt::Named(_));
        if is_early {
            self.next = NextPrompt::None;
        }
        !std::mem::take(&mut self.waiting).is_empty() || is_early
    }
}
