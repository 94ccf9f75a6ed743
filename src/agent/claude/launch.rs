//! Claude Code's command line and environment.

use crate::agent::{argument, header_variables};
use crate::json::to_line;
use crate::protocol::failure::Failure;
use crate::protocol::fields::{Field, field};
use crate::protocol::limits::RESULT_TURNS;
use crate::protocol::request::{McpAccess, McpServer, Settings};
use crate::protocol::schema::OutputSchema;
use crate::protocol::terms::sentence;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The arguments for these settings. `asking`: our MCP server, with its name. A flag and its value are one argument, so
/// that no value is taken for a flag. Error: a value that is too long for a command line.
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
        (field!(system_prompt), "--append-system-prompt", settings.system_prompt.clone()),
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
    for (field, flag, values) in lists {
        values.into_iter().flatten().try_for_each(|value| give(field, flag, value.clone()))?;
    }
    args.extend(settings.agent_args.iter().cloned());
    Ok(args)
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

/// The servers as Claude Code's configuration. It replaces `${NAME}` in a header by the variable's value.
fn mcp_config(servers: &[McpServer], asking: Option<(String, Value)>) -> Option<String> {
    let one = |(position, server): (usize, &McpServer)| {
        let value = match &server.access {
            McpAccess::Stdio { command, args, env } => {
                json!({"type": "stdio", "command": command, "args": args, "env": env})
            }
            McpAccess::Remote { transport, url, .. } => {
                let variables = header_variables::variables_of(position, server);
                let headers: BTreeMap<&str, String> =
                    variables.map(|(name, variable)| (name, format!("${{{variable}}}"))).collect();
                json!({"type": transport, "url": url, "headers": headers})
            }
        };
        (server.name.clone(), value)
    };
    let all: Map<String, Value> = servers.iter().enumerate().map(one).chain(asking).collect();
    (!all.is_empty()).then(|| to_line(&json!({"mcpServers": all})))
}

/// The schema for Claude Code's own structured result, which is always an object.
pub(super) fn schema(settings: &Settings) -> Option<&OutputSchema> {
    settings.output_schema.as_ref().filter(|schema| schema.takes_object())
}

/// The variables to add to Claude Code's environment.
pub(super) fn environment(settings: &Settings) -> Vec<(String, String)> {
    let mut env = vec![
        // A sub-agent then runs inline, and a turn has exactly one result.
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS".to_owned(), "1".to_owned()),
        // Without this, the texts of an inline sub-agent are missing (2.1.330; 2.1.197 does not know the variable).
        ("CLAUDE_CODE_FORWARD_SUBAGENT_TEXT".to_owned(), "1".to_owned()),
        ("DISABLE_AUTOUPDATER".to_owned(), "1".to_owned()),
    ];
    if schema(settings).is_some() {
        // The number of attempts to give a result that fits, in one turn.
        env.push(("MAX_STRUCTURED_OUTPUT_RETRIES".to_owned(), (1 + RESULT_TURNS).to_string()));
    }
    if !settings.raw_prompt {
        // Without this, `@path` in the prompt sends any file to the model without asking.
        env.push(("CLAUDE_CODE_DISABLE_ATTACHMENTS".to_owned(), "1".to_owned()));
    }
    env.extend(header_variables::environment(&settings.mcp_servers));
    env
}

/// The user's prompt in the form that is sent. A text that begins with `/` would be a command; a line before it
/// prevents that.
pub(super) fn guarded(text: &str, raw_prompt: bool) -> String {
    let command = text.trim_start().starts_with('/');
    let guard = if command && !raw_prompt { "\n" } else { "" };
    format!("{guard}{text}")
}
