//! Help as plain text: of the whole program, and of a command in short and in long form.

use crate::cli::action::Action;
use crate::cli::command::{Command, CommandText, Words};
use crate::cli::row::{Flag, FlagForm};
use std::fmt::Write;

pub fn overview(commands: &[Command]) -> String {
    let mut out = String::from(
        "spektacular: run any coding agent and answer its questions through one interface\n\nUsage: spektacular COMMAND\n\nCommands:\n",
    );
    let width = commands.iter().map(|command| command.name.len()).max().unwrap_or_default();
    for command in commands {
        let _ = writeln!(out, "  {:<width$}  {}", command.name, command.text.about);
    }
    out + "\nFlags:\n  -h, --help     show help; works after a command too (-h: brief, --help: with examples)\n  -V, --version  show the version\n\n`spektacular help COMMAND` explains a command, with examples.\n"
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

    fn actions(&self) -> String {
        let Words::Actions(actions) = self.words else { return String::new() };
        let width = actions.iter().map(|action| action.usage().len()).max().unwrap_or_default();
        let line = |action: &Action| row(&action.usage(), width, action.about);
        format!("\nActions:\n{}", actions.iter().map(line).collect::<String>())
    }

    pub fn synopsis(&self) -> String {
        let flags = if self.flags.is_empty() { "" } else { "[FLAGS] " };
        let words = match self.words {
            Words::Actions(_) => "ACTION",
            Words::Free(words, _) => words,
        };
        format!("spektacular {} {flags}{words}", self.name).trim_end().to_owned()
    }

    pub fn short_help(&self) -> String {
        let more = format!("\n`spektacular help {}` explains more, with examples.\n", self.name);
        self.head() + &self.actions() + &self.listed(&[]) + &more
    }

    /// At most [`PAGE_LINES`] long. Explains the flags if there is room.
    pub fn help(&self) -> String {
        let explained = self.around(&self.flag_help());
        if explained.lines().count() <= PAGE_LINES {
            return explained;
        }
        let more = format!(
            "\n`spektacular help {0} flags` explains every flag, and `spektacular help {0} FLAG` one of them.\n",
            self.name
        );
        self.around(&(self.listed(&BY_NAME) + &between_words(&more, WIDTH, |_| 0)))
    }

    /// The long help with this part about the flags.
    fn around(&self, flags: &str) -> String {
        let CommandText { more, examples, .. } = self.text;
        let mut out = self.head();
        if !more.is_empty() {
            let _ = write!(out, "\n{}", between_words(&sentences(more), WIDTH, |_| 0));
        }
        for below in self.below {
            let line = format!("`spektacular help {}`: {}.", below.name, below.text.about);
            out += &between_words(&line, WIDTH, |_| 0);
        }
        out += &self.actions();
        if !examples.is_empty() {
            out.push_str("\nExamples:\n");
            for (line, what) in *examples {
                let _ = write!(out, "  {line}\n{}", between_words(&format!("      {what}"), WIDTH, |_| 6));
            }
        }
        out.push_str(flags);
        if !self.page.is_empty() {
            let _ = write!(out, "\n`spektacular help {} reference` prints the reference.\n", self.name);
        }
        out
    }

    /// One flag per line. `by_name`: the groups that only name their flags.
    fn listed(&self, by_name: &[&str]) -> String {
        let mut out = String::new();
        let all: Vec<&Flag> = self.all_flags().collect();
        for group in all.chunk_by(|_, next| next.group.is_none()) {
            heading(&mut out, group[0]);
            if group[0].group.is_some_and(|title| by_name.contains(&title)) {
                let names: String = group.iter().map(|flag| format!(" --{}", flag.long)).collect();
                out += &between_words(&format!(" {names}"), WIDTH, |_| 2);
                continue;
            }
            let width = group.iter().map(|flag| flag.usage().len()).max().unwrap_or_default();
            group.iter().for_each(|flag| out += &row(&flag.usage(), width, flag.help));
        }
        out
    }

    pub fn flag_help(&self) -> String {
        let mut out = String::new();
        for flag in self.all_flags() {
            heading(&mut out, flag);
            out += &flag.described();
        }
        out
    }
}

/// The maximum columns of help.
const WIDTH: usize = 80;
const PAGE_LINES: usize = 100;
/// The groups whose flags a long page only names.
const BY_NAME: [&str; 2] = ["Limits", "Input and output"];
/// The columns before an explanation of a flag.
const INDENT: usize = 10;

/// A line of two columns. `width`: of the first one.
fn row(first: &str, width: usize, second: &str) -> String {
    let indent = width + 4;
    between_words(&(format!("  {first:<0$}", width + 2) + second), WIDTH, |_| indent)
}

/// The sentences of a text, each in a line of its own.
fn sentences(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for line in text.lines() {
        out.push_str(line);
        out.push(if line.ends_with(['.', ':']) { '\n' } else { ' ' });
    }
    out
}

/// The lines, broken between words. `indent`: the columns before a further line of this one.
pub(crate) fn between_words(lines: &str, width: usize, indent: impl Fn(&str) -> usize) -> String {
    let mut out = String::with_capacity(lines.len());
    for line in lines.lines() {
        let indent = indent(line);
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            let length = word.trim_end().chars().filter(|c| !c.is_control()).count();
            if column > indent && column.saturating_add(length) > width {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            }
            out.push_str(word);
            column += word.chars().count();
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
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

    pub fn described(&self) -> String {
        let facts = self.explained();
        let text = format!("{}\n{}", facts[0], sentences(&facts[1..].join("\n")));
        let lines: String = text.lines().map(|line| format!("{:INDENT$}{}\n", "", line.trim_end())).collect();
        format!("  {}\n", self.usage()) + &between_words(&lines, WIDTH, |_| INDENT)
    }

    /// One fact per line.
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

#[cfg(test)]
mod tests {
    use super::between_words;

    #[test]
    fn lines_break_between_words_and_go_on_below_their_text() {
        let lines = "  questions  confirm, select, text\nNot available: amp, auggie.\n\n/a/long/path/without/a/blank\n";
        let broken = "  questions  confirm,\n             select,\n             text\nNot available: amp,\nauggie.\n\n/a/long/path/without/a/blank\n";
        let indent = |line: &str| if line.starts_with(' ') { 13 } else { 0 };
        assert_eq!(between_words(lines, 22, indent), broken);
        assert_eq!(between_words(lines, usize::MAX, indent), lines);
    }
}
