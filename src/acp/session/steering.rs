//! Prompts that the client sends while a turn runs.

use super::super::refusal::RequestError;
use super::super::runs::{self, PromptResult};
use super::super::shared::SharedState;
use super::super::updates;
use super::{ClientPrompt, ClientSession};
use crate::json::Object;
use crate::protocol::words::PromptState;
use serde_json::json;
use std::collections::VecDeque;

/// The prompts that the run got during a turn, by the ids of their requests.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// The run has not reported them yet.
    pub(super) unreported: VecDeque<String>,
    /// The agent took them in the turn.
    pub(super) joined: Vec<String>,
    /// They begin turns of their own.
    pub(super) next: VecDeque<String>,
}

impl ClientSession {
    /// Gives the agent the prompt that waits, if it takes one while it works. If not, tells the client that it waits.
    pub(super) fn steer(&mut self, shared: &mut SharedState) {
        let fits = |prompt: &ClientPrompt| {
            let mut payload = runs::prompt(json!({"when": "now"}), &prompt.text, &[]);
            self.mark_command(&prompt.text, &mut payload, shared);
            let line = runs::named_message(runs::STEER, "run.input", &payload);
            // A command has a turn of its own.
            line.filter(|_| prompt.images.is_empty() && !self.calls_command(&prompt.text, shared))
        };
        let may =
            self.steers && self.in_turn && !self.cancelled && self.questions.is_empty() && self.waiting.len() == 1;
        match self.waiting.front().filter(|_| may).and_then(fits) {
            Some(line) => {
                let Some(prompt) = self.take_prompt(shared) else { return };
                self.remember_prompt(&prompt.id, &prompt.text, shared);
                self.handed.unreported.push_back(prompt.id);
                self.send(line, shared);
            }
            None => shared.notice(&self.id, "The prompt waits until this turn is over."),
        }
    }

    pub(super) fn prompt_state(&mut self, frame: &Object<'_>, is_first: bool, shared: &mut SharedState) {
        let id = if is_first { self.handed.unreported.pop_front() } else { self.handed.next.pop_front() };
        let Some(id) = id else { return };
        match (PromptState::from_word(&frame.string("state").unwrap_or_default()), is_first) {
            // A run that sends it after the turn's end begins a turn with it.
            (Some(PromptState::Sent), true) if self.in_turn => self.handed.joined.push(id),
            (Some(PromptState::Sent), _) => {
                self.set_ready(false);
                (self.active, self.in_turn, self.cancelled) = (Some(id), true, false);
                self.spoken.clear();
            }
            (Some(PromptState::Queued), _) => self.handed.next.push_back(id),
            (Some(PromptState::Dropped) | None, _) => shared.result(&id, &PromptResult::of("cancelled")),
        }
    }

    /// Answers the prompts that the run got and that no turn will answer, because the run is over.
    pub(super) fn drop_handed(&mut self, shared: &mut SharedState) {
        let Handed { unreported, joined, next } = std::mem::take(&mut self.handed);
        for id in unreported.into_iter().chain(joined).chain(next) {
            shared.result(&id, &PromptResult::of("cancelled"));
        }
    }

    pub(super) fn learn_steering(&mut self, frame: &Object<'_>) {
        let known = frame.object("capabilities").and_then(|can| can.bool("steer"));
        self.steers = known.unwrap_or(self.steers);
    }

    /// Cancels the prompt with this request's id, verbatim. Returns whether it is one of this session.
    pub(in crate::acp) fn cancel_prompt(&mut self, id: &str, shared: &mut SharedState) -> bool {
        if self.active.as_deref() == Some(id) {
            self.cancel(shared);
            return true;
        }
        let Some(at) = self.waiting.iter().position(|prompt| prompt.id == id) else { return false };
        if let Some(prompt) = self.waiting.remove(at) {
            shared.waiting -= prompt.size;
            prompt.images.iter().for_each(|path| shared.host.remove(path));
            shared.refuse(id, &RequestError::cancelled());
        }
        true
    }

    /// The client itself has the prompt.
    pub(super) fn remember_prompt(&self, request: &str, text: &str, shared: &mut SharedState) {
        let text = shared.host.redact(text, self.place.servers.as_deref());
        let chunk = updates::chunk("user_message_chunk", &text, &self.unique(&format!("prompt {request}")));
        chunk.iter().for_each(|chunk| shared.remember(&self.id, chunk));
    }
}
