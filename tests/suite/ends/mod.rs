//! The end of a run: cancels, signals, limits, faults, and the processes that must not outlive it.

mod alone;
mod budgets;
mod cancel;
mod clock;
mod closed;
mod fault_table;
mod faults;
mod leaks;
mod named_files;
pub(crate) mod own_git;
pub(crate) mod panics;
mod piped;
mod pressure;
pub(crate) mod processes;
mod simulated;
mod stress;
