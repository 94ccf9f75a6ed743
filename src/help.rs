//! One table of commands and flags. The parser, the help texts and the tests all read it.

mod table;

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

/// One flag.
#[derive(Debug)]
pub struct Flag {
    /// The name, without its dashes.
    pub long: &'static str,
    /// One letter for it.
    pub short: Option<char>,
    /// What stands for the value in help.
    pub metavar: &'static str,
    /// What the value becomes.
    pub value: Value,
    /// Where it goes.
    pub goes: Goes,
    /// One line.
    pub help: &'static str,
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
    /// Its flags.
    pub flags: &'static [Flag],
    /// More for `--help`.
    pub more: &'static str,
}

/// The command with this name.
pub fn command(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// The help of the whole program.
pub fn overview() -> String {
    let mut out = String::from(
        "spektacular: run a coding agent, and answer its questions, through one interface\n\nUsage: spektacular COMMAND\n\nCommands:\n",
    );
    for command in COMMANDS {
        out.push_str(&format!("  {:<10} {}\n", command.name, command.about));
    }
    out + "\nFlags:\n  -h, --help     show help, also of a command\n  -V, --version  show the version\n"
}

impl Command {
    /// Its help.
    pub fn help(&self) -> String {
        let mut out = format!("{}\n\nUsage: spektacular {} {}\n\nFlags:\n", self.about, self.name, self.usage);
        for flag in self.flags {
            let short = flag.short.map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
            let long = format!("--{} {}", flag.long, flag.metavar);
            out.push_str(&format!("  {short}{:<31} {}\n", long.trim_end(), flag.help));
        }
        out.push_str("  -h, --help                          show this help\n\n");
        out + self.more
    }
}

/// The name among `names` that `typed` was probably meant to be: at most a third of it differs.
pub fn did_you_mean<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (distance(typed, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many characters must be put in, taken out, changed, or (as one) swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    if a != b && sorted(a) == sorted(b) { 1 } else { edits(a, b) }
}

/// How many characters must be put in, taken out or changed.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
