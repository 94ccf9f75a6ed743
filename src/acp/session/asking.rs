//! The questions of a session, one after the other, and its permissions, all at once.

use super::super::questions::{self, Question};
use super::super::runs::{PromptResult, message};
use super::super::shared::SharedState;
use super::{ClientSession, Shown};
use crate::json::Object;
use crate::protocol::limits::INBOUND_LINE_BYTES;
use crate::protocol::words::QuestionKind;
use serde_json::json;

impl ClientSession {
    pub(super) fn question(&mut self, payload: &Object<'_>, shared: &mut SharedState) {
        if let Some(question) = Question::read(payload) {
            match self.questions.iter_mut().find(|open| open.id == question.id) {
                Some(open) => {
                    *open = question;
                    self.shown = Shown::Nothing;
                }
                None => self.questions.push_back(question),
            }
            return self.show(shared);
        }
        let Some(id) = payload.string("question_id").filter(|_| !self.cancelled) else { return };
        let params = questions::permission(payload, &self.id, &self.place.cwd, |call| self.unique(call));
        let request = shared.ask("session/request_permission", &params, &self.id, &id);
        self.permissions.insert(id, request);
    }

    fn show(&mut self, shared: &mut SharedState) {
        let Some(question) = self.questions.front().filter(|_| self.shown == Shown::Nothing && !self.cancelled) else {
            return;
        };
        let form = if shared.client.forms { question.form(&self.id, shared.client.narrow) } else { None };
        if question.kind == QuestionKind::Secret {
            let (text, id) = (question.secret(), question.id.clone());
            self.say(&text, &id, shared);
            self.tell("run.input", &json!({"question_id": id, "declined": true}), shared);
        } else if let Some(params) = form {
            let id = question.id.clone();
            self.shown = Shown::Form(shared.ask("elicitation/create", &params, &self.id, &id));
        } else {
            let message = format!("{}:{}", question.id, question.attempt);
            self.say(&question.as_text(), &message, shared);
            self.shown = Shown::Text;
            self.yield_turn(shared);
        }
    }

    /// Ends the prompt so that the next one can answer the question in the text, unless a permission is open. The turn
    /// of the agent goes on.
    fn yield_turn(&mut self, shared: &mut SharedState) {
        if self.shown == Shown::Text && self.permissions.is_empty() {
            if let Some(id) = self.active.take() {
                shared.result(&id, &PromptResult::of("end_turn"));
            }
            self.advance(shared);
        }
    }

    /// `None`: the client failed to ask.
    pub(in crate::acp) fn answered(&mut self, question: &str, result: Option<&Object<'_>>, shared: &mut SharedState) {
        if self.permissions.remove(question).is_some() {
            self.tell("run.input", &questions::permitted(question, result), shared);
            return self.yield_turn(shared);
        }
        let Some(open) = self.questions.front().filter(|open| open.id == question) else { return };
        self.shown = Shown::Nothing;
        match result {
            Some(result) => {
                let line = message("run.input", &open.payload_of_form(result));
                // A run would not take it, and the question would stay open.
                let declined = || message("run.input", &json!({"question_id": question, "declined": true}));
                self.send(if line.len() > INBOUND_LINE_BYTES { declined() } else { line }, shared);
            }
            None => {
                // The client cannot show forms after all.
                shared.client.forms = false;
                self.show(shared);
            }
        }
    }

    pub(super) fn resolved(&mut self, question: &str, shared: &mut SharedState) {
        if let Some(request) = self.permissions.remove(question) {
            shared.withdraw(request);
            return self.yield_turn(shared);
        }
        let Some(at) = self.questions.iter().position(|open| open.id == question) else { return };
        self.questions.remove(at);
        if at == 0 {
            self.withdraw_shown(shared);
            self.show(shared);
        }
    }

    pub(super) fn withdraw_shown(&mut self, shared: &mut SharedState) {
        if let Shown::Form(request) = std::mem::replace(&mut self.shown, Shown::Nothing) {
            shared.withdraw(request);
        }
    }
}
