//! A phase of a plan and its parts.

use super::own::{State, StateLine};

/// A phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanPhase {
    /// Its number, 1 to 999.
    pub number: u16,
    /// Its title.
    pub title: String,
    /// The line of its heading, from 1.
    pub line: usize,
    /// The state line directly below the heading.
    pub state: Option<StateLine>,
    /// The tasks, in order.
    pub tasks: Vec<Task>,
    /// The commands that must pass, in order.
    pub verify: Vec<VerifyCommand>,
    /// The checks for a person, in order.
    pub manual: Vec<Manual>,
    /// The files and folders that must not change.
    pub protect: Vec<Protected>,
    /// The text below the heading, without the state line, as it is in the file.
    pub text: String,
}

/// A task of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The two numbers of its id: `T1.2` is (1, 2).
    pub number: (u64, u64),
    /// Its text, without the id.
    pub text: String,
    /// Whether its box is ticked.
    pub done: bool,
    /// The numbers of the requirements that it serves.
    pub serves: Vec<u64>,
    /// Its line, from 1.
    pub line: usize,
}

/// A command that must pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyCommand {
    /// The command, for `/bin/sh -c`.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
}

/// A check for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manual {
    /// The condition to check.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
}

/// A file or folder that must not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// The path relative to the project's folder, without `./` before it and without `/` after it.
    pub path: String,
    /// Whether it is a folder with everything in it.
    pub folder: bool,
    /// Its line, from 1.
    pub line: usize,
}

impl PlanPhase {
    /// Its id: `P1`.
    pub fn id(&self) -> String {
        format!("P{}", self.number)
    }

    /// Whether its work is done: all boxes are ticked, and the state line is missing or says passed.
    pub fn is_done(&self) -> bool {
        let passed = self.state.as_ref().is_none_or(|line| line.state == State::Passed);
        passed && self.tasks.iter().all(|task| task.done)
    }
}

impl Task {
    /// Its id: `T1.2`.
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
