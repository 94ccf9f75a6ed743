//! The phases of a plan for a person: where one begins, the commands that verify it, and the table at the end.

use super::TerminalPeer;
use super::screen::{Detail, Ink};
use super::width;
use super::work::span;
use crate::clean::{one_line, whole};
use crate::protocol::outbound::{PhaseReport, Progress, ProgressKind, Text, WorkflowEnd};
use crate::protocol::words::{PhaseState, ToolState};
use std::fmt::Write;
use std::time::Duration;

/// The number of lines of a failed command's output to show.
const LINES: usize = 10;
/// The columns of a line of that output, where it is no terminal.
const COLUMNS: usize = 200;

/// The commands that run once more after the last phase.
const FINAL_CHECK: &str = "Final check";

impl TerminalPeer {
    /// Nothing for progress of another kind.
    pub(super) fn phase(&mut self, progress: &Progress) -> String {
        let ProgressKind::Phase { phase: _, title, number, of, attempt, state, agent: _ } = &progress.about else {
            return String::new();
        };
        let (title, text) = (one_line(title.shown()), one_line(progress.text.shown()));
        let line = match state {
            PhaseState::Started if *attempt <= 1 => {
                self.work.phase = Some((format!("Phase {number} of {of}"), false));
                let heading = width::cut(&format!("Phase {number} of {of}: {title}"), self.width());
                self.look.paint(Ink::Bold, &heading)
            }
            PhaseState::Started => self.look.paint(Ink::Bold, &format!("Phase {number}, attempt {attempt}")),
            PhaseState::Verifying if *attempt == 0 => {
                self.work.phase = Some((format!("Before phase {number} of {of}"), true));
                let heading = width::cut(&format!("Before phase {number} of {of}: {title}"), self.width());
                self.look.paint(Ink::Bold, &heading)
            }
            PhaseState::Verifying => return String::new(),
            PhaseState::Reviewing => width::cut(&text, self.width()),
            PhaseState::Failed => self.look.paint(Ink::Red, &width::cut(&text, self.width())),
            PhaseState::Passed => {
                self.work.phase = None;
                self.look.paint(Ink::Green, &format!("Phase {number} passed"))
            }
            PhaseState::Reopened => {
                self.work.phase = Some((format!("Phase {number} of {of}"), false));
                let line = width::cut(&format!("Phase {number} is open again: {title}"), self.width());
                self.look.paint(Ink::Yellow, &line)
            }
        };
        line + "\n"
    }

    /// The first command outside a phase begins the final check.
    pub(super) fn command(
        &mut self,
        (title, hint): (&str, &str),
        state: ToolState,
        took: Duration,
        output: Option<&Text>,
    ) -> String {
        let is_before = matches!(self.work.phase, Some((_, true)));
        let (ink, word) = match state {
            ToolState::Started if self.work.phase.is_some() => return String::new(),
            ToolState::Started => {
                self.work.phase = Some((FINAL_CHECK.to_owned(), false));
                return self.look.paint(Ink::Bold, FINAL_CHECK) + "\n";
            }
            // A failure before the work is to be expected.
            ToolState::Failed | ToolState::Cancelled if is_before => (Ink::Dim, "not yet"),
            ToolState::Completed => (Ink::Green, "passed"),
            ToolState::Failed | ToolState::Denied | ToolState::Cancelled => (Ink::Red, "failed"),
        };
        let end = format!(" ({})", time(took));
        let room = self.width().saturating_sub(word.len() + end.len() + 5).max(8);
        let mut lines = format!("  {} {}{end}\n", self.look.paint(ink, word), width::cut(title, room));
        if self.look.detail == Detail::Verbose {
            lines.push_str(&self.output(output));
        } else if state == ToolState::Failed && !is_before {
            let text = output.map(|text| whole(text.shown()));
            let all: Vec<&str> = text.iter().flat_map(|text| text.lines()).collect();
            for line in &all[all.len().saturating_sub(LINES)..] {
                let line = width::cut(line, self.width().min(COLUMNS).saturating_sub(6));
                let _ = writeln!(lines, "    {}", self.look.paint(Ink::Dim, &format!("| {line}")));
            }
            if let Some(hint) = hint.strip_prefix("; ") {
                let _ = writeln!(lines, "    {}", self.look.paint(Ink::Dim, hint));
            }
        }
        lines
    }

    pub(super) fn report(&self, end: &WorkflowEnd) -> String {
        if self.look.detail == Detail::Quiet { String::new() } else { table(&end.phases, self.width()) }
    }
}

fn table(phases: &[PhaseReport], columns: usize) -> String {
    let rows: Vec<[String; 6]> = phases.iter().map(cells).collect();
    let widths: Vec<usize> = (0..6).map(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or_default()).collect();
    let mut lines = String::new();
    for (row, phase) in rows.iter().zip(phases) {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate().filter(|(_, (_, width))| **width > 0) {
            // The id and the state stand left, numbers right.
            let _ = if at < 2 { write!(line, "{cell:<width$}  ") } else { write!(line, "{cell:>width$}  ") };
        }
        let title = one_line(phase.title.shown());
        let _ = writeln!(lines, "{}", width::cut(&format!("{line}{title}"), columns));
    }
    lines
}

/// The id, the state, attempts, time, cost and number of files of a phase.
fn cells(phase: &PhaseReport) -> [String; 6] {
    let counted = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    [
        phase.id.clone(),
        phase.state.word().to_owned(),
        counted(phase.attempts, "attempt", "attempts"),
        span(Duration::from_millis(phase.duration_ms)),
        phase.cost_usd.map(|cost| format!("${cost:.2}")).unwrap_or_default(),
        counted(phase.files.len() as u64, "file", "files"),
    ]
}

fn time(took: Duration) -> String {
    if took.as_secs() < 10 { format!("{:.1}s", took.as_secs_f64()) } else { span(took) }
}

#[cfg(test)]
mod tests {
    use super::{table, time};
    use crate::protocol::outbound::{PhaseReport, Text};
    use crate::protocol::words::PhaseOutcome;
    use std::time::Duration;

    fn phase(id: &str, state: PhaseOutcome, attempts: u64, cost_usd: Option<f64>) -> PhaseReport {
        PhaseReport {
            id: id.into(),
            title: Text::from("A title that is so long that it does not fit a terminal of eighty columns at all"),
            state,
            agent: None,
            attempts,
            duration_ms: attempts * 65_000,
            cost_usd,
            files: Vec::new(),
            commit: None,
            head: None,
            unverified: Vec::new(),
            reviewed_by: None,
            review: Vec::new(),
        }
    }

    #[test]
    fn the_table_has_columns_and_fits_the_terminal() {
        let phases = [
            phase("P1", PhaseOutcome::Passed, 1, Some(0.123)),
            phase("P10", PhaseOutcome::Failed, 3, None),
            phase("P11", PhaseOutcome::Open, 0, None),
        ];
        let shown = table(&phases, 60);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "P1   passed   1 attempt  1m 05s  $0.12  0 files  A title th…");
        assert_eq!(lines[1], "P10  failed  3 attempts  3m 15s         0 files  A title th…");
        assert_eq!(lines[2], "P11  open    0 attempts      0s         0 files  A title th…");
        // A table without costs has no column for them, and one for a log is not cut.
        let shown = table(&phases[1..], usize::MAX);
        assert!(
            shown.starts_with("P10  failed  3 attempts  3m 15s  0 files  A title that") && shown.contains("at all\n")
        );
    }

    #[test]
    fn short_times_have_a_tenth() {
        assert_eq!(time(Duration::from_millis(420)), "0.4s");
        assert_eq!(time(Duration::from_secs(75)), "1m 15s");
    }
}
