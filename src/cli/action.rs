//! The actions of a command, such as `get` of `config`, as rows, each with the reader of its words.

use super::{Wrong, unknown};
use crate::suggest::{Typed, either};
use std::ffi::OsString;

/// The completions that a shell offers for a value or a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offers {
    Nothing,
    Files,
    Folders,
    Agents,
    /// The names and ids of the last sessions in the directory.
    Sessions,
    Worktrees,
    /// The modes of the agent that the command line names, or of the default agent.
    Modes,
    Specs,
    Plans,
    Commands,
    /// The names that lead to a section of the protocol reference.
    Sections,
    Keys,
    /// The values of the key in the preceding word.
    ValuesOfKey,
    Words(&'static [&'static str]),
    WordsOrFiles(&'static [&'static str]),
}

#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub name: &'static str,
    pub offers: Offers,
}

#[derive(Clone, Copy, Debug)]
pub struct Action {
    pub name: &'static str,
    pub about: &'static str,
    pub words: &'static [Word],
    pub optional: bool,
}

impl Action {
    /// The action with its words: `get KEY`.
    pub fn usage(&self) -> String {
        let word = |word: &Word| if self.optional { format!("[{}]", word.name) } else { word.name.to_owned() };
        std::iter::once(self.name.to_owned()).chain(self.words.iter().map(word)).collect::<Vec<_>>().join(" ")
    }
}

#[derive(Debug)]
pub(crate) struct ActionRow<A: 'static> {
    action: Action,
    read: Reader<A>,
}

#[derive(Debug)]
enum Reader<A: 'static> {
    Bare(fn() -> A),
    Maybe(fn(Option<String>) -> A),
    One(fn(String) -> A),
    Two(fn(String, String) -> A),
}

const fn row<A>(
    name: &'static str,
    about: &'static str,
    words: &'static [Word],
    optional: bool,
    read: Reader<A>,
) -> ActionRow<A> {
    ActionRow { action: Action { name, about, words, optional }, read }
}

pub(crate) const fn bare<A>(name: &'static str, about: &'static str, read: fn() -> A) -> ActionRow<A> {
    row(name, about, &[], false, Reader::Bare(read))
}

pub(crate) const fn maybe<A>(
    name: &'static str,
    about: &'static str,
    words: &'static [Word; 1],
    read: fn(Option<String>) -> A,
) -> ActionRow<A> {
    row(name, about, words, true, Reader::Maybe(read))
}

pub(crate) const fn one<A>(
    name: &'static str,
    about: &'static str,
    words: &'static [Word; 1],
    read: fn(String) -> A,
) -> ActionRow<A> {
    row(name, about, words, false, Reader::One(read))
}

pub(crate) const fn two<A>(
    name: &'static str,
    about: &'static str,
    words: &'static [Word; 2],
    read: fn(String, String) -> A,
) -> ActionRow<A> {
    row(name, about, words, false, Reader::Two(read))
}

pub(crate) const fn actions<A, const N: usize>(rows: &[ActionRow<A>]) -> [Action; N] {
    let (mut actions, mut at) = ([Action { name: "", about: "", words: &[], optional: false }; N], 0);
    while at < N {
        actions[at] = rows[at].action;
        at += 1;
    }
    actions
}

/// Error: the action is missing or unknown, or has too few or too many words.
pub(crate) fn act<A>(command: &str, rows: &'static [ActionRow<A>], words: Vec<OsString>) -> Result<A, Wrong> {
    let words: Result<Vec<String>, OsString> = words.into_iter().map(OsString::into_string).collect();
    let mut words = words.map_err(|_| format!("The words of {command} must be UTF-8."))?.into_iter();
    let names: Vec<&str> = rows.iter().map(|row| row.action.name).collect();
    let name = words.next().ok_or_else(|| format!("Missing action: {}.", either(&names)))?;
    let row = rows.iter().find(|row| row.action.name == name);
    let row = row.ok_or_else(|| {
        unknown("action", "", Typed::Value(&name), &names, &format!("`spektacular help {command}` lists the actions."))
    })?;
    let usage = || format!("{command} {}", row.action.usage());
    let missing = |at: usize| {
        let word = row.action.words.get(at).map_or("word", |word| word.name);
        Err(format!("Missing {word}: {}.", usage()))
    };
    match (&row.read, words.next(), words.next(), words.next()) {
        (Reader::Bare(read), None, ..) => Ok(read()),
        (Reader::Maybe(read), first, None, _) => Ok(read(first)),
        (Reader::One(read), Some(first), None, _) => Ok(read(first)),
        (Reader::Two(read), Some(first), Some(second), None) => Ok(read(first, second)),
        (Reader::One(_) | Reader::Two(_), None, ..) => missing(0),
        (Reader::Two(_), Some(_), None, _) => missing(1),
        (Reader::Bare(_) | Reader::Maybe(_) | Reader::One(_) | Reader::Two(_), ..) => {
            Err(format!("Too many words: {}.", usage()))
        }
    }
}
