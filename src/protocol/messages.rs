//! All messages of the protocol as data, for schemas and types in other languages. [`super::form`] has the terms; the kinds
//! of run.progress are [`ProgressKind::KINDS`].

pub use super::inbound::{ENVELOPE_IN, MESSAGES};
pub use super::kinds::{KindForm, KindName, ProgressKind};
pub use super::wire::{ENVELOPE_OUT, FRAMES};

pub const TYPES: &[&str] = &{
    let mut types = [""; MESSAGES.len() + FRAMES.len()];
    let mut at = 0;
    while at < types.len() {
        types[at] = if at < MESSAGES.len() { MESSAGES[at].name } else { FRAMES[at - MESSAGES.len()].name };
        at += 1;
    }
    types
};
