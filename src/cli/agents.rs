//! The command lines of `agents`, `sessions`, `export` and `open`.

use super::action::{ActionRow, Offers, Word, act, bare, maybe, one};
use super::adhoc::option;
use super::row::{Flag, HasFields};
use super::{Output, Wrong, text};
use crate::protocol::fields::Field;
use crate::protocol::request::Options;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// The arguments of `agents`.
#[derive(Debug, Default)]
pub struct AgentsArgs {
    pub what: AgentsAction,
    /// The value of `--output`.
    pub output: Output,
    /// Whether `--all` is given: show each unavailable agent.
    pub all: bool,
}

/// The arguments of `sessions`.
#[derive(Debug, Default)]
pub struct SessionsArgs {
    pub what: SessionsAction,
    /// The value of `--cwd`.
    pub cwd: Option<PathBuf>,
    /// The value of `--output`.
    pub output: Output,
}

/// The actions of `sessions`. A session is named by its id or its name.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum SessionsAction {
    /// The action `list`, also without an action.
    #[default]
    List,
    /// The action `show`.
    Show(String),
    /// The action `rm`.
    Remove(String),
}

const SESSION: &[Word; 1] = &[Word { name: "SESSION", offers: Offers::Sessions }];

pub(crate) const SESSIONS_ACTIONS: &[ActionRow<SessionsAction>] = &[
    bare("list", "list the sessions, also without an action", || SessionsAction::List),
    one("show", "show what is stored of a session", SESSION, SessionsAction::Show),
    one("rm", "remove a session from the list; the agent keeps its own files", SESSION, SessionsAction::Remove),
];

/// Adds the words of `sessions`.
pub(crate) fn sessions(mut sessions: SessionsArgs, words: Vec<OsString>) -> Result<SessionsArgs, Wrong> {
    if !words.is_empty() {
        sessions.what = act("sessions", SESSIONS_ACTIONS, words)?;
    }
    Ok(sessions)
}

/// The actions of `agents`.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum AgentsAction {
    /// The action `list`.
    #[default]
    List,
    /// The action `check`, for one agent or for all.
    Check(Option<String>),
}

/// The arguments of `export`.
#[derive(Debug, Default)]
pub struct Export {
    /// The value of `--agent`.
    pub agent: Option<String>,
    /// The session's id or name. `None`: the last session in this directory.
    pub session: Option<String>,
    /// The value of `--out`.
    pub out: Option<PathBuf>,
    /// Whether `--force` is given.
    pub force: bool,
    /// The value of `--output`.
    pub output: Output,
}

/// The arguments of `open`.
#[derive(Debug, Default)]
pub struct Open {
    /// The value of `--agent`.
    pub agent: Option<String>,
    pub prompt: Option<String>,
    /// The value of `--session`.
    pub session: Option<String>,
    /// Whether `--continue` is given.
    pub go_on: bool,
    /// The value of `--cwd`.
    pub cwd: Option<PathBuf>,
    /// The variables of `--env`.
    pub env: BTreeMap<String, String>,
    /// The values of `--agent-arg`.
    pub args: Vec<String>,
    /// The fields of run.start that `--model`, `--mode`, `--permissions` and `--yes` set.
    pub options: Options,
}

pub(crate) const ACTIONS: &[ActionRow<AgentsAction>] = &[
    bare("list", "list all agents", || AgentsAction::List),
    maybe("check", "check all agents, or one", &[Word { name: "NAME", offers: Offers::Agents }], AgentsAction::Check),
];

/// Adds the words of `agents`.
pub(crate) fn agents(mut agents: AgentsArgs, words: Vec<OsString>) -> Result<AgentsArgs, Wrong> {
    agents.what = act("agents", ACTIONS, words)?;
    match agents.what {
        AgentsAction::List if agents.all => Err("--all is for agents check: agents list shows every agent.".into()),
        AgentsAction::List | AgentsAction::Check(_) => Ok(agents),
    }
}

/// Adds the words of `export`.
pub(crate) fn export(mut export: Export, values: Vec<OsString>) -> Result<Export, Wrong> {
    let mut values = values.into_iter();
    let session = values.next().map(OsString::into_string).transpose();
    if values.next().is_some() {
        return Err("Too many words: export takes one SESSION.".into());
    }
    export.session = session.map_err(|_| "SESSION must be UTF-8.")?;
    Ok(export)
}

/// Adds the words of `open`.
pub(crate) fn open(mut open: Open, values: Vec<OsString>) -> Result<Open, Wrong> {
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

/// The value of a flag, which must not be empty.
pub(super) fn filled(flag: &Flag, value: OsString) -> Result<String, Wrong> {
    let value = text(flag, value)?;
    if value.is_empty() { Err(format!("--{} must not be empty.", flag.long)) } else { Ok(value) }
}
