//! The end of a run: the outcome, the steps that stop the agent, and the terminal body.

use super::active_run::ActiveRun;
use super::question_markers::cut;
use super::stop_ladder::{DecidedEnd, Stage};
use super::{Effect, Method};
use crate::agent::TurnOver;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::InboundId;
use crate::protocol::limits::AGENT_MESSAGE_BYTES;
use crate::protocol::outbound::{Json, Metadata, Outcome, Terminal, Text};
use crate::protocol::question::Asks;
use crate::protocol::words::{Level, Source, Status, Warning};
use crate::redact::Stream;
use std::borrow::Cow;

impl ActiveRun {
    /// Decides the outcome, unless it is already decided.
    pub(super) fn decide(&mut self, outcome: Outcome) {
        let leaves = self.features().leaves;
        self.end.ending.get_or_insert_with(|| DecidedEnd::after_result(self.now, outcome, leaves));
    }

    pub(super) fn turn_over(&mut self, over: TurnOver) {
        if let Some(ending) = &mut self.end.ending {
            // This is the reply to our interrupt: now the agent can exit.
            if ending.stage == Stage::Interrupted {
                ending.advance(self.now);
                self.finish_agent();
            }
            return;
        }
        if self.turns.ends_with_process() {
            return;
        }
        let Some(over) = self.asked(over).and_then(|over| self.checked(over)) else { return };
        let outcome = self.outcome(over);
        self.withdraw(None);
        let Some(outcome) = self.end_turn(outcome) else { return };
        self.end.ending = Some(DecidedEnd::after_result(self.now, outcome, self.features().leaves));
        self.release_agent();
    }

    pub(super) fn finish_agent(&mut self) {
        self.drive(|driver, turn| driver.finish(turn));
    }

    pub(super) fn outcome(&mut self, over: TurnOver) -> Outcome {
        match over {
            TurnOver::Completed { answer, structured, stop } => {
                // Usually the result repeats the last message. If messages are not shown, only the result can contain
                // the marker.
                let shown = self.settings.progress != Level::Minimal;
                let message_id = self.work.messages.id_of(&answer.print).filter(|_| shown);
                let (text_cut, text) = (answer.is_cut(), answer.into_text());
                self.turns.current.completion |= text.contains(&self.settings.completion_marker);
                let text = match self.settings.question_markers && self.agent.driver.takes_turns() {
                    true => without_markers(text),
                    false => text,
                };
                // A cut text may end with a part of a secret: drop the uncertain end.
                let text = if text_cut { text.through(&mut Stream::default(), &self.redactor).into() } else { text };
                Outcome::Completed { message_id, text, text_cut, structured_output: structured, stop_reason: stop }
            }
            TurnOver::Failed(failure) => Outcome::Failed(failure),
            TurnOver::Interrupted if self.turns.current.declined => Outcome::Failed(could_not_go_on()),
            TurnOver::Interrupted => {
                let message = "Something other than this run interrupted the agent's turn: start the run again.";
                Outcome::Failed(Failure::new(Code::AgentError, message))
            }
        }
    }

    /// Stops the agent and ends the run. An earlier outcome stands.
    pub(super) fn stop(&mut self, outcome: Outcome, reply_to: Option<InboundId>) {
        if self.end.ending.is_some() {
            return;
        }
        self.out.push(Effect::Hurry);
        self.end.ending = Some(DecidedEnd::stop(self.now, outcome, self.features().leaves));
        self.withdraw(None);
        if matches!(self.end.ending, Some(DecidedEnd { outcome: Outcome::Cancelled { .. }, .. })) {
            self.status(Status::Cancelling, "Cancelling", reply_to);
        }
        self.drive(|driver, turn| driver.interrupt(turn));
        if !self.features().listens {
            self.advance();
            self.advance();
        }
    }

    pub(super) fn kill(&mut self, source: Source) {
        if self.end.ending.is_none() {
            self.stop(Outcome::Cancelled { reason: None, source }, None);
        }
        if let Some(ending) = &mut self.end.ending {
            ending.kill();
        }
        self.out.push(Effect::Stop(Method::Kill));
    }

    pub(super) fn advance(&mut self) {
        let Some(ending) = &mut self.end.ending else { return };
        match ending.advance(self.now) {
            Stage::Interrupted => {}
            Stage::Leaving => self.finish_agent(),
            Stage::Terminated => self.out.push(Effect::Stop(Method::Terminate)),
            Stage::Killed => self.out.push(Effect::Stop(Method::Kill)),
        }
    }

    /// Completes the end after the last process is gone.
    pub(super) fn conclude(&mut self) -> Option<DecidedEnd> {
        let mut ending = self.end.ending.take();
        if let Some(ending) = &ending {
            self.close_last_turn(&ending.outcome);
        }
        if let Some(DecidedEnd { outcome: outcome @ Outcome::Completed { .. }, .. }) = &mut ending
            && let Some(failure) = self.unattended_failure()
        {
            *outcome = Outcome::Failed(failure);
        }
        let outcome = ending.as_ref().map(|ending| &ending.outcome);
        if matches!(outcome, Some(Outcome::Completed { text, .. }) if text.is_blank()) {
            self.warn(Warning::EmptyResult, "The agent completed without any text", None);
        }
        ending
    }

    /// The failure of a completed run in which nobody answered a permission. `None`: nothing was denied, or
    /// `fail_on_denied` is not set.
    fn unattended_failure(&self) -> Option<Failure> {
        let count = self.turns.denied();
        let how_many = if count == 1 { "A permission was".to_owned() } else { format!("{count} permissions were") };
        let message = format!(
            "{how_many} denied because nobody answered, and `fail_on_denied` is set: allow what the task needs with `permissions`, or answer."
        );
        (self.settings.fail_on_denied && count > 0).then(|| Failure::new(Code::Denied, message))
    }

    /// Builds the terminal body.
    pub(super) fn terminal(&mut self, mut outcome: Outcome) -> Terminal {
        let (artifacts, list_cut) = self.work.artifacts.list();
        let truncated = list_cut
            | match &mut outcome {
                Outcome::Completed { text_cut, structured_output, .. } => {
                    // A reader that fails on the result would lose the whole frame.
                    *text_cut | structured_output.take_if(|json| json.is_hard_to_read()).is_some()
                }
                Outcome::Failed(failure) => self.explain(failure),
                Outcome::Cancelled { .. } => false,
            };
        let (unattended, completion_detected) = self.turns.take_sums();
        Terminal {
            outcome,
            session_id: self.work.session_id.take(),
            artifacts,
            usage: self.work.usage,
            duration_ms: u64::try_from((self.now.saturating_sub(self.clocks.begun)).as_millis()).unwrap_or(u64::MAX),
            metadata: Metadata(self.settings.metadata.take().map(Json::from)),
            unattended,
            completion_detected,
            agent_exit: self.agent.exit,
            turns: self.settings.conversation.then_some(self.turns.current.number),
            workflow: None,
            truncated,
        }
    }

    /// Adds the model's name and the agent's message to a failure. Returns whether the message was cut.
    fn explain(&self, failure: &mut Failure) -> bool {
        let reported = self.work.model.as_ref().map(|model| model.redacted(&self.redactor));
        if let Some(model) = self.settings.model.as_deref().or(reported.as_deref()) {
            failure.name_model(model);
        }
        let Some(said) = failure.agent_message.take() else { return false };
        let mut words = said.redacted(&self.redactor).trim().to_owned();
        let cut = words.len() > AGENT_MESSAGE_BYTES;
        words.truncate(words.floor_char_boundary(AGENT_MESSAGE_BYTES));
        failure.agent_message = (!words.is_empty()).then(|| words.into());
        cut
    }
}

fn without_markers(text: Text) -> Text {
    match cut(&text, &mut Asks::default()) {
        Cow::Owned(rest) => rest,
        Cow::Borrowed(_) => text,
    }
}

/// The failure of an agent that did nothing after its question was declined.
pub(super) fn could_not_go_on() -> Failure {
    let message = "A question was declined, and the agent ended without the answer: answer the question, or put the \
                   answer into the prompt.";
    Failure::new(Code::QuestionDeclined, message)
}
