//! The format of a plan: its phases with their tasks, commands and protected paths, and the progress of the work.
//!
//! plan.md is the only record of the work. [`read`] never fails: invalid parts become violations.

mod digest;
mod edit;
mod own;
mod phase;
mod rules;
mod verify;

pub use digest::Digest;
pub use edit::{PlanChange, edited, without_own_lines};
pub use own::{State, StateLine};
pub use phase::{PlanPhase, Protected, Task};
pub use rules::{Checked, read};

pub const PHASES_MAX: usize = 99;
pub const TASKS_MAX: usize = 99;
pub const PROTECTED_MAX: usize = 50;

/// A plan, as far as it is valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkPlan {
    /// The title, or an empty text.
    pub title: String,
    /// The path of the specification, from the line `Spec: PATH`.
    pub spec: Option<SpecLine>,
    /// The digest of the specification at the time of planning.
    pub digest: Option<Digest>,
    pub phases: Vec<PlanPhase>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecLine {
    /// The path, relative to the project's folder.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
}

impl WorkPlan {
    pub fn tasks(&self) -> usize {
        self.phases.iter().map(|phase| phase.tasks.len()).sum()
    }

    /// Whether passed phases cover the requirement with this number. `None`: no phase serves it.
    pub fn covers(&self, requirement: u64) -> Option<bool> {
        let serves = |phase: &&PlanPhase| phase.tasks.iter().any(|task| task.serves.contains(&requirement));
        let mut all = self.phases.iter().filter(serves).map(PlanPhase::is_done).peekable();
        all.peek().is_some().then(|| all.all(|is_done| is_done))
    }

    pub fn first_open(&self) -> Option<&PlanPhase> {
        self.phases.iter().find(|phase| !phase.is_done())
    }
}
