//! The budgets of a workflow's run, which all its sessions share.

use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::Usage;
use crate::protocol::request::Settings;
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::words::LimitField;

#[derive(Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) usage: Usage,
    pub(super) tool_calls: u64,
}

impl Spent {
    pub(super) fn limit(&self, session: &mut Settings, whole: &Settings) {
        session.max_cost_usd = whole.max_cost_usd.map(|max| max - self.money());
        session.max_tokens = whole.max_tokens.map(|max| max.saturating_sub(self.usage.tokens()));
        session.max_tool_calls = whole.max_tool_calls.map(|max| max.saturating_sub(self.tool_calls));
    }

    /// `again`: the way to continue.
    pub(super) fn used_up(&self, whole: &Settings, again: &str) -> Option<Failure> {
        let failure = |limit, message: Sentence| Some(Failure::new(Code::LimitReached, message).at(limit));
        match () {
            () if whole.max_cost_usd.is_some_and(|max| max <= self.money()) => {
                let text = sentence!("The run has used up {max_cost_usd:#}: raise it, then {again}.", max_cost_usd);
                failure(LimitField::MaxCostUsd, text)
            }
            () if whole.max_tokens.is_some_and(|max| max <= self.usage.tokens()) => {
                let text = sentence!("The run has used up {max_tokens:#}: raise it, then {again}.", max_tokens);
                failure(LimitField::MaxTokens, text)
            }
            () if whole.max_tool_calls.is_some_and(|max| max <= self.tool_calls) => {
                let text = sentence!("The run has used up {max_tool_calls:#}: raise it, then {again}.", max_tool_calls);
                failure(LimitField::MaxToolCalls, text)
            }
            () => None,
        }
    }

    fn money(&self) -> f64 {
        self.usage.cost_usd.unwrap_or_default()
    }
}
