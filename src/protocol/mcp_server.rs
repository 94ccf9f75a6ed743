//! The MCP servers for an agent to start, in the format of run.start and in that of other programs.

use super::json::{Fields, to_line};
use super::read::{Problem, Read, arguments, environment, is_null, list, non_empty, secrets_fit};
use crate::redact::Redactor;
use crate::suggest::shown;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet};

/// The rule for servers that a person typed, as the rest of a sentence.
pub(super) const EXPECTED: &str =
    r#"must be a list of {name, command, args, env}, or {"mcpServers": {NAME: {command, args, env}}}"#;

/// An MCP server that the agent starts over stdio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct McpServer {
    /// The server's name, as the agent sees it.
    pub name: String,
    /// The server's program.
    pub command: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Variables to add to its environment.
    pub env: BTreeMap<String, String>,
}

/// Reads the value of the field `mcp_servers`.
pub(super) fn mcp_servers(raw: &RawValue) -> Read<Vec<McpServer>> {
    let expected = Some("a list of {name, command, args, env} whose secrets total at most 256 KiB and 1000 lines");
    let one = |raw: &RawValue| {
        let fields = Fields::parse(raw.get()).ok_or(expected)?;
        if fields.repeats_one_of(&["name", "command", "args", "env"]) {
            return Err(None);
        }
        let optional = |name| fields.get(name).filter(|raw| !is_null(raw));
        let required = |name| fields.get(name).ok_or(expected).and_then(non_empty).map_err(|_| expected);
        Ok(McpServer {
            name: required("name")?,
            command: required("command")?,
            args: optional("args").map_or(Ok(Vec::new()), |raw| arguments(raw).map_err(|_| expected))?,
            env: optional("env").map_or(Ok(BTreeMap::new()), |raw| environment(raw).map_err(|_| expected))?,
        })
    };
    let all: Vec<McpServer> = list(raw).ok_or(expected)?.into_iter().map(one).collect::<Result<_, _>>()?;
    if secrets_fit(all.iter().flat_map(|server| &server.env)) { Ok(all) } else { Err(expected) }
}

/// The servers in `{"mcpServers":{NAME:{"command":…}}}` as a list. `None`: the text is not such an object. Error: the
/// mistake, as the rest of a sentence about the text.
pub(super) fn by_name(text: &str) -> Result<Option<Box<RawValue>>, String> {
    let Some(outer) = Fields::parse(text).filter(|fields| fields.get("mcpServers").is_some()) else { return Ok(None) };
    let wrong = || EXPECTED.to_owned();
    let all = outer.get("mcpServers").and_then(|raw| Fields::parse(raw.get())).ok_or_else(wrong)?;
    let (mut list, mut seen) = (Vec::new(), HashSet::new());
    for (name, raw) in all.iter() {
        let server = Fields::parse(raw.get()).ok_or_else(wrong)?;
        let known = ["command", "args", "env"];
        if outer.repeats_one_of(&["mcpServers"]) || server.repeats_one_of(&known) || !seen.insert(name) {
            return Err(Problem::Repeated.clause());
        }
        if server.get("command").is_none() {
            let which = shown(name, &Redactor::new());
            return Err(format!(
                "must give every server a command, but {which} has none: servers with a URL are not supported"
            ));
        }
        let given = known.iter().filter_map(|key| Some(format!("\"{key}\":{}", server.get(key)?)));
        list.push(format!("{{\"name\":{},{}}}", to_line(&name), given.collect::<Vec<_>>().join(",")));
    }
    RawValue::from_string(format!("[{}]", list.join(","))).map(Some).map_err(|_| wrong())
}
