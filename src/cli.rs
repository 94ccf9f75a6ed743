//! Parses argv into a request. Pure: reads no file, terminal or environment.

pub(crate) mod action;
pub(crate) mod adhoc;
pub(crate) mod authors;
pub(crate) mod choices;
pub mod command;
pub(crate) mod flags;
pub(crate) mod foreign;
pub mod row;
pub mod typed_fields;

pub use adhoc::{Adhoc, RepeatedFlag, WorktreeName};
pub use choices::{AtEof, Color, DiffSize, Output};

use crate::agent::registry::Agents;
use crate::protocol::request::{Seconds, is_environment_name};
use crate::suggest::{Typed, Unknown, either, hint, plain_name};
use command::{Command, Runnable};
use lexopt::Arg;
use row::{Flag, FlagForm, GivenFlag};
use std::ffi::{OsStr, OsString};

/// A message about an error in a command line. It contains only names that may be shown, and no value.
pub type Wrong = String;

#[derive(Debug)]
pub enum Request {
    Version,
    Help(Help),
    Start(Runnable),
}

#[derive(Clone, Copy, Debug)]
pub enum Help {
    Overview,
    /// One line per flag of a command.
    Short(&'static Command),
    Long(&'static Command),
    Flags(&'static Command),
    Flag(&'static Flag),
    Page(&'static Command),
}

/// The words after a command's name that ask for its page of the reference, and for all about its flags.
const PAGE: &str = "reference";
const FLAGS: &str = "flags";

type Commands = &'static [Command];

/// `args`: without the program's name.
pub fn parse(commands: Commands, args: impl IntoIterator<Item = OsString>) -> Result<Request, Wrong> {
    let args: Vec<OsString> = args.into_iter().collect();
    let mut parser = lexopt::Parser::from_args(args.iter().cloned());
    let first = parser.next().map_err(|error| unparsed(&error, ""))?;
    match first {
        None => Err("Missing command.".into()),
        Some(Arg::Long("help") | Arg::Short('h')) => explained(commands, &words(parser, "--help")?).map(Request::Help),
        Some(Arg::Long("version") | Arg::Short('V')) => match words(parser, "--version")?.is_empty() {
            true => Ok(Request::Version),
            false => Err("--version takes no arguments.".into()),
        },
        Some(Arg::Value(name)) => {
            let command = find(commands, &name)?;
            let Some(below) = args.get(1).and_then(|word| command.under(word)) else {
                return of_command(command, parser);
            };
            // Flags before the command are rejected, so the word is a value.
            let _ = parser.next();
            of_command(below, parser)
        }
        Some(Arg::Long(name)) => Err(too_early(commands, name, "--")),
        Some(Arg::Short(letter)) => Err(too_early(commands, letter.encode_utf8(&mut [0; 4]), "-")),
    }
}

/// `before`: the flag before them, after which no other flag may follow.
fn words(mut parser: lexopt::Parser, before: &str) -> Result<Vec<OsString>, Wrong> {
    let mut words = Vec::new();
    while let Some(arg) = parser.next().map_err(|error| unparsed(&error, ""))? {
        let Arg::Value(word) = arg else { return Err(format!("{before} takes no further flags.")) };
        words.push(word);
    }
    Ok(words)
}

fn too_early(commands: Commands, name: &str, dashes: &str) -> Wrong {
    let is_it = |flag: &&Flag| match dashes {
        "--" => flag.is_named(name),
        _ => flag.short.is_some_and(|short| name == short.encode_utf8(&mut [0; 4])),
    };
    let owner = commands.iter().find(|command| command.flags.iter().any(|flag| is_it(&flag)));
    match owner {
        Some(owner) => format!("{dashes}{name} must follow a command: spektacular {} {dashes}{name}.", owner.name),
        None => {
            let hint = commands.iter().find_map(|command| hint_of(command, name, dashes));
            let (known, otherwise): (&[&str], _) = match hint {
                Some(ours) => (&[], format!("{ours} Flags follow a command: spektacular adhoc.")),
                None => (&["help", "version"], "`spektacular help` lists the commands.".to_owned()),
            };
            unknown("flag", dashes, Typed::Name(name), known, &otherwise)
        }
    }
}

/// `dashes`: `-` for a flag of one letter.
fn hint_of(command: &Command, name: &str, dashes: &str) -> Option<&'static str> {
    let is_it = |foreign: &str| foreign == name && (name.len() == 1) == (dashes == "-");
    command.foreign.iter().find(|(foreign, _)| is_it(foreign)).map(|(_, ours)| *ours)
}

fn unknown(what: &str, dashes: &str, typed: Typed<'_>, known: &[&str], otherwise: &str) -> Wrong {
    Unknown { what, dashes, typed, place: "" }.message(known.iter().copied(), otherwise)
}

/// `command`: the command whose help applies, after a space.
fn unparsed(error: &lexopt::Error, command: &str) -> Wrong {
    if let lexopt::Error::UnexpectedValue { option, .. } = error
        && let Some(flag) = plain_name(option)
    {
        return format!("{flag} takes no value.");
    }
    format!("Invalid command line. See `spektacular help{command}`.")
}

pub fn named(commands: Commands, args: &[OsString]) -> Option<&'static Command> {
    let first = args.first()?.to_string_lossy();
    let command = commands.iter().find(|command| command.is_named(&first))?;
    args.get(1).and_then(|word| command.under(word)).or(Some(command))
}

fn find(commands: Commands, name: &OsStr) -> Result<&'static Command, Wrong> {
    let name = name.to_string_lossy();
    if let Some(command) = commands.iter().find(|command| command.is_named(&name)) {
        return Ok(command);
    }
    if let Some(ours) = foreign::command(&name) {
        return Err(unknown("command", "", Typed::Value(&name), &[], &ours));
    }
    let otherwise = match name.contains(' ') {
        true => "To run a task: spektacular adhoc \"TASK\".",
        false => "`spektacular help` lists the commands.",
    };
    let names: Vec<&str> = commands.iter().map(|command| command.name).collect();
    Err(unknown("command", "", Typed::Value(&name), &names, otherwise))
}

pub fn explained(commands: Commands, words: &[OsString]) -> Result<Help, Wrong> {
    let too_many = || "Too many words: help explains one command, as in spektacular help adhoc.".to_owned();
    match words {
        [] => Ok(Help::Overview),
        [name] => find(commands, name).map(Help::Long),
        [name, rest @ ..] => {
            let command = find(commands, name)?;
            let (command, word) = match (rest.first().and_then(|word| command.under(word)), rest) {
                (Some(below), [_]) => return Ok(Help::Long(below)),
                (Some(below), [_, word]) => (below, word),
                (None, [word]) => (command, word),
                (Some(_) | None, _) => return Err(too_many()),
            };
            let name = word.to_string_lossy();
            match &*name {
                PAGE if !command.page.is_empty() => Ok(Help::Page(command)),
                FLAGS if !command.flags.is_empty() => Ok(Help::Flags(command)),
                name => command.flags.iter().find(|flag| flag.is_named(name)).map(Help::Flag).ok_or_else(too_many),
            }
        }
    }
}

pub fn no_words(command: &str, words: &[OsString]) -> Result<(), Wrong> {
    if words.is_empty() { Ok(()) } else { Err(format!("{command} takes no arguments.")) }
}

/// The meaning of the only word. `noun`: its kind, as messages name it.
pub(crate) fn one_word<T>(
    command: &str,
    noun: &str,
    words: &[OsString],
    known: &[&str],
    meaning: fn(&str) -> Option<T>,
) -> Result<T, Wrong> {
    let names = either(known);
    match words {
        [] => Err(format!("Missing {noun}: {names}.")),
        [word] => {
            let word = word.to_string_lossy();
            let hint = hint(&word, known.iter().copied());
            meaning(&word).ok_or_else(|| format!("The {noun} must be {names}.{hint}"))
        }
        _ => Err(format!("Too many words: {command} takes one {noun}: {names}.")),
    }
}

/// The output mode that an invalid command line asks for, if it can be determined.
pub fn asked_output(args: &[OsString]) -> Option<Output> {
    let is = |at: usize, text: &str| args.get(at).is_some_and(|arg| arg == text);
    let asks = |at: usize, mode: &str| is(at, &format!("--output={mode}")) || (is(at, "--output") && is(at + 1, mode));
    let last = |mode| (0..args.len()).rev().find(|at| asks(*at, mode) || (mode == "json" && is(*at, "--json")));
    [(last("json"), Output::Json), (last("cli"), Output::Cli)]
        .into_iter()
        .filter_map(|(at, output)| Some((at?, output)))
        .max_by_key(|(at, _)| *at)
        .map(|(_, output)| output)
}

fn of_command(command: &'static Command, mut parser: lexopt::Parser) -> Result<Request, Wrong> {
    let (mut given, mut values): (Vec<GivenFlag>, Vec<OsString>) = (Vec::new(), Vec::new());
    let listed = format!("`spektacular help {}` lists the flags.", command.name);
    let continues = command.flags.iter().any(|flag| flag.short == Some('c') && !flag.takes_value());
    if continues && let Some(wrong) = parser.try_raw_args().and_then(|args| foreign::setting(args.as_slice())) {
        return Err(wrong);
    }
    loop {
        let next = parser.next().map_err(|error| unparsed(&error, &format!(" {}", command.name)))?;
        let (at, typed) = match next {
            None => break,
            Some(Arg::Long("help")) => return Ok(Request::Help(Help::Long(command))),
            Some(Arg::Short('h')) => return Ok(Request::Help(Help::Short(command))),
            Some(Arg::Value(value)) => {
                values.push(value);
                continue;
            }
            Some(Arg::Long(name)) => {
                let known = command.flags.iter().position(|flag| flag.is_named(name));
                (known.ok_or_else(|| unknown_flag(command, name, &listed))?, format!("--{name}"))
            }
            Some(Arg::Short(letter)) => {
                let known = command.flags.iter().position(|flag| flag.short == Some(letter));
                (known.ok_or_else(|| unknown_letter(command, letter, &listed))?, format!("-{letter}"))
            }
        };
        let flag = &command.flags[at];
        let value = match flag.value {
            FlagForm::Switch(_) => OsString::new(),
            FlagForm::Attached => {
                let attached = parser.optional_value();
                attached.or_else(|| next_agent(&mut parser, flag)).unwrap_or_default()
            }
            FlagForm::Text | FlagForm::Json | FlagForm::Words | FlagForm::Item | FlagForm::Pair => {
                value_of(&mut parser, command, flag, &typed)?
            }
        };
        given.push(GivenFlag { at, value });
    }
    (command.read)(given, values).map(Request::Start)
}

fn unknown_flag(command: &Command, name: &str, listed: &str) -> Wrong {
    match hint_of(command, name, "--") {
        Some(ours) => unknown("flag", "--", Typed::Name(name), &[], ours),
        None => {
            let known: Vec<&str> = command.all_flags().map(|flag| flag.long).collect();
            unknown("flag", "--", Typed::Name(name), &known, listed)
        }
    }
}

fn unknown_letter(command: &Command, letter: char, listed: &str) -> Wrong {
    let letter = letter.to_string();
    unknown("flag", "-", Typed::Name(&letter), &[], hint_of(command, &letter, "-").unwrap_or(listed))
}

/// Error: the value is missing, or the next word is a flag, because to other programs the same flag may be a switch.
fn value_of(parser: &mut lexopt::Parser, command: &Command, flag: &Flag, typed: &str) -> Result<OsString, Wrong> {
    if let Some(attached) = parser.optional_value() {
        return Ok(attached);
    }
    let value = parser.value().map_err(|_| format!("{typed} needs a value: {typed} {}.", flag.metavar))?;
    let other = value.to_str().and_then(|word| word.strip_prefix("--")).and_then(|word| word.split('=').next());
    let is_flag =
        |name: &&str| command.all_flags().any(|flag| flag.is_named(name)) || hint_of(command, name, "--").is_some();
    match other.filter(is_flag).filter(|_| flag.metavar != "ARG") {
        Some(name) => Err(format!(
            "{typed} needs a value: {typed} {}. The next word is the flag --{name}. If it is the value, use --{}=--{name}.",
            flag.metavar, flag.long
        )),
        None => Ok(value),
    }
}

/// Takes the next word if it names a built-in agent and the flag takes one: `--review codex`.
fn next_agent(parser: &mut lexopt::Parser, flag: &Flag) -> Option<OsString> {
    if !flag.metavar.starts_with("AGENT") {
        return None;
    }
    let known = Agents::built_in();
    let is_agent = |word: &OsStr| {
        let name = word.to_str().and_then(|word| word.split(':').next());
        name.is_some_and(|name| known.find(name).is_some())
    };
    parser.try_raw_args()?.next_if(is_agent)
}

pub(crate) fn text(flag: &Flag, value: OsString) -> Result<String, Wrong> {
    value.into_string().map_err(|_| format!("--{} must be UTF-8.", flag.long))
}

fn seconds(flag: &Flag, value: &OsStr) -> Result<Seconds, Wrong> {
    let number =
        value.to_str().and_then(|text| text.parse().ok()).filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.map(Seconds).ok_or_else(|| format!("--{} must be a number of seconds above 0.", flag.long))
}

pub(crate) fn variable(flag: &Flag, value: OsString) -> Result<(String, String), Wrong> {
    let pair = text(flag, value)?;
    let pair = pair.split_once('=').filter(|(name, _)| is_environment_name(name));
    let (name, value) = pair.ok_or_else(|| {
        format!(
            "--{} must be {}, with a NAME of letters, digits and _ that does not begin with a digit.",
            flag.long, flag.metavar
        )
    })?;
    Ok((name.into(), value.into()))
}

pub(crate) fn one_of<T: Copy>(flag: &str, value: &OsStr, all: &[(&str, T)]) -> Result<T, Wrong> {
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let found = all.iter().find(|(name, _)| value == *name).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| {
        let hint = hint(&value.to_string_lossy(), names.iter().copied());
        format!("--{flag} must be {}.{hint}", either(&names))
    })
}
