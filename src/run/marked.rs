//! Questions from markers in the agent's text. A further turn carries the answers.

use super::book::Asker;
use super::live::{Live, ProcessState};
use super::markers;
use crate::agent::Reply;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::limits::MARKER_TURNS;
use crate::protocol::outbound::Outcome;
use crate::protocol::words::Warning;

impl Live {
    /// Asks the questions of a successful turn. Returns whether the run continues because of them.
    pub(super) fn asks_markers(&mut self) -> bool {
        let asks = std::mem::take(&mut self.questions.marked.asks);
        if asks.is_empty() || (!self.settings.interactive && self.questions.marked.turns > 0) {
            return false;
        }
        if !self.agent.driver.takes_turns() {
            let text = "A question marker stays in the text: this agent cannot take a further turn";
            self.warn(Warning::UnsupportedOption, text, None);
            return false;
        }
        self.questions.marked.turns += 1;
        if self.questions.marked.turns > MARKER_TURNS {
            let message = "The agent is still asking after 20 further turns: clarify the task.";
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
        let texts = std::mem::take(&mut self.questions.marked.texts);
        let prompt = markers::prompt(&texts, replies, !self.settings.interactive);
        self.drive(|driver, turn| driver.follow_up(&prompt, turn));
        if self.agent.process == ProcessState::Gone {
            let message = "The agent asked a question but cannot take a further turn: start a new run with the answer in the prompt.";
            self.decide(Outcome::Failed(Failure::new(Code::AgentExited, message)));
        }
    }
}
