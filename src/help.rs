//! One table of commands and flags. The parser, the help texts, the completions, the manual page and the tests all
//! read it.

pub mod complete;
pub mod man;
mod page;
mod table;

pub use page::overview;
pub use table::COMMANDS;

use crate::agent::registry::DEFAULT;
use crate::protocol::fields::{self, Fallback};
use serde_json::Value as Json;

/// What a flag's value becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value: the flag itself means this JSON value.
    Switch(&'static str),
    /// A string.
    Text,
    /// A number, or JSON: taken as it stands, else as a string.
    Json,
    /// A word, `NAME=WORD,...`, or JSON.
    Words,
    /// One element of a list; the flag may be repeated.
    Item,
    /// `NAME=VALUE`, one entry of an object; the flag may be repeated.
    Pair,
}

/// Where a flag's value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// Into this field of run.start.
    Field(&'static str),
    /// To the command itself.
    Command,
}

/// What a shell offers in the place of a value or a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offers {
    /// Nothing: it is free.
    Nothing,
    /// Files.
    Files,
    /// Directories.
    Folders,
    /// The names of agents.
    Agents,
    /// The names of commands.
    Commands,
    /// These words.
    Words(&'static [&'static str]),
}

/// One flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// The name, without its dashes.
    pub long: &'static str,
    /// One letter for it.
    pub short: Option<char>,
    /// What stands for the value in help. `FILE`, `DIR` and `AGENT` say what a shell offers.
    pub metavar: &'static str,
    /// What the value becomes.
    pub value: Value,
    /// Where it goes.
    pub goes: Goes,
    /// The title of the group that begins with this flag. Without one it belongs to that of the flag before.
    pub group: Option<&'static str>,
    /// One line.
    pub help: &'static str,
    /// More sentences for the long help. May be empty.
    pub more: &'static str,
    /// All the values that there are, where they are words. May be empty.
    pub values: &'static [&'static str],
    /// The default, if it is one value and not that of a field. May be empty: see [`Flag::fallback`].
    pub default: &'static str,
    /// What follows the default in help. May be empty.
    pub also: &'static str,
}

/// The flag that every command has.
pub const HELP: Flag =
    table::own("help", "", Value::Switch("true"), "show help: -h is short, --help is long").short('h').begins("Help");

impl Flag {
    /// Whether a value follows it.
    pub fn takes_value(&self) -> bool {
        !matches!(self.value, Value::Switch(_))
    }

    /// Whether it may stand several times, each time with a value more.
    pub fn repeats(&self) -> bool {
        matches!(self.value, Value::Item | Value::Pair)
    }

    /// The default as help shows it. Empty: there is none, or it is not one value.
    pub fn fallback(&self) -> String {
        let field = match self.goes {
            Goes::Field(name) if self.takes_value() && self.default.is_empty() => fields::find(name),
            Goes::Field(_) | Goes::Command => None,
        };
        let value = match field.map(|field| field.fallback) {
            Some(Fallback::Value(value) | Fallback::Driver(value)) => value().and_then(|raw| scalar(raw.get())),
            Some(Fallback::Agent) => Some(DEFAULT.to_owned()),
            Some(Fallback::Absent) | None => None,
        };
        value.unwrap_or_else(|| self.default.to_owned()) + self.also
    }

    /// What a shell offers for its value.
    pub fn offers(&self) -> Offers {
        match self.metavar {
            "FILE" => Offers::Files,
            "DIR" => Offers::Folders,
            "AGENT" => Offers::Agents,
            _ if self.values.is_empty() => Offers::Nothing,
            _ => Offers::Words(self.values),
        }
    }
}

/// A JSON string, number or boolean as a person writes it. `None`: it is a list, an object or null.
fn scalar(json: &str) -> Option<String> {
    match serde_json::from_str(json).ok()? {
        Json::String(text) => Some(text),
        number @ Json::Number(_) => Some(number.to_string()),
        Json::Bool(yes) => Some(yes.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

/// One command.
#[derive(Debug)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// Its arguments, as help shows them.
    pub usage: &'static str,
    /// One line.
    pub about: &'static str,
    /// Its flags, group by group.
    pub flags: &'static [Flag],
    /// What a shell offers for its words.
    pub words: Offers,
    /// More for the long help: a sentence a line. May be empty.
    pub more: &'static str,
    /// Command lines with what they do.
    pub examples: &'static [(&'static str, &'static str)],
}

impl Command {
    /// Its flags and the one for help.
    pub fn all_flags(&self) -> impl Iterator<Item = &Flag> {
        self.flags.iter().chain([&HELP])
    }
}

/// The command with this name.
pub fn command(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}
