//! The MCP servers for an agent to start or to reach, in the format of run.start and in that of other programs.

use super::form::{Form, HasForm, Member, ObjectForm, TextRule};
use super::read::{
    Problem, Read, arguments, boolean, environment, is_null, list, non_empty, optional, secrets_fit, string_map,
};
use super::words::McpTransport;
use crate::json::{Fields, to_line};
use crate::redact::Redactor;
use crate::suggest::shown;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet};

/// For servers that a person typed: the rest of a sentence.
pub(crate) const EXPECTED: &str = r#"must be a list of {name, command, args, env, required}, or of {name, url, headers, transport, required}, or {"mcpServers": {NAME: {…}}} with the same keys except name"#;

pub(crate) const SERVERS: &str = "a list of {name, command, args, env, required}, or of {name, url, headers, transport, \
                                  required}, of at most 1024 servers whose secrets total at most 256 KiB and 1000 lines";
const KEYS: &str = "a list in which each server has either `command`, with `args` and `env`, or `url`, with `headers` and \
                    `transport`";
const URL: &str = "a list in which each `url` begins with http:// or https://, names a host without a user or password, \
                   and has neither spaces nor control characters";
const HEADERS: &str = "a list in which `headers` are an object of strings: each name has letters, digits and \
                       !#$%&'*+-.^_`|~ only and occurs once, and each value is printable ASCII";
const TRANSPORT: &str = "a list in which each `transport` is \"http\" or \"sse\"";
const REQUIRED: &str = "a list in which each `required` is true or false";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct McpServer {
    /// As the agent sees it.
    pub name: String,
    #[serde(flatten)]
    pub access: McpAccess,
    /// Whether the run waits for the server, and fails without it.
    pub required: bool,
    /// Between the agent and a server that it starts. Not part of run.start.
    #[serde(skip)]
    pub launcher: Option<Launcher>,
}

/// The start of this program that starts a server of a run and reports to the run what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    pub program: String,
    /// The arguments before the server's own command.
    pub args: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum McpAccess {
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
    },
    Remote {
        transport: McpTransport,
        url: String,
        /// Sent with each request. The values are secrets.
        headers: BTreeMap<String, String>,
    },
}

/// As [`url`] accepts it, as far as a pattern can say so.
const WEB: Form =
    Form::Shaped(&TextRule::matching(r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#\\:@][^\s/?#\\@]*([/?#\\][^\s]*)?$"));
const NAME_FIELD: Member = Member::field("name", "The server's name, as the agent sees it.", Form::FILLED, false);
const REQUIRED_FIELD: Member = Member::field(
    "required",
    "Whether the run waits for the server, and fails without it. By default true.",
    Form::Bool,
    true,
);

impl HasForm for McpServer {
    const FORM: Form = Form::Either(&[
        Form::Object(&ObjectForm {
            name: "McpServerToStart",
            members: &[
                NAME_FIELD,
                Member::field("command", "The server's program.", Form::FILLED, false),
                Member::field("args", "The program's arguments.", Form::List(&Form::Text), true),
                Member::field("env", "Variables to add to its environment.", Form::Map(&Form::Text), true),
                REQUIRED_FIELD,
            ],
        }),
        Form::Object(&ObjectForm {
            name: "McpServerToReach",
            members: &[
                NAME_FIELD,
                Member::field("url", "The server's URL.", WEB, false),
                Member::field("headers", "Headers to send with each request.", Form::Map(&Form::Text), true),
                Member::field("transport", "The protocol over HTTP. By default http.", McpTransport::FORM, true),
                REQUIRED_FIELD,
            ],
        }),
    ]);
}

impl McpServer {
    /// A server that the run needs, with nothing between the agent and it.
    pub fn new(name: impl Into<String>, access: McpAccess) -> McpServer {
        McpServer { name: name.into(), access, required: true, launcher: None }
    }

    /// `None`: the agent reaches it by its URL.
    pub fn command_line(&self) -> Option<(&str, Vec<&str>)> {
        let McpAccess::Stdio { command, args, .. } = &self.access else { return None };
        let own = args.iter().map(String::as_str);
        Some(match &self.launcher {
            None => (command, own.collect()),
            Some(Launcher { program, args }) => {
                (program, args.iter().map(String::as_str).chain([command.as_str()]).chain(own).collect())
            }
        })
    }

    pub fn headers(&self) -> Option<&BTreeMap<String, String>> {
        match &self.access {
            McpAccess::Stdio { .. } => None,
            McpAccess::Remote { headers, .. } => Some(headers),
        }
    }

    /// Each variable and header, and the credentials alone where a scheme such as Bearer precedes them.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let values = match &self.access {
            McpAccess::Stdio { env: values, .. } | McpAccess::Remote { headers: values, .. } => values,
        };
        values.values().flat_map(|value| {
            let credentials = value.split_once(' ').map(|(_, rest)| rest.trim()).filter(|_| self.headers().is_some());
            std::iter::once(value.as_str()).chain(credentials)
        })
    }
}

const STDIO_KEYS: [&str; 3] = ["command", "args", "env"];
const REMOTE_KEYS: [&str; 3] = ["url", "headers", "transport"];

/// The keys of a server in both formats.
fn own_keys() -> impl Iterator<Item = &'static str> {
    STDIO_KEYS.into_iter().chain(REMOTE_KEYS).chain(["required"])
}

pub(super) fn mcp_servers(raw: &RawValue) -> Read<Vec<McpServer>> {
    let all: Vec<McpServer> = list(raw).ok_or(Some(SERVERS))?.into_iter().map(server).collect::<Result<_, _>>()?;
    if secrets_fit(all.iter().flat_map(McpServer::secrets)) { Ok(all) } else { Err(Some(SERVERS)) }
}

fn server(raw: &RawValue) -> Read<McpServer> {
    let fields = Fields::parse(raw.get()).ok_or(Some(SERVERS))?;
    if fields.repeats_one_of(own_keys().chain(["name"])) {
        return Err(None);
    }
    let name = optional(&fields, "name", non_empty, SERVERS)?.ok_or(Some(SERVERS))?;
    let given = |key| fields.get(key).filter(|raw| !is_null(raw));
    let has = |keys: &[&'static str]| keys.iter().any(|key| given(key).is_some());
    let access = match (has(&STDIO_KEYS), given("url")) {
        (true, None) if !has(&REMOTE_KEYS) => McpAccess::Stdio {
            command: optional(&fields, "command", non_empty, SERVERS)?.ok_or(Some(SERVERS))?,
            args: optional(&fields, "args", arguments, SERVERS)?.unwrap_or_default(),
            env: optional(&fields, "env", environment, SERVERS)?.unwrap_or_default(),
        },
        (false, Some(raw)) => McpAccess::Remote {
            transport: optional(&fields, "transport", McpTransport::read, TRANSPORT)?.unwrap_or(McpTransport::Http),
            url: url(raw)?,
            headers: optional(&fields, "headers", headers, HEADERS)?.unwrap_or_default(),
        },
        (true, Some(_)) | (true, None) => return Err(Some(KEYS)),
        (false, None) => return Err(Some(if has(&REMOTE_KEYS) { KEYS } else { SERVERS })),
    };
    let required = optional(&fields, "required", boolean, REQUIRED)?.unwrap_or(true);
    Ok(McpServer { required, ..McpServer::new(name, access) })
}

/// A user or password in it would be on the agent's command line, and is not redacted.
fn url(raw: &RawValue) -> Read<String> {
    let url = non_empty(raw).map_err(|_| Some(URL))?;
    let is_web = |scheme: &str| ["http", "https"].iter().any(|word| scheme.eq_ignore_ascii_case(word));
    let rest = url.split_once("://").filter(|(scheme, _)| is_web(scheme)).map(|(_, rest)| rest);
    let host = rest.and_then(|rest| rest.split(['/', '?', '#', '\\']).next()).unwrap_or_default();
    let names_host = !host.is_empty() && !host.starts_with(':') && !host.contains('@');
    let is_clean = !url.contains(|c: char| c.is_whitespace() || c.is_control());
    if names_host && is_clean { Ok(url) } else { Err(Some(URL)) }
}

fn headers(raw: &RawValue) -> Read<BTreeMap<String, String>> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let fits = |name: &str, value: &str| {
        !name.is_empty() && name.bytes().all(is_token) && value.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
    };
    let all = string_map(raw).ok_or(Some(HEADERS))?;
    let mut seen = HashSet::new();
    let good = all.iter().all(|(name, value)| fits(name, value) && seen.insert(name.to_ascii_lowercase()));
    if good { Ok(all.into_iter().collect()) } else { Err(Some(HEADERS)) }
}

/// `None`: the text is not `{"mcpServers":{NAME:{…}}}`. Error: the mistake, as the rest of a sentence about the text.
pub(crate) fn by_name(text: &str) -> Result<Option<Box<RawValue>>, String> {
    let Some(outer) = Fields::parse(text).filter(|fields| fields.get("mcpServers").is_some()) else { return Ok(None) };
    let wrong = || EXPECTED.to_owned();
    let all = outer.get("mcpServers").and_then(|raw| Fields::parse(raw.get())).ok_or_else(wrong)?;
    let (mut list, mut seen) = (Vec::new(), HashSet::new());
    for (name, raw) in all.iter() {
        let server = Fields::parse(raw.get()).ok_or_else(wrong)?;
        if outer.repeats_one_of(["mcpServers"])
            || server.repeats_one_of(own_keys().chain(["type"]))
            || !seen.insert(name)
        {
            return Err(Problem::Repeated.clause());
        }
        let which = || shown(name, &Redactor::new());
        if server.get("command").is_none() && server.get("url").is_none() {
            return Err(format!("must give every server a command or a url, but {} has neither", which()));
        }
        let mut given: Vec<String> =
            own_keys().filter_map(|key| Some(format!("\"{key}\":{}", server.get(key)?))).collect();
        // Other programs call the transport `type`, and name stdio there too.
        match server.get("type").map(RawValue::get) {
            None | Some("null" | "\"stdio\"") => {}
            Some(word @ ("\"http\"" | "\"sse\"")) if server.get("transport").is_none() => {
                given.push(format!("\"transport\":{word}"));
            }
            Some("\"http\"" | "\"sse\"") => return Err(Problem::Repeated.clause()),
            Some(_) => {
                return Err(format!(
                    "must have stdio, http or sse as the type of each server, but {} has another",
                    which()
                ));
            }
        }
        list.push(format!("{{\"name\":{},{}}}", to_line(&name), given.join(",")));
    }
    RawValue::from_string(format!("[{}]", list.join(","))).map(Some).map_err(|_| wrong())
}
