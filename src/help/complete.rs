//! Completions for shells. A script of a few lines asks the program at each Tab, so that a shell offers what exists at
//! that moment, and all shells offer the same.

use crate::cli::action::Offers;
use crate::cli::command::{Command, Words};
use crate::cli::row::Flag;
use crate::protocol::words::word_enums;

/// The argument that asks for completions. Behind it come the word to complete with a dot before it, because some shells
/// drop an empty argument, and the words between the program and that word.
pub const ARGUMENT: &str = "__complete";

word_enums! {
    pub enum Shell {
        Bash = "bash",
        Zsh = "zsh",
        Fish = "fish",
        Elvish = "elvish",
        PowerShell = "powershell",
    }
}

impl Shell {
    pub fn script(self) -> &'static str {
        match self {
            Shell::Bash => include_str!("complete/script.bash"),
            Shell::Zsh => include_str!("complete/script.zsh"),
            Shell::Fish => include_str!("complete/script.fish"),
            Shell::Elvish => include_str!("complete/script.elv"),
            Shell::PowerShell => include_str!("complete/script.ps1"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The word: printable, without blanks.
    pub word: String,
    /// A description of one line. May be empty.
    pub about: String,
}

impl Candidate {
    fn new(word: impl Into<String>, about: &str) -> Candidate {
        Candidate { word: word.into(), about: about.to_owned() }
    }
}

/// The names that only the configuration and the files of a moment can tell.
pub trait LiveNames {
    /// `key`: the word before, for the values of a key; the agent on the command line, for its modes.
    fn names(&self, offers: Offers, key: &str) -> Vec<Candidate>;
}

/// The lines: a word, a tab and its description each; or `:files` or `:folders`.
pub fn lines(commands: &[Command], names: &dyn LiveNames, word: &str, before: &[String]) -> String {
    let (flag, typed) = match word.split_once('=').filter(|(flag, _)| flag.starts_with("--")) {
        Some((flag, typed)) => (Some(flag), typed),
        None => (None, word),
    };
    let prefix = flag.map(|flag| format!("{flag}=")).unwrap_or_default();
    let line = |Candidate { word, about }: Candidate| format!("{prefix}{word}\t{about}\n");
    let fits = |candidate: &Candidate| candidate.word.starts_with(typed);
    match offered(commands, names, (word, flag), before) {
        Offered::Files => ":files\n".into(),
        Offered::Folders => ":folders\n".into(),
        Offered::Words(words) => words.into_iter().filter(fits).map(line).collect(),
        Offered::WordsOrFiles(words) => {
            let lines: String = words.into_iter().filter(fits).map(line).collect();
            if lines.is_empty() { ":files\n".into() } else { lines }
        }
    }
}

enum Offered {
    Words(Vec<Candidate>),
    /// Words, or file names where none of the words fits.
    WordsOrFiles(Vec<Candidate>),
    Files,
    Folders,
}

/// `word`: the word to complete, with the flag in it if it has the form `--flag=value`.
fn offered(commands: &[Command], names: &dyn LiveNames, word: (&str, Option<&str>), before: &[String]) -> Offered {
    let nothing = Offered::Words(Vec::new());
    let Some((first, rest)) = before.split_first() else {
        let general = [Candidate::new("--help", "show help"), Candidate::new("--version", "show the version")];
        return Offered::Words(names_of(commands).chain(general).collect());
    };
    let Some(command) = commands.iter().find(|command| command.is_named(first)) else { return nothing };
    let mut path: Vec<&str> = Vec::new();
    let mut awaits_value = None;
    for word in rest {
        if awaits_value.is_some() {
            // bash parts `--flag=value` into three words.
            awaits_value = awaits_value.filter(|_| word == "=");
        } else if word == "--" {
            return nothing;
        } else if word.starts_with('-') {
            awaits_value = valued(command, word);
        } else {
            path.push(word);
        }
    }
    if let Some(flag) = awaits_value.or(word.1.and_then(|flag| valued(command, flag))) {
        return live(commands, names, flag.offers(), agent_in(command, rest));
    }
    let flags = || {
        let spelled = command.flags_here().into_iter().flat_map(|flag| spellings(flag).map(|name| (name, flag.help)));
        Offered::Words(spelled.map(|(name, help)| Candidate::new(name, help)).collect())
    };
    match word {
        (word, None) if !word.starts_with('-') => match place(commands, names, command, &path) {
            Offered::Words(words) if words.is_empty() => flags(),
            offered @ (Offered::Words(_) | Offered::WordsOrFiles(_) | Offered::Files | Offered::Folders) => offered,
        },
        (_, None) => flags(),
        (_, Some(_)) => nothing,
    }
}

fn names_of(commands: &[Command]) -> impl Iterator<Item = Candidate> {
    commands.iter().map(|command| Candidate::new(command.name, command.text.about))
}

fn valued<'a>(command: &'a Command, spelling: &str) -> Option<&'a Flag> {
    let is_meant = |flag: &&Flag| {
        let is_other = |name: &str| flag.other_names.contains(&name);
        spellings(flag).any(|known| known == spelling) || spelling.strip_prefix("--").is_some_and(is_other)
    };
    command.flags_here().into_iter().find(is_meant).filter(|flag| flag.takes_value())
}

/// The agent that the words name. Empty: none.
fn agent_in<'a>(command: &Command, words: &'a [String]) -> &'a str {
    let is_agent = |flag: &str| valued(command, flag).is_some_and(|flag| flag.offers() == Offers::Agents);
    let named = |(at, word): (usize, &'a String)| match word.split_once('=') {
        Some((flag, name)) => is_agent(flag).then_some(name),
        // bash parts `--flag=value` into three words.
        None if is_agent(word) => words[at + 1..].iter().find(|word| *word != "=").map(String::as_str),
        None => None,
    };
    words.iter().enumerate().filter_map(named).next_back().unwrap_or_default()
}

/// `--long`, and `-s` if the flag has a letter.
fn spellings(flag: &Flag) -> impl Iterator<Item = String> + use<> {
    [Some(format!("--{}", flag.long)), flag.short.map(|letter| format!("-{letter}"))].into_iter().flatten()
}

/// The completions for a command's word behind the words of `path`.
fn place(commands: &[Command], names: &dyn LiveNames, command: &Command, path: &[&str]) -> Offered {
    match (command.words, path) {
        (Words::Free(_, offers), []) if !command.below.is_empty() => {
            let below = command.below.iter().map(|below| Candidate::new(below.last_word(), below.text.about)).collect();
            match live(commands, names, offers, "") {
                Offered::Words(words) => Offered::Words([below, words].concat()),
                Offered::WordsOrFiles(words) => Offered::WordsOrFiles([below, words].concat()),
                Offered::Files | Offered::Folders => Offered::WordsOrFiles(below),
            }
        }
        (Words::Free(_, offers), [first, ..]) => {
            let below = command.below.iter().find(|below| below.last_word() == *first);
            live(commands, names, below.map_or(offers, |below| below.words.offers()), "")
        }
        (Words::Free(_, offers), []) => live(commands, names, offers, ""),
        (Words::Actions(actions), []) => {
            Offered::Words(actions.iter().map(|action| Candidate::new(action.name, action.about)).collect())
        }
        (Words::Actions(actions), [name, words @ ..]) => {
            let action = actions.iter().find(|action| action.name == *name);
            let word = action.and_then(|action| action.words.get(words.len()));
            let key = words.last().copied().unwrap_or_default();
            live(commands, names, word.map_or(Offers::Nothing, |word| word.offers), key)
        }
    }
}

fn live(commands: &[Command], names: &dyn LiveNames, offers: Offers, key: &str) -> Offered {
    match offers {
        Offers::Nothing => Offered::Words(Vec::new()),
        Offers::Files => Offered::Files,
        Offers::Folders => Offered::Folders,
        Offers::Words(words) => Offered::Words(words.iter().map(|word| Candidate::new(*word, "")).collect()),
        Offers::WordsOrFiles(words) => {
            Offered::WordsOrFiles(words.iter().map(|word| Candidate::new(*word, "")).collect())
        }
        Offers::Commands => Offered::Words(names_of(commands).collect()),
        Offers::Specs | Offers::Plans => Offered::WordsOrFiles(names.names(offers, key)),
        Offers::Agents
        | Offers::Sections
        | Offers::Sessions
        | Offers::Worktrees
        | Offers::Modes
        | Offers::Keys
        | Offers::ValuesOfKey => Offered::Words(names.names(offers, key)),
    }
}
