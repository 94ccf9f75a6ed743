//! Claude Code's command line and environment.

use crate::agent::launch::server_limit;
use crate::agent::prompt_text::mentions;
use crate::agent::{FoundBy, LaunchFile, argument, header_variables};
use crate::json::to_line;
use crate::protocol::failure::Failure;
use crate::protocol::fields::{Field, field};
use crate::protocol::limits::{ARGUMENT_BYTES, RESULT_TURNS};
use crate::protocol::request::{McpServer, Settings};
use crate::protocol::schema::OutputSchema;
use crate::protocol::terms::sentence;
use crate::protocol::words::{Background, Category, Policy, SystemPromptMode};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The tools whose work goes on after the turn.
const BACKGROUND_TOOLS: [&str; 4] = ["Monitor", "ScheduleWakeup", "CronCreate", "Workflow"];

/// `asking`: our MCP server, with its name. A flag and its value are one argument, so that no value is taken for a
/// flag. Error: a value that is too long for a command line.
pub(super) fn arguments(
    settings: &Settings,
    deltas: bool,
    asking: Option<(String, Value)>,
) -> Result<Vec<String>, Failure> {
    let mut args: Vec<String> = [
        "--print",
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
        "--verbose",
        // Without this flag, neither permissions nor questions reach us.
        "--permission-prompt-tool",
        "stdio",
        "--permission-mode",
        "default",
    ]
    .map(String::from)
    .to_vec();
    if deltas {
        args.push("--include-partial-messages".into());
    }
    if settings.fork {
        args.push("--fork-session".into());
    }
    let mut give = |field: &'static Field, flag: &str, value: String| {
        args.push(argument(field, flag, &value)?);
        Ok(())
    };
    let texts = [
        (field!(model), "--model", settings.model.clone()),
        (field!(effort), "--effort", settings.effort.clone()),
        (field!(mode), "--agent", settings.mode.clone()),
        (field!(session_id), "--resume", settings.session_id.as_deref().map(str::to_owned)),
        (
            field!(system_prompt),
            system_prompt_flags(settings).0,
            settings.system_prompt.clone().filter(|text| !is_long(text)),
        ),
        (field!(permissions), "--settings", own_settings(settings)),
        (field!(max_turns), "--max-turns", settings.max_turns.map(|n| n.to_string())),
        (field!(max_cost_usd), "--max-budget-usd", settings.max_cost_usd.map(|n| n.to_string())),
        (field!(output_schema), "--json-schema", schema(settings).map(|schema| schema.of_objects().get().to_owned())),
        (field!(mcp_servers), "--mcp-config", mcp_config(&settings.mcp_servers, asking)),
    ];
    for (field, flag, value) in texts {
        value.map_or(Ok(()), |value| give(field, flag, value))?;
    }
    let lists = [
        (field!(add_dirs), "--add-dir", Some(&settings.add_dirs)),
        (field!(disallowed_tools), "--disallowedTools", settings.disallowed_tools.as_ref()),
    ];
    if let Some(tools) = &settings.allowed_tools {
        give(field!(allowed_tools), "--tools", built_in(tools)?)?;
    }
    if settings.background == Background::Refuse {
        BACKGROUND_TOOLS
            .iter()
            .try_for_each(|tool| give(field!(background), "--disallowedTools", (*tool).to_owned()))?;
    }
    for (field, flag, values) in lists {
        values.into_iter().flatten().try_for_each(|value| give(field, flag, value.clone()))?;
    }
    args.extend(settings.agent_args.iter().cloned());
    Ok(args)
}

pub(super) fn files(settings: &Settings) -> Vec<LaunchFile> {
    let found = FoundBy::Flag(system_prompt_flags(settings).1);
    let file = |text: &String| LaunchFile { found, name: "system-prompt.md", text: text.clone() };
    settings.system_prompt.iter().filter(|text| is_long(text)).map(file).collect()
}

fn system_prompt_flags(settings: &Settings) -> (&'static str, &'static str) {
    match settings.system_prompt_mode {
        SystemPromptMode::Append => ("--append-system-prompt", "--append-system-prompt-file="),
        SystemPromptMode::Replace => ("--system-prompt", "--system-prompt-file="),
    }
}

fn is_long(system_prompt: &str) -> bool {
    system_prompt.len() > ARGUMENT_BYTES / 2
}

/// Rules that make it ask, and no sandbox of its own inside the run's, where it cannot start.
fn own_settings(settings: &Settings) -> Option<String> {
    let mut own = Map::new();
    own.extend(asking_rules(settings).map(|asked| ("permissions".to_owned(), json!({"ask": asked}))));
    own.extend(settings.sandbox.domain().map(|_| ("sandbox".to_owned(), json!({"enabled": false}))));
    (!own.is_empty()).then(|| to_line(&own))
}

/// The tools before which Claude Code must ask because it otherwise reads and searches without asking in its working
/// directory. A denial in the user's own settings still wins. `None`: the policy lets it read and search.
fn asking_rules(settings: &Settings) -> Option<Vec<&'static str>> {
    let asks = |category| settings.permissions.policy_inside(category) != Policy::Allow;
    let tools = [(Category::Read, &["Read"][..]), (Category::Search, &["Glob", "Grep", "LS"])];
    let mut asked: Vec<&str> =
        tools.iter().filter(|(category, _)| asks(*category)).flat_map(|(_, tools)| *tools).copied().collect();
    if asked.is_empty() {
        return None;
    }
    // It also runs commands such as `cat` and `grep` without asking.
    asked.push("Bash");
    Some(asked)
}

/// The built-in tools in `allowed_tools`. Claude Code offers those of MCP servers all the same; the run denies them.
/// `--allowedTools` would not limit anything, and would allow without a question.
fn built_in(tools: &[String]) -> Result<String, Failure> {
    if tools.iter().any(|tool| tool.contains(['(', ','])) {
        return Err(Failure::invalid_start(sentence!(
            "{allowed_tools} takes names of tools for this agent, such as Bash: use {permissions} or {disallowed_tools} \
             for a part of what a tool does.",
            allowed_tools,
            permissions,
            disallowed_tools
        )));
    }
    Ok(tools.iter().filter(|tool| !tool.starts_with("mcp__")).map(String::as_str).collect::<Vec<_>>().join(","))
}

fn mcp_config(servers: &[McpServer], asking: Option<(String, Value)>) -> Option<String> {
    let all: Map<String, Value> = header_variables::configuration(servers).chain(asking).collect();
    (!all.is_empty()).then(|| to_line(&json!({"mcpServers": all})))
}

/// The schema for Claude Code's own structured result, which is always an object.
pub(super) fn schema(settings: &Settings) -> Option<&OutputSchema> {
    settings.output_schema.as_ref().filter(|schema| schema.takes_object())
}

pub(super) fn environment(settings: &Settings) -> Vec<(String, String)> {
    let mut env = vec![
        // It then reports when it rests, with no turn to come.
        ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS".to_owned(), "1".to_owned()),
        // Without this, the texts of an inline sub-agent are missing (2.1.330; 2.1.197 does not know the variable).
        ("CLAUDE_CODE_FORWARD_SUBAGENT_TEXT".to_owned(), "1".to_owned()),
        ("DISABLE_AUTOUPDATER".to_owned(), "1".to_owned()),
    ];
    if settings.background == Background::Refuse {
        // Its tools lose `run_in_background`, and a sub-agent runs inline.
        env.push(("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS".to_owned(), "1".to_owned()));
    }
    if schema(settings).is_some() {
        // The number of attempts to give a result that fits, in one turn.
        env.push(("MAX_STRUCTURED_OUTPUT_RETRIES".to_owned(), (1 + RESULT_TURNS).to_string()));
    }
    if !settings.raw_prompt {
        // `@path` in a prompt otherwise sends any file to the model without asking (2.1.197 does not know the variable).
        // CLAUDE_CODE_DISABLE_ATTACHMENTS would also take the user's skills and memory files away.
        env.push(("CLAUDE_CODE_DISABLE_FILE_MENTIONS".to_owned(), "1".to_owned()));
    }
    if !settings.mcp_servers.is_empty() {
        // Claude Code waits for its servers before the first turn, by itself for 30 s.
        env.push(("MCP_TIMEOUT".to_owned(), server_limit(settings).as_millis().to_string()));
    }
    env.extend(header_variables::environment(&settings.mcp_servers));
    env
}

/// A text that begins with `/` would be a command; a line before it prevents that. A backslash keeps 2.1.197 from
/// reading `@path` outside the working directory. Other mentions stay as they are, because code has many `@`.
pub(super) fn guarded(text: &str, raw_prompt: bool) -> Cow<'_, str> {
    if raw_prompt {
        return Cow::Borrowed(text);
    }
    let mentions = leaving_mentions(text);
    let is_command = text.trim_start().starts_with('/');
    if mentions.is_empty() && !is_command {
        return Cow::Borrowed(text);
    }
    let mut guarded = String::with_capacity(text.len() + mentions.len() + 1);
    guarded.push_str(if is_command { "\n" } else { "" });
    let mut from = 0;
    for at in mentions {
        guarded.extend([&text[from..at], "\\"]);
        from = at;
    }
    guarded.push_str(&text[from..]);
    Cow::Owned(guarded)
}

/// The positions of the mentions that may lead out of the working directory: by their beginning, or by two dots up to the
/// closing quote or the next white space.
fn leaving_mentions(text: &str) -> Vec<usize> {
    let dots: Vec<usize> = text.match_indices("..").map(|(at, _)| at).collect();
    let mut word_end = 0;
    let leaves = |(at, path): &(usize, &str)| {
        if *at >= word_end {
            word_end = text[*at..].find(char::is_whitespace).map_or(text.len(), |length| at + length);
        }
        let end = word_end.max(at + "@\"".len() + path.len());
        let next = dots.partition_point(|dot| dot < at);
        path.starts_with(['/', '~']) || dots.get(next).is_some_and(|dot| *dot < end)
    };
    mentions(text).filter(leaves).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::{guarded, own_settings};
    use crate::protocol::request::{Options, Permissions, Settings};
    use crate::protocol::words::{Category, Policy};

    #[test]
    fn it_asks_before_it_reads_where_the_policy_does_not_allow_that() {
        let one =
            |category| Permissions::ByCategory { named: [(category, Policy::Ask)].into(), rest: Some(Policy::Allow) };
        let all = r#"{"permissions":{"ask":["Read","Glob","Grep","LS","Bash"]}}"#;
        for (permissions, rules) in [
            (Permissions::default(), None),
            (Permissions::All(Policy::Allow), None),
            (Permissions::ReadOnly, None),
            (Permissions::All(Policy::Deny), Some(all)),
            (one(Category::Read), Some(r#"{"permissions":{"ask":["Read","Bash"]}}"#)),
            (one(Category::Edit), None),
        ] {
            let settings = Options::default().resolve("x".into(), "claude".into(), "/w".into());
            let rules = rules.map(str::to_owned);
            assert_eq!(own_settings(&Settings { permissions, ..settings }), rules);
        }
    }

    #[test]
    fn only_mentions_outside_the_working_directory_are_escaped() {
        for (prompt, sent) in [
            ("Look at @/etc/hostname", r"Look at \@/etc/hostname"),
            ("@~/notes and @../a, @b/../../c", r"\@~/notes and \@../a, \@b/../../c"),
            ("看。@/etc/hostname\n@\"/a b\"", "看。\\@/etc/hostname\n\\@\"/a b\""),
            ("@Override @types/node me@/x `@/y`", "@Override @types/node me@/x `@/y`"),
            ("@\"a\n/../../b\" @c ..", "\\@\"a\n/../../b\" @c .."),
            ("@a。@b。/../c", "\\@a。\\@b。/../c"),
            ("/help @/x", "\n/help \\@/x"),
        ] {
            assert_eq!(guarded(prompt, false), sent);
            assert_eq!(guarded(prompt, true), prompt);
        }
    }
}
