//! argv → what was asked for. Nothing is touched here: no file, no terminal, no environment.

use crate::help::{self, Command, Flag, Goes, Value};
use crate::protocol::request::{Options, Problem};
use lexopt::Arg;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// The reference of the protocol, for its users.
const REFERENCE: &str = include_str!("protocol/reference.md");

/// What was typed, as it stands.
#[derive(Debug)]
pub enum Typed {
    /// Print this on stdout.
    Print(String),
    /// `adhoc`.
    Adhoc(Box<Adhoc>),
    /// `replay`.
    Replay(Replay),
}

/// How a run is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// For a person.
    #[default]
    Cli,
    /// For an orchestrator.
    Json,
}

/// `adhoc`.
#[derive(Debug, Default)]
pub struct Adhoc {
    /// `--output`.
    pub output: Output,
    /// `--input jsonl`.
    pub read_messages: bool,
    /// The words of the prompt.
    pub words: Vec<String>,
    /// `--prompt`.
    pub prompt: Option<String>,
    /// `--prompt-file`.
    pub prompt_file: Option<PathBuf>,
    /// `--on-eof cancel`.
    pub cancel_on_eof: bool,
    /// `--record`.
    pub record: Option<PathBuf>,
    /// `--mirror-stderr`.
    pub mirror_stderr: bool,
    /// Defaults of run.start's fields.
    pub options: Options,
}

/// `replay`.
#[derive(Debug, Default)]
pub struct Replay {
    /// The recording; none for the demo's.
    pub file: Option<PathBuf>,
    /// `--strict`.
    pub strict: bool,
}

/// What is wrong with a command line, in words that hold no value of it.
pub type Wrong = String;

/// Reads a command line, without the program's name.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Typed, Wrong> {
    let mut parser = lexopt::Parser::from_args(args);
    let first = parser.next().map_err(|_| no_command())?;
    match first {
        None => Err(no_command()),
        Some(Arg::Long("help") | Arg::Short('h')) => Ok(Typed::Print(help::overview())),
        Some(Arg::Long("version") | Arg::Short('V')) => Ok(Typed::Print(version())),
        Some(Arg::Value(name)) => {
            let name = name.to_string_lossy().into_owned();
            match help::command(&name) {
                Some(command) => of_command(command, parser),
                None if name == "help" => Ok(Typed::Print(help::overview())),
                None => Err(unknown("command", &name, help::COMMANDS.iter().map(|c| c.name))),
            }
        }
        Some(_) => Err(format!("The first word must be a command. {}", no_command())),
    }
}

/// Whether a command line asks for JSON, as far as that can be told from one that is wrong.
pub fn wants_json(args: &[OsString]) -> bool {
    let is = |at: usize, text: &str| args.get(at).is_some_and(|arg| arg == text);
    is(0, "adhoc") && (0..args.len()).any(|at| is(at, "--output=json") || (is(at, "--output") && is(at + 1, "json")))
}

fn version() -> String {
    format!("spektacular {}\n", env!("CARGO_PKG_VERSION"))
}

fn no_command() -> Wrong {
    let names: Vec<&str> = help::COMMANDS.iter().map(|command| command.name).collect();
    format!("Name a command: {}. `spektacular --help` tells more.", names.join(", "))
}

fn unknown<'a>(what: &str, typed: &str, names: impl Iterator<Item = &'a str>) -> Wrong {
    match help::did_you_mean(typed, names) {
        Some(name) => format!("There is no such {what}. Did you mean {name}?"),
        None => format!("There is no such {what}. `spektacular --help` lists what there is."),
    }
}

/// A flag with its value, if it takes one.
type Given = (&'static Flag, OsString);

fn of_command(command: &'static Command, mut parser: lexopt::Parser) -> Result<Typed, Wrong> {
    let (mut given, mut values): (Vec<Given>, Vec<OsString>) = (Vec::new(), Vec::new());
    loop {
        let flag = match parser.next().map_err(|_| value_wrong(command))? {
            None => break,
            Some(Arg::Long("help") | Arg::Short('h')) => return Ok(Typed::Print(command.help())),
            Some(Arg::Value(value)) => {
                values.push(value);
                continue;
            }
            Some(Arg::Long(name)) => command.flags.iter().find(|flag| flag.long == name).ok_or_else(|| {
                unknown("flag", name, command.flags.iter().map(|flag| flag.long))
                    .replace("Did you mean ", "Did you mean --")
            })?,
            Some(Arg::Short(letter)) => command
                .flags
                .iter()
                .find(|flag| flag.short == Some(letter))
                .ok_or_else(|| unknown("flag", "", std::iter::empty()))?,
        };
        let value = match flag.value {
            Value::Switch(_) => OsString::new(),
            _ => parser
                .value()
                .map_err(|_| format!("--{} needs a value: --{} {}.", flag.long, flag.long, flag.metavar))?,
        };
        given.push((flag, value));
    }
    match command.name {
        "protocol" => Ok(Typed::Print(REFERENCE.into())),
        "adhoc" => adhoc(given, values).map(|adhoc| Typed::Adhoc(Box::new(adhoc))),
        _ => replay(&given, values).map(Typed::Replay),
    }
}

fn value_wrong(command: &Command) -> Wrong {
    format!("A flag has a value that it does not take. `spektacular {} --help` lists the flags.", command.name)
}

fn text(flag: &Flag, value: OsString) -> Result<String, Wrong> {
    value.into_string().map_err(|_| format!("--{} must be UTF-8.", flag.long))
}

fn one_of<T>(flag: &Flag, value: OsString, all: &[(&str, T)]) -> Result<T, Wrong>
where
    T: Copy,
{
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let found = all.iter().find(|(name, _)| value == *name).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| format!("--{} must be one of: {}.", flag.long, names.join(", ")))
}

fn adhoc(given: Vec<Given>, words: Vec<OsString>) -> Result<Adhoc, Wrong> {
    let mut adhoc = Adhoc::default();
    let mut lists: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let mut pairs: BTreeMap<&'static str, BTreeMap<String, String>> = BTreeMap::new();
    for (flag, value) in given {
        match (flag.goes, flag.value) {
            (Goes::Field(name), Value::Item) => lists.entry(name).or_default().push(text(flag, value)?),
            (Goes::Field(name), Value::Pair) => {
                let pair = text(flag, value)?;
                let (key, value) = pair.split_once('=').ok_or(format!("--{} must be {}.", flag.long, flag.metavar))?;
                pairs.entry(name).or_default().insert(key.into(), value.into());
            }
            (Goes::Field(name), kind) => set(&mut adhoc.options, flag, name, &json(flag, kind, value)?)?,
            (Goes::Command, _) => own(&mut adhoc, flag, value)?,
        }
    }
    for (flag, name) in repeatable() {
        if let Some(list) = lists.get(name) {
            set(&mut adhoc.options, flag, name, &raw(list)?)?;
        }
        if let Some(pairs) = pairs.get(name) {
            set(&mut adhoc.options, flag, name, &raw(pairs)?)?;
        }
    }
    for word in words {
        adhoc.words.push(word.into_string().map_err(|_| "The prompt must be UTF-8.".to_owned())?);
    }
    let ways = usize::from(!adhoc.words.is_empty())
        + usize::from(adhoc.prompt.is_some())
        + usize::from(adhoc.prompt_file.is_some());
    if ways > 1 {
        return Err("Give the prompt once: as words, with --prompt, or with --prompt-file.".into());
    }
    Ok(adhoc)
}

/// The flags that may be repeated, with their fields.
fn repeatable() -> impl Iterator<Item = (&'static Flag, &'static str)> {
    let flags = help::command("adhoc").map(|command| command.flags).unwrap_or_default();
    flags.iter().filter_map(|flag| match (flag.goes, flag.value) {
        (Goes::Field(name), Value::Item | Value::Pair) => Some((flag, name)),
        _ => None,
    })
}

fn raw(value: &impl serde::Serialize) -> Result<Box<RawValue>, Wrong> {
    to_raw_value(value).map_err(|_| "A flag's value could not be used.".to_owned())
}

fn json(flag: &Flag, kind: Value, value: OsString) -> Result<Box<RawValue>, Wrong> {
    if let Value::Switch(meaning) = kind {
        return raw(&serde_json::from_str::<serde_json::Value>(meaning).unwrap_or_default());
    }
    let text = text(flag, value)?;
    match (kind, serde_json::from_str::<Box<RawValue>>(&text)) {
        (Value::Json, Ok(value)) => Ok(value),
        _ => raw(&text),
    }
}

fn set(options: &mut Options, flag: &Flag, name: &str, value: &RawValue) -> Result<(), Wrong> {
    options.set(name, value).map_err(|problem| match problem {
        Problem::Field { expected, .. } => format!("--{} must be {expected}.", flag.long),
        Problem::Repeated => format!("--{} names a key twice.", flag.long),
    })
}

fn own(adhoc: &mut Adhoc, flag: &Flag, value: OsString) -> Result<(), Wrong> {
    match flag.long {
        "output" => adhoc.output = one_of(flag, value, &[("cli", Output::Cli), ("json", Output::Json)])?,
        "input" => adhoc.read_messages = one_of(flag, value, &[("jsonl", true)])?,
        "prompt" => adhoc.prompt = Some(text(flag, value)?),
        "prompt-file" => adhoc.prompt_file = Some(value.into()),
        "on-eof" => adhoc.cancel_on_eof = one_of(flag, value, &[("continue", false), ("cancel", true)])?,
        "record" => adhoc.record = Some(value.into()),
        "mirror-stderr" => adhoc.mirror_stderr = true,
        _ => debug_assert!(false, "a flag of the table that no command reads"),
    }
    Ok(())
}

fn replay(given: &[Given], values: Vec<OsString>) -> Result<Replay, Wrong> {
    let has = |name: &str| given.iter().any(|(flag, _)| flag.long == name);
    // What follows the file is the command line of the agent that is played.
    let file = values.into_iter().next().filter(|_| !has("demo")).map(PathBuf::from);
    if file.is_none() && !has("demo") {
        return Err("replay needs the FILE of a recording.".into());
    }
    Ok(Replay { file, strict: has("strict") })
}
