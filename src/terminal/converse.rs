//! The prompt line of a conversation, among all that a terminal shows.

use super::TerminalPeer;
use super::chat::{Chat, LineEffect};
use super::screen::Shown;
use super::slash::{ChatPlace, ChosenSettings};
use crate::engine::Understood;
use crate::protocol::request::Options;
use std::time::Instant;

impl TerminalPeer {
    /// `opening`: the fields of run.start if its prompt is typed too.
    pub fn converse(&mut self, opening: Option<Options>, around: ChatPlace) {
        self.asking.stay();
        self.chat = Some(Chat::new(self.look, opening, around));
        self.wake_at = Some(Instant::now());
    }

    /// The first line of the prompt that began the run, if it was typed.
    pub fn take_first_line(&mut self) -> Option<String> {
        self.chat.as_mut().and_then(Chat::take_first_line)
    }

    /// The settings with which the conversation is to go on after its end. `None`: it is over.
    pub fn again(&self) -> Option<&ChosenSettings> {
        self.chat.as_ref().and_then(Chat::again)
    }

    pub(super) fn keep_settings(&mut self, why: &'static str) {
        self.chat.iter_mut().for_each(|chat| chat.keep_settings(why));
    }

    /// Whether a person types, so that only whole lines may show.
    pub(super) fn is_typed_at(&self) -> bool {
        self.asking.is_open() || self.chat.as_ref().is_some_and(Chat::is_open)
    }

    pub(super) fn stepped(&mut self, step: LineEffect, now: Instant) -> Understood {
        let LineEffect { echo, lines, meant } = step;
        let mut chunk = self.place(Shown::lines(lines), now);
        chunk.before.splice(0..0, echo.into_bytes());
        Understood { chunk, messages: meant.into_iter().collect() }
    }
}
