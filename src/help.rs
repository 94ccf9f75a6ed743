//! Commands and flags as text: help, completions for shells, the manual page.

pub mod complete;
pub(crate) mod man;
mod page;
pub(crate) mod texts;

pub use page::overview;
