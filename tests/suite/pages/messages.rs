//! Every message that the program can print, collected from its source, and the rules that all messages follow.
//!
//! `LIST_MESSAGES=1 cargo test --test suite messages` writes the list to target/messages.txt.

use crate::tidy::code::{code, root, rust_files};
use spektacular::cmd::COMMANDS;
use spektacular::protocol::fields::FIELDS;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::iter;

/// A string literal of at least two words, as the program prints it except for its placeholders.
struct Message {
    file: String,
    line: usize,
    text: String,
    /// The calls around it, outermost first: `Failure::new`, `format!`. A variable that it is bound to comes first.
    calls: Vec<String>,
}

impl Message {
    fn place(&self) -> String {
        format!("{}:{}: {}", self.file, self.line, self.text)
    }
}

/// Reads the string literals of a Rust file.
struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    /// The path before the position, such as `Failure::new`.
    word: String,
    /// The path before each open parenthesis.
    calls: Vec<String>,
    /// The words of the statement so far, outside parentheses.
    statement: Vec<String>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Lexer<'a> {
        Lexer { rest: text, line: 1, word: String::new(), calls: Vec::new(), statement: Vec::new() }
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
        skipped
    }

    /// The length of a character literal here. A lifetime has no closing quote.
    fn character(&self) -> Option<usize> {
        let inside = self.rest.strip_prefix('\'')?;
        let length = match inside.strip_prefix('\\') {
            Some(escape) => 2 + escape[1..].find('\'')?,
            None => inside.chars().next()?.len_utf8(),
        };
        inside[length..].starts_with('\'').then_some(length + 2)
    }

    /// The string literal here, without its quotes.
    fn string(&mut self) -> Option<String> {
        let raw = self.rest.trim_start_matches('r').trim_start_matches('#');
        let opening = self.rest.len() - raw.len();
        if !raw.starts_with('"') || (opening > 0 && (!self.rest.starts_with('r') || !self.word.is_empty())) {
            return None;
        }
        self.skip(opening + 1);
        if opening > 0 {
            let end = format!("\"{}", "#".repeat(opening - 1));
            let length = self.rest.find(&end)?;
            let text = self.skip(length).to_owned();
            self.skip(end.len());
            return Some(text);
        }
        let mut escaped = false;
        let length = self.rest.find(|c| match c {
            '"' if !escaped => true,
            c => {
                escaped = c == '\\' && !escaped;
                false
            }
        })?;
        let text = unescaped(self.skip(length));
        self.skip(1);
        Some(text)
    }
}

impl Iterator for Lexer<'_> {
    type Item = (usize, String, Vec<String>);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(first) = self.rest.chars().next() {
            let line = self.line;
            if self.rest.starts_with("//") {
                self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if let Some(length) = self.character() {
                self.skip(length);
            } else if let Some(text) = self.string() {
                self.word.clear();
                let bound =
                    self.statement.iter().position(|word| word == "let").and_then(|at| self.statement.get(at + 1));
                return Some((line, text, bound.into_iter().chain(&self.calls).cloned().collect()));
            } else {
                match first {
                    '(' => self.calls.push(std::mem::take(&mut self.word)),
                    ')' => drop(self.calls.pop()),
                    _ => {}
                }
                if first.is_alphanumeric() || "_:!.".contains(first) {
                    self.word.push(first);
                } else if !self.word.is_empty() {
                    self.statement.push(std::mem::take(&mut self.word));
                }
                if matches!(first, ';' | '{' | '}') {
                    self.statement.clear();
                }
                self.skip(first.len_utf8());
            }
        }
        None
    }
}

/// A literal's text: a line that ends in a backslash continues without the indentation of the next.
fn unescaped(literal: &str) -> String {
    let mut text = String::new();
    let mut rest = literal;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let (kept, next) = match after.chars().next() {
            Some('\n') => ("", after.trim_start()),
            Some('n') => ("\n", &after[1..]),
            Some('t') => ("\t", &after[1..]),
            Some('u') => ("", after.split_once('}').map_or("", |(_, after)| after)),
            Some(c) => after.split_at(c.len_utf8()),
            None => ("", ""),
        };
        text.push_str(kept);
        rest = next;
    }
    text + rest
}

fn has_two_words(text: &str) -> bool {
    let is_word = |word: &&str| word.chars().any(char::is_alphabetic);
    text.split_whitespace().filter(is_word).count() > 1
}

#[track_caller]
fn messages() -> Vec<Message> {
    let files = rust_files("src").into_iter().filter(|(path, _)| !path.ends_with("tests.rs"));
    let found = files.flat_map(|(path, text)| {
        let file = path.display().to_string();
        let literals: Vec<_> = Lexer::new(code(&text)).collect();
        let literals = literals.into_iter().filter(|(_, text, _)| has_two_words(text));
        literals.map(move |(line, text, calls)| Message { file: file.clone(), line, text, calls })
    });
    let found: Vec<Message> = found.collect();
    assert!(found.len() > 1000, "only {} messages: the lexer misses most of them", found.len());
    found
}

/// The text with `{}` for each placeholder.
fn without_placeholders(text: &str) -> String {
    regex_lite::Regex::new(r"\{[^}]*\}").unwrap().replace_all(text, "{}").into_owned()
}

/// Fails with every message that breaks a rule.
#[track_caller]
fn none(rule: &str, wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{} messages {rule}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_list_of_messages_is_written_on_demand() {
    let mut list = String::new();
    for message in messages() {
        let _ = writeln!(list, "{}", message.place());
    }
    for known in [
        "src/protocol/failure.rs:",
        "The model refused the task: change the prompt.",
        "Allow all file edits for this run",
    ] {
        assert!(list.contains(known), "the list lacks {known}");
    }
    if std::env::var_os("LIST_MESSAGES").is_some_and(|value| value == "1") {
        fs::write(root().join("target/messages.txt"), list).unwrap();
    }
}

#[test]
fn the_lexer_reads_literals_and_their_calls() {
    let text = r##"
        // "a comment"
        let c = '"'; let d: &'static str = Failure::new(Code::A, format!("one {x}\
            two \"three\""));
        let r = r#"raw "four""#; b'\''; "\u{1b}[1m five"
    "##;
    let found: Vec<_> = Lexer::new(text).collect();
    let texts: Vec<&str> = found.iter().map(|(_, text, _)| text.as_str()).collect();
    assert_eq!(texts, ["one {x}two \"three\"", "raw \"four\"", "[1m five"]);
    assert_eq!(found[0].2, ["d:", "Failure::new", "format!"]);
    assert_eq!((found[0].0, found[1].0), (3, 5));
}

/// Phrases that read like a translation, with the usual ones.
const WORN: &[(&str, &str)] = &[
    ("There is no ", "name the subject: Unknown X, X does not exist, X has no Y"),
    ("There are no ", "name the subject"),
    ("There are several ", "Several X exist"),
    (" is no ", "is not a"),
    (" are no ", "are not"),
    (" tells of ", "reports"),
    (" is told of ", "learns of"),
    (" any more", "no longer"),
    (" the like ", "similar"),
    ("What you ", "Your input"),
    (" of ours", "our"),
    ("is over.)", "expired, ended"),
    ("e.g.", "such as"),
    (" i.e.", "that is"),
    (" etc", "and others"),
    ("cannot be had", "is not available"),
    (" else,", "otherwise"),
    ("stands behind", "beside"),
];

#[test]
fn messages_avoid_worn_phrases() {
    let wrong = messages().into_iter().flat_map(|message| {
        let text = message.text.replace("there is no ", "");
        let found = WORN.iter().filter(|(phrase, _)| text.contains(phrase));
        found.map(|(phrase, instead)| format!("{} ({phrase:?}: {instead})", message.place())).collect::<Vec<_>>()
    });
    none("hold a worn phrase", wrong.collect());
}

#[test]
fn messages_have_single_spaces_between_words() {
    // Scripts for shells, and lines with columns.
    let columns = ["\n  -h, --help", "phase        {}", "workflow     {kind}", "program      {path}"];
    let columns: Vec<&str> = columns
        .into_iter()
        .chain(["warning      {text}", "image        {path}", "{id}  {agent}  {}", "{name:width$}  {about}"])
        .collect();
    let exempt = |message: &Message| {
        message.file.contains("/complete/") || columns.iter().any(|known| message.text.contains(known))
    };
    let doubled = |text: &str| text.lines().any(|line| line.trim().contains("  "));
    let wrong = messages().into_iter().filter(|message| !exempt(message) && doubled(&message.text));
    none("have two spaces in a row", wrong.map(|message| message.place()).collect());
}

/// The words of a text that meet a condition.
fn words(text: &str, is_of_word: impl Fn(char) -> bool) -> BTreeSet<String> {
    text.split(|c| !is_of_word(c)).map(str::to_owned).collect()
}

#[test]
fn flags_in_messages_exist() {
    let of_commands = COMMANDS
        .iter()
        .flat_map(|command| iter::once(command).chain(command.below))
        .flat_map(|command| command.all_flags());
    let mut known: BTreeSet<&str> =
        of_commands.flat_map(|flag| flag.other_names.iter().copied().chain([flag.long])).collect();
    // FLAG stands for the name of any flag.
    known.extend(["version", "help", "FLAG"]);
    let wrong = messages().into_iter().filter(|message| {
        // Agents, git and clients have flags of their own.
        let foreign = ["commit.rs", "cmd/worktree.rs", "integrate.rs"];
        let own = !message.file.starts_with("src/agent") && !foreign.iter().any(|file| message.file.ends_with(file));
        // HTML comments and Markdown rules contain dashes too.
        let text = message.text.replace("<!--", "").replace("-->", "");
        let flags = text
            .split("--")
            .skip(1)
            .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default());
        own && !message.file.contains("/complete/")
            && flags.filter(|flag| flag.len() > 1).any(|flag| !known.contains(flag))
    });
    none("name a flag that no command has", wrong.map(|message| message.place()).collect());
}

#[test]
fn commands_in_messages_exist() {
    let known: BTreeSet<&str> = COMMANDS.iter().map(|command| command.name).chain(["help"]).collect();
    let wrong = messages().into_iter().filter(|message| {
        let quoted = message.text.split('`').skip(1).step_by(2);
        let mut names = quoted.filter_map(|line| line.strip_prefix("spektacular ")?.split(' ').next());
        names.any(|name| !name.contains('{') && name.bytes().all(|b| b.is_ascii_lowercase()) && !known.contains(name))
    });
    none("name a command that does not exist", wrong.map(|message| message.place()).collect());
}

/// Fields, keys, failure codes and words of the protocol: the reference contains all of them.
#[test]
fn names_in_messages_are_in_the_reference() {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let pages = ["protocol", "config", "agent", "workflow", "acp"]
        .map(|page| fs::read_to_string(root().join(format!("src/{page}/reference.md"))).unwrap());
    let mut known = words(&pages.concat(), is_of_name);
    // The only key in a document that is not a frame.
    known.insert("export_data".to_owned());
    known.extend(spektacular::protocol::failure::Code::ALL.iter().map(|code| code.name().to_owned()));
    let mut seen = 0;
    let wrong = messages().into_iter().filter_map(|message| {
        // The settings of agents have names of their own.
        let foreign = ["/complete/", "/acp/agents/", "/agent/endpoint.rs"];
        let exempt = foreign.iter().any(|part| message.file.contains(part))
            || message.calls.iter().any(|call| call.contains("contains"));
        let names =
            words(&without_placeholders(&message.text), |c| is_of_name(c) || c.is_ascii_uppercase() || c == '.');
        let is_name =
            |name: &&String| name.trim_matches('_').contains('_') && name.bytes().all(|b| is_of_name(b.into()));
        let names: Vec<String> = names.iter().filter(is_name).cloned().collect();
        seen += names.len();
        let foreign: Vec<&String> = names.iter().filter(|name| !known.contains(*name)).collect();
        (!exempt && !foreign.is_empty()).then(|| format!("{} ({foreign:?})", message.place()))
    });
    none("hold a name that the reference lacks", wrong.collect());
    // The compiler checks those that `sentence!` writes.
    assert!(seen > 40, "only {seen} names in messages");
}

/// A person at a terminal knows no field of run.start. `sentence!` gives each reader its own words, so a sentence that
/// somebody may read at a terminal names a field only there.
#[test]
fn sentences_name_fields_by_the_macro() {
    let folders = ["agent", "engine", "process", "run", "terminal", "workflow"].map(|name| format!("src/{name}/"));
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '`';
    // The workflow's own field has a flag of the same name.
    let exempt = ["run.start: `workflow.ignore`: {why}"];
    let of_people = |message: &Message| {
        folders.iter().any(|folder| message.file.starts_with(folder)) && !message.file.contains("/tests/")
    };
    let wrong = messages().into_iter().filter(of_people).filter(|message| {
        let words = words(&without_placeholders(&message.text), is_of_name);
        let names_field = FIELDS
            .iter()
            .map(|field| field.name)
            .any(|name| words.contains(&format!("`{name}`")) || (name.contains('_') && words.contains(name)));
        let is_for_programs = message.text.contains("see detail.") || message.text.starts_with("run.start: ");
        (names_field || is_for_programs) && !exempt.contains(&message.text.as_str())
    });
    none("name a field or a detail in the words of frames", wrong.map(|message| message.place()).collect());
}

/// A failure consists of one or two sentences that name the fault and the remedy. It ends with a full stop.
#[test]
fn failures_are_sentences_that_say_what_to_do() {
    let failures = messages().into_iter().filter(|message| {
        // Many failures about worktrees end with a command to copy.
        let is_usage = |call: &String| call == "Failure::usage" && !message.file.ends_with("cmd/worktrees.rs");
        let of_failure = |call: &String| {
            let makers = ["Failure::new", "Failure::invalid_start", "refused_for"];
            makers.iter().any(|maker| call.ends_with(maker)) || call == "message" || is_usage(call)
        };
        message.calls.iter().any(of_failure)
    });
    let failures: Vec<Message> = failures.collect();
    assert!(failures.len() > 80, "only {} failures", failures.len());
    let wrong = failures.iter().filter(|message| {
        let text = message.text.trim_end_matches(['}', '{']);
        let sentence = message.text.ends_with(['.', '}']);
        let remedy =
            [": ", ". ", " must ", " needs ", " takes ", " may have only "].iter().any(|sign| text.contains(sign));
        !sentence || !remedy
    });
    none("are no such sentence", wrong.map(|message| message.place()).collect());
}
