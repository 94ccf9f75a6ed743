//! The command line of `config`.

use super::Wrong;
use super::action::{ActionRow, Offers, Word, act, bare, one, two};
use std::ffi::OsString;

/// The arguments of `config`.
#[derive(Debug, Default)]
pub struct ConfigArgs {
    pub action: ConfigAction,
    /// Whether `--global` is given: use the user's file, not the project's.
    pub global: bool,
    /// Whether `--output json` is given.
    pub json: bool,
}

/// The actions of `config`.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum ConfigAction {
    /// The action `get`, with the key.
    Get(String),
    /// The action `set`, with the key and the value.
    Set(String, String),
    /// The action `unset`, with the key.
    Unset(String),
    /// The action `list`.
    #[default]
    List,
    /// The action `path`.
    Path,
    /// The action `trust`.
    Trust,
}

const KEY: Word = Word { name: "KEY", offers: Offers::Keys };
const VALUE: Word = Word { name: "VALUE", offers: Offers::ValuesOfKey };

pub(crate) const ACTIONS: &[ActionRow<ConfigAction>] = &[
    one("get", "print a value", &[KEY], ConfigAction::Get),
    two("set", "write a value to a file", &[KEY, VALUE], ConfigAction::Set),
    one("unset", "remove a value from a file", &[KEY], ConfigAction::Unset),
    bare("list", "print every value and its origin, with secrets masked", || ConfigAction::List),
    bare("path", "print the path of the project's file", || ConfigAction::Path),
    bare("trust", "trust the project's file and prompts as they are now", || ConfigAction::Trust),
];

/// Adds the words of `config`.
pub(crate) fn read(mut config: ConfigArgs, words: Vec<OsString>) -> Result<ConfigArgs, Wrong> {
    config.action = act("config", ACTIONS, words)?;
    match config.action {
        ConfigAction::Get(_) | ConfigAction::List | ConfigAction::Trust if config.global => {
            Err("--global is for config set, unset and path.".into())
        }
        ConfigAction::Get(_)
        | ConfigAction::Set(..)
        | ConfigAction::Unset(_)
        | ConfigAction::List
        | ConfigAction::Path
        | ConfigAction::Trust => Ok(config),
    }
}
