//! The files that a run changed, as git sees them.

mod git;
mod slow_git;
