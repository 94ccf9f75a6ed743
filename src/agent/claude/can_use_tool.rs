//! `can_use_tool`: permissions, questions and their answers. Claude suggests rules, directories and modes that would
//! keep it from asking again. We never return these: some allow more than any option states, or end up in the project's
//! settings.

use crate::agent::detail::with_rest;
use crate::agent::reply::{DECLINED, NO_USER, Reply};
use crate::agent::{form, tool_input};
use crate::json::{Object, to_line};
use crate::protocol::question::{Ask, Asks, Subject, one};
use crate::protocol::scope::Scope;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct ClaudeRequest {
    pub(super) call: Option<String>,
    /// The tool's input. Every response returns it, because 2.1.197 fails without it.
    input: Box<RawValue>,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The texts of the questions, which are the keys of the answers.
    Questions(Vec<String>),
    Permission,
}

/// `known_plan`: the plan, which the request may omit. `None`: the request cannot be answered.
pub(super) fn read(request: &Object<'_>, known_plan: Option<String>) -> Option<(ClaudeRequest, Asks)> {
    let name = request.string("tool_name")?;
    let raw = request.raw("input")?;
    let input = raw.object()?;
    let call = request.string("tool_use_id");
    let pending = |what| ClaudeRequest { call, input: raw.value().to_owned(), what };
    if name == "AskUserQuestion" {
        let texts = input.objects("questions").map(|q| q.string("question").unwrap_or_default()).collect();
        let asks: Asks = input.objects("questions").map(|q| form::question(&q)).collect();
        return (!asks.is_empty()).then(|| (pending(What::Questions(texts)), asks));
    }
    let plan = name == "ExitPlanMode";
    let scope = Scope::of_request(tool_input::category(&name), Some(&name), Some(raw.get()));
    let title = tool_input::title(&name, Some(&input));
    let detail = if plan {
        let text = input.string("plan").or(known_plan).unwrap_or_default();
        with_rest(&text, &input, &["plan", "planFilePath"])
    } else {
        tool_input::detail(&name, &input, raw.get())
    };
    let text = match (plan, detail.is_empty()) {
        (true, false) => detail.clone(),
        (true, true) => "The agent wants to leave plan mode and carry out its plan.".into(),
        (false, _) => format!("Allow {title}?"),
    };
    let subject = Subject::new(tool_input::category(&name), title, tool_input::locations(Some(&input)), detail);
    Some((pending(What::Permission), one(Ask::permission(subject, text, scope))))
}

impl ClaudeRequest {
    /// Returns the response as JSON, and the call that it denies. The response contains the input verbatim, so that
    /// exactly the approved call runs.
    pub(super) fn respond(self, replies: &[Reply]) -> (String, Option<String>) {
        let allow = |input: &str| format!("{{\"behavior\":\"allow\",\"updatedInput\":{input}}}");
        let input = self.input.get();
        match &self.what {
            What::Questions(texts) => match self.answers(texts, replies) {
                Ok(input) => (allow(&input), None),
                Err(message) => (deny(message), None),
            },
            What::Permission => match replies.first() {
                Some(Reply::Allowed) => (allow(input), None),
                Some(Reply::AllowedWith(input)) => (allow(input), None),
                Some(Reply::NoUser) => (deny(NO_USER), self.call),
                Some(Reply::Denied(Some(message)) | Reply::Declined(Some(message))) => {
                    (deny(message.unredacted()), self.call)
                }
                _ => (deny("The user denied this."), self.call),
            },
        }
    }

    /// Error: the message for a denial.
    fn answers(&self, texts: &[String], replies: &[Reply]) -> Result<String, &'static str> {
        if replies.iter().all(|reply| *reply == Reply::NoUser) {
            return Err(NO_USER);
        }
        if replies.iter().all(|reply| matches!(reply, Reply::Declined(_) | Reply::NoUser)) {
            return Err(DECLINED);
        }
        let answers: Map<String, Value> =
            texts.iter().zip(replies).map(|(text, reply)| (text.clone(), json!(reply.spoken()))).collect();
        // The input holds the questions, so it is not empty.
        let open = self.input.get().trim_end().strip_suffix('}').unwrap_or("{");
        Ok(format!("{open},\"answers\":{}}}", to_line(&answers)))
    }
}

fn deny(message: &str) -> String {
    to_line(&json!({"behavior": "deny", "message": message}))
}
