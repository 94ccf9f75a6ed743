//! A run.start → what a run needs: the agent's driver, a working directory that exists, a redactor that knows every
//! secret. The file system and the environment are looked at here, so that the run itself needs neither.

use super::ask_socket::AskSocket;
use crate::agent::registry::{Agent, Agents};
use crate::failure::{Code, Failure};
use crate::protocol::origins::Origins;
use crate::protocol::question::{Given, PathFact};
use crate::protocol::request::{Options, Problem, Settings};
use crate::redact::Redactor;
use crate::run::{Answered, Start};
use crate::suggest::hint;
use serde_json::value::RawValue;
use std::io::Read;
use std::path::Path;

/// The longest value that is read from where value_from points, in bytes.
const VALUE_BYTES: u64 = 1 << 20;

/// Settings that were checked against the machine.
pub(crate) struct Ready {
    pub(super) settings: Settings,
    agent: Agent,
}

impl Ready {
    /// The start of the run, and the socket by which the agent's model can ask, where that is the way.
    pub(crate) fn start(self, redactor: Redactor, short_secrets: usize) -> (Start, Option<AskSocket>) {
        let Ready { mut settings, agent } = self;
        let driver = agent.driver();
        let tool = driver.asks_by(&settings);
        let socket = tool.and_then(|tool| AskSocket::open(tool).ok());
        settings.ask_server = socket.as_ref().and_then(AskSocket::server);
        let asking_failed = tool.is_some() && settings.ask_server.is_none();
        let display_name = agent.display_name;
        (Start { settings, driver, display_name, redactor, short_secrets, asking_failed }, socket)
    }
}

/// Checks a run.start, with its defaults, against the machine.
pub(crate) fn settings(
    options: Options,
    wrong: Option<Problem>,
    agent: Option<&Agent>,
    agents: &Agents,
    origins: &Origins,
) -> Result<Ready, Failure> {
    let bad = |message: String| Failure::new(Code::InvalidRequest, message);
    if let Some(problem) = wrong {
        return Err(bad(problem.message()));
    }
    let prompt = options.prompt.clone().ok_or_else(|| bad("run.start: `prompt` must be a non-empty string.".into()))?;
    let agent = agent.ok_or_else(|| {
        let name = options.agent.as_deref().unwrap_or_default();
        bad(match origins.remark("agent") {
            Some(from) => agents.unknown(name, &from),
            // The value of a message's field is not shown.
            None => {
                let hint = hint(name, agents.all_names());
                format!("run.start: `agent` must be one of: {}.{hint}", agents.names())
            }
        })
    })?;
    let own = std::env::current_dir().ok();
    let wanted = options.cwd.as_ref().map(Path::new).unwrap_or(Path::new(""));
    let cwd = own.as_deref().unwrap_or(Path::new("/")).join(wanted);
    if !cwd.is_dir() {
        return Err(bad(format!("{} must be the path of an existing directory.", origins.subject("cwd"))));
    }
    // The real path: an agent reports the paths that it sees.
    let cwd = cwd.canonicalize().unwrap_or(cwd);
    Ok(Ready { settings: options.resolve(prompt, agent.name.clone(), cwd), agent: agent.clone() })
}

/// What must not be seen of a run, and how many of its `secrets` are too short for that.
pub fn redactor_for(options: &Options, agent: Option<&Agent>) -> (Redactor, usize) {
    let mut redactor = redactor();
    let servers = options.mcp_servers.iter().flatten().map(|server| &server.env);
    let own = agent.map(|agent| &agent.base.env);
    for env in options.env.iter().chain(servers).chain(own) {
        redactor.add_environment(env.iter().map(|(k, v)| (k.as_str(), v.as_str())), &is_path);
    }
    let short = options.secrets.iter().flatten().filter(|secret| !redactor.add(secret)).count();
    (redactor, short)
}

fn is_path(value: &str) -> bool {
    Path::new(value).exists()
}

/// What must not be seen of our own environment.
pub(crate) fn redactor() -> Redactor {
    let mut redactor = Redactor::new();
    let vars: Vec<(String, String)> =
        std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect();
    redactor.add_environment(vars.iter().map(|(k, v)| (k.as_str(), v.as_str())), &is_path);
    redactor
}

/// Reads an answer from where it is. `cwd`: the run's, where the question wants a path.
pub(crate) fn answer(given: Given, cwd: Option<&Path>) -> Answered {
    let text = match given {
        Given::Declined => return Answered::Declined,
        Given::Value(value) => {
            let path = look(&value, cwd);
            return Answered::Value(value, path);
        }
        Given::FromEnv(name) => std::env::var(name).ok(),
        Given::FromFile(path) => read(&path),
    };
    let value = text.and_then(|text| {
        let text = text.strip_suffix('\n').map(|t| t.strip_suffix('\r').unwrap_or(t)).unwrap_or(&text);
        serde_json::value::to_raw_value(text).ok()
    });
    let kept = |value: Box<RawValue>| {
        let path = look(&value, cwd);
        Answered::Kept(value, path)
    };
    value.map_or(Answered::Unreadable, kept)
}

fn look(value: &RawValue, cwd: Option<&Path>) -> Option<PathFact> {
    cwd.and_then(|cwd| Some(fact(&cwd.join(crate::protocol::json::string(value)?))))
}

fn fact(path: &Path) -> PathFact {
    match path.metadata() {
        Ok(meta) if meta.is_dir() => PathFact::Directory,
        Ok(_) => PathFact::File,
        Err(_) => PathFact::Missing,
    }
}

/// A regular file of text. Anything else, a pipe above all, could keep us waiting.
fn read(path: &str) -> Option<String> {
    let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= VALUE_BYTES)?;
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(meta.len() + 1).read_to_string(&mut text).ok()?;
    Some(text)
}
