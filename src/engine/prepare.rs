//! Turns a run.start into everything that a run needs: the agent's driver, an existing working directory, and a
//! redactor that knows every secret. This module reads the file system and the environment, so that the run itself need
//! not.

use super::host::Host;
use super::images;
use super::job::Successor;
use super::local_host::LocalHost;
use crate::agent::demo::catalog;
use crate::agent::demo::scenario::Scenario;
use crate::agent::registry::{Agent, Agents};
use crate::agent::{DriverOutput, Features, Offered, ResultWay, ask_user, limit};
use crate::config::origins::Origins;
use crate::process::sandbox::SandboxFault;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::fallback::FallbackAgent;
use crate::protocol::fields::field;
use crate::protocol::limits;
use crate::protocol::question::{Given, PathFact};
use crate::protocol::request::{McpServer, Options, Problem, Settings};
use crate::protocol::review::Reviewer;
use crate::protocol::sandbox::Force;
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::words::OnUnsupported;
use crate::redact::{Redactor, arguments};
use crate::run::{Answered, Start};
use crate::suggest::hint;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// Settings, checked against the machine.
pub(crate) struct Ready {
    pub(super) settings: Settings,
    pub(super) agent: Agent,
    /// The agents of `fallback`, in order.
    successors: Vec<Successor>,
}

impl Ready {
    pub(super) fn of(next: Successor) -> Ready {
        Ready { settings: next.settings, agent: next.agent, successors: Vec::new() }
    }

    pub(super) fn take_successors(&mut self) -> VecDeque<Successor> {
        let all = std::mem::take(&mut self.successors).into_iter();
        all.map(|next| Successor { settings: self.settings.taken_over_by(&next.settings), ..next }).collect()
    }

    pub(crate) fn start(self, redactor: Redactor, short_secrets: usize, host: &mut impl Host) -> Start {
        let Ready { mut settings, agent, successors: _ } = self;
        let driver = agent.driver();
        let missing = settings.sandbox.missing();
        let features = driver.features(&settings);
        let asking_failed = offer(&mut settings, &features, host);
        let checkpoints = settings.checkpoints.then(|| settings.conversation && host.keep_checkpoints(&settings.cwd));
        let start = Start::new(settings, agent.display_name, driver, redactor);
        Start { missing, short_secrets, asking_failed, checkpoints, ..start }
    }
}

/// Offers the model the tools that the agent needs a server for. Returns whether `ask_user` could not be offered.
pub(super) fn offer(settings: &mut Settings, features: &Features, host: &mut impl Host) -> bool {
    let (ask, by_tool) = (features.ask_tool, features.result_way == ResultWay::Tool);
    let result = settings.output_schema.clone().filter(|_| by_tool);
    settings.nonce = host.nonce();
    let name = ask_user::server_name(settings);
    let server = if ask.is_some() || by_tool { host.offer(Offered { ask, result }) } else { None };
    settings.ask_server = server.map(|server| McpServer { name, ..server });
    launch_through_us(&mut settings.mcp_servers, host);
    ask.is_some() && settings.ask_server.is_none()
}

/// Gives each server that the agent starts a launcher, which reports what becomes of it.
fn launch_through_us(servers: &mut [McpServer], host: &mut impl Host) {
    let is_started = |server: &McpServer| server.command_line().is_some();
    let started: Vec<usize> = (0..servers.len()).filter(|at| is_started(&servers[*at])).collect();
    if started.is_empty() {
        return;
    }
    for (at, launcher) in started.iter().zip(host.launchers(&started)) {
        servers[*at].launcher = Some(launcher);
    }
}

/// Checks a run.start, with its defaults, against the machine.
pub(crate) fn settings(
    options: Options,
    wrong: Option<Problem>,
    agent: Option<&Agent>,
    (agents, origins): (&Agents, &Origins),
    host: &impl Host,
) -> Result<Ready, Failure> {
    let bad = |message: Sentence| Failure::new(Code::InvalidRequest, message);
    let successors = match options.fallback.as_deref() {
        Some([_, ..]) if wrong.is_none() => successors(&options, (agents, origins), host)?,
        Some(_) | None => Vec::new(),
    };
    if let Some(problem) = wrong {
        return Err(bad(problem.message()));
    }
    let prompt = options.prompt.clone().ok_or_else(Failure::no_prompt)?;
    let agent = agent.ok_or_else(|| {
        let name = options.agent.as_deref().unwrap_or_default();
        bad(origins.remark("agent").map_or_else(|| no_agent(name, agents), |from| agents.unknown(name, &from)))
    })?;
    if argument_bytes(&options) > limits::ARGUMENTS_BYTES {
        let args = origins.subject(field!(agent_args));
        return Err(bad(sentence!("{args} and {env} must be at most 128 KiB long together.", args = &args, env)));
    }
    let agent = with_file(agent, host)
        .map_err(|why| bad(sentence!("{agent}: {why}", agent = origins.subject(field!(agent)))))?;
    let cwd = host.directory(options.cwd.as_ref().map(Path::new));
    let cwd = cwd.ok_or_else(|| {
        bad(match options.cwd {
            Some(_) => {
                sentence!("{cwd} must be the path of an existing directory.", cwd = origins.subject(field!(cwd)))
            }
            None => sentence!("The current directory no longer exists: change to another one, or set {cwd}.", cwd),
        })
    })?;
    if options.fork == Some(true) && options.session_id.is_none() {
        let fork = origins.subject(field!(fork));
        return Err(bad(sentence!("{fork} needs {session_id}, the session to begin from.", fork = &fork, session_id)));
    }
    let mut settings = options.resolve(prompt, agent.name.clone(), cwd);
    settings.attached = images::check(&settings, &agent, origins, host)?;
    settings.session_cost_usd = host.cost_before(&agent, &settings);
    settings.own_rules = host.own_rules(&agent, &settings);
    if settings.sandbox.is_on() {
        settings.sandbox.force = force(&settings, &agent, origins, host)?;
    }
    Ok(Ready { settings, agent: agent.into_owned(), successors })
}

/// The agents of `fallback`, with the settings of a run that they take over. Error: an agent is unknown, or cannot carry
/// out the run.
fn successors(
    options: &Options,
    (agents, origins): (&Agents, &Origins),
    host: &impl Host,
) -> Result<Vec<Successor>, Failure> {
    let all = options.fallback.as_deref().unwrap_or_default();
    let one = |(at, next): (usize, &FallbackAgent)| {
        let (subject, name) = (origins.subject(field!(fallback)), &next.agent);
        let agent = agents.find(name).ok_or_else(|| {
            let (names, hint) = (agents.names(), hint(name, agents.all_names()));
            let message = sentence!("{subject} must name only these agents: {names}.{hint}", subject = &subject);
            Failure::new(Code::InvalidRequest, message)
        })?;
        let options = Options {
            agent: Some(agent.name.clone()),
            model: next.model.clone().or_else(|| agent.defaults().model),
            // These are for one agent's session and command line.
            session_id: None,
            fork: None,
            agent_args: None,
            fallback: None,
            ..options.clone()
        };
        let Ready { mut settings, agent, .. } = settings(options, None, Some(&agent), (agents, origins), host)?;
        settings.fallback = all[at + 1..].to_vec();
        limit::launch(&settings, agent.driver().as_mut(), &mut DriverOutput::default())?;
        Ok(Successor { agent, settings })
    };
    all.iter().enumerate().map(one).collect()
}

/// The agent that reviews a workflow's work. `None`: it is the agent of the run, whichever that is by then. Error: it is
/// unknown, or cannot carry out a review.
pub(super) fn reviewer(
    review: &Reviewer,
    run: &Ready,
    options: Options,
    (agents, origins): (&Agents, &Origins),
    host: &impl Host,
) -> Result<Option<Successor>, Failure> {
    let name = review.agent.as_deref().unwrap_or(&run.agent.name);
    let agent = agents.find(name).ok_or_else(|| {
        let (names, hint) = (agents.names(), hint(name, agents.all_names()));
        let message = format!("`workflow.review` must name one of these agents: {names}.{hint}");
        Failure::new(Code::InvalidRequest, Sentence::from(message).about_start())
    })?;
    let is_same = agent.name == run.agent.name;
    let own = |value: Option<String>| value.filter(|_| is_same);
    let options = Options {
        agent: Some(agent.name.clone()),
        model: review.model.clone().or(own(options.model)).or_else(|| agent.defaults().model),
        effort: own(options.effort),
        agent_args: options.agent_args.filter(|_| is_same),
        session_id: None,
        fork: None,
        fallback: None,
        ..options
    };
    let Ready { settings, agent, .. } = settings(options, None, Some(&agent), (agents, origins), host)?;
    let effort = settings.effort.clone();
    let settings = Settings { effort, ..run.settings.taken_over_by(&settings) }.for_review();
    limit::launch(&settings, agent.driver().as_mut(), &mut DriverOutput::default())?;
    let is_other = review.agent.is_some() || review.model.is_some();
    Ok(is_other.then_some(Successor { agent, settings }))
}

/// The state of a sandbox on this machine. Error: it cannot be kept, and must be.
fn force(settings: &Settings, agent: &Agent, origins: &Origins, host: &impl Host) -> Result<Force, Failure> {
    match host.domain(agent, settings) {
        Ok(domain) => Ok(Force::Kept(Arc::new(domain))),
        Err(SandboxFault::System(why)) if settings.on_unsupported == OnUnsupported::Warn => Ok(Force::Missing(why)),
        Err(SandboxFault::System(why)) => {
            let (subject, why) = (origins.subject(field!(sandbox)), why.as_str());
            Err(Failure::new(
                Code::InvalidRequest,
                sentence!(
                    "{subject} cannot be kept, because {why}: use {permissions} on an agent that asks, or set \
                     {on_unsupported} to \"warn\" to run without a sandbox.",
                    subject = &subject,
                    permissions,
                    on_unsupported
                ),
            ))
        }
        Err(SandboxFault::Request(message)) => Err(Failure::new(Code::InvalidRequest, message)),
    }
}

fn argument_bytes(options: &Options) -> usize {
    let variables = options.env.iter().flatten().flat_map(|(name, value)| [name, value]);
    options.agent_args.iter().flatten().chain(variables).map(String::len).sum()
}

/// Shows no value of the fields of run.start.
fn no_agent(name: &str, agents: &Agents) -> Sentence {
    let mistake = match name.strip_prefix(catalog::PREFIX) {
        Some(scenario) => {
            let hints = catalog::hints(scenario);
            sentence!("{agent} names an unknown scenario. {hints}", agent)
        }
        None => {
            let (names, hint) = (agents.names(), hint(name, agents.all_names()));
            sentence!("{agent} must be one of: {names}.{hint}", agent)
        }
    };
    mistake.about_start()
}

/// The agent with the absolute path of its scenario's file, if it has one. Error: the mistake in the file.
fn with_file<'a>(agent: &'a Agent, host: &impl Host) -> Result<Cow<'a, Agent>, String> {
    let Some(file) = agent.scenario_file() else { return Ok(Cow::Borrowed(agent)) };
    // A path in run.start is relative to this process's directory, and the agent may run in another one.
    let path = host.directory(None).unwrap_or_default().join(file);
    let text = host
        .read(&path)
        .ok_or_else(|| format!("{file} cannot be read: it must be a text file in UTF-8 of at most 1 MiB."))?;
    Scenario::parse(&text).map_err(|flaw| flaw.message(file))?;
    let mut agent = agent.clone();
    agent.base.args.pop();
    agent.base.args.push(path.to_string_lossy().into_owned());
    Ok(Cow::Owned(agent))
}

pub(crate) fn flaw_in_file(agent: &Agent) -> Option<String> {
    with_file(agent, &LocalHost::new()).err()
}

/// Adds the secrets of a run to a redactor that knows those of the environment, and counts the `secrets` that are too
/// short to redact.
pub(crate) fn redactor_for(
    mut redactor: Redactor,
    options: &Options,
    agent: Option<&Agent>,
    host: &impl Host,
) -> (Redactor, usize) {
    let is_path = is_path(host);
    let own = agent.map(|agent| &agent.base.env);
    for env in options.env.iter().chain(own) {
        redactor.add_environment(env.iter().map(|(k, v)| (k.as_str(), v.as_str())), &is_path);
    }
    let typed = options.agent_args.as_deref().map(arguments::secrets).unwrap_or_default();
    redactor.add_values(typed.iter().map(String::as_str), &is_path);
    redactor.add_values(options.mcp_servers.iter().flatten().flat_map(McpServer::secrets), &is_path);
    let short = redactor.add_all(options.secrets.iter().flatten().map(String::as_str));
    (redactor, short)
}

pub(super) fn with_successors(redactor: Redactor, options: &Options, agents: &Agents, host: &impl Host) -> Redactor {
    let all = options.fallback.iter().flatten().filter_map(|next| agents.find(&next.agent));
    all.fold(redactor, |redactor, next| redactor_for(redactor, &Options::default(), Some(&next), host).0)
}

/// Builds the redactor for a command without a run.
pub fn redactor_here(options: &Options, agent: Option<&Agent>) -> Redactor {
    let host = LocalHost::new();
    redactor_for(redactor(&host, false), options, agent, &host).0
}

/// Builds a redactor for the secrets in the environment, for a command without a run.
pub fn secrets_here() -> Redactor {
    redactor(&LocalHost::new(), true)
}

fn is_path(host: &impl Host) -> impl Fn(&str) -> bool {
    |value| host.look(Path::new(value)) != PathFact::Missing
}

/// `screen`: whether everything is shown on a terminal.
pub(crate) fn redactor(host: &impl Host, screen: bool) -> Redactor {
    let mut redactor = Redactor::new();
    if screen {
        redactor.clean_first();
    }
    let variables = host.variables();
    let is_path = is_path(host);
    redactor.add_environment(variables.iter().map(|(k, v)| (k.as_str(), v.as_str())), &is_path);
    redactor
}

/// `cwd`: the run's directory, if the question asks for a path.
pub(crate) fn answer(given: Given, cwd: Option<&Path>, host: &impl Host) -> Answered {
    let look = |value: &RawValue| {
        let path = cwd?.join(crate::json::string(value)?);
        Some(host.look(&path))
    };
    let (text, unread) = match given {
        Given::Declined => return Answered::Declined,
        Given::Value(value) => {
            let path = look(&value);
            return Answered::Value(value, path);
        }
        Given::FromEnv(name) => {
            let found = host.variables().into_iter().find(|(own, _)| *own == name);
            (found.map(|(_, value)| value), UNSET_VARIABLE)
        }
        Given::FromFile(path) => (host.read(Path::new(&path)), UNREAD_FILE),
    };
    let value = text.and_then(|text| {
        let text = text.strip_suffix('\n').map(|t| t.strip_suffix('\r').unwrap_or(t)).unwrap_or(&text);
        serde_json::value::to_raw_value(text).ok()
    });
    let kept = |value: Box<RawValue>| {
        let path = look(&value);
        Answered::Kept(value, path)
    };
    value.map_or(Answered::Unreadable(unread.into()), kept)
}

const UNREAD_FILE: &str = "Cannot read the file that value_from.file names: it must hold UTF-8 text of at most 1 MiB, \
                           and a relative path starts at spektacular's own directory.";

const UNSET_VARIABLE: &str = "The variable that value_from.env names is not set in spektacular's own environment.";
