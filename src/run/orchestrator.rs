//! Handles the orchestrator's answers, its cancel, and the end of its input.

use super::active_run::ActiveRun;
use super::open_questions::{AnswerEffect, NoAnswerCause};
use super::{Effect, Late, OnEof, Origin, ReadInput};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::InboundId;
use crate::protocol::inbound::Addressee;
use crate::protocol::outbound::{Outcome, Text};
use crate::protocol::words::{Source, Warning};

pub(super) const UNKNOWN_QUESTION: &str = "The answer was ignored: no such question is open";
pub(super) const UNKNOWN_TYPE: &str =
    "Ignored a message of an unknown type: the types are run.start, run.input and run.cancel";

impl ActiveRun {
    pub(super) fn is_for_us(&mut self, origin: &Origin) -> bool {
        let ours = match &origin.run {
            Addressee::Unnamed => true,
            Addressee::Run(id) => *id == self.run_id,
            Addressee::Invalid => false,
        };
        if !ours {
            let text = "A message was ignored: it names another run";
            self.effects.warn(Warning::UnknownRun, text, origin.id.clone());
        }
        ours
    }

    pub(super) fn input(&mut self, reply_to: Option<InboundId>, input: ReadInput) {
        let Some(id) = input.question_id else {
            let text = "An answer was ignored: `question_id` must be a string";
            return self.effects.warn(Warning::InvalidAnswer, text, reply_to);
        };
        let Some(answered) = input.answered else {
            let text = "An answer was ignored: give exactly one of `value`, `value_from` and `declined: true`";
            return self.effects.warn(Warning::InvalidAnswer, text, reply_to);
        };
        let (answered, is_plain) = self.questions.keep_secret(&id, answered, &mut self.texts.redactor);
        if is_plain {
            let what = "The secret answer is too short or too plain to be redacted";
            self.effects.warn(Warning::ShortSecret, what, reply_to.clone());
        }
        match self.questions.take(self.effects.now, &id, &answered, input.message, &self.settings) {
            AnswerEffect::Unknown => self.effects.warn(Warning::UnknownQuestion, UNKNOWN_QUESTION, reply_to),
            AnswerEffect::Again(id, why) => self.ask(&id, Some(why), reply_to),
            AnswerEffect::Resolved(resolved) => self.resolved(resolved, reply_to),
        }
    }

    pub(super) fn cancel(&mut self, reply_to: Option<InboundId>, reason: Option<Text>, source: Source) {
        self.effects.push(Effect::Hurry);
        if self.end.ending.as_ref().is_some_and(|ending| !ending.stopped) {
            self.end.late.get_or_insert_with(|| Late { reason: reason.clone(), source });
        }
        if self.end.signals > 1 {
            return self.kill(source);
        }
        if self.end.ending.is_some() {
            // The outcome stands. The cancel only makes the run end sooner.
            return self.advance();
        }
        self.stop(Outcome::Cancelled { reason, source }, reply_to);
    }

    pub(super) fn input_ended(&mut self) {
        if self.questions.input_closed {
            return;
        }
        self.questions.input_closed = true;
        if self.on_eof == OnEof::Cancel {
            return self.cancel(None, None, Source::Orchestrator);
        }
        self.nobody(NoAnswerCause::InputClosed);
        self.no_more_prompts();
    }

    /// Fails the run because of a message of another major version, even after a result.
    pub(super) fn unsupported(&mut self, reply_to: Option<InboundId>) {
        let failed = Outcome::Failed(unsupported());
        match &mut self.end.ending {
            Some(ending) if matches!(ending.outcome, Outcome::Completed { .. }) => ending.outcome = failed,
            _ => self.stop(failed, reply_to),
        }
    }
}

/// The failure of a message of another major version.
pub(super) fn unsupported() -> Failure {
    Failure::new(Code::UnsupportedVersion, "This program speaks version 1 of the protocol: send \"v\":\"1\".")
}
