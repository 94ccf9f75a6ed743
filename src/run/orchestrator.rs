//! Handles the orchestrator's prompts and cancels, and the end of its input.

use super::active_run::ActiveRun;
use super::asked_question::NoAnswerCause;
use super::turns::{RUN_IS_ENDING, StopCause};
use super::{Effect, OnEof, Origin, StopSignal};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::InboundId;
use crate::protocol::image::Image;
use crate::protocol::inbound::Addressee;
use crate::protocol::outbound::{Outcome, Text};
use crate::protocol::prompt::{FurtherPrompt, PromptInput};
use crate::protocol::words::{PromptState, Source, Warning};

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

    pub(super) fn take_prompt_input(&mut self, reply_to: Option<InboundId>, input: PromptInput, images: Vec<Image>) {
        let refused = match input {
            PromptInput::Prompt(prompt) => match self.prompt_refusal(&images) {
                None => return self.take_prompt(reply_to, prompt, images),
                Some(why) => why.into(),
            },
            PromptInput::End => return self.close_conversation(),
            PromptInput::Rewind(to) => return self.rewind(reply_to, to),
            PromptInput::Mixed => {
                let text = "An input was ignored: give an answer, or a prompt, or `end: true`";
                return self.effects.warn(Warning::InvalidAnswer, text, reply_to);
            }
            PromptInput::Wrong(why) => why,
        };
        self.effects.warn(Warning::PromptRefused, format!("A prompt was ignored: {refused}"), reply_to);
    }

    fn prompt_refusal(&self, images: &[Image]) -> Option<&'static str> {
        let ends = self.ladder.is_decided().then_some(RUN_IS_ENDING).or_else(|| self.turns.refuses());
        let step = self.step.as_ref().map(|_| "this agent takes no further turn");
        ends.or(step).or_else(|| self.agent.refuses(&self.settings, images))
    }

    fn take_prompt(&mut self, reply_to: Option<InboundId>, prompt: FurtherPrompt, images: Vec<Image>) {
        let now = prompt.now;
        let prompt = self.turns.number(prompt, images);
        if self.turns.is_over() {
            self.effects.prompt(prompt.number, PromptState::Sent, Some(&prompt.text), reply_to);
            return self.begin_turn(prompt);
        }
        if now && self.turns.current.is_running() {
            let (out, is_taken) = self.agent.steer(&prompt, &mut self.effects);
            self.apply(out);
            if is_taken {
                self.turns.current.worked = true;
                return self.effects.prompt(prompt.number, PromptState::Sent, Some(&prompt.text), reply_to);
            }
        }
        self.effects.prompt(prompt.number, PromptState::Queued, Some(&prompt.text), reply_to);
        self.turns.waiting.push_back(prompt);
    }

    pub(super) fn cancel_turn(&mut self, reply_to: Option<InboundId>, reason: Option<Text>) {
        match self.settings.conversation {
            true => self.interrupt_turn(StopCause::Cancel, reply_to),
            false => self.cancel(reply_to, reason, Source::Orchestrator),
        }
    }

    pub(super) fn cancel(&mut self, reply_to: Option<InboundId>, reason: Option<Text>, source: Source) {
        if source != Source::Orchestrator {
            self.ladder.signals += 1;
        }
        self.ladder.note_late(&reason, source);
        let is_urgent = self.ladder.signals > 1;
        if !self.ladder.is_decided() {
            self.stop(Outcome::Cancelled { reason, source }, reply_to);
        } else {
            // The outcome stands. The cancel only makes the run end sooner.
            self.effects.push(Effect::Hurry);
            if !is_urgent {
                self.advance();
            }
        }
        if is_urgent {
            self.ladder.skip_to_kill();
            self.effects.push(Effect::SignalTree(StopSignal::Kill));
        }
    }

    pub(super) fn end_input(&mut self) {
        if std::mem::replace(&mut self.questions.input_closed, true) {
            return;
        }
        if self.on_eof == OnEof::Cancel {
            return self.cancel(None, None, Source::Orchestrator);
        }
        self.give_up_questions(NoAnswerCause::InputClosed);
        self.close_conversation();
    }

    /// Fails the run because of a message of another major version, even after a result.
    pub(super) fn refuse_version(&mut self, reply_to: Option<InboundId>) {
        if !self.ladder.replace_result(&unsupported()) {
            self.stop(Outcome::Failed(unsupported()), reply_to);
        }
    }
}

pub(super) fn unsupported() -> Failure {
    Failure::new(Code::UnsupportedVersion, "This program speaks version 1 of the protocol: send \"v\":\"1\".")
}
