//! The values of MCP servers' headers on their way to an agent: in its environment, because other users of the machine
//! can read its command line.

use crate::protocol::request::{McpAccess, McpServer};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) fn variables_of(position: usize, server: &McpServer) -> impl Iterator<Item = (&str, String)> {
    let names = server.headers().into_iter().flat_map(|headers| headers.keys());
    // Codex hides variables with `TOKEN` in their names from the commands that the model runs.
    let variable = move |header: usize| format!("SPEKTACULAR_MCP_TOKEN_{position}_{header}");
    names.enumerate().map(move |(header, name)| (name.as_str(), variable(header)))
}

/// Serves an agent that replaces `${NAME}` in a header by the variable's value.
pub(super) fn configuration(servers: &[McpServer]) -> impl Iterator<Item = (String, Value)> {
    let one = |(position, server): (usize, &McpServer)| {
        let value = match &server.access {
            McpAccess::Stdio { env, .. } => {
                let (command, args) = server.command_line().unwrap_or_default();
                json!({"type": "stdio", "command": command, "args": args, "env": env})
            }
            McpAccess::Remote { transport, url, .. } => {
                let variables = variables_of(position, server);
                let headers: BTreeMap<&str, String> =
                    variables.map(|(name, variable)| (name, format!("${{{variable}}}"))).collect();
                json!({"type": transport, "url": url, "headers": headers})
            }
        };
        (server.name.clone(), value)
    };
    servers.iter().enumerate().map(one)
}

pub(super) fn environment(servers: &[McpServer]) -> Vec<(String, String)> {
    let of_one = |(position, server): (usize, &McpServer)| {
        let values = server.headers().into_iter().flat_map(|headers| headers.values().cloned());
        variables_of(position, server).map(|(_, variable)| variable).zip(values).collect::<Vec<_>>()
    };
    servers.iter().enumerate().flat_map(of_one).collect()
}
