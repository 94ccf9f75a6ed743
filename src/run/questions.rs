//! Asks, answers and withdraws the questions of a run, reports their resolutions, and returns the replies to the asker.

use super::active_run::ActiveRun;
use super::asked_question::{BesideAnswer, Hidden, NoAnswerCause, Resolved, shown_subject};
use super::effects::Effects;
use super::frame_texts::FrameTexts;
use super::open_questions::{AnswerEffect, Asker, Completed};
use super::{Effect, ReadInput};
use crate::agent::Reply;
use crate::protocol::ids::{InboundId, QuestionId};
use crate::protocol::outbound::{Outcome, Progress, ProgressKind, Text};
use crate::protocol::question::{Answer, Ask, Asks, BadAnswer, Decision, Kind};
use crate::protocol::terms::sentence;
use crate::protocol::words::{Level, Purpose, Status, Warning};

pub(super) const UNKNOWN_QUESTION: &str = "The answer was ignored: no such question is open";
const OPTIONS_SHOWN: usize = 8;

impl ActiveRun {
    pub(super) fn ask_questions(&mut self, asker: Asker, asks: Asks) {
        if self.ladder.is_decided() || self.turns.is_stopping() || asks.is_empty() {
            // A run or a turn that is ending asks no questions, and the agent must not wait for an answer.
            return self.reply_to_asker(&asker, vec![Reply::Declined(None); asks.len()]);
        }
        self.effects.warn_of_dropped(&asks, &self.texts);
        let (waiting, resolved) = self.questions.open(self.effects.now, asker, asks, &self.settings, &self.texts);
        self.finish_questions(resolved, None);
        if self.ladder.is_decided() || waiting.is_empty() {
            return;
        }
        self.effects.status(Status::WaitingForInput, "Waiting for an answer", None);
        for id in waiting {
            self.show_question(&id, None, None);
        }
    }

    fn show_question(&mut self, id: &QuestionId, error: Option<BadAnswer>, reply_to: Option<InboundId>) {
        let frame = self.questions.frame(id, error, self.deadlines.run, self.effects.now, &self.texts);
        if let Some(frame) = frame {
            self.effects.emit(frame, reply_to);
        }
    }

    pub(super) fn answer_question(&mut self, reply_to: Option<InboundId>, input: ReadInput) {
        let (id, answered) = match (input.question_id, input.answered) {
            (Some(id), Some(answered)) => (id, answered),
            (id, _) => {
                let why = match id {
                    None => "`question_id` must be a string",
                    Some(_) => "give exactly one of `value`, `value_from` and `declined: true`",
                };
                let unknown = input.unknown.warning("field", " of run.input", &self.texts.redactor);
                let unknown = unknown.map(|unknown| format!(". {unknown}")).unwrap_or_default();
                let text = format!("An answer was ignored: {why}{unknown}");
                return self.effects.warn(Warning::InvalidAnswer, text, reply_to);
            }
        };
        let takes_input = self.step.is_none() && self.features().capabilities.updated_input == Some(true);
        if input.updated_input.is_some() && !takes_input {
            let text = "An answer was ignored: this agent takes no `updated_input`";
            return self.effects.warn(Warning::InvalidAnswer, text, reply_to);
        }
        let beside = BesideAnswer { message: input.message, input: input.updated_input };
        let (answered, is_plain) = self.questions.keep_secret(&id, answered, &mut self.texts.redactor);
        if is_plain {
            let what = "The secret answer is too short or too plain to be redacted";
            self.effects.warn(Warning::ShortSecret, what, reply_to.clone());
        }
        match self.questions.take(self.effects.now, &id, &answered, beside, &self.settings) {
            AnswerEffect::Unknown => self.effects.warn(Warning::UnknownQuestion, UNKNOWN_QUESTION, reply_to),
            AnswerEffect::NoInput => {
                let text = "An answer was ignored: `updated_input` goes with `allow_once` alone";
                self.effects.warn(Warning::InvalidAnswer, text, reply_to);
            }
            AnswerEffect::Again(id, why) => self.show_question(&id, Some(why), reply_to),
            AnswerEffect::Resolved(resolved) => self.finish_questions(resolved, reply_to),
        }
    }

    pub(super) fn give_up_questions(&mut self, cause: NoAnswerCause) {
        let (resolved, fails) = self.questions.resolve_without_answer(self.effects.now, cause, &self.settings);
        if !fails {
            return self.finish_questions(resolved, None);
        }
        self.report_resolutions(&resolved, None);
        self.stop(Outcome::Failed(cause.failure()), None);
    }

    fn report_resolutions(&mut self, resolved: &[Resolved], reply_to: Option<InboundId>) {
        for one in resolved {
            let what = self.effects.resolution(one, self.settings.tool_facts, &self.texts, reply_to.clone());
            self.turns.current.unattended.count(one, &what);
            self.denied += u64::from(one.value == Answer::Decision(Decision::Deny));
        }
    }

    fn finish_questions(&mut self, resolved: Vec<Resolved>, reply_to: Option<InboundId>) {
        if resolved.is_empty() {
            return;
        }
        self.report_resolutions(&resolved, reply_to);
        self.deadlines.active = self.effects.now;
        for Completed { asker, replies, declined } in self.questions.completed() {
            self.turns.current.declined = declined;
            self.reply_to_asker(&asker, replies);
        }
        let waited = self.effects.status == Some(Status::WaitingForInput) && !self.questions.is_waiting();
        if waited && !self.ladder.is_decided() {
            match self.turns.is_over() && !self.ends_when_idle() {
                true => self.effects.status(Status::WaitingForPrompt, "Waiting for a prompt", None),
                false => self.effects.status(Status::Running, "The agent is working", None),
            }
        }
    }

    fn reply_to_asker(&mut self, asker: &Asker, replies: Vec<Reply>) {
        match asker {
            Asker::Markers => self.answer_markers(&replies),
            Asker::Step => self.answer_step(replies),
            Asker::Tool(call) => self.effects.push(Effect::ToolReplies { call: *call, replies }),
            Asker::Agent(key) => self.drive(|driver, out| driver.answer(key, &replies, out)),
        }
    }

    pub(super) fn withdraw_questions(&mut self, asker: Option<&Asker>) {
        let (resolved, calls) = self.questions.withdraw(asker);
        calls.into_iter().for_each(|call| self.effects.push(Effect::ToolWithdrawn { call }));
        self.finish_questions(resolved, None);
    }
}

impl Effects {
    fn warn_of_dropped(&mut self, asks: &Asks, texts: &FrameTexts) {
        let options = |ask: &Ask| match &ask.kind {
            Kind::Select { choices, .. } => choices.warning(&format!("the question \"{}\"", texts.title(&ask.text))),
            Kind::Confirm | Kind::Text | Kind::Secret | Kind::FilePath => None,
        };
        let questions = asks.warning("question", "questions", "one request");
        for text in questions.into_iter().chain(asks.iter().filter_map(options)) {
            self.warn(Warning::AgentOutputUnparsed, text, None);
        }
    }

    /// Returns what the question was about, in one short line.
    fn resolution(
        &mut self,
        one: &Resolved,
        lists_options: bool,
        texts: &FrameTexts,
        reply_to: Option<InboundId>,
    ) -> String {
        match one.hidden {
            Some(Hidden::TooLong) => {
                let text = sentence!(
                    "A permission was denied, because no frame can show the whole action: raise {max_frame_bytes:#}",
                    max_frame_bytes
                );
                self.warn(Warning::PermissionTooLong, text, None);
            }
            Some(Hidden::NoCommand) => {
                let text = "A permission was denied, because the agent did not say which command it would run";
                self.warn(Warning::AgentOutputUnparsed, text, None);
            }
            Some(Hidden::NoFile) => {
                let text = "A permission was denied, because the agent did not say which files it would change";
                self.warn(Warning::AgentOutputUnparsed, text, None);
            }
            None => {}
        }
        let subject = one.ask.subject.as_ref();
        let what = texts.title(subject.map_or(&one.ask.text, |subject| &subject.title));
        let how = one.resolution.word().replace('_', " ");
        let how = if let Answer::Decision(decision) = one.value { format!("{} ({how})", decision.word()) } else { how };
        let about = ProgressKind::Resolved {
            question_id: one.question_id.clone(),
            resolution: one.resolution,
            used_default: one.used_default,
            subject: subject.map(|subject| shown_subject(subject, texts)),
            value: (subject.is_some() || self.level > Level::Minimal).then(|| one.value.clone()),
            what: if lists_options { with_options(&one.ask, &what, texts) } else { Text::default() },
        };
        let progress = Progress::new(about, format!("{what}: {how}"));
        self.progress(Progress { truncated: !one.fits, ..progress }, reply_to);
        what
    }
}

fn with_options(ask: &Ask, what: &str, texts: &FrameTexts) -> Text {
    let Kind::Select { choices, .. } = &ask.kind else { return what.into() };
    if ask.purpose == Purpose::Permission {
        return what.into();
    }
    let labels = choices.as_slice().iter().map(|choice| choice.label.redacted(&texts.redactor));
    let mut labels: Vec<String> = labels.take(OPTIONS_SHOWN + 1).map(|label| texts.cut(&label).into_owned()).collect();
    if labels.len() > OPTIONS_SHOWN {
        labels[OPTIONS_SHOWN] = "...".into();
    }
    format!("{what} ({})", labels.join(", ")).into()
}
