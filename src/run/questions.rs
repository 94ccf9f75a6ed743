//! The questions of a run: asks, resolves and withdraws them, and returns the replies to the asker.

use super::Effect;
use super::active_run::ActiveRun;
use super::open_questions::{Asker, Completed, NoAnswerCause, Resolved};
use super::work::places;
use crate::agent::Reply;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::{InboundId, QuestionId};
use crate::protocol::outbound::{About, Body, Outcome, PermissionEnd, Progress, Question, Text};
use crate::protocol::question::{Ask, Asks, Kind, Subject};
use crate::protocol::request::Seconds;
use crate::protocol::words::{Category, Purpose, Status, Warning};

/// The number of options that the line about an unanswered question names.
const OPTIONS_SHOWN: usize = 8;

impl ActiveRun {
    pub(super) fn open(&mut self, asker: Asker, asks: Asks) {
        if self.end.ending.is_some() || self.turns.is_stopping() || asks.is_empty() {
            // A run or a turn that is ending asks no questions, and the agent must not wait for an answer.
            return self.reply(&asker, vec![Reply::Declined(None); asks.len()]);
        }
        self.warn_of_dropped(&asks);
        let group = self.questions.book.add(self.now, asker, asks, &self.settings, &self.redactor);
        let resolved = self.questions.book.resolve_by_policy(group, &self.settings);
        let waiting = self.questions.book.waiting(group);
        self.resolved(resolved, false, NoAnswerCause::Headless, None);
        if self.end.ending.is_some() || waiting.is_empty() {
            return;
        }
        self.status(Status::WaitingForInput, "Waiting for an answer", None);
        for id in waiting {
            self.ask(&id, None, None);
        }
    }

    /// Warns about the questions and options beyond the limits.
    fn warn_of_dropped(&mut self, asks: &Asks) {
        let options = |ask: &Ask| match &ask.kind {
            Kind::Select { choices, .. } => choices.warning(&format!("the question \"{}\"", self.title(&ask.text))),
            Kind::Confirm | Kind::Text | Kind::Secret | Kind::FilePath => None,
        };
        let questions = asks.warning("question", "questions", "one request");
        let warnings: Vec<String> = questions.into_iter().chain(asks.iter().filter_map(options)).collect();
        for text in warnings {
            self.warn(Warning::AgentOutputUnparsed, text, None);
        }
    }

    pub(super) fn ask(&mut self, id: &QuestionId, error: Option<String>, reply_to: Option<InboundId>) {
        let Some((group, member)) = self.questions.book.find(id) else { return };
        let mut left = self.questions.book.left(group, self.now);
        if let Some(end) = self.clocks.run {
            left = left.min(end.saturating_sub(self.now));
        }
        let mut ask = member.shown.clone();
        // The text of a permission contains its title, except for a plan.
        if let Some(subject) = ask.subject.as_ref().filter(|subject| subject.category != Category::Mode) {
            let (text, title) =
                (ask.text.redacted_action(&self.redactor), subject.title.redacted_action(&self.redactor));
            let title = Some(title).filter(|title| !title.is_empty());
            let text =
                title.map_or(text.clone(), |title| text.replace(&*title, &self.action_title(&subject.title)).into());
            ask.text = self.cut(&text).into();
        }
        ask.subject = ask.subject.as_ref().map(|subject| self.subject(subject));
        let question = Question {
            question_id: member.id.clone(),
            group_id: group.id.clone(),
            group_size: group.members.len(),
            timeout_s: Seconds(left.as_millis() as f64 / 1000.0),
            attempt: member.attempt,
            error: error.map(Text::from),
            ask,
            truncated: false,
        };
        self.emit(Body::Question(Box::new(question)), reply_to);
    }

    /// A permission's subject as frames show it.
    fn subject(&self, subject: &Subject) -> Subject {
        Subject {
            title: self.action_title(&subject.title).into(),
            locations: places(&self.settings.cwd, &subject.locations),
            ..subject.clone()
        }
    }

    /// Resolves the open questions that nobody will answer.
    pub(super) fn nobody(&mut self, absence: NoAnswerCause) {
        let (resolved, fails) = self.questions.book.nobody(self.now, absence, &self.settings);
        self.resolved(resolved, fails, absence, None);
    }

    /// A question in one line, with its options.
    fn with_options(&self, ask: &Ask, what: &str) -> Text {
        let Kind::Select { choices, .. } = &ask.kind else { return what.into() };
        if ask.purpose == Purpose::Permission {
            return what.into();
        }
        let labels = choices.as_slice().iter().map(|choice| choice.label.redacted(&self.redactor));
        let mut labels: Vec<String> =
            labels.take(OPTIONS_SHOWN + 1).map(|label| self.cut(&label).into_owned()).collect();
        if labels.len() > OPTIONS_SHOWN {
            labels[OPTIONS_SHOWN] = "...".into();
        }
        format!("{what} ({})", labels.join(", ")).into()
    }

    /// Reports how questions were resolved, and answers the askers of complete groups. `fails`: ends the run.
    pub(super) fn resolved(
        &mut self,
        resolved: Vec<Resolved>,
        fails: bool,
        absence: NoAnswerCause,
        reply_to: Option<InboundId>,
    ) {
        let some = !resolved.is_empty();
        for one in resolved {
            if one.too_long {
                let text = "A permission was denied, because no frame can show the whole action: raise max_frame_bytes";
                self.warn(Warning::PermissionTooLong, text, None);
            }
            let what = one.ask.subject.as_ref().map_or(&one.ask.text, |subject| &subject.title);
            let what = self.title(what);
            self.turns.current.unattended.count(&one, &what);
            let how = one.resolution.word().replace('_', " ");
            let how = match (&one.ask.subject, &one.value) {
                (Some(_), Some(value)) => format!("{value} ({how})"),
                _ => how,
            };
            let permission = one.ask.subject.as_ref();
            let permission =
                permission.map(|subject| PermissionEnd { subject: self.subject(subject), value: one.value });
            let about = About::Resolved {
                question_id: one.question_id,
                resolution: one.resolution,
                used_default: one.used_default,
                permission,
                what: if self.settings.tool_facts { self.with_options(&one.ask, &what) } else { Text::default() },
            };
            let progress = Progress::new(about, format!("{what}: {how}"));
            self.progress(Progress { truncated: !one.fits, ..progress }, reply_to.clone());
        }
        if fails {
            let failure = match absence {
                NoAnswerCause::Timeout => Failure::new(
                    Code::QuestionTimeout,
                    "A question was not answered in time: answer it, or raise question_timeout_s.",
                ),
                NoAnswerCause::InputClosed | NoAnswerCause::Headless => Failure::new(
                    Code::InputClosed,
                    "A question needs an answer, but nobody can give one: keep stdin open, use --answer, or run headless.",
                ),
            };
            return self.stop(Outcome::Failed(failure), None);
        }
        if some {
            self.clocks.active = self.now;
            self.answer_complete();
            self.running_again();
        }
    }

    fn answer_complete(&mut self) {
        for Completed { asker, replies, declined } in self.questions.book.completed() {
            self.turns.current.declined = declined;
            self.reply(&asker, replies);
        }
    }

    fn reply(&mut self, asker: &Asker, replies: Vec<Reply>) {
        match asker {
            Asker::Markers => self.further_turn(&replies),
            Asker::Tool(call) => self.out.push(Effect::ToolReplies { call: *call, replies }),
            Asker::Agent(key) => {
                self.questions.kept.forget(key);
                self.drive(|driver, turn| driver.answer(key, &replies, turn));
            }
        }
    }

    pub(super) fn running_again(&mut self) {
        if self.status == Some(Status::WaitingForInput)
            && !self.questions.book.is_waiting()
            && self.end.ending.is_none()
        {
            self.status(Status::Running, "The agent is working", None);
        }
    }

    pub(super) fn withdraw(&mut self, asker: Option<&Asker>) {
        let (resolved, askers) = self.questions.book.withdraw(asker);
        for asker in askers {
            match asker {
                // The tool's server must be told about the withdrawal, unlike a driver.
                Asker::Tool(call) => self.out.push(Effect::ToolWithdrawn { call }),
                Asker::Agent(key) => self.questions.kept.forget(&key),
                Asker::Markers => {}
            }
        }
        self.resolved(resolved, false, NoAnswerCause::Timeout, None);
    }
}
