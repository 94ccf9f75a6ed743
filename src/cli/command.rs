//! Commands as rows. The parser, the help texts, the completions, the manual page and the tests all read them.

use super::action::{Action, Offers};
use super::row::{Flag, GivenFlag, HELP};
use super::{Adhoc, Wrong};
use crate::protocol::words::WorkflowKind;
use std::ffi::{OsStr, OsString};
use std::fmt;

#[derive(Debug)]
pub struct Command {
    pub name: &'static str,
    pub other_names: &'static [&'static str],
    pub text: &'static CommandText,
    /// The page of the reference, which `help NAME reference` prints. May be empty.
    pub page: &'static str,
    pub words: Words,
    pub flags: &'static [Flag],
    /// Flags of similar programs, each with the sentence that names ours.
    pub foreign: &'static [(&'static str, &'static str)],
    /// The commands below this one. Their names begin with its name: `spec check`.
    pub below: &'static [Command],
    pub read: ReadCommand,
    pub runs: Runs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    Nothing,
    Adhoc,
    /// Runs of `adhoc` for a person, whatever output the configuration names.
    Chat,
    Workflow(WorkflowKind),
}

pub type ReadCommand = fn(Vec<GivenFlag>, Vec<OsString>) -> Result<Runnable, Wrong>;

#[derive(Debug)]
pub struct CommandText {
    /// A description of one line.
    pub about: &'static str,
    /// Further sentences for the long help, one per line. May be empty.
    pub more: &'static str,
    /// Command lines, each with its effect.
    pub examples: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy, Debug)]
pub enum Words {
    Actions(&'static [Action]),
    /// Other words: their description in help, and the completions for them.
    Free(&'static str, Offers),
}

#[derive(Debug)]
pub enum Runnable {
    Run(Box<Adhoc>),
    Other(Box<dyn ParsedCommand>),
}

pub trait ParsedCommand: fmt::Debug {
    /// Returns the exit code.
    fn run(self: Box<Self>) -> u8;
}

#[derive(Debug)]
struct WithMain<T> {
    args: T,
    main: fn(T) -> u8,
}

impl<T: fmt::Debug> ParsedCommand for WithMain<T> {
    fn run(self: Box<Self>) -> u8 {
        (self.main)(self.args)
    }
}

impl Words {
    pub fn offers(&self) -> Offers {
        match self {
            Words::Actions(_) => Offers::Nothing,
            Words::Free(_, offers) => *offers,
        }
    }
}

impl Runnable {
    /// `main` returns the exit code.
    pub fn new<T: fmt::Debug + 'static>(args: T, main: fn(T) -> u8) -> Runnable {
        Runnable::Other(Box::new(WithMain { args, main }))
    }
}

impl Command {
    pub const fn named(name: &'static str, text: &'static CommandText, read: ReadCommand) -> Command {
        let words = Words::Free("", Offers::Nothing);
        let (other_names, flags, foreign, below) = (&[], &[], &[], &[]);
        Command { name, other_names, text, page: "", words, flags, foreign, below, read, runs: Runs::Nothing }
    }

    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.other_names.contains(&name)
    }

    pub fn all_flags(&self) -> impl Iterator<Item = &Flag> {
        self.flags.iter().chain([&HELP])
    }

    /// The command's flags, the further flags of the commands below it, and `--help`.
    pub fn flags_here(&self) -> Vec<&Flag> {
        let mut flags: Vec<&Flag> = self.flags.iter().collect();
        for flag in self.below.iter().flat_map(|command| command.flags) {
            if flags.iter().all(|known| known.long != flag.long) {
                flags.push(flag);
            }
        }
        flags.push(&HELP);
        flags
    }

    pub fn under(&self, word: &OsStr) -> Option<&'static Command> {
        self.below.iter().find(|command| word == command.last_word())
    }

    /// `check` of `spec check`.
    pub fn last_word(&self) -> &'static str {
        self.name.rsplit(' ').next().unwrap_or(self.name)
    }
}
