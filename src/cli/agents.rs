//! The command lines of `agents`, `export` and `open`.

use super::command::{Given, Wrong};
use super::{Output, text, unknown, variable};
use crate::suggest::either;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// `agents`.
#[derive(Debug)]
pub struct Agents {
    /// What is to be done.
    pub what: What,
    /// `--output`.
    pub output: Output,
    /// `--all`: also those that are not available, one by one.
    pub all: bool,
}

/// What `agents` does.
#[derive(Debug, PartialEq, Eq)]
pub enum What {
    /// `list`.
    List,
    /// `check`, of one agent or of all.
    Check(Option<String>),
}

/// `export`.
#[derive(Debug)]
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
    /// `--model`.
    pub model: Option<String>,
    /// `--session`.
    pub session: Option<String>,
    /// `--cwd`.
    pub cwd: Option<PathBuf>,
    /// `--env`.
    pub env: BTreeMap<String, String>,
    /// `--agent-arg`.
    pub args: Vec<String>,
    /// `--yes`.
    pub allow: bool,
}

const ACTIONS: [&str; 2] = ["list", "check"];

/// Reads the flags and words of `agents`.
pub fn agents(given: Vec<Given>, values: Vec<OsString>) -> Result<Agents, Wrong> {
    let (mut output, mut all) = (Output::Cli, false);
    for (flag, value) in given {
        match flag.long {
            "all" => all = true,
            _ => output = Output::read(flag, &value)?,
        }
    }
    let words: Vec<String> = values.iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let what = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => What::List,
        ["check"] => What::Check(None),
        ["check", name] => What::Check(Some(name.into())),
        [] => return Err(format!("Missing action: {}.", either(&ACTIONS))),
        ["list", ..] => return Err("Too many words: agents list takes none.".into()),
        ["check", ..] => return Err("Too many words: agents check takes one NAME at most.".into()),
        [action, ..] => {
            return Err(unknown("action", "", action, &ACTIONS, "`spektacular help agents` lists the actions."));
        }
    };
    if all && what == What::List {
        return Err("--all is for agents check: agents list shows every agent.".into());
    }
    Ok(Agents { what, output, all })
}

/// Reads the flags and words of `export`.
pub fn export(given: Vec<Given>, values: Vec<OsString>) -> Result<Export, Wrong> {
    let mut export = Export { agent: None, session: String::new(), out: None, force: false, output: Output::Cli };
    for (flag, value) in given {
        match flag.long {
            "agent" => export.agent = Some(text(flag, value)?),
            "out" => export.out = Some(value.into()),
            "force" => export.force = true,
            _ => export.output = Output::read(flag, &value)?,
        }
    }
    let [session] = <[OsString; 1]>::try_from(values).map_err(|values| match values.len() {
        0 => "Missing SESSION: export needs the id of a session.",
        _ => "Too many words: export takes the id of one SESSION.",
    })?;
    export.session = session.into_string().map_err(|_| "SESSION must be UTF-8.")?;
    Ok(export)
}

/// Reads the flags and words of `open`.
pub fn open(given: Vec<Given>, values: Vec<OsString>) -> Result<Open, Wrong> {
    let mut open = Open::default();
    for (flag, value) in given {
        match flag.long {
            "agent" => open.agent = Some(text(flag, value)?),
            "model" => open.model = Some(filled(flag.long, text(flag, value)?)?),
            "session" => open.session = Some(filled(flag.long, text(flag, value)?)?),
            "cwd" => open.cwd = Some(value.into()),
            "agent-arg" => open.args.push(text(flag, value)?),
            "yes" => open.allow = true,
            _ => {
                let (name, value) = variable(flag, value)?;
                open.env.insert(name, value);
            }
        }
    }
    let words: Result<Vec<String>, _> = values.into_iter().map(OsString::into_string).collect();
    let prompt = words.map_err(|_| "The prompt must be UTF-8.".to_owned())?.join(" ");
    open.prompt = Some(prompt).filter(|prompt| !prompt.trim().is_empty());
    Ok(open)
}

fn filled(flag: &str, value: String) -> Result<String, Wrong> {
    if value.is_empty() { Err(format!("--{flag} must not be empty.")) } else { Ok(value) }
}
