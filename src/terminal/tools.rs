//! The lines of a tool call: its title and result, the end of a failed one's output, and the changes of an edit. The
//! lines of the agent's plan, and of the files that it changed.

use super::TerminalPeer;
use super::screen::{Detail, Ink, Look};
use super::width;
use super::work::span;
use crate::clean::{one_line, whole};
use crate::protocol::outbound::{Artifact, CallId, FileEdit, PlanEntry, Text};
use crate::protocol::words::{Action, PlanStatus, ToolState};
use std::fmt::Write;
use std::time::Duration;

/// The number of lines of a failed tool's output that a person sees.
const LAST_LINES: usize = 2;
/// The columns of a line of output or of a diff where there is no terminal.
const COLUMNS: usize = 200;

pub(super) struct ToolLine<'a> {
    pub(super) call: CallId,
    pub(super) title: &'a str,
    /// A hint about a failure, or nothing.
    pub(super) hint: &'a str,
    /// Whether a sub-agent makes it.
    pub(super) nested: bool,
    pub(super) state: ToolState,
    pub(super) took: Duration,
    pub(super) output: Option<&'a Text>,
    pub(super) exit_code: Option<i64>,
    pub(super) diff: &'a [FileEdit],
    /// Whether the person was asked about it, and so saw the changes.
    pub(super) is_known: bool,
}

impl TerminalPeer {
    /// A tool's lines. Where a status line shows the running tool, its line stands at its end; elsewhere at its
    /// beginning, and again only if it failed, was denied, or changed a file after other lines.
    pub(super) fn tool(&mut self, tool: &ToolLine<'_>) -> String {
        let all = self.look.diff_lines == usize::MAX;
        let diff = if tool.is_known && !all { String::new() } else { self.diff(tool.diff) };
        match tool.state {
            ToolState::Started if self.look.live => return String::new(),
            ToolState::Started => {
                self.begun = Some((tool.call, self.count + 1));
                return self.line(tool, None, "", None);
            }
            ToolState::Completed if !self.look.live => {
                let is_above = self.begun.as_ref().is_some_and(|(call, at)| *call == tool.call && *at == self.count);
                let title = if diff.is_empty() || is_above { String::new() } else { self.line(tool, None, "", None) };
                return title + &diff + &self.output(tool.output);
            }
            ToolState::Completed => {
                return self.line(tool, Some(Ink::Green), "done", None) + &diff + &self.output(tool.output);
            }
            ToolState::Cancelled => return self.line(tool, Some(Ink::Yellow), "cancelled", None),
            ToolState::Denied => return self.line(tool, Some(Ink::Yellow), "denied", None),
            ToolState::Failed => {}
        }
        let exit_code = tool.exit_code.filter(|code| *code > 0);
        let output = match self.look.detail {
            Detail::Verbose => self.output(tool.output),
            Detail::Quiet | Detail::Normal => self.tail(tool.output, exit_code),
        };
        self.line(tool, Some(Ink::Red), &["failed", tool.hint].concat(), exit_code) + &output
    }

    fn line(&self, tool: &ToolLine<'_>, ink: Option<Ink>, word: &str, exit_code: Option<i64>) -> String {
        let indent = if tool.nested { "  * " } else { "* " };
        let sign = if word.is_empty() { "" } else { ": " };
        let code = exit_code.map(|code| format!("exit {code}"));
        let took = Some(tool.took).filter(|took| took.as_secs() > 0).map(span);
        let facts: Vec<String> = code.into_iter().chain(took).collect();
        let took = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
        let room = self.width().saturating_sub(sign.len() + word.len() + took.len() + indent.len() + 1);
        let word = ink.map_or_else(|| word.to_owned(), |ink| self.look.paint(ink, word));
        format!("{indent}{}{sign}{word}{took}\n", width::cut(tool.title, room.max(8)))
    }

    /// Empty without --verbose.
    pub(super) fn output(&self, output: Option<&Text>) -> String {
        let text =
            output.filter(|_| self.look.detail == Detail::Verbose).map(|text| whole(text.shown())).unwrap_or_default();
        text.lines().map(|line| self.verbose(|| format!("    {line}"))).collect()
    }

    /// Leaves out a line that only repeats the exit code.
    fn tail(&self, output: Option<&Text>, exit_code: Option<i64>) -> String {
        let text = output.map(|text| whole(text.shown())).unwrap_or_default();
        let repeats = |line: &str| exit_code.is_some_and(|code| line == format!("Exit code {code}"));
        let lines = text.lines().rev().filter(|line| !line.trim().is_empty() && !repeats(line));
        let mut last: Vec<&str> = lines.take(LAST_LINES).collect();
        last.reverse();
        let line = |line: &&str| self.look.paint(Ink::Dim, &format!("    {}", self.fitting(line))) + "\n";
        last.iter().map(line).collect()
    }

    /// The title names the file, unless there are several.
    fn diff(&self, edits: &[FileEdit]) -> String {
        let mut room = self.look.diff_lines;
        if room == 0 {
            return String::new();
        }
        let (mut out, mut hidden) = (String::new(), 0);
        for edit in edits {
            let lines = whole(edit.lines.shown());
            if room > 0 && edits.len() > 1 {
                let _ =
                    writeln!(out, "    {}", self.look.paint(Ink::Bold, &self.fitting(&one_line(edit.path.shown()))));
            }
            for line in without_first_hunk(&lines).lines() {
                if room == 0 {
                    hidden += 1;
                    continue;
                }
                room -= 1;
                let line = self.fitting(&line.replace('\t', "    "));
                let _ = writeln!(out, "    {}", changed_line(&self.look, &line).trim_end());
            }
            if room > 0 && edit.is_cut {
                out.push_str("    ... (the rest of the diff is too long to show)\n");
            }
        }
        if hidden > 0 {
            let more = if edits.iter().any(|edit| edit.is_cut) { "or more " } else { "" };
            let _ = writeln!(out, "    ... {hidden} {more}more lines (--diff full)");
        }
        out
    }

    /// A line cut to the terminal's width behind its indentation.
    fn fitting(&self, line: &str) -> String {
        width::cut(line, self.width().saturating_sub(5).clamp(8, COLUMNS))
    }

    /// Shows only the changed entries of a plan that was shown before.
    pub(super) fn plan(&mut self, entries: &[PlanEntry]) -> String {
        let old = std::mem::replace(&mut self.plan, entries.to_vec());
        let same = old.len() == entries.len() && old.iter().zip(entries).all(|(old, new)| old.text == new.text);
        let mut lines = String::new();
        let before = old.iter().filter(|_| same).map(|old| Some(old.status)).chain(std::iter::repeat(None));
        for (entry, _) in entries.iter().zip(before).filter(|(entry, before)| *before != Some(entry.status)) {
            let text = one_line(entry.text.shown());
            let _ = match entry.status {
                PlanStatus::Pending => writeln!(lines, "  [ ] {text}"),
                PlanStatus::InProgress => writeln!(lines, "  {}", self.look.paint(Ink::Bold, &format!("[>] {text}"))),
                PlanStatus::Completed => writeln!(lines, "  {} {text}", self.look.paint(Ink::Green, "[x]")),
            };
        }
        lines
    }

    pub(super) fn artifact(&self, artifact: &Artifact) -> String {
        let (ink, sign) = match artifact.action {
            Action::Created => (Ink::Green, "+"),
            Action::Modified => (Ink::Yellow, "~"),
            Action::Deleted => (Ink::Red, "-"),
        };
        format!("{} {}\n", self.look.paint(ink, sign), one_line(artifact.path.shown()))
    }
}

fn changed_line(look: &Look, line: &str) -> String {
    let ink = match line.chars().next() {
        Some('+') => Some(Ink::Green),
        Some('-') => Some(Ink::Red),
        Some('@' | '\\') => Some(Ink::Dim),
        _ => None,
    };
    ink.map_or_else(|| line.to_owned(), |ink| look.paint(ink, line))
}

pub(super) fn painted(look: &Look, edit: &FileEdit) -> String {
    let lines = whole(edit.lines.shown());
    let lines = without_first_hunk(&lines).lines().map(|line| changed_line(look, line) + "\n");
    let cut = if edit.is_cut { "... (the rest of the diff is too long to show)\n" } else { "" };
    format!("{}\n{}{cut}", look.paint(Ink::Bold, &one_line(edit.path.shown())), lines.collect::<String>())
}

/// The changes without the position of a new file's lines, which is obvious.
pub(super) fn without_first_hunk(diff: &str) -> &str {
    match diff.split_once('\n') {
        Some((hunk, lines)) if hunk.starts_with("@@ -0,0 ") => lines,
        _ => diff,
    }
}
