//! The command lines of `agents`, `export` and `open`.

use super::{Given, Output, Wrong, one_of, text};
use crate::help::Goes;
use crate::protocol::request::{Options, is_environment_name};
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
    /// `--session`.
    pub session: Option<String>,
    /// `--cwd`.
    pub cwd: Option<PathBuf>,
    /// `--env`.
    pub env: BTreeMap<String, String>,
    /// `--agent-arg`.
    pub args: Vec<String>,
    /// What it has in common with a run: `--model`, `--mode`, `--permissions` and `--yes`.
    pub options: Options,
}

const OUTPUTS: &[(&str, Output)] = &[("cli", Output::Cli), ("json", Output::Json)];

pub(super) fn agents(given: Vec<Given>, values: Vec<OsString>) -> Result<Agents, Wrong> {
    let mut output = Output::Cli;
    for (flag, value) in given {
        output = one_of(flag, value, OUTPUTS)?;
    }
    let words: Option<Vec<String>> = values.into_iter().map(|value| value.into_string().ok()).collect();
    let words = words.unwrap_or_default();
    let what = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => What::List,
        ["check"] => What::Check(None),
        ["check", name] => What::Check(Some(name.into())),
        _ => return Err("Say what: agents list, agents check, or agents check NAME.".into()),
    };
    Ok(Agents { what, output })
}

pub(super) fn export(given: Vec<Given>, values: Vec<OsString>) -> Result<Export, Wrong> {
    let mut export = Export { agent: None, session: String::new(), out: None, force: false, output: Output::Cli };
    for (flag, value) in given {
        match flag.long {
            "agent" => export.agent = Some(text(flag, value)?),
            "out" => export.out = Some(value.into()),
            "force" => export.force = true,
            _ => export.output = one_of(flag, value, OUTPUTS)?,
        }
    }
    let [session] = <[OsString; 1]>::try_from(values).map_err(|_| "export needs the id of one SESSION.".to_owned())?;
    export.session = session.into_string().map_err(|_| "The session's id must be UTF-8.".to_owned())?;
    Ok(export)
}

pub(super) fn open(given: Vec<Given>, values: Vec<OsString>) -> Result<Open, Wrong> {
    let mut open = Open::default();
    for (flag, value) in given {
        match (flag.goes, flag.long) {
            (Goes::Field(name), _) => super::adhoc::field(&mut open.options, flag, name, value)?,
            (_, "agent") => open.agent = Some(text(flag, value)?),
            (_, "session") => open.session = Some(filled(flag.long, text(flag, value)?)?),
            (_, "cwd") => open.cwd = Some(value.into()),
            (_, "agent-arg") => open.args.push(text(flag, value)?),
            _ => {
                let pair = text(flag, value)?;
                let pair = pair.split_once('=').filter(|(name, _)| is_environment_name(name));
                let (name, value) = pair.ok_or_else(|| format!("--{} must be {}.", flag.long, flag.metavar))?;
                open.env.insert(name.into(), value.into());
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
