//! `open`: hands the terminal to an agent's own interface.

use super::{complain, configured, default_is_missing, named, warn};
use crate::agent::native::{AsksFor, InterfaceOptions};
use crate::agent::registry::Agent;
use crate::cli::action::Offers;
use crate::cli::adhoc::option;
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{
    Flag, FlagForm, GivenFlag, HasFields, Row, agent, field, flags, own, own_path, own_switch, own_texts, store, switch,
};
use crate::cli::{Wrong, text, variable};
use crate::config::Layers;
use crate::engine::secrets_here;
use crate::process::handover::{Handover, hand_over, has_terminal};
use crate::process::own_rules::kept_rules;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::fields::Field;
use crate::protocol::fields::field;
use crate::protocol::ids::SessionId;
use crate::protocol::request::{Options, Permissions};
use crate::protocol::terms::sentence;
use crate::sessions::{continued, resumed};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const OPEN_POLICY_HELP: &str = "\
You answer at the terminal: any POLICY other than allow makes the agent ask. The configuration can set it too.";

pub(super) const COMMAND: Command = Command {
    words: Words::Free("[PROMPT...]", Offers::Nothing),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    ..Command::named(
        "open",
        &CommandText {
            about: "open the agent's own interface in this terminal",
            more: "\
The exit code is the agent's, or 128 plus the number of the signal that ended it.
Processes that the agent leaves behind keep running. Other users can read the prompt in the process list.",
            examples: &[
                ("spektacular open --agent opencode \"explain this repository\"", "start with a prompt"),
                ("spektacular open --continue", "take over the last session of adhoc"),
            ],
        },
        |given, words| Ok(Runnable::new(read(given, words)?, |args| run(&args))),
    )
};

const FLAGS: &[Row<Open>] = &[
    agent("the agent to open", |to: &mut Open| &mut to.agent).begins("The agent"),
    field("model", "NAME", "the model, by the agent's name for it").short('m'),
    field("mode", "NAME", "the agent's own mode, such as plan"),
    own("session", "ID", FlagForm::Text, "resume this session, by its id or name", |to: &mut Open, flag, value| {
        to.session = Some(text(flag, value)?).filter(|id| !id.is_empty());
        if to.session.is_some() { Ok(()) } else { Err(format!("--{} must not be empty.", flag.long)) }
    })
    .also_named(&["resume"]),
    own_switch("continue", "resume the agent's last session in this directory", |to: &mut Open| to.go_on = true)
        .short('c'),
    own_path("cwd", "DIR", "the agent's working directory", |to: &mut Open| &mut to.cwd).short('C'),
    own("env", "NAME=VALUE", FlagForm::Pair, "an environment variable for the agent", |to, flag, value| {
        to.env.extend([variable(flag, value)?]);
        Ok(())
    }),
    own_texts("agent-arg", "ARG", FlagForm::Item, "an argument for the agent's own command line", |to| &mut to.args),
    field("permissions", "POLICY", "ask: the agent asks whenever it can; allow: it never asks")
        .more(OPEN_POLICY_HELP)
        .default("the agent's own"),
    switch("permissions", "\"allow\"", "the same as --permissions allow").named("yes").short('y'),
];

#[derive(Debug, Default)]
struct Open {
    agent: Option<String>,
    prompt: Option<String>,
    session: Option<String>,
    go_on: bool,
    cwd: Option<PathBuf>,
    env: BTreeMap<String, String>,
    args: Vec<String>,
    /// The fields of run.start that `--model`, `--mode`, `--permissions` and `--yes` set.
    options: Options,
}

fn read(given: Vec<GivenFlag>, values: Vec<OsString>) -> Result<Open, Wrong> {
    let mut open: Open = store(FLAGS, given)?;
    if open.go_on && open.session.is_some() {
        return Err("Give --continue or --session, not both.".into());
    }
    let words: Result<Vec<String>, _> = values.into_iter().map(OsString::into_string).collect();
    let prompt = words.map_err(|_| "The prompt must be UTF-8.".to_owned())?.join(" ");
    open.prompt = Some(prompt).filter(|prompt| !prompt.trim().is_empty());
    Ok(open)
}

impl HasFields for Open {
    fn set_field(&mut self, flag: &'static Flag, field: &'static Field, value: OsString) -> Result<(), Wrong> {
        option(&mut self.options, flag, field.name, value)
    }
}

/// Returns the exit code of the agent, or of the failure that prevented its start.
fn run(typed: &Open) -> u8 {
    open(typed).unwrap_or_else(|failure| complain(&failure))
}

fn open(typed: &Open) -> Result<u8, Failure> {
    let layers = configured()?;
    let agent = named(&layers, typed.agent.as_deref(), " (from --agent)")?;
    let given = Options { agent: Some(agent.name.clone()), ..typed.options.clone() };
    let (options, _) = layers.under(given);
    let native = agent.native();
    let Some(interface) = &native.interface else {
        let message = format!("{} has no interface to open. Use adhoc.", agent.name);
        return Err(Failure::new(Code::InvalidRequest, message));
    };
    if !has_terminal() {
        let message = "open needs a terminal on stdin and stdout. Without one, use adhoc.";
        return Err(Failure::usage(message));
    }
    let cwd = directory(typed)?;
    let resumed = session_of(typed, &layers, &agent, &cwd)?;
    let session = InterfaceOptions {
        prompt: typed.prompt.as_deref(),
        model: options.model.as_deref(),
        mode: options.mode.as_deref(),
        session: resumed.as_deref(),
        asks_for: options.permissions.as_ref().map(asks_for),
        args: &typed.args,
    };
    if session.mode.is_some() && !interface.has_modes {
        let from = if typed.options.mode.is_some() { "--mode".into() } else { layers.origins.subject(field!(mode)) };
        let text = sentence!("{from} has no effect on this agent's own interface", from = &from);
        warn([text.for_person().redacted(&secrets_here()).into_owned()].iter());
    }
    let args = interface.arguments(&agent.base, &session)?;
    let said = Options { agent: typed.agent.clone(), ..typed.options.clone() };
    if let Some(failure) = default_is_missing(&layers, &said) {
        return Err(failure);
    }
    // The environment of the agent's entry and --env override this variable.
    let own = |name: &str| typed.env.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
    let own = |name: &str| own(name).or_else(|| agent.base.env.get(name).cloned()).map(OsString::from);
    let environment = |name: &str| own(name).or_else(|| std::env::var_os(name));
    let rules = native.own_rules.as_ref().map(|rules| kept_rules(rules, &environment, &cwd)).unwrap_or_default();
    let asks = (interface.asking_env)(&rules)
        .filter(|(name, _)| session.asks_for == Some(AsksFor::Everything) && !agent.base.env.contains_key(*name));
    let asks = asks.map(|(name, value)| (name.to_owned(), value)).into_iter();
    let env: Vec<(String, String)> = asks.chain(typed.env.clone()).collect();
    hand_over(&Handover { base: &agent.base, args: &args, env: &env, env_remove: interface.env_remove, cwd: &cwd })
}

fn session_of(typed: &Open, layers: &Layers, agent: &Agent, cwd: &Path) -> Result<Option<String>, Failure> {
    let cwd = Some(cwd.to_string_lossy().into_owned());
    let place = Options { agent: Some(agent.name.clone()), cwd, ..Options::default() };
    let found = match typed.session.clone().and_then(SessionId::new) {
        Some(session) => resumed(layers, place, &session).map(Some),
        None if typed.go_on => continued(layers, place).map(Some),
        None => return Ok(typed.session.clone()),
    };
    found.map(|id| id.map(|id| id.to_string())).map_err(Failure::usage)
}

/// A policy that does not allow everything means that the agent asks, because a person at the terminal can answer.
fn asks_for(permissions: &Permissions) -> AsksFor {
    if permissions.allow_all() { AsksFor::Nothing } else { AsksFor::Everything }
}

fn directory(typed: &Open) -> Result<PathBuf, Failure> {
    let own = std::env::current_dir().ok();
    let wanted = typed.cwd.clone().unwrap_or_default();
    let cwd = own.map_or(wanted.clone(), |own| own.join(&wanted));
    let message = "--cwd must be the path of an existing directory.";
    cwd.is_dir().then_some(cwd).ok_or_else(|| Failure::new(Code::InvalidRequest, message))
}
