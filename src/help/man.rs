//! The manual page, in roff. Its sections about the configuration come from the reference.

use crate::cli::command::{Command, Words};
use crate::cli::row::{Flag, FlagForm};
use std::fmt::Write;

/// `exits`: each exit code with its meaning.
pub(crate) fn page(commands: &[Command], version: &str, exits: &[(String, String)]) -> String {
    let mut out = format!(".TH SPEKTACULAR 1 \"\" \"spektacular {version}\" \"User Commands\"\n");
    // No hyphenation: a hyphen at the end of a line would look like part of a flag or a code.
    out.push_str(".nh\n.ad l\n");
    out.push_str(
        ".SH NAME\nspektacular \\- run a coding agent, and answer its questions, through one interface\n.SH SYNOPSIS\n",
    );
    let all = || commands.iter().flat_map(|command| std::iter::once(command).chain(command.below));
    for command in all() {
        let _ = writeln!(out, "{}\n.br", text(&command.synopsis()));
    }
    out.push_str(
        ".SH DESCRIPTION\nspektacular runs a coding agent for a person at a terminal, or for an orchestrator over JSON Lines.\n",
    );
    out.push_str("It drives every agent in the same way.\n.SH COMMANDS\n");
    for command in all() {
        describe(&mut out, command);
    }
    let configuration = all().find(|command| command.name == "config").map_or("", |command| command.page);
    for title in ["Layers", "Files", "Environment"] {
        let _ = writeln!(out, ".SH {}", title.to_uppercase());
        section(&mut out, configuration, title);
    }
    out.push_str(".SH EXIT STATUS\n");
    for (code, what) in exits {
        let _ = writeln!(out, ".TP\n.B {}\n{}", text(code), text(what));
    }
    out.push_str(".PP\nTreat a code that is not listed as a failure.\n.SH SEE ALSO\n");
    for (line, what) in [
        ("spektacular protocol", "the reference of the protocol"),
        ("spektacular help config reference", "the reference of the configuration"),
        ("spektacular help agents reference", "the reference of the agents"),
        ("spektacular help spec reference", "the reference of the workflows"),
    ] {
        let _ = writeln!(out, ".TP\n.B {}\n{}", text(line), text(what));
    }
    out
}

fn describe(out: &mut String, command: &Command) {
    let _ = writeln!(out, ".SS {}\n{}.", text(command.name), text(&capital(command.text.about)));
    if !command.other_names.is_empty() {
        let _ = writeln!(out, "Other names: {}.", text(&command.other_names.join(", ")));
    }
    for line in command.text.more.lines() {
        let _ = writeln!(out, "{}", text(line));
    }
    match command.words {
        Words::Actions(actions) => {
            for action in actions {
                let _ = writeln!(out, ".TP\n.B {}\n{}.", text(&action.usage()), text(&capital(action.about)));
            }
        }
        Words::Free(..) => {}
    }
    for flag in command.flags {
        if let Some(title) = flag.group {
            let _ = writeln!(out, ".PP\n{}:", text(title));
        }
        tell(out, flag);
    }
    for (line, what) in command.text.examples {
        let _ = writeln!(out, ".PP\n{}:\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE", text(&capital(what)), text(line));
    }
}

fn tell(out: &mut String, flag: &Flag) {
    let short = flag.short.map(|letter| format!("\\fB\\-{letter}\\fR, ")).unwrap_or_default();
    let _ = write!(out, ".TP\n{short}\\fB\\-\\-{}\\fR", text(flag.long));
    if flag.takes_value() {
        let _ = write!(out, " \\fI{}\\fR", text(flag.metavar));
    }
    if flag.value == FlagForm::Attached {
        let _ = write!(out, "[=\\fI{}\\fR]", text(flag.metavar));
    }
    let lines = flag.explained();
    let (first, more) = lines.split_first().map_or(("", &[][..]), |(first, more)| (first.as_str(), more));
    // A value that the user types keeps its case.
    let word = first.split(' ').next().unwrap_or_default();
    let is_value = word.ends_with([',', ':']) || flag.values.contains(&word);
    let first = if is_value { first.to_owned() } else { capital(first) };
    let _ = writeln!(out, "\n{}.", text(&first));
    for line in more {
        let _ = writeln!(out, "{}", text(line));
    }
}

/// Supports paragraphs, numbered lists, and tables with two columns.
fn section(out: &mut String, page: &str, title: &str) {
    let heading = format!("## {title}");
    let lines = page.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with("## "));
    for line in lines {
        let number = line.split_once(". ").filter(|(number, _)| number.bytes().all(|b| b.is_ascii_digit()));
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let _ = match (line, number, cells.as_slice()) {
            ("", ..) => writeln!(out, ".PP"),
            (_, Some((number, rest)), _) => writeln!(out, ".IP {number}. 4\n{}", marked(rest)),
            (_, None, [name, what]) if line.starts_with("| `") => {
                writeln!(out, ".TP\n{}\n{}", marked(name), marked(what))
            }
            _ if line.starts_with('|') => Ok(()),
            _ => writeln!(out, "{}", marked(line)),
        };
    }
}

/// Converts a line of Markdown: code between backquotes becomes bold, and a link its text.
fn marked(line: &str) -> String {
    let line = without_links(line);
    let parts = line.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { format!("\\fB{}\\fR", text(part)) } else { text(part) }).collect()
}

fn without_links(line: &str) -> String {
    let link = || {
        let (before, rest) = line.split_once('[')?;
        let (words, rest) = rest.split_once("](")?;
        let (_, after) = rest.split_once(')')?;
        Some(format!("{before}{words}{}", without_links(after)))
    };
    link().unwrap_or_else(|| line.to_owned())
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Escapes plain text, so that roff shows it unchanged.
fn text(plain: &str) -> String {
    let mut out = String::new();
    for c in plain.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            '.' if out.is_empty() => out.push_str("\\&."),
            c => out.push(c),
        }
    }
    out
}
