//! The turns of a thread: their ends, those that Codex begins by itself, and the work that outlives them.
//!
//! Facts (measured on 0.169.0): a command that outlives its turn ends with an `item/completed` of its own. Codex begins
//! turns by itself as long as the thread has an active goal, which a tool of the model's sets.

use super::ask::CodexRequest;
use super::items::Spot;
use super::script::script_of;
use super::{Codex, START, errors};
use crate::agent::text::FinalAnswer;
use crate::agent::{AgentEvent, DriverOutput, TurnOver};
use crate::json::{Object, Raw};
use crate::protocol::outbound::Text;
use crate::protocol::words::TurnOrigin;
use std::collections::BTreeMap;

/// The maximum number of open commands that are remembered.
const OPEN: usize = 256;
/// The maximum length of a command's name, in bytes.
const NAME: usize = 200;
/// The maximum length of a remembered command, in bytes. A longer one keeps its shell wrapper in its name.
const REMEMBERED: usize = 4096;

/// The work that outlives a turn.
#[derive(Debug, Default)]
pub(super) struct OutlivingWork {
    /// The open commands of the running turn with their shell wrappers, by their keys. Most end with their turn, so they
    /// get names only if they outlive it.
    open: BTreeMap<String, String>,
    /// The open commands of past turns.
    left: BTreeMap<String, Text>,
    /// The active goal of the thread.
    goal: Option<Text>,
}

impl OutlivingWork {
    /// Takes the beginning or the end of an item.
    pub(super) fn item(&mut self, spot: &Spot<'_>, item: &Object<'_>, over: bool, out: &mut DriverOutput) {
        let Some(id) = item.str("id").filter(|_| item.is("type", "commandExecution")) else { return };
        let key = spot.key(&id);
        if over {
            if self.open.remove(&key).is_none() && self.left.remove(&key).is_some() {
                self.report(out);
            }
        } else if self.open.len() < OPEN {
            let command = item.str("command").unwrap_or_default();
            self.open.insert(key, command[..command.floor_char_boundary(REMEMBERED)].to_owned());
        }
    }

    /// Takes the thread's goal.
    pub(super) fn goal(&mut self, params: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let goal = params.object("goal")?;
        self.goal = goal.string("objective").filter(|_| goal.is("status", "active")).map(Text::from);
        self.report(out);
        Some(())
    }

    /// Takes the end of a turn. Its commands outlive it only if it `is_completed`: Codex ends those of an interrupted one,
    /// and reports the end of none of them.
    fn turn_over(&mut self, turn: &str, is_completed: bool, out: &mut DriverOutput) {
        let is_left = |key: &str| key.strip_prefix(turn).is_some_and(|rest| rest.starts_with('/'));
        let (left, open) = std::mem::take(&mut self.open).into_iter().partition(|(key, _)| is_left(key));
        self.open = open;
        let left: BTreeMap<String, String> = left;
        if is_completed && !left.is_empty() && self.left.len() < OPEN {
            self.left.extend(left.into_iter().map(|(key, command)| (key, name(command))));
            self.report(out);
        }
    }

    fn report(&self, out: &mut DriverOutput) {
        out.events.push(AgentEvent::Background(self.left.values().chain(&self.goal).cloned().collect()));
    }
}

/// A command's name: the beginning of its script.
fn name(command: String) -> Text {
    let mut name = script_of(&command).unwrap_or(command);
    name.truncate(name.floor_char_boundary(NAME));
    name.into()
}

impl Codex {
    /// Takes the beginning of a turn. One that no request of ours has begun is Codex's own.
    pub(super) fn turn_started(&mut self, params: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let id = params.object("turn")?.string("id")?;
        let is_requested = self.requests.values().any(|method| *method == START);
        if !is_requested && self.running.as_ref() != Some(&id) {
            self.items.answer = None;
            self.running = Some(id);
            out.events.push(AgentEvent::TurnBegan(TurnOrigin::Agent));
        }
        Some(())
    }

    pub(super) fn turn_completed(&mut self, params: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let done = params.object("turn")?;
        self.said = None;
        let id = done.string("id").unwrap_or_default();
        if self.running.as_ref() == Some(&id) {
            self.running = None;
        }
        self.items.forget_calls(&id);
        self.background.turn_over(&id, done.is("status", "completed"), out);
        // The turn's requests are over. Questions in a message stay open.
        let (gone, kept) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|(_, (of, pending))| *of == id && !matches!(pending, CodexRequest::Async(_)));
        self.pending = kept;
        let gone: BTreeMap<_, _> = gone;
        out.events.extend(gone.into_keys().map(|key| AgentEvent::AskWithdrawn { key }));
        match done.str("status").as_deref() {
            Some("completed") => {
                // A user message may have interrupted a message from the model.
                self.items.withdraw(out);
                let over = self.completed(&done);
                self.end(id, over, out);
            }
            Some("interrupted") => {
                self.items.forget_streams();
                out.events.push(AgentEvent::TurnOver(TurnOver::Interrupted));
            }
            _ => {
                self.items.withdraw(out);
                let failure = errors::failed(done.object("error").as_ref());
                out.fail(failure.until(self.resets_at));
            }
        }
        Some(())
    }

    fn completed(&mut self, done: &Object<'_>) -> TurnOver {
        let message = |item: &Object<'_>| item.is("type", "agentMessage") && !item.is("delivery", "async");
        let texts = || done.objects("items").filter(message).filter_map(|item| item.raw("text"));
        let last = || texts().filter(|text| text.is_string()).last().and_then(Raw::string);
        let answer = self.items.answer.take().or_else(|| last().map(FinalAnswer::from)).unwrap_or_default();
        TurnOver::completed(answer)
    }

    /// Handles the successful end of a turn. The run continues while an answer is open or Codex has not accepted one.
    pub(super) fn end(&mut self, id: String, over: TurnOver, out: &mut DriverOutput) {
        let asks = self.pending.values().any(|(_, pending)| matches!(pending, CodexRequest::Async(_)));
        let unheard = self.unsent.is_some() || self.requests.values().any(|method| *method == START);
        if (asks || unheard) && !self.leaving {
            self.held = Some((id, over));
            return;
        }
        out.events.push(AgentEvent::TurnOver(over));
    }
}
