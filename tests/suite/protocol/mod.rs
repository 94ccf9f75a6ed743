//! The protocol's messages and frames: their form, their limits, and the files that describe them.

mod boundaries;
mod check;
mod clients;
mod dialogue;
mod dropped;
pub(crate) mod forms;
mod framing;
mod lifecycle;
mod limits;
mod misspelt;
mod published;
mod request;
