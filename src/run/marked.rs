//! Questions from markers in the agent's text, which a further turn answers.

use super::book::Asker;
use super::live::Live;
use super::markers;
use super::process::ProcessState;
use crate::agent::{Reply, Turn};
use crate::failure::{Code, Failure};
use crate::protocol::limits::MARKER_TURNS;
use crate::protocol::outbound::{Outcome, Text};
use crate::protocol::question::Asks;
use crate::protocol::words::Warning;

/// The question markers in the agent's text.
#[derive(Default)]
pub(super) struct Marked {
    /// The questions of this turn.
    pub(super) asks: Asks,
    /// The texts of the questions that are open.
    texts: Vec<Text>,
    /// The number of further turns.
    turns: u32,
}

impl Live {
    /// Asks the questions of a turn that ended well. Returns whether they keep the run going.
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

    /// Sends the answers to the agent as a further turn of the same session.
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
