//! Rules for the source code that a test can check.

mod circles;
pub(crate) mod code;
mod systems;
mod tests;
