//! The workflows: `init`, `spec`, `plan`, `implement`, and worktrees.

mod baseline;
mod check;
pub(crate) mod commits;
mod covered;
mod demo;
mod drafts;
mod fallback;
mod formats;
pub(crate) mod implement;
mod implement_ends;
mod limits;
mod night;
mod parts;
mod plan;
mod processes;
mod project;
mod protected;
mod repositories;
mod review;
mod sentences;
mod served;
mod set_up;
pub(crate) mod spec;
mod status;
pub(crate) mod worktree;
mod worktrees;
