//! The command lines of `agents`, `export` and `open`.

use super::adhoc::option;
use super::command::{Flag, GivenFlag, Goes, Wrong, store};
use super::flags::{AGENTS, EXPORT, OPEN};
use super::{Output, text, unknown};
use crate::protocol::request::Options;
use crate::suggest::either;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// `agents`.
#[derive(Debug, Default)]
pub struct AgentsArgs {
    /// The action.
    pub what: AgentsAction,
    /// `--output`.
    pub output: Output,
    /// `--all`: also those that are not available, one by one.
    pub all: bool,
}

/// The actions of `agents`.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum AgentsAction {
    /// `list`.
    #[default]
    List,
    /// `check`, of one agent or of all.
    Check(Option<String>),
}

/// `export`.
#[derive(Debug, Default)]
pub struct Export {
    /// `--agent`.
    pub agent: Option<String>,
    /// The session's id.
    pub session: String,
    /// `--out`.
    pub out: Option<PathBuf>,
    /// `--force`.
    pub force: bool,
    /// `--output`.
    pub output: Output,
}

/// `open`.
#[derive(Debug, Default)]
pub struct Open {
    /// `--agent`.
    pub agent: Option<String>,
    /// The words of the prompt.
    pub prompt: Option<String>,
    /// `--session`.
    pub session: Option<String>,
    /// `--cwd`.
    pub cwd: Option<PathBuf>,
    /// `--env`.
    pub env: BTreeMap<String, String>,
    /// `--agent-arg`.
    pub args: Vec<String>,
    /// The fields of run.start that apply to it: `--model`, `--mode`, `--permissions` and `--yes`.
    pub options: Options,
}

const ACTIONS: [&str; 2] = ["list", "check"];

/// Reads the flags and words of `agents`.
pub fn agents(given: Vec<GivenFlag>, values: Vec<OsString>) -> Result<AgentsArgs, Wrong> {
    let mut agents: AgentsArgs = store(AGENTS, given)?;
    let words: Vec<String> = values.iter().map(|value| value.to_string_lossy().into_owned()).collect();
    agents.what = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => AgentsAction::List,
        ["check"] => AgentsAction::Check(None),
        ["check", name] => AgentsAction::Check(Some(name.into())),
        [] => return Err(format!("Missing action: {}.", either(&ACTIONS))),
        ["list", ..] => return Err("Too many words: agents list takes none.".into()),
        ["check", ..] => return Err("Too many words: agents check takes one NAME at most.".into()),
        [action, ..] => {
            return Err(unknown("action", "", action, &ACTIONS, "`spektacular help agents` lists the actions."));
        }
    };
    if agents.all && agents.what == AgentsAction::List {
        return Err("--all is for agents check: agents list shows every agent.".into());
    }
    Ok(agents)
}

/// Reads the flags and words of `export`.
pub fn export(given: Vec<GivenFlag>, values: Vec<OsString>) -> Result<Export, Wrong> {
    let mut export: Export = store(EXPORT, given)?;
    let [session] = <[OsString; 1]>::try_from(values).map_err(|values| match values.len() {
        0 => "Missing SESSION: export needs the id of a session.",
        _ => "Too many words: export takes the id of one SESSION.",
    })?;
    export.session = session.into_string().map_err(|_| "SESSION must be UTF-8.")?;
    Ok(export)
}

/// Reads the flags and words of `open`.
pub fn open(given: Vec<GivenFlag>, values: Vec<OsString>) -> Result<Open, Wrong> {
    let mut open: Open = store(OPEN, given)?;
    let words: Result<Vec<String>, _> = values.into_iter().map(OsString::into_string).collect();
    let prompt = words.map_err(|_| "The prompt must be UTF-8.".to_owned())?.join(" ");
    open.prompt = Some(prompt).filter(|prompt| !prompt.trim().is_empty());
    Ok(open)
}

/// Stores a flag of `open` for a field of run.start.
pub(super) fn field_of_open(open: &mut Open, flag: &'static Flag, value: OsString) -> Result<(), Wrong> {
    let Goes::Field(name) = flag.goes else { return Ok(()) };
    option(&mut open.options, flag, name, value)
}

/// The value of a flag, which must not be empty.
pub(super) fn filled(flag: &Flag, value: OsString) -> Result<String, Wrong> {
    let value = text(flag, value)?;
    if value.is_empty() { Err(format!("--{} must not be empty.", flag.long)) } else { Ok(value) }
}
