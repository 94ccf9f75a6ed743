//! The command line of `demo`.

use super::action::{ActionRow, Offers, Word, act, bare, maybe, one};
use super::{Output, Wrong};
use crate::agent::demo::catalog::NAMES;
use std::ffi::OsString;

/// The arguments of `demo`.
#[derive(Debug, Default)]
pub struct DemoArgs {
    pub what: DemoAction,
    /// The value of `--output`.
    pub output: Output,
}

/// The actions of `demo`.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum DemoAction {
    /// The action `list`.
    #[default]
    List,
    /// The action `show`, for a name or the path of a file.
    Show(String),
    /// The action `play`. `None`: the default scenario.
    Play(Option<String>),
}

const SCENARIO: Word = Word { name: "SCENARIO", offers: Offers::WordsOrFiles(NAMES) };

pub(crate) const ACTIONS: &[ActionRow<DemoAction>] = &[
    bare("list", "list the scenarios", || DemoAction::List),
    one("show", "print the dialogue of a scenario", &[SCENARIO], DemoAction::Show),
    maybe(
        "play",
        "play the agent's side on stdin and stdout, as --agent demo starts it",
        &[SCENARIO],
        DemoAction::Play,
    ),
];

/// Adds the words of `demo`.
pub(crate) fn read(demo: DemoArgs, words: Vec<OsString>) -> Result<DemoArgs, Wrong> {
    Ok(DemoArgs { what: act("demo", ACTIONS, words)?, ..demo })
}
