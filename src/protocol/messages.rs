//! All messages of the protocol as data, for schemas and types in other languages. [`super::form`] has the terms; the kinds
//! of run.progress are [`About::KINDS`].

pub use super::inbound::{ENVELOPE_IN, MESSAGES};
pub use super::kinds::{About, KindForm};
pub use super::wire::{ENVELOPE_OUT, FRAMES};
