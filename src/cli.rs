//! argv → what was asked for. Nothing is touched here: no file, no terminal, no environment.

mod adhoc;
mod agents;
mod config;

pub use adhoc::{Adhoc, Output};
pub use agents::{Agents, Export, Open, What};
pub use config::{Action, Config};

use crate::help::complete::Shell;
use crate::help::{self, Command, Flag};
use crate::suggest::hint;
use lexopt::Arg;
use std::ffi::{OsStr, OsString};
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
    /// `config`.
    Config(Config),
    /// `agents`.
    Agents(Agents),
    /// `export`.
    Export(Export),
    /// `open`.
    Open(Box<Open>),
    /// `ask-server`.
    AskServer,
    /// `replay`.
    Replay(Replay),
    /// `completions`.
    Completions(Shell),
    /// `man`.
    Man,
}

/// `replay`.
#[derive(Debug, Default)]
pub struct Replay {
    /// The recording; none for the demo's.
    pub file: Option<PathBuf>,
    /// `--strict`.
    pub strict: bool,
    /// The arguments of the agent that is played.
    pub args: Vec<OsString>,
}

/// What is wrong with a command line, in words that hold no value of it.
pub type Wrong = String;

/// Reads a command line, without the program's name.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Typed, Wrong> {
    let mut parser = lexopt::Parser::from_args(args);
    let first = parser.next().map_err(|_| no_command())?;
    match first {
        None => Err(no_command()),
        Some(Arg::Long("help") | Arg::Short('h')) => explain(words(parser)?),
        Some(Arg::Long("version") | Arg::Short('V')) => match words(parser)?.is_empty() {
            true => Ok(Typed::Print(version())),
            false => Err("--version stands alone.".into()),
        },
        Some(Arg::Value(name)) => of_command(find(&name)?, parser),
        Some(_) => Err(format!("The first word must be a command. {}", no_command())),
    }
}

/// What is left where only words may follow.
fn words(mut parser: lexopt::Parser) -> Result<Vec<OsString>, Wrong> {
    let mut words = Vec::new();
    while let Some(arg) = parser.next().map_err(|_| no_command())? {
        match arg {
            Arg::Value(word) => words.push(word),
            _ => return Err(format!("No flag may follow here. {}", no_command())),
        }
    }
    Ok(words)
}

fn find(name: &OsStr) -> Result<&'static Command, Wrong> {
    let name = name.to_string_lossy();
    help::command(&name).ok_or_else(|| unknown("command", &name, help::COMMANDS.iter().map(|c| c.name)))
}

/// Help of the program, or of the command that the one word names.
fn explain(words: Vec<OsString>) -> Result<Typed, Wrong> {
    match words.as_slice() {
        [] => Ok(Typed::Print(help::overview())),
        [name] => Ok(Typed::Print(find(name)?.help())),
        _ => Err("Help is for one command at a time: spektacular help COMMAND.".into()),
    }
}

fn completions(words: &[OsString]) -> Result<Typed, Wrong> {
    let [name] = words else { return Err(format!("Name one shell: {}.", Shell::NAMES.join(", "))) };
    let name = name.to_string_lossy();
    let shell = Shell::from_name(&name).ok_or_else(|| {
        let hint = hint(&name, Shell::NAMES.iter().copied());
        format!("There is no such shell here.{hint} Name one: {}.", Shell::NAMES.join(", "))
    });
    shell.map(Typed::Completions)
}

/// Whether a command line asks for a run, as far as that can be told from one that is wrong.
pub fn is_run(args: &[OsString]) -> bool {
    args.first().is_some_and(|first| first == "adhoc")
}

/// How a command line wants its run to be shown, as far as that can be told from one that is wrong.
pub fn asked_output(args: &[OsString]) -> Option<Output> {
    let is = |at: usize, text: &str| args.get(at).is_some_and(|arg| arg == text);
    let asks = |at: usize, mode: &str| is(at, &format!("--output={mode}")) || (is(at, "--output") && is(at + 1, mode));
    let last = |mode| (0..args.len()).rev().find(|at| asks(*at, mode));
    [(last("json"), Output::Json), (last("cli"), Output::Cli)]
        .into_iter()
        .filter_map(|(at, output)| Some((at?, output)))
        .max_by_key(|(at, _)| *at)
        .map(|(_, output)| output)
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
        None if what == "command" && typed.contains(' ') => {
            "There is no such command. To run a task: spektacular adhoc \"what is to be done\".".into()
        }
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
            Some(Arg::Long("help")) => return Ok(Typed::Print(command.help())),
            Some(Arg::Short('h')) => return Ok(Typed::Print(command.short_help())),
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
        let value = match flag.takes_value() {
            false => OsString::new(),
            true => parser
                .value()
                .map_err(|_| format!("--{} needs a value: --{} {}.", flag.long, flag.long, flag.metavar))?,
        };
        given.push((flag, value));
    }
    match command.name {
        "help" => explain(values),
        "completions" => completions(&values),
        "protocol" | "man" if !values.is_empty() => Err(format!("{} takes no words.", command.name)),
        "protocol" => Ok(Typed::Print(REFERENCE.into())),
        "man" => Ok(Typed::Man),
        "ask-server" => Ok(Typed::AskServer),
        "adhoc" => adhoc::read(given, values).map(|adhoc| Typed::Adhoc(Box::new(adhoc))),
        "config" => config::read(given, values).map(Typed::Config),
        "agents" => agents::agents(given, values).map(Typed::Agents),
        "export" => agents::export(given, values).map(Typed::Export),
        "open" => agents::open(given, values).map(|open| Typed::Open(Box::new(open))),
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

fn replay(given: &[Given], values: Vec<OsString>) -> Result<Replay, Wrong> {
    let has = |name: &str| given.iter().any(|(flag, _)| flag.long == name);
    let mut values = values.into_iter();
    if has("demo") {
        return Ok(Replay { file: None, strict: has("strict"), args: values.collect() });
    }
    let file = Some(values.next().map(PathBuf::from).ok_or("replay needs the FILE of a recording.")?);
    Ok(Replay { file, strict: has("strict"), args: values.collect() })
}
