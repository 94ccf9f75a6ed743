//! Claude Code's token usage. A result reports it for one turn and for the whole process.

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
