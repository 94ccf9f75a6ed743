//! Help as text: of the program, and of a command, short and long.

use crate::cli::command::{Command, Flag};
use std::fmt::Write;

/// The pages of the reference that the long help of a command ends with, by the command's name.
const PAGES: &[(&str, &str)] =
    &[("config", include_str!("../config/reference.md")), ("agents", include_str!("../agent/reference.md"))];

/// The help of the whole program.
pub fn overview(commands: &[Command]) -> String {
    let mut out = String::from(
        "spektacular: run a coding agent, and answer its questions, through one interface\n\nUsage: spektacular COMMAND\n\nCommands:\n",
    );
    let width = commands.iter().map(|command| command.name.len()).max().unwrap_or_default();
    for command in commands {
        let _ = writeln!(out, "  {:<width$}  {}", command.name, command.about);
    }
    out + "\nFlags:\n  -h, --help     show help: -h is short, --help is long, also of a command\n  -V, --version  show the version\n\n`spektacular help COMMAND` explains a command with examples.\n"
}

impl Command {
    fn head(&self) -> String {
        format!("{}\n\nUsage: {}\n", self.about, self.synopsis())
    }

    /// How it is called.
    pub fn synopsis(&self) -> String {
        format!("spektacular {} {}", self.name, self.usage).trim_end().to_owned()
    }

    /// Its short help: a line a flag.
    pub fn short_help(&self) -> String {
        let mut out = self.head();
        let width = self.all_flags().map(|flag| flag.usage().len()).max().unwrap_or_default();
        for flag in self.all_flags() {
            heading(&mut out, flag);
            let _ = writeln!(out, "  {:<width$}  {}", flag.usage(), flag.help);
        }
        let _ = write!(out, "\n`spektacular help {}` explains more, with examples.\n", self.name);
        out
    }

    /// Its long help: all that there is to say.
    pub fn help(&self) -> String {
        let mut out = self.head();
        if !self.more.is_empty() {
            let _ = write!(out, "\n{}\n", self.more);
        }
        if !self.examples.is_empty() {
            out.push_str("\nExamples:\n");
            for (line, what) in self.examples {
                let _ = writeln!(out, "  {line}\n      {what}");
            }
        }
        for flag in self.all_flags() {
            heading(&mut out, flag);
            let _ = writeln!(out, "  {}", flag.usage());
            for line in flag.explained() {
                let _ = writeln!(out, "          {line}");
            }
        }
        for (_, page) in PAGES.iter().filter(|(name, _)| *name == self.name) {
            let _ = write!(out, "\n{page}");
        }
        out
    }
}

fn heading(out: &mut String, flag: &Flag) {
    if let Some(title) = flag.group {
        let _ = write!(out, "\n{title}:\n");
    }
}

impl Flag {
    /// How it is written: `-a, --agent AGENT`.
    fn usage(&self) -> String {
        let short = self.short.map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
        format!("{short}--{} {}", self.long, self.metavar).trim_end().to_owned()
    }

    /// All that there is to say of it, a line each.
    pub fn explained(&self) -> Vec<String> {
        let mut lines = vec![self.help.to_owned()];
        lines.extend(self.more.lines().map(str::to_owned));
        if !self.values.is_empty() {
            lines.push(format!("One of: {}.", self.values.join(", ")));
        }
        let default = self.fallback();
        if !default.is_empty() {
            lines.push(format!("Default: {default}."));
        }
        if self.repeats() {
            lines.push("May be repeated.".into());
        }
        lines
    }
}
