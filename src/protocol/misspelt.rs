//! Misspelled limits of run.start. Whoever sends one expects it to hold, so that it must not be ignored as other unknown
//! fields are.

use super::fields::{Field, field, find};
use super::words::Limit;
use crate::suggest::within;

/// The greatest number of letters in which a name may differ from that of a limit.
const LETTERS: usize = 2;

/// Words of other tools for a limit, without `_` and in lower case, and the name of the limit.
pub const FOREIGN: &[(&str, &Field)] = &[
    ("approvalmode", field!(permissions)),
    ("approvalpolicy", field!(permissions)),
    ("budget", field!(max_cost_usd)),
    ("budgetusd", field!(max_cost_usd)),
    ("costlimit", field!(max_cost_usd)),
    ("deadline", field!(timeout_s)),
    ("deniedtools", field!(disallowed_tools)),
    ("excludetools", field!(disallowed_tools)),
    ("maxbudget", field!(max_cost_usd)),
    ("maxbudgetusd", field!(max_cost_usd)),
    ("maxcost", field!(max_cost_usd)),
    ("maxduration", field!(timeout_s)),
    ("maxiterations", field!(max_turns)),
    ("maxoutputtokens", field!(max_tokens)),
    ("maxsessionturns", field!(max_turns)),
    ("maxsteps", field!(max_turns)),
    ("maxtime", field!(timeout_s)),
    ("mcp", field!(mcp_servers)),
    ("mcpconfig", field!(mcp_servers)),
    ("permissionmode", field!(permissions)),
    ("sandboxmode", field!(sandbox)),
    ("sandboxpolicy", field!(sandbox)),
    ("steps", field!(max_turns)),
    ("timelimit", field!(timeout_s)),
    ("timeoutseconds", field!(timeout_s)),
    ("tokenbudget", field!(max_tokens)),
    ("tokenlimit", field!(max_tokens)),
    ("tools", field!(allowed_tools)),
    ("turnlimit", field!(max_turns)),
];

/// `None`: it resembles no limit.
pub(crate) fn meant(name: &str) -> Option<&'static Field> {
    let plain = name.replace(['_', '-'], "").to_lowercase();
    let foreign = || FOREIGN.iter().find(|(word, _)| *word == plain).map(|(_, field)| *field);
    let mut names = Limit::WORDS.iter().copied().chain([field!(sandbox).name, field!(timeout_s).name]);
    let near = within(LETTERS, name, names.clone());
    near.or_else(|| names.find(|name| name.bytes().filter(|byte| *byte != b'_').eq(plain.bytes())))
        .and_then(find)
        .or_else(foreign)
}

#[cfg(test)]
mod tests {
    use super::{FOREIGN, meant};
    use crate::protocol::fields::Options;

    #[test]
    fn a_name_near_that_of_a_limit_or_of_another_tool_means_the_limit() {
        for (name, wanted) in [
            ("max_turn", Some("max_turns")),
            ("maxTurns", Some("max_turns")),
            ("max-tool-calls", Some("max_tool_calls")),
            ("maxToolCalls", Some("max_tool_calls")),
            ("maxCostUsd", Some("max_cost_usd")),
            ("MAX_TURNS", Some("max_turns")),
            ("timeout", Some("timeout_s")),
            ("timeout_ms", Some("timeout_s")),
            ("allowedTools", Some("allowed_tools")),
            ("permission", Some("permissions")),
            ("mcpServers", Some("mcp_servers")),
            ("maxSteps", Some("max_turns")),
            ("Max-Budget-USD", Some("max_cost_usd")),
            ("modle", None),
            ("trace", None),
            ("", None),
            ("max_turns_of_mine", None),
        ] {
            assert_eq!(meant(name).map(|field| field.name), wanted, "{name}");
        }
    }

    #[test]
    fn no_field_of_run_start_is_taken_for_another_one() {
        for (word, field) in FOREIGN {
            assert_eq!(meant(word).map(|field| field.name), Some(field.name), "{word}");
            assert!(!Options::NAMES.iter().any(|name| name.replace('_', "") == **word), "{word}");
        }
    }
}
