//! Questions from markers in the agent's text. A further turn carries the answers.

use super::active_run::ActiveRun;
use super::agent_side::ProcessState;
use super::open_questions::Asker;
use super::question_markers;
use crate::agent::{Reply, TurnOver};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::limits::MARKER_TURNS;
use crate::protocol::outbound::Outcome;
use crate::protocol::words::Warning;

impl ActiveRun {
    /// Asks the questions of a successful turn. `None`: the turn continues because of them.
    pub(super) fn asked(&mut self, over: TurnOver) -> Option<TurnOver> {
        match over {
            TurnOver::Completed { .. } if self.turns.is_running() => {}
            TurnOver::Completed { .. } | TurnOver::Failed(_) | TurnOver::Interrupted => return Some(over),
        }
        let asks = std::mem::take(&mut self.turns.current.marked.asks);
        if asks.is_empty() || (!self.settings.interactive && self.turns.current.marked.turns > 0) {
            return Some(over);
        }
        if !self.agent.driver.takes_turns() {
            let text = "A question marker stays in the text: this agent cannot take a further turn";
            self.effects.warn(Warning::UnsupportedOption, text, None);
            return Some(over);
        }
        self.turns.current.marked.turns += 1;
        if self.turns.current.marked.turns > MARKER_TURNS {
            let message = "The agent is still asking after 20 further turns: clarify the task.";
            return Some(TurnOver::Failed(Failure::new(Code::LimitReached, message)));
        }
        self.turns.current.marked.texts = asks.iter().map(|ask| ask.text.clone()).collect();
        self.open(Asker::Markers, asks);
        None
    }

    /// Sends the answers to the agent as a further turn of the same session.
    pub(super) fn further_turn(&mut self, replies: &[Reply]) {
        let texts = std::mem::take(&mut self.turns.current.marked.texts);
        let prompt = question_markers::prompt(&texts, replies, !self.settings.interactive);
        self.drive(|driver, turn| driver.follow_up(&prompt, &[], turn));
        if self.agent.process == ProcessState::Gone {
            let message = "The agent asked a question but cannot take a further turn: start a new run with the answer in the prompt.";
            self.decide(Outcome::Failed(Failure::new(Code::AgentExited, message)));
        }
    }
}
