//! Claude Code's token usage, which a result reports for one turn and for the whole process; and the calls of the model,
//! which its own limit counts anew in each turn (2.1.330).

use crate::agent::text::hash;
use crate::agent::{AgentEvent, DriverOutput};
use crate::json::Object;
use crate::protocol::outbound::Usage;

/// The usage of one turn, without its sub-agents, or of one response of the model. Claude's `input_tokens` exclude the
/// cache; ours include it.
pub(super) fn of_turn(result: &Object<'_>) -> Usage {
    let Some(usage) = result.object("usage") else { return Usage::default() };
    let cached = usage.count("cache_read_input_tokens");
    let created = usage.count("cache_creation_input_tokens").unwrap_or(0);
    Usage {
        input_tokens: usage.count("input_tokens").map(|n| n + created + cached.unwrap_or(0)),
        output_tokens: usage.count("output_tokens"),
        cached_input_tokens: cached,
        ..Usage::default()
    }
}

/// The tokens of one call of the model, with its answer. `None`: unknown.
pub(super) fn context(usage: &Object<'_>) -> Option<u64> {
    let parts = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];
    let counts = parts.map(|name| usage.count(name));
    counts[0].map(|_| counts.into_iter().flatten().sum())
}

/// The size of the context of the process's models, if all have the same.
pub(super) fn window(result: &Object<'_>) -> Option<u64> {
    let models = result.object("modelUsage")?;
    let mut windows = models.iter().map(|(_, model)| model.object()?.count("contextWindow"));
    let first = windows.next()?;
    windows.all(|other| other == first).then_some(first)?
}

/// The usage of the process so far, over all models and sub-agents. `None`: not in the result.
pub(super) fn of_process(result: &Object<'_>) -> Option<Usage> {
    let models = result.object("modelUsage")?;
    let mut total = Usage { cost_usd: result.number("total_cost_usd"), ..Usage::default() };
    for (_, raw) in models.iter() {
        let model = raw.object()?;
        let cached = model.count("cacheReadInputTokens")?;
        let input = model.count("inputTokens")? + cached + model.count("cacheCreationInputTokens").unwrap_or(0);
        let output_tokens = model.count("outputTokens");
        let used =
            Usage { input_tokens: Some(input), output_tokens, cached_input_tokens: Some(cached), ..Usage::default() };
        total = total.plus(&used);
    }
    total.input_tokens.is_some().then_some(total)
}

/// The calls of the model that the run talks to. Nothing is counted unless the run limits them.
#[derive(Debug, Default)]
pub(super) struct ModelCalls {
    limited: bool,
    /// The last call, by the hash of its message's id, until it is reported.
    last: Option<u64>,
}

impl ModelCalls {
    pub(super) fn of_run(limited: bool) -> ModelCalls {
        ModelCalls { limited, last: None }
    }

    /// Reports the call before this message's.
    pub(super) fn message(&mut self, id: &str, out: &mut DriverOutput) {
        if !self.limited || id.is_empty() {
            return;
        }
        let id = hash(id);
        if self.last.replace(id).is_some_and(|last| last != id) {
            out.events.push(AgentEvent::ModelCalled);
        }
    }

    /// Reports the turn's last call.
    pub(super) fn over(&mut self, out: &mut DriverOutput) {
        if self.last.take().is_some() {
            out.events.push(AgentEvent::ModelCalled);
        }
    }
}
