//! Completion scripts for commands, flags and values, generated for each shell from the table of commands.

mod bash;
mod elvish;
mod fish;
mod powershell;
mod zsh;

use crate::cli::action::Offers;
use crate::cli::command::{Command, Words};
use crate::cli::row::Flag;

/// The supported shells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    PowerShell,
}

impl Shell {
    /// The names, in the order of [`Shell::ALL`].
    pub const NAMES: &'static [&'static str] = &["bash", "zsh", "fish", "elvish", "powershell"];
    /// All shells.
    pub const ALL: [Shell; 5] = [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell];

    /// The shell with this name. `None`: unknown.
    pub fn from_name(name: &str) -> Option<Shell> {
        Shell::NAMES.iter().position(|known| *known == name).and_then(|at| Shell::ALL.get(at)).copied()
    }
}

/// The names that a configuration contributes to the scripts.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The names that `--agent` accepts.
    pub agents: Vec<String>,
    /// The keys of the configuration.
    pub keys: Vec<KnownKey>,
}

/// A key of the configuration.
#[derive(Clone, Debug)]
pub struct KnownKey {
    /// The key's name.
    pub name: String,
    /// A description of one line. May be empty.
    pub about: String,
    /// The allowed values, if they are words. May be empty.
    pub values: Vec<String>,
}

/// The script for a shell.
pub fn script(shell: Shell, commands: &[Command], known: &Known) -> String {
    let table = Table { commands, known };
    match shell {
        Shell::Bash => bash::script(&table),
        Shell::Zsh => zsh::script(&table),
        Shell::Fish => fish::script(&table),
        Shell::Elvish => elvish::script(&table),
        Shell::PowerShell => powershell::script(&table),
    }
}

/// A word that a shell offers, with its description.
struct Candidate {
    word: String,
    /// A description of one line. May be empty.
    about: String,
}

/// The completions for one position on the command line.
enum Offered {
    Words(Vec<Candidate>),
    Files,
    Folders,
    Nothing,
}

impl Offered {
    /// The words, separated by spaces. `None`: there are no words.
    fn joined(&self) -> Option<String> {
        let Offered::Words(words) = self else { return None };
        Some(words.iter().map(|candidate| candidate.word.as_str()).collect::<Vec<_>>().join(" "))
    }
}

/// The table from which every script is generated.
struct Table<'a> {
    commands: &'a [Command],
    known: &'a Known,
}

impl Table<'_> {
    fn offered(&self, offers: Offers) -> Offered {
        let bare = |word: &str| Candidate { word: word.to_owned(), about: String::new() };
        Offered::Words(match offers {
            Offers::Nothing | Offers::ValuesOfKey => return Offered::Nothing,
            Offers::Files => return Offered::Files,
            Offers::Folders => return Offered::Folders,
            Offers::Words(words) => words.iter().map(|word| bare(word)).collect(),
            Offers::Agents => self.known.agents.iter().map(|word| bare(word)).collect(),
            Offers::Commands => self.names(),
            Offers::Keys => {
                let candidate = |key: &KnownKey| Candidate { word: key.name.clone(), about: key.about.clone() };
                self.known.keys.iter().map(candidate).collect()
            }
        })
    }

    fn names(&self) -> Vec<Candidate> {
        let candidate =
            |command: &Command| Candidate { word: command.name.into(), about: command.text.about.to_owned() };
        self.commands.iter().map(candidate).collect()
    }

    /// The other names of commands, each with the main name.
    fn other_names(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.commands.iter().flat_map(|command| command.other_names.iter().map(|other| (*other, command.name)))
    }

    /// The completions for the words of a command and of the commands below it, each with the words that precede it.
    fn places(&self, command: &Command) -> Vec<(String, Offered)> {
        let name = command.name;
        let actions = match command.words {
            Words::Free(_, offers) if command.below.is_empty() => return vec![(name.to_owned(), self.offered(offers))],
            Words::Free(..) => {
                let word =
                    |below: &Command| Candidate { word: below.last_word().into(), about: below.text.about.into() };
                let words = Offered::Words(command.below.iter().map(word).collect());
                let below = command.below.iter().flat_map(|below| self.places(below));
                return std::iter::once((name.to_owned(), words)).chain(below).collect();
            }
            Words::Actions(actions) => actions,
        };
        let names = actions.iter().map(|action| Candidate { word: action.name.into(), about: action.about.into() });
        let mut places = vec![(name.to_owned(), Offered::Words(names.collect()))];
        for action in actions {
            let first = action.words.first().map(|word| self.offered(word.offers));
            places.extend(first.map(|offered| (format!("{name} {}", action.name), offered)));
            if action.words.iter().any(|word| word.offers == Offers::ValuesOfKey) {
                for key in self.known.keys.iter().filter(|key| !key.values.is_empty()) {
                    let word = |value: &String| Candidate { word: value.clone(), about: String::new() };
                    let values = key.values.iter().map(word).collect();
                    places.push((format!("{name} {} {}", action.name, key.name), Offered::Words(values)));
                }
            }
        }
        places
    }

    /// Every spelling of every flag of a command that takes a value, with the completions for the value.
    fn values(&self, command: &Command) -> Vec<(String, Offered)> {
        let flags = command.flags_here().into_iter().filter(|flag| flag.takes_value());
        let others = |flag: &Flag| flag.other_names.iter().map(|name| format!("--{name}")).collect::<Vec<_>>();
        let spelled =
            flags.flat_map(|flag| spellings(flag).chain(others(flag)).map(|spelling| (spelling, flag.offers())));
        spelled.map(|(spelling, offers)| (spelling, self.offered(offers))).collect()
    }
}

/// The spellings of a flag: `--long`, and `-s` if it has a letter.
fn spellings(flag: &Flag) -> impl Iterator<Item = String> + use<> {
    [Some(format!("--{}", flag.long)), flag.short.map(|letter| format!("-{letter}"))].into_iter().flatten()
}

/// Puts a text in single quotes. A quote inside it is written as `quote`.
fn quoted(text: &str, quote: &str) -> String {
    format!("'{}'", text.replace('\'', quote))
}
