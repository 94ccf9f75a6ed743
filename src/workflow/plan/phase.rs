//! A phase of a plan, its parts, and their form in the file.

use super::own::{State, StateLine};
use crate::workflow::markdown::{TextLine, requirement, task_id};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanPhase {
    /// The number, 1 to 999.
    pub number: u16,
    pub title: String,
    /// The line of its heading, from 1.
    pub line: usize,
    /// The state line directly below the heading.
    pub state: Option<StateLine>,
    pub tasks: Vec<Task>,
    /// The commands, for `/bin/sh -c`.
    pub verify: Vec<String>,
    pub manual: Vec<String>,
    pub protect: Vec<Protected>,
    /// The text below the heading, unchanged but without the state line.
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The two numbers of the id: `T1.2` is (1, 2).
    pub number: (u64, u64),
    /// The text, without the id.
    pub text: String,
    /// Whether its box is ticked.
    pub done: bool,
    /// The numbers of the requirements that the task serves.
    pub serves: Vec<u64>,
    /// The line, from 1.
    pub line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// The path relative to the project's folder, without a leading `./` or a trailing `/`.
    pub path: String,
    /// Whether the entry is a folder with its contents.
    pub folder: bool,
}

impl PlanPhase {
    /// The id: `P1`.
    pub fn id(&self) -> String {
        format!("P{}", self.number)
    }

    pub fn was_attempted(&self) -> bool {
        self.state.as_ref().is_some_and(|line| line.attempts > 0)
    }

    /// Whether an earlier run began the phase and did not finish it: the state line says in_progress or failed.
    pub fn is_underway(&self) -> bool {
        self.state.as_ref().is_some_and(|line| line.state != State::Passed)
    }

    /// Whether the phase is done: all boxes are ticked, and the state line is missing or says passed.
    pub fn is_done(&self) -> bool {
        let passed = self.state.as_ref().is_none_or(|line| line.state == State::Passed);
        passed && self.tasks.iter().all(|task| task.done)
    }
}

impl Task {
    /// The id: `T1.2`.
    pub fn id(&self) -> String {
        format!("T{}.{}", self.number.0, self.number.1)
    }
}

impl Protected {
    /// The entry as the plan shows it: a folder ends in `/`.
    pub fn entry(&self) -> String {
        format!("{}{}", self.path, if self.folder { "/" } else { "" })
    }
}

/// The number and title in the heading of a phase: `## Phase 1: TITLE`.
pub(super) fn phase_heading(line: &str) -> Option<(u16, &str)> {
    let rest = line.strip_prefix("## Phase ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = rest.split_at(digits);
    let title = rest.strip_prefix(": ").filter(|title| title.starts_with(|c: char| !c.is_whitespace()))?;
    let good = (1..=3).contains(&digits) && !number.starts_with('0');
    Some((number.parse().ok().filter(|_| good)?, title))
}

pub(super) fn task(line: &TextLine<'_>) -> Option<Task> {
    task_in(line.text, line.number).filter(|_| line.is_outside())
}

/// The text as a task, even inside a fence: `- [ ] T1.1 TEXT`.
pub(super) fn task_in(text: &str, line: usize) -> Option<Task> {
    let rest = text.strip_prefix("- [")?;
    let (mark, rest) = rest.split_once("] ").filter(|(mark, _)| matches!(*mark, " " | "x" | "X"))?;
    let (phase, task, rest) = task_id(rest)?;
    let text = rest.strip_prefix(' ').filter(|text| text.starts_with(|c: char| !c.is_whitespace()))?;
    Some(Task { number: (phase, task), text: text.to_owned(), done: mark != " ", serves: served(text), line })
}

/// The requirements in parentheses at the end of a task.
fn served(text: &str) -> Vec<u64> {
    let inside = text.strip_suffix(')').and_then(|text| text.rsplit_once('('));
    let id = |part: &str| requirement(part.trim()).filter(|(_, rest)| rest.is_empty()).map(|(id, _)| id);
    inside.and_then(|(_, ids)| ids.split(',').map(id).collect()).unwrap_or_default()
}
