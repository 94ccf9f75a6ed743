//! The usage that the agent reports, and the limits that the run keeps by what the agent reports.

use crate::agent::limit::{Keeper, Keepers, Limit};
use crate::protocol::outbound::Usage;
use crate::protocol::request::Settings;

#[derive(Debug, Default)]
pub(super) struct Budget {
    max_turns: Option<u64>,
    max_tool_calls: Option<u64>,
    max_tokens: Option<u64>,
    max_cost_usd: Option<f64>,
    allowed: Option<ToolList>,
    disallowed: Option<ToolList>,
    /// The number of calls of the model so far.
    turns: u64,
    pub(super) tool_calls: u64,
    /// Whether the current call of the model asked for a tool.
    used_tools: bool,
    /// The usage of the current process and of those before it.
    pub(super) usage: Usage,
    /// The usage of the processes before the current one.
    earlier: Usage,
    /// The usage of the current process by the driver's count, and its part before this run.
    pub(super) counted: Usage,
    counted_before: Usage,
}

/// A list of tools in the agent's words.
#[derive(Debug)]
struct ToolList {
    names: Vec<String>,
    keeper: Keeper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolMoment {
    Called,
    Done,
}

impl Budget {
    pub(super) fn new(settings: &Settings, keepers: &Keepers) -> Budget {
        let ours = |limit: Limit| keepers.of(limit) == Keeper::Run;
        let list = |names: &Option<Vec<String>>, limit: Limit| {
            let keeper = keepers.of(limit);
            names.clone().filter(|_| keeper != Keeper::Nobody).map(|names| ToolList { names, keeper })
        };
        Budget {
            max_turns: settings.max_turns.filter(|_| ours(Limit::MaxTurns)),
            max_tool_calls: settings.max_tool_calls.filter(|_| ours(Limit::MaxToolCalls)),
            max_tokens: settings.max_tokens.filter(|_| ours(Limit::MaxTokens)),
            max_cost_usd: settings.max_cost_usd.filter(|_| ours(Limit::MaxCostUsd)),
            allowed: list(&settings.allowed_tools, Limit::AllowedTools),
            disallowed: list(&settings.disallowed_tools, Limit::DisallowedTools),
            ..Budget::default()
        }
    }

    /// Keeps the limits that another agent leaves to the run, of all that was used so far.
    pub(super) fn change_agent(&mut self, settings: &Settings, keepers: &Keepers) {
        let Budget { turns, tool_calls, usage, .. } = *self;
        *self = Budget { turns, tool_calls, usage, ..Budget::new(settings, keepers) };
    }

    pub(super) fn count_tool_call(&mut self) -> Option<Limit> {
        self.tool_calls += 1;
        self.used_tools = true;
        self.max_tool_calls.is_some_and(|max| self.tool_calls > max).then_some(Limit::MaxToolCalls)
    }

    /// Counts a call of the model. Returns the limit that it exceeds, or that the next call would exceed: an agent
    /// calls its model again once the tools are done.
    pub(super) fn count_model_call(&mut self) -> Option<Limit> {
        self.turns += 1;
        let used_tools = std::mem::take(&mut self.used_tools);
        let needed = self.turns + u64::from(used_tools);
        self.max_turns.is_some_and(|max| needed > max).then_some(Limit::MaxTurns)
    }

    /// Keeps the usage of the processes that have ended, because a new one counts from zero.
    pub(super) fn begin_process(&mut self) {
        self.earlier = self.usage;
        self.continue_process(Usage::default());
    }

    pub(super) fn continue_process(&mut self, before: Usage) {
        (self.counted, self.counted_before) = (before, before);
    }

    /// Sets the usage of the current process. Returns the limit that the usage of the whole run exceeds.
    pub(super) fn set_usage(&mut self, of_process: &Usage) -> Option<Limit> {
        self.counted = *of_process;
        self.usage = self.earlier.plus(&of_process.since(&self.counted_before));
        let tokens = self.usage.tokens();
        let money = self.usage.cost_usd.unwrap_or(0.0);
        match () {
            () if self.max_tokens.is_some_and(|max| tokens > max) => Some(Limit::MaxTokens),
            () if self.max_cost_usd.is_some_and(|max| money > max) => Some(Limit::MaxCostUsd),
            () => None,
        }
    }

    /// The limit that leaves nothing for a further turn.
    pub(super) fn used_up(&self, settings: &Settings) -> Option<Limit> {
        match () {
            () if self.max_turns.is_some_and(|max| self.turns >= max) => Some(Limit::MaxTurns),
            () if self.money_left(settings).is_some_and(|left| left <= 0.0) => Some(Limit::MaxCostUsd),
            () => None,
        }
    }

    /// The remaining money, in US dollars. `None`: no limit.
    pub(super) fn money_left(&self, settings: &Settings) -> Option<f64> {
        settings.max_cost_usd.map(|max| max - self.usage.cost_usd.unwrap_or_default())
    }

    /// The list that excludes a tool. An agent that enforces the list itself may try an excluded tool and be
    /// refused, so only the work of a tool whose name is known counts there.
    pub(super) fn excludes(&self, tool: &str, moment: ToolMoment) -> Option<Limit> {
        let is_known = moment == ToolMoment::Done && !tool.is_empty();
        let counts = |list: &&ToolList| list.keeper == Keeper::Run || is_known;
        let allowed = self.allowed.as_ref().filter(counts);
        let disallowed = self.disallowed.as_ref().filter(counts);
        if allowed.is_some_and(|list| !list.names.iter().any(|entry| names_tool(rule_tool(entry), tool))) {
            return Some(Limit::AllowedTools);
        }
        // A rule with an argument, such as `Bash(rm *)`, excludes only some calls. The agent checks those.
        let excluded = disallowed.is_some_and(|list| list.names.iter().any(|entry| names_tool(entry, tool)));
        excluded.then_some(Limit::DisallowedTools)
    }
}

/// The tool in a rule such as `Bash(git *)`.
fn rule_tool(entry: &str) -> &str {
    entry.split_once('(').map_or(entry, |(tool, _)| tool)
}

/// Whether an entry of a list names the tool: by its name, by the MCP server that offers it, or with a `*` at its end.
fn names_tool(entry: &str, tool: &str) -> bool {
    let is_of_server = || entry.starts_with("mcp__") && tool.strip_prefix(entry).is_some_and(|r| r.starts_with("__"));
    entry == tool || entry.strip_suffix('*').is_some_and(|prefix| tool.starts_with(prefix)) || is_of_server()
}

#[cfg(test)]
mod tests {
    use super::{Budget, ToolList, ToolMoment, names_tool};
    use crate::agent::limit::{Keeper, Limit};
    use crate::protocol::outbound::Usage;

    #[test]
    fn a_limit_is_exceeded_only_beyond_it() {
        let mut budget = Budget { max_tool_calls: Some(2), max_tokens: Some(10), ..Budget::default() };
        assert_eq!([(); 3].map(|()| budget.count_tool_call()), [None, None, Some(Limit::MaxToolCalls)]);
        let mut turns = Budget { max_turns: Some(2), ..Budget::default() };
        assert_eq!([turns.count_model_call(), turns.count_model_call()], [None, None]);
        assert_eq!(turns.count_model_call(), Some(Limit::MaxTurns));
        // The second call asked for a tool, so that a third one follows.
        let mut turns = Budget { max_turns: Some(2), ..Budget::default() };
        assert_eq!((turns.count_tool_call(), turns.count_model_call()), (None, None));
        assert_eq!((turns.count_tool_call(), turns.count_model_call()), (None, Some(Limit::MaxTurns)));
        let used = |input, output| Usage { input_tokens: Some(input), output_tokens: Some(output), ..Usage::default() };
        assert_eq!(budget.set_usage(&used(6, 4)), None);
        assert_eq!(budget.set_usage(&used(6, 5)), Some(Limit::MaxTokens));
        assert_eq!(budget.set_usage(&used(u64::MAX, u64::MAX)), Some(Limit::MaxTokens));
        let mut budget = Budget { max_cost_usd: Some(0.5), ..Budget::default() };
        assert_eq!(budget.set_usage(&Usage { cost_usd: Some(0.6), ..Usage::default() }), Some(Limit::MaxCostUsd));
        assert_eq!(budget.set_usage(&Usage::default()), None);
    }

    #[test]
    fn a_tool_is_excluded_by_its_name() {
        let list = |names: &[&str], keeper| {
            Some(ToolList { names: names.iter().map(|name| (*name).to_owned()).collect(), keeper })
        };
        let ours = Budget { allowed: list(&["Read", "Bash(git *)"], Keeper::Run), ..Budget::default() };
        assert_eq!(ours.excludes("Read", ToolMoment::Called), None);
        assert_eq!(ours.excludes("Bash", ToolMoment::Called), None);
        assert_eq!(ours.excludes("Write", ToolMoment::Called), Some(Limit::AllowedTools));
        let theirs = Budget { disallowed: list(&["Write", "Bash(rm *)"], Keeper::Agent), ..Budget::default() };
        assert_eq!(theirs.excludes("Write", ToolMoment::Called), None);
        assert_eq!(theirs.excludes("Write", ToolMoment::Done), Some(Limit::DisallowedTools));
        assert_eq!(theirs.excludes("Bash", ToolMoment::Done), None);
        let theirs = Budget { allowed: list(&["Read"], Keeper::Agent), ..Budget::default() };
        assert_eq!(theirs.excludes("Write", ToolMoment::Done), Some(Limit::AllowedTools));
        assert_eq!(theirs.excludes("", ToolMoment::Done), None, "the agent may not name its tools");
    }

    #[test]
    fn an_entry_may_name_a_server_or_a_prefix() {
        for (entry, tool, wanted) in [
            ("mcp__db", "mcp__db__query", true),
            ("mcp__db", "mcp__dbs__query", false),
            ("mcp__db__*", "mcp__db__query", true),
            ("*", "Bash", true),
            ("Bash", "BashOutput", false),
        ] {
            assert_eq!(names_tool(entry, tool), wanted, "{entry} {tool}");
        }
    }
}
