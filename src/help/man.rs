//! The manual page, in roff.

use crate::cli::command::{Command, Flag};
use std::fmt::Write;

/// The page. `exits`: what each exit code means.
pub fn page(commands: &[Command], version: &str, exits: &[(u8, String)]) -> String {
    let mut out = format!(".TH SPEKTACULAR 1 \"\" \"spektacular {version}\" \"User Commands\"\n");
    out.push_str(
        ".SH NAME\nspektacular \\- run a coding agent, and answer its questions, through one interface\n.SH SYNOPSIS\n",
    );
    for command in commands {
        let _ = writeln!(out, "{}\n.br", text(&command.synopsis()));
    }
    out.push_str(
        ".SH DESCRIPTION\nspektacular runs a coding agent for a person at a terminal, or for an orchestrator over JSON Lines.\n",
    );
    out.push_str("Every agent is driven in the same way.\n.SH COMMANDS\n");
    for command in commands {
        describe(&mut out, command);
    }
    out.push_str(".SH EXIT STATUS\n");
    for (code, what) in exits {
        let _ = writeln!(out, ".TP\n.B {code}\n{}", text(what));
    }
    out.push_str(".PP\nTreat a code that is not listed as a failure.\n");
    out
}

fn describe(out: &mut String, command: &Command) {
    let _ = writeln!(out, ".SS {}\n{}.", text(command.name), text(&capital(command.about)));
    for line in command.more.lines() {
        let _ = writeln!(out, "{}", text(line));
    }
    for flag in command.flags {
        if let Some(title) = flag.group {
            let _ = writeln!(out, ".PP\n\\fI{}\\fR", text(title));
        }
        tell(out, flag);
    }
    for (line, what) in command.examples {
        let _ = writeln!(out, ".PP\n{}:\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE", text(&capital(what)), text(line));
    }
}

fn tell(out: &mut String, flag: &Flag) {
    let short = flag.short.map(|letter| format!("\\fB\\-{letter}\\fR, ")).unwrap_or_default();
    let _ = write!(out, ".TP\n{short}\\fB\\-\\-{}\\fR", text(flag.long));
    if flag.takes_value() {
        let _ = write!(out, " \\fI{}\\fR", text(flag.metavar));
    }
    let lines = flag.explained();
    let (first, more) = lines.split_first().map_or(("", &[][..]), |(first, more)| (first.as_str(), more));
    let _ = writeln!(out, "\n{}.", text(&capital(first)));
    for line in more {
        let _ = writeln!(out, "{}", text(line));
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Plain text, with what roff would read as its own.
fn text(plain: &str) -> String {
    let escaped = plain.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    if escaped.starts_with('.') { format!("\\&{escaped}") } else { escaped }
}
