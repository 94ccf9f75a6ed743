//! The end of an agent's turn: the questions from markers and the check of the result, which both continue it, and the
//! outcome.

use super::effects::Effects;
use super::frame_texts::FrameTexts;
use super::messages::Messages;
use super::text_markers::{CompletionMarker, cut, prompt};
use super::turns::CurrentTurn;
use crate::agent::text::FinalAnswer;
use crate::agent::{Reply, TurnOver};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::limits::{MARKER_TURNS, RESULT_TURNS};
use crate::protocol::outbound::{Json, Outcome, Text};
use crate::protocol::question::Asks;
use crate::protocol::request::Settings;
use crate::protocol::schema::Mismatch;
use crate::protocol::words::{Level, Warning};
use crate::redact::Stream;
use std::borrow::Cow;

pub(super) enum NextStep {
    /// The agent's text contains questions. A further prompt carries the answers.
    Ask(Asks),
    /// The result does not fit. A further prompt says why.
    Correct(Vec<Mismatch>),
    End(TurnOver),
}

impl CurrentTurn {
    pub(super) fn next_step(
        &mut self,
        over: TurnOver,
        settings: &Settings,
        takes_turns: bool,
        effects: &mut Effects,
    ) -> NextStep {
        if !self.is_running() || !matches!(over, TurnOver::Completed { .. }) {
            return NextStep::End(over);
        }
        let asks = std::mem::take(&mut self.marked.asks);
        if asks.is_empty() || (!settings.interactive && self.marked.turns > 0) {
            return self.check_result(over, settings, takes_turns);
        }
        if !takes_turns {
            let text = "A question marker stays in the text: this agent cannot take a further turn";
            effects.warn(Warning::UnsupportedOption, text, None);
            return self.check_result(over, settings, takes_turns);
        }
        self.marked.turns += 1;
        if self.marked.turns > MARKER_TURNS {
            let message = "The agent is still asking after 20 further turns: clarify the task.";
            return NextStep::End(TurnOver::Failed(Failure::new(Code::LimitReached, message)));
        }
        self.marked.texts = asks.iter().map(|ask| ask.text.clone()).collect();
        NextStep::Ask(asks)
    }

    /// The further prompt with the answers to the questions from markers.
    pub(super) fn answers(&mut self, replies: &[Reply], is_headless: bool) -> String {
        prompt(&std::mem::take(&mut self.marked.texts), replies, is_headless)
    }

    /// The model knows why a result does not fit. Returns the failure of one misfit too many.
    pub(super) fn submit(&mut self, result: Result<Json, Vec<Mismatch>>) -> Option<Failure> {
        match result {
            Ok(result) => self.result.submitted = Some(result),
            Err(violations) if self.result.returned >= RESULT_TURNS => {
                return Some(Failure::result_invalid(violations));
            }
            Err(_) => self.result.returned += 1,
        }
        None
    }

    fn check_result(&mut self, over: TurnOver, settings: &Settings, takes_turns: bool) -> NextStep {
        let Some(schema) = &settings.output_schema else { return NextStep::End(over) };
        let (answer, structured, stop) = match over {
            TurnOver::Completed { answer, structured, stop } => (answer, structured, stop),
            TurnOver::Failed(_) | TurnOver::Interrupted => return NextStep::End(over),
        };
        let given = structured.or_else(|| self.result.submitted.take()).or_else(|| answer.json());
        let violations = match &given {
            Some(given) => schema.check(given),
            None => vec![Mismatch::of_whole(missing(&answer))],
        };
        if violations.is_empty() {
            return NextStep::End(TurnOver::Completed { answer, structured: given, stop });
        }
        if self.result.returned >= RESULT_TURNS || !takes_turns {
            return NextStep::End(TurnOver::Failed(Failure::result_invalid(violations)));
        }
        self.result.returned += 1;
        NextStep::Correct(violations)
    }

    pub(super) fn outcome(
        &mut self,
        over: TurnOver,
        messages: &Messages,
        (settings, completion): (&Settings, &CompletionMarker),
        takes_turns: bool,
        texts: &FrameTexts,
    ) -> Outcome {
        match over {
            TurnOver::Completed { answer, structured, stop } => {
                // Usually the result repeats the last message. If messages are not shown, only the result can contain
                // the marker.
                let shown = settings.progress != Level::Minimal;
                let message_id = messages.id_of(&answer.print).filter(|_| shown);
                let (text_cut, text) = (answer.is_cut(), answer.into_text());
                self.completion |= completion.is_in(&text);
                let text = if settings.question_markers && takes_turns { without_markers(text) } else { text };
                // A cut text may end with a part of a secret: drop the uncertain end.
                let text =
                    if text_cut { text.release_through(&mut Stream::default(), &texts.redactor).into() } else { text };
                Outcome::Completed { message_id, text, text_cut, structured_output: structured, stop_reason: stop }
            }
            TurnOver::Failed(failure) => Outcome::Failed(failure),
            TurnOver::Interrupted if self.declined => Outcome::Failed(could_not_go_on()),
            TurnOver::Interrupted => {
                let message = "Something other than this run interrupted the agent's turn: start the run again.";
                Outcome::Failed(Failure::new(Code::AgentError, message))
            }
        }
    }
}

fn missing(answer: &FinalAnswer) -> &'static str {
    if answer.is_cut() {
        "is too long"
    } else if answer.is_blank() {
        "is missing"
    } else {
        "is missing: the answer is not one JSON text"
    }
}

fn without_markers(text: Text) -> Text {
    match cut(&text, &mut Asks::default()) {
        Cow::Owned(rest) => rest,
        Cow::Borrowed(_) => text,
    }
}

pub(super) fn could_not_go_on() -> Failure {
    let message = "A question was declined, and the agent ended without the answer: answer the question, or put the \
                   answer into the prompt.";
    Failure::new(Code::QuestionDeclined, message)
}
