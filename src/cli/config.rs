//! The command line of `config`.

use super::command::{GivenFlag, Wrong, store};
use super::flags::CONFIG;
use super::unknown;
use crate::suggest::either;
use std::ffi::OsString;

/// `config`.
#[derive(Debug, Default)]
pub struct ConfigArgs {
    /// What is to be done.
    pub action: ConfigAction,
    /// `--global`: with the user's file, not the project's.
    pub global: bool,
    /// `--output json`.
    pub json: bool,
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum ConfigAction {
    /// Show a value.
    Get(String),
    /// Put a value into a file.
    Set(String, String),
    /// Take a value out of a file.
    Unset(String),
    /// Show all values.
    #[default]
    List,
    /// Show where a file is.
    Path,
    /// Trust the project's file.
    Trust,
}

const ACTIONS: [&str; 6] = ["get", "set", "unset", "list", "path", "trust"];

/// Reads its flags and words.
pub fn read(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<ConfigArgs, Wrong> {
    let mut config: ConfigArgs = store(CONFIG, given)?;
    let words: Result<Vec<String>, OsString> = words.into_iter().map(OsString::into_string).collect();
    let words = words.map_err(|_| "A key and its value must be UTF-8.".to_owned())?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    config.action = match words.as_slice() {
        ["get", key] => ConfigAction::Get((*key).into()),
        ["set", key, value] => ConfigAction::Set((*key).into(), (*value).into()),
        ["unset", key] => ConfigAction::Unset((*key).into()),
        ["list"] => ConfigAction::List,
        ["path"] => ConfigAction::Path,
        ["trust"] => ConfigAction::Trust,
        [] => return Err(format!("Missing action: {}.", either(&ACTIONS))),
        [action @ ("get" | "unset"), ..] => return Err(format!("config {action} takes one KEY: config {action} KEY.")),
        ["set", ..] => return Err("config set takes a KEY and one VALUE: config set KEY 'VALUE'.".into()),
        [action, ..] if ACTIONS.contains(action) => return Err(format!("config {action} takes no words.")),
        [action, ..] => {
            return Err(unknown("action", "", action, &ACTIONS, "`spektacular help config` lists the actions."));
        }
    };
    if config.global && !matches!(config.action, ConfigAction::Set(..) | ConfigAction::Unset(_) | ConfigAction::Path) {
        return Err("--global is for config set, unset and path.".into());
    }
    Ok(config)
}
