//! The structured result: checks it, and sends the agent back to correct it.

use super::active_run::{ActiveRun, ProcessState};
use crate::agent::TurnOver;
use crate::agent::result::correction;
use crate::agent::text::FinalAnswer;
use crate::protocol::failure::Failure;
use crate::protocol::limits::RESULT_TURNS;
use crate::protocol::outbound::{Json, Outcome};
use crate::protocol::schema::Mismatch;

impl ActiveRun {
    /// Takes a result that the model gave with our tool, or the reasons why it does not fit. The model knows them.
    pub(super) fn submitted(&mut self, result: Result<Json, Vec<Mismatch>>) {
        match result {
            Ok(result) => self.turns.current.result.submitted = Some(result),
            Err(violations) if self.turns.current.result.returned >= RESULT_TURNS => {
                self.stop(Outcome::Failed(Failure::result_invalid(violations)), None);
            }
            Err(_) => self.turns.current.result.returned += 1,
        }
    }

    /// Checks the result of a completed turn. `None`: it does not fit, and the agent corrects it in a further turn.
    pub(super) fn checked(&mut self, over: TurnOver) -> Option<TurnOver> {
        let schema = self.settings.output_schema.as_ref().filter(|_| self.turns.is_running());
        let Some(schema) = schema else { return Some(over) };
        let (answer, structured, stop) = match over {
            TurnOver::Completed { answer, structured, stop } => (answer, structured, stop),
            TurnOver::Failed(_) | TurnOver::Interrupted => return Some(over),
        };
        let given = structured.or_else(|| self.turns.current.result.submitted.take()).or_else(|| answer.json());
        let violations = match &given {
            Some(given) => schema.check(given),
            None => vec![Mismatch::of_whole(missing(&answer))],
        };
        if violations.is_empty() {
            return Some(TurnOver::Completed { answer, structured: given, stop });
        }
        if self.turns.current.result.returned >= RESULT_TURNS || !self.agent.driver.takes_turns() {
            return Some(TurnOver::Failed(Failure::result_invalid(violations)));
        }
        self.turns.current.result.returned += 1;
        let prompt = correction(&violations, self.features().result_way);
        self.drive(|driver, turn| driver.follow_up(&prompt, &[], turn));
        // The agent cannot go on if its process ended and no other follows.
        let is_over = self.agent.process == ProcessState::Gone && self.end.ending.is_none();
        is_over.then(|| TurnOver::Failed(Failure::result_invalid(violations)))
    }
}

/// The violation of a turn without a result.
fn missing(answer: &FinalAnswer) -> &'static str {
    if answer.is_cut() {
        "is too long"
    } else if answer.is_blank() {
        "is missing"
    } else {
        "is missing: the answer is not one JSON text"
    }
}
