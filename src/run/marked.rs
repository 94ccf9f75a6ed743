//! The markers in the agent's text: questions, which a further turn answers, and the completion marker.

use super::book::Asker;
use super::live::Live;
use super::markers::{self, Cutter};
use super::messages::Finder;
use super::process::ProcessState;
use crate::agent::{MessageKey, Reply, Turn};
use crate::failure::{Code, Failure};
use crate::protocol::limited::Asks;
use crate::protocol::limits::MARKER_TURNS;
use crate::protocol::outbound::Outcome;
use crate::protocol::words::Warning;
use std::collections::HashMap;

/// The question markers in the agent's text.
#[derive(Default)]
pub(super) struct Marked {
    /// The messages that are not whole yet.
    pub(super) heard: HashMap<MessageKey, Heard>,
    /// The questions of this turn.
    pub(super) asks: Asks,
    /// The texts of those that were asked.
    pub(super) texts: Vec<String>,
    /// Further turns so far.
    pub(super) turns: u32,
}

/// The markers in one message of the agent. They count when the message is whole.
pub(super) struct Heard {
    pub(super) cutter: Cutter,
    pub(super) asks: Asks,
    pub(super) finder: Finder,
}

impl Live {
    /// What the agent itself says, without its question markers. `None`: as it is. Markers count when the message is
    /// whole; one that is withdrawn has said nothing.
    pub(super) fn own_words(&mut self, message: MessageKey, piece: &str, done: bool) -> Option<String> {
        let heard = self.questions.marked.heard.entry(message).or_insert_with(|| Heard {
            cutter: Cutter::default(),
            asks: Asks::default(),
            finder: Finder::new(&self.settings.completion_marker),
        });
        heard.finder.piece(piece, done);
        let markers = self.settings.question_markers;
        let text = markers.then(|| heard.cutter.push(piece, done, &mut heard.asks));
        let heard = done.then(|| self.questions.marked.heard.remove(&message)).flatten();
        let takes_turns = self.agent.driver.takes_turns();
        if let Some(heard) = heard {
            self.work.completion |= heard.finder.found;
            self.questions.marked.asks.append(heard.asks);
        }
        text.filter(|_| takes_turns)
    }

    /// A turn ended well. Whether its question markers keep the run going.
    pub(super) fn asks_markers(&mut self) -> bool {
        let asks = std::mem::take(&mut self.questions.marked.asks);
        if asks.is_empty() || (!self.settings.interactive && self.questions.marked.turns > 0) {
            return false;
        }
        if !self.agent.driver.takes_turns() {
            let text = "A question in the agent's text is not asked: this agent takes no further turn";
            self.warn(Warning::UnsupportedOption, text, None);
            return false;
        }
        self.questions.marked.turns += 1;
        if self.questions.marked.turns > MARKER_TURNS {
            let message = "The agent asked in 20 further turns and did not come to an end: make the task clearer.";
            self.decide(Outcome::Failed(Failure::new(Code::LimitReached, message)));
            self.finish_agent();
            return true;
        }
        self.questions.marked.texts = asks.iter().map(|ask| ask.text.clone()).collect();
        self.open(Asker::Markers, asks);
        true
    }

    /// The answers to question markers go back as a further turn of the same session.
    pub(super) fn further_turn(&mut self, replies: &[Reply]) {
        let prompt = markers::prompt(&std::mem::take(&mut self.questions.marked.texts), replies);
        let mut turn = Turn::default();
        self.agent.driver.follow_up(&prompt, &mut turn);
        self.turn(turn);
        if self.agent.process == ProcessState::Gone {
            let message = "The agent takes no further turn, though it asked: start it again with the answers.";
            self.decide(Outcome::Failed(Failure::new(Code::AgentExited, message)));
        }
    }
}
