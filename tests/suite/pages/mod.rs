//! The pages, the help and the messages agree with the program.

mod agents;
mod conversations;
mod help;
mod messages;
pub(crate) mod page;
mod readme;
pub(crate) mod reference;
mod samples;
pub(crate) mod workflow;
