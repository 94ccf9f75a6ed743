//! Commands and flags as text: help, completions for shells, the manual page.

pub mod complete;
pub mod man;
mod page;
pub mod texts;

pub use page::overview;
