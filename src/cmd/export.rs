//! `export`: a session in the agent's own format, byte for byte. Nothing is redacted, because it is the agent's own data.

use super::{complain, configured, named};
use crate::agent::native::{SessionStore, is_session_id};
use crate::agent::registry::Agent;
use crate::cli::action::Offers;
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{GivenFlag, Row, agent, flags, json, output, own_path, own_switch, store};
use crate::cli::{Output, Wrong};
use crate::engine::secrets_here;
use crate::io::files::open_regular;
use crate::io::output::print_bytes;
use crate::json::to_line;
use crate::process::program::not_found as agent_not_found;
use crate::process::query::{Asked, NoAnswer, Queries, find, variable};
use crate::process::session_files::find as find_session;
use crate::process::tree::nonce;
use crate::protocol::failure::{Code, EXIT_UNDELIVERED, Failure};
use crate::sessions::{Stored, newest as last_sessions};
use serde_json::json;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const COMMAND: Command = Command {
    words: Words::Free("[SESSION]", Offers::Sessions),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    ..Command::named(
        "export",
        &CommandText {
            about: "print a session in the agent's own format",
            more: "\
The session is printed exactly as the agent stores it. Nothing is redacted.
A session can be at most 1 GiB. If the agent itself prints the session, it has 60 s to do so.
Without SESSION, export prints the last session that spektacular ran in this directory, of any agent unless --agent names one.
With --output json, the session is the string export_data in an object {success, agent, session_id, export_data}.",
            examples: &[("spektacular export --agent codex --out session.jsonl", "save the last session of Codex")],
        },
        |given, words| Ok(Runnable::new(read(given, words)?, |args| run(&args))),
    )
};

const FLAGS: &[Row<Export>] = &[
    agent("the agent of the session", |to: &mut Export| &mut to.agent).begins("The session"),
    own_path("out", "FILE", "write to a file, completely or not at all", |to: &mut Export| &mut to.out),
    own_switch("force", "let --out replace an existing file", |to| to.force = true),
    output(|to: &mut Export| &mut to.output),
    json(|to: &mut Export| &mut to.output),
];

#[derive(Debug, Default)]
struct Export {
    agent: Option<String>,
    /// The session's id or name. `None`: the last session in this directory.
    session: Option<String>,
    out: Option<PathBuf>,
    force: bool,
    output: Output,
}

fn read(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<Export, Wrong> {
    let mut export: Export = store(FLAGS, given)?;
    let mut values = words.into_iter();
    let session = values.next().map(OsString::into_string).transpose();
    if values.next().is_some() {
        return Err("Too many words: export takes one SESSION.".into());
    }
    export.session = session.map_err(|_| "SESSION must be UTF-8.")?;
    Ok(export)
}

/// The time limit for an agent to print a session.
const LIMIT: Duration = Duration::from_secs(60);
const SESSION_BYTES: u64 = 1 << 30;

fn run(typed: &Export) -> u8 {
    let layers = configured();
    let last = layers.as_ref().ok().and_then(|layers| {
        let is_meant = |stored: &Stored| match typed.session.as_deref() {
            Some(session) => stored.name.as_deref() == Some(session),
            None => true,
        };
        let of_agent = |agent: &str| typed.agent.as_deref().is_none_or(|name| name == agent);
        last_sessions(layers, None).into_iter().find(|(agent, stored)| of_agent(agent) && is_meant(stored))
    });
    let name = match (&typed.agent, &last, &layers) {
        (Some(name), ..) => name.as_str(),
        (None, Some((agent, _)), _) => agent,
        (None, None, Ok(layers)) => layers.default_agent(),
        (None, None, Err(_)) => "",
    };
    let session = last.as_ref().map(|(_, stored)| &*stored.id).or(typed.session.as_deref());
    let data = layers.as_ref().map_err(Failure::clone).and_then(|layers| {
        let wanted = typed.agent.as_deref().or(last.as_ref().map(|(agent, _)| *agent));
        let agent = named(layers, wanted, " (from --agent)")?;
        let none = "Missing SESSION: no session in this directory is known. `spektacular sessions` lists them.";
        let data = export(&agent, session.ok_or_else(|| Failure::usage(none))?)?;
        typed.out.as_ref().map_or(Ok(()), |file| write(file, &data, typed.force))?;
        Ok((agent, data))
    });
    let delivered = match (typed.output, &data) {
        (Output::Cli, Ok(_)) if typed.out.is_some() => true,
        (Output::Cli, Ok((_, data))) => print_bytes(data),
        (Output::Cli, Err(failure)) => {
            complain(failure);
            true
        }
        (Output::Json, Ok((agent, data))) => {
            let mut said = json!({"success": true, "agent": agent.name, "session_id": session});
            match &typed.out {
                Some(file) => said["file"] = json!(file.to_string_lossy()),
                None => said["export_data"] = json!(String::from_utf8_lossy(data)),
            }
            print_bytes((to_line(&said) + "\n").as_bytes())
        }
        (Output::Json, Err(failure)) => {
            let message = failure.message.text().redacted(&secrets_here()).into_owned();
            let error = json!({"code": failure.code.name(), "message": message});
            let said = json!({"success": false, "agent": name, "session_id": session, "error": error});
            print_bytes((to_line(&said) + "\n").as_bytes())
        }
    };
    match data {
        _ if !delivered => EXIT_UNDELIVERED,
        Ok(_) => 0,
        Err(failure) => failure.code.exit_code(),
    }
}

fn export(agent: &Agent, session: &str) -> Result<Vec<u8>, Failure> {
    let Some(store) = &agent.native().sessions else {
        let message = format!("Sessions of {} cannot be exported: use the agent's own commands.", agent.name);
        return Err(Failure::new(Code::InvalidRequest, message));
    };
    if !is_session_id(session) {
        let message = "SESSION must consist of letters, digits, `-` and `_`, like the session_id of a run.";
        return Err(Failure::new(Code::InvalidRequest, message));
    }
    match store {
        SessionStore::File(files) => {
            let found = newest(find_session(files, session, &|name| variable(&agent.base, name)));
            contents(&found.ok_or_else(|| no_session(agent))?)
        }
        SessionStore::Command { args, unknown } => printed(agent, args(session), unknown),
    }
}

fn no_session(agent: &Agent) -> Failure {
    let message = format!("{} has no session with this id. Use --agent for another agent.", agent.name);
    Failure::new(Code::SessionNotFound, message)
}

pub(super) fn newest(files: Vec<PathBuf>) -> Option<PathBuf> {
    files.into_iter().max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok())
}

fn contents(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |message| Failure::new(Code::AgentError, message);
    let unreadable = |_| failed("The file of the session cannot be read: check its permissions.");
    let file = open_regular(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.len() > SESSION_BYTES {
        return Err(failed("The session is longer than 1 GiB: copy it from the agent's own folder."));
    }
    let mut data = Vec::new();
    file.take(SESSION_BYTES).read_to_end(&mut data).map_err(unreadable)?;
    Ok(data)
}

fn printed(agent: &Agent, args: Vec<String>, unknown_says: &[&str]) -> Result<Vec<u8>, Failure> {
    if find(&agent.base).is_none() {
        return Err(agent_not_found(&agent.base.program, agent.base.install.as_deref()));
    }
    let interface = agent.native().interface.as_ref();
    let own = interface.map_or_else(|| agent.base.args.clone(), |interface| interface.for_people(&agent.base));
    let args = own.into_iter().chain(args).collect();
    let asked = Asked { cwd: None, base: &agent.base, args, env: Vec::new(), limit: LIMIT, bytes: SESSION_BYTES };
    let failed = format!("{} did not print the session: try its own export command.", agent.name);
    let answer = Queries::begin().ask(&asked).map_err(|why| {
        let why = match why {
            NoAnswer::Missing | NoAnswer::NotStarted => "cannot be started: check its permissions and its interpreter",
            NoAnswer::Late => "did not print the session within 60 s: try its own export command",
            NoAnswer::TooLong => "printed more than 1 GiB: try its own export command",
        };
        Failure::new(Code::AgentError, format!("{} {why}.", agent.name))
    })?;
    let says = String::from_utf8_lossy(&answer.errors);
    match answer.code {
        // A truncated session is useless.
        Some(0) if serde_json::from_slice::<serde::de::IgnoredAny>(&answer.output).is_ok() => Ok(answer.output),
        Some(0) => Err(Failure::new(Code::AgentProtocolError, failed)),
        _ if unknown_says.iter().any(|text| says.contains(text)) => Err(no_session(agent)),
        _ => Err(Failure::new(Code::AgentError, failed)),
    }
}

/// Writes a file completely or not at all, readable by its owner alone.
pub(super) fn write(file: &Path, data: &[u8], force: bool) -> Result<(), Failure> {
    // The target of a link is replaced, not the link.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let there = file.symlink_metadata();
    if there.as_ref().is_ok_and(|meta| !meta.is_file()) {
        return Err(Failure::usage("--out must be a regular file."));
    }
    if there.is_ok() && !force {
        return Err(Failure::usage("--out: the file exists. Add --force to replace it."));
    }
    let beside = file.with_file_name(format!(".spektacular-{}", nonce()));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).and_then(|mut new| {
        new.write_all(data)?;
        new.sync_all()?;
        fs::rename(&beside, &file)
    });
    written.map_err(|_| {
        let _ = fs::remove_file(&beside);
        Failure::usage("--out: the file cannot be written: check its directory.")
    })
}
