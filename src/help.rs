//! One table of commands and flags. The parser, the help texts, the completions, the manual page and the tests all
//! read it.

pub mod complete;
pub mod man;
mod page;
mod table;

pub use page::overview;
pub use table::COMMANDS;

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
    /// What holds without the flag, where that is a value. May be empty.
    pub default: &'static str,
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
