//! `acp`: serves an agent to a client of the Agent Client Protocol.

use super::agent_check::{capabilities, login};
use super::export::newest;
use super::{complain, configured, named};
use crate::acp::{AcpServer, Facts, LocalServerHost, Lookups, serve};
use crate::agent::Program;
use crate::agent::limit::{Keeper, Limit};
use crate::agent::native::{LoggedIn, SessionStore, is_session_id};
use crate::agent::registry::Agent;
use crate::agent::stored::StoredPart;
use crate::cli::command::{Command, CommandText, Runnable};
use crate::cli::row::{Flag, FlagForm, Row, agent, flags, own, store_alone};
use crate::cli::{Wrong, text, typed_fields};
use crate::config::Layers;
use crate::engine::redactor_here;
use crate::io::files::open_regular;
use crate::process::query::{find, variable};
use crate::process::session_files::find as find_session;
use crate::protocol::failure::Failure;
use crate::protocol::fields;
use crate::protocol::request::Options;
use crate::protocol::request::Permissions;
use crate::protocol::words::{McpTransport, OnUnsupported};
use crate::redact::Redactor;
use crate::suggest::{Typed, Unknown};
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

pub(super) const COMMAND: Command = Command {
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    page: include_str!("../acp/reference.md"),
    ..Command::named(
        "acp",
        &CommandText {
            about: "serve an agent to an editor over the Agent Client Protocol",
            more: "\
An editor such as Zed, or another client, starts this command and speaks with it on stdin and stdout.
Each session of the client is a conversation with the agent, in a process of its own. At most 32 are open at once.
The agent and its children end when the client does.",
            examples: &[
                ("spektacular acp --agent codex", "the command for the client's configuration"),
                ("spektacular acp --set permissions=read-only", "make every session read-only"),
                ("spektacular integrate zed", "print the configuration for Zed"),
            ],
        },
        |given, words| Ok(Runnable::new(store_alone("acp", FLAGS, given, &words)?, |args| run(&args))),
    )
};

const FLAGS: &[Row<AcpArgs>] = &[
    agent("the agent of every session", |to: &mut AcpArgs| &mut to.agent).begins("The sessions"),
    own(
        "set",
        "KEY=VALUE",
        FlagForm::Pair,
        "a field of run.start for every session",
        |to: &mut AcpArgs, flag, value| to.set(flag, value),
    )
    .more("The keys and values are those of config set."),
];

#[derive(Debug, Default)]
struct AcpArgs {
    agent: Option<String>,
    /// The fields of run.start that `--set` sets, as JSON, in order.
    fields: Vec<(&'static str, Box<RawValue>)>,
    /// The same fields, read.
    options: Options,
}

/// The fields that belong to a session or to its client.
const OWN: [&str; 10] =
    ["prompt", "agent", "cwd", "session_id", "fork", "images", "conversation", "checkpoints", "progress", "metadata"];

impl AcpArgs {
    fn set(&mut self, flag: &Flag, value: OsString) -> Result<(), Wrong> {
        let pair = text(flag, value)?;
        let (name, value) = pair.split_once('=').ok_or(format!("--{} must be {}.", flag.long, flag.metavar))?;
        let known = || fields::FIELDS.iter().map(|field| field.name).filter(|name| !OWN.contains(name));
        let Some(field) = fields::find(name).filter(|field| !OWN.contains(&field.name)) else {
            let unknown = Unknown { what: "key", dashes: "", typed: Typed::Name(name), place: " of --set" };
            return Err(unknown.message(known(), "`spektacular protocol run.start` lists the fields."));
        };
        let raw =
            typed_fields::value(field.name, value).map_err(|why| format!("--{}: {} {why}.", flag.long, field.name))?;
        let set = self.options.set(field.name, &raw);
        set.map_err(|problem| {
            format!("--{}: {} {}.", flag.long, field.name, typed_fields::clause(field.name, &problem))
        })?;
        self.fields.retain(|(other, _)| *other != field.name);
        self.fields.push((field.name, raw));
        Ok(())
    }
}

/// The maximum size of an agent's own session whose history is replayed, in bytes.
const SESSION_BYTES: u64 = 16 << 20;

fn run(typed: &AcpArgs) -> u8 {
    server(typed).map_or_else(|failure| complain(&failure), serve::serve)
}

fn server(typed: &AcpArgs) -> Result<AcpServer, Failure> {
    let layers = configured()?;
    let agent = named(&layers, typed.agent.as_deref(), "")?.into_owned();
    let start = Options { agent: Some(agent.name.clone()), ..typed.options.clone() };
    let (options, _) = layers.under(start);
    let redactor = redactor_here(&options, Some(&agent));
    let facts = facts(typed, &layers, &agent, options);
    let (missing, logged_in, stored) = (agent.clone(), agent.clone(), agent);
    // A history has thousands of texts, with the same servers.
    let last: RefCell<Option<(Option<String>, Redactor)>> = RefCell::default();
    let known = Lookups {
        missing: Box::new(move || why_missing(&missing)),
        login: Box::new(move || how_to_log_in(&logged_in)),
        own_session: Box::new(move |id| own_session(&stored, id).unwrap_or_default()),
        redact: Box::new(move |text, servers| {
            let text = redactor.redact(text);
            let mut last = last.borrow_mut();
            let of_client = match &mut *last {
                Some((of, known)) if of.as_deref() == servers => known,
                other => &mut other.insert((servers.map(str::to_owned), of_servers(servers))).1,
            };
            of_client.redact(&text).into_owned()
        }),
    };
    Ok(AcpServer::new(facts, Box::new(LocalServerHost::new(known))))
}

/// Removes the secrets of the environment and of these MCP servers.
fn of_servers(servers: Option<&str>) -> Redactor {
    let mut of_client = Options::default();
    if let Some(servers) = servers.and_then(|servers| serde_json::from_str(servers).ok()) {
        // Servers that cannot be read are refused when the run begins.
        let _ = of_client.set("mcp_servers", servers);
    }
    redactor_here(&of_client, None)
}

fn facts(typed: &AcpArgs, layers: &Layers, agent: &Agent, options: Options) -> Facts {
    let able = capabilities(agent, layers);
    let settings = options.clone().resolve(String::new(), agent.name.clone(), PathBuf::new());
    let features = agent.features(&settings);
    let takes_servers = features.keepers.of(Limit::McpServers) != Keeper::Nobody;
    let permissions = match options.permissions.unwrap_or_default() {
        Permissions::ByCategory { .. } => "custom".to_owned(),
        word @ (Permissions::ReadOnly | Permissions::All(_)) => word.to_string(),
    };
    let json = |raw: &RawValue| serde_json::from_str(raw.get()).unwrap_or_default();
    Facts {
        agent: agent.name.clone(),
        display_name: agent.display_name.clone(),
        images: features.images,
        servers: takes_servers || options.on_unsupported == Some(OnUnsupported::Warn),
        http: takes_servers && features.transports.contains(&McpTransport::Http),
        sse: takes_servers && features.transports.contains(&McpTransport::Sse),
        conversation: able.conversation != Some(false),
        resume: able.resume != Some(false),
        login: matches!(agent.base.program, Program::Command(_)),
        question_limit: options.question_timeout_s.is_some(),
        permissions,
        model: options.model.clone(),
        effort: options.effort.clone(),
        mode: options.mode.clone(),
        fields: typed.fields.iter().map(|(name, raw)| (*name, json(raw))).collect(),
    }
}

fn why_missing(agent: &Agent) -> Option<String> {
    if find(&agent.base).is_some() {
        return None;
    }
    let install = agent.base.install.as_ref().map(|install| format!(" To install it: {install}.")).unwrap_or_default();
    Some(format!("{} is not installed.{install}", agent.display_name))
}

/// `None`: the session is not in a file that we read.
fn own_session(agent: &Agent, id: &str) -> Option<Vec<StoredPart>> {
    let Some(SessionStore::File(files)) = &agent.native().sessions else { return None };
    let read = files.parts.filter(|_| is_session_id(id))?;
    let path = newest(find_session(files, id, &|name| variable(&agent.base, name)))?;
    let file = open_regular(&path).ok()?;
    let is_short = file.metadata().ok()?.len() <= SESSION_BYTES;
    let mut text = Vec::new();
    file.take(SESSION_BYTES).read_to_end(&mut text).ok().filter(|_| is_short)?;
    Some(read(&String::from_utf8_lossy(&text)))
}

fn how_to_log_in(agent: &Agent) -> Option<String> {
    let (state, why) = login(agent);
    matches!(state, LoggedIn::No(_))
        .then(|| format!("{why}. Run `spektacular open --agent {}` in a terminal and log in there.", agent.name))
}
