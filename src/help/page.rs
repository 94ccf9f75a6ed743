//! Help as plain text: of the whole program, and of a command in short and in long form.

use crate::cli::action::Action;
use crate::cli::command::{Command, CommandText, Words};
use crate::cli::row::{Flag, FlagForm};
use std::fmt::Write;

/// The help of the whole program.
pub fn overview(commands: &[Command]) -> String {
    let mut out = String::from(
        "spektacular: run a coding agent, and answer its questions, through one interface\n\nUsage: spektacular COMMAND\n\nCommands:\n",
    );
    let width = commands.iter().map(|command| command.name.len()).max().unwrap_or_default();
    for command in commands {
        let _ = writeln!(out, "  {:<width$}  {}", command.name, command.text.about);
    }
    out + "\nFlags:\n  -h, --help     show help, also after a command (-h: brief, --help: full)\n  -V, --version  show the version\n\n`spektacular help COMMAND` explains a command, with examples.\n"
}

impl Command {
    fn head(&self) -> String {
        let mut out = format!("{}\n\nUsage: {}\n", self.text.about, self.synopsis());
        for below in self.below {
            let _ = writeln!(out, "       {}", below.synopsis());
        }
        if !self.other_names.is_empty() {
            let _ = writeln!(out, "Other names: {}", self.other_names.join(", "));
        }
        out
    }

    /// The actions of the command, one per line.
    fn actions(&self) -> String {
        let Words::Actions(actions) = self.words else { return String::new() };
        let width = actions.iter().map(|action| action.usage().len()).max().unwrap_or_default();
        let line = |action: &Action| format!("  {:<width$}  {}\n", action.usage(), action.about);
        format!("\nActions:\n{}", actions.iter().map(line).collect::<String>())
    }

    /// The usage line of the command.
    pub fn synopsis(&self) -> String {
        let flags = if self.flags.is_empty() { "" } else { "[FLAGS] " };
        let words = match self.words {
            Words::Actions(_) => "ACTION",
            Words::Free(words, _) => words,
        };
        format!("spektacular {} {flags}{words}", self.name).trim_end().to_owned()
    }

    /// The short help of the command: one line per flag.
    pub fn short_help(&self) -> String {
        let mut out = self.head() + &self.actions();
        let width = self.all_flags().map(|flag| flag.usage().len()).max().unwrap_or_default();
        for flag in self.all_flags() {
            heading(&mut out, flag);
            let _ = writeln!(out, "  {:<width$}  {}", flag.usage(), flag.help);
        }
        let _ = write!(out, "\n`spektacular help {}` explains more, with examples.\n", self.name);
        out
    }

    /// The long help of the command: everything about it.
    pub fn help(&self) -> String {
        let CommandText { more, examples, .. } = self.text;
        let mut out = self.head();
        if !more.is_empty() {
            let _ = write!(out, "\n{more}\n");
        }
        for below in self.below {
            let _ = writeln!(out, "`spektacular help {}`: {}.", below.name, below.text.about);
        }
        out += &self.actions();
        if !examples.is_empty() {
            out.push_str("\nExamples:\n");
            for (line, what) in *examples {
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
        if !self.page.is_empty() {
            let _ = write!(out, "\n`spektacular help {} reference` prints the reference.\n", self.name);
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
    /// The flag's spelling: `-a, --agent AGENT`.
    fn usage(&self) -> String {
        let short = self.short.map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
        match self.value {
            FlagForm::Attached => format!("{short}--{}[={}]", self.long, self.metavar),
            FlagForm::Switch(_) => format!("{short}--{}", self.long),
            FlagForm::Text | FlagForm::Json | FlagForm::Words | FlagForm::Item | FlagForm::Pair => {
                format!("{short}--{} {}", self.long, self.metavar)
            }
        }
    }

    /// Everything about the flag, one fact per line.
    pub fn explained(&self) -> Vec<String> {
        let mut lines = vec![self.help.to_owned()];
        lines.extend(self.other_names.iter().map(|name| format!("Other name: --{name}.")));
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
