//! Asks, resolves and withdraws the questions of a run, and returns the replies to the asker.

use super::Effect;
use super::active_run::ActiveRun;
use super::open_questions::{Asker, Completed, NoAnswerCause, Resolved};
use crate::agent::Reply;
use crate::protocol::ids::{InboundId, QuestionId};
use crate::protocol::outbound::Outcome;
use crate::protocol::question::{Asks, BadAnswer};
use crate::protocol::words::Status;

impl ActiveRun {
    pub(super) fn ask_questions(&mut self, asker: Asker, asks: Asks) {
        if self.ladder.is_decided() || self.turns.is_stopping() || asks.is_empty() {
            // A run or a turn that is ending asks no questions, and the agent must not wait for an answer.
            return self.reply_to_asker(&asker, vec![Reply::Declined(None); asks.len()]);
        }
        self.effects.warn_of_dropped(&asks, &self.texts);
        let (group, resolved) = self.questions.open(self.effects.now, asker, asks, &self.settings, &self.texts);
        let waiting = self.questions.waiting(group);
        self.finish_questions(resolved, None);
        if self.ladder.is_decided() || waiting.is_empty() {
            return;
        }
        self.effects.status(Status::WaitingForInput, "Waiting for an answer", None);
        for id in waiting {
            self.show_question(&id, None, None);
        }
    }

    pub(super) fn show_question(&mut self, id: &QuestionId, error: Option<BadAnswer>, reply_to: Option<InboundId>) {
        let frame = self.questions.frame(id, error, self.deadlines.run, self.effects.now, &self.texts);
        if let Some(frame) = frame {
            self.effects.emit(frame, reply_to);
        }
    }

    /// Resolves the open questions that nobody will answer.
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
        }
    }

    /// Reports how questions were resolved, and answers the askers of complete groups.
    pub(super) fn finish_questions(&mut self, resolved: Vec<Resolved>, reply_to: Option<InboundId>) {
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
            self.effects.status(Status::Running, "The agent is working", None);
        }
    }

    fn reply_to_asker(&mut self, asker: &Asker, replies: Vec<Reply>) {
        match asker {
            Asker::Markers => self.answer_markers(&replies),
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
