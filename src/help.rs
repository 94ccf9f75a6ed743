//! Commands and flags as text: help, completions for shells, the manual page.

pub mod complete;
pub(crate) mod man;
mod page;

pub(crate) use page::between_words;
pub use page::overview;
