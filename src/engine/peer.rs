//! The other side of a run: whoever sees its frames and answers its questions.

use super::outbox::Outbox;
use crate::agent::registry::Agent;
use crate::failure::Failure;
use crate::io::inbox::RawLine;
use crate::io::output::Chunk;
use crate::protocol::inbound::Inbound;
use crate::protocol::redacted::Redacted;
use crate::protocol::request::Settings;
use crate::protocol::unknown::UnknownNames;
use serde_json::value::RawValue;
use std::time::{Instant, SystemTime};

/// A body on its way out.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// What it says. A peer may cut it, or join several runs into one.
    pub body: &'a mut Redacted,
    /// The id of the message that caused it.
    pub reply_to: Option<&'a str>,
    /// The run it belongs to.
    pub run_id: &'a str,
    /// The limit of a frame, in bytes.
    pub max_bytes: usize,
    /// When it happened.
    pub at: SystemTime,
    /// The answer that this question gets at once, because it was given in advance.
    pub in_advance: Option<InAdvance>,
}

/// An answer given in advance, as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InAdvance {
    /// A JSON value, redacted.
    Value(String),
    /// The answer of a secret, or one that comes from a file or an environment variable.
    Hidden,
    /// The question is declined.
    Declined,
}

/// What a peer made of a line of input.
#[derive(Debug, Default)]
pub struct Understood {
    /// What to show at once.
    pub chunk: Chunk,
    /// The messages it means, in order.
    pub messages: Vec<Inbound>,
}

/// Both directions of one conversation: raw input becomes messages, bodies become bytes. Only a terminal needs the
/// methods that have a default.
pub trait Peer {
    /// Takes a line of input that was read at this time.
    fn hear(&mut self, line: &RawLine, at: Instant) -> Understood;

    /// Takes a run.start that is valid as far as the protocol goes. `workflow`: its object of that name; `unknown`: its
    /// fields to warn of. A peer that makes one run of several may change the settings, or refuse them.
    ///
    /// # Errors
    /// What is wrong.
    fn admit(
        &mut self,
        _settings: &mut Settings,
        _agent: &Agent,
        workflow: Option<&RawValue>,
        unknown: &mut UnknownNames,
    ) -> Result<(), Failure> {
        if workflow.is_some() {
            unknown.add("workflow", || None);
        }
        Ok(())
    }

    /// Adds the bytes of a body to `out`, or none if the peer keeps it to itself.
    fn show(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox);

    /// The last frames were dropped before anybody saw them. Their numbers are free again.
    fn dropped(&mut self, _frames: u64) {}

    /// Whether the bytes go to a person's screen, cleaned of escape sequences.
    fn is_screen(&self) -> bool {
        false
    }

    /// A whole line for stderr that is no frame, without its LF.
    fn note(&mut self, line: &str) -> Chunk {
        Chunk { err: format!("{line}\n").into_bytes(), ..Chunk::default() }
    }

    /// The same, but only for a peer that wants to see everything.
    fn debug(&mut self, _line: &str) -> Chunk {
        Chunk::default()
    }

    /// Somebody pressed Enter while nothing was asked: the cursor has moved.
    fn pressed(&mut self) -> Chunk {
        Chunk::default()
    }

    /// When the peer has something new to show although nothing happens.
    fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// What is new, once that time has come or the terminal has another size.
    fn woken(&mut self) -> Chunk {
        Chunk::default()
    }

    /// Clears what must not stay on a terminal, because this process stops now or can show nothing more: bytes for
    /// stderr.
    fn leave(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Shows it again after the process was stopped, by Ctrl-Z or otherwise.
    fn back(&mut self) -> Chunk {
        Chunk::default()
    }

    /// A shell brought the process to the foreground, perhaps without a stop before: shows what waited for that.
    fn fetched(&mut self) -> Chunk {
        Chunk::default()
    }
}

impl<P: Peer + ?Sized> Peer for &mut P {
    fn hear(&mut self, line: &RawLine, at: Instant) -> Understood {
        (**self).hear(line, at)
    }

    fn admit(
        &mut self,
        settings: &mut Settings,
        agent: &Agent,
        workflow: Option<&RawValue>,
        unknown: &mut UnknownNames,
    ) -> Result<(), Failure> {
        (**self).admit(settings, agent, workflow, unknown)
    }

    fn show(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox) {
        (**self).show(outgoing, out);
    }

    fn dropped(&mut self, frames: u64) {
        (**self).dropped(frames);
    }

    fn is_screen(&self) -> bool {
        (**self).is_screen()
    }

    fn note(&mut self, line: &str) -> Chunk {
        (**self).note(line)
    }

    fn debug(&mut self, line: &str) -> Chunk {
        (**self).debug(line)
    }

    fn wake_at(&self) -> Option<Instant> {
        (**self).wake_at()
    }

    fn woken(&mut self) -> Chunk {
        (**self).woken()
    }

    fn leave(&mut self) -> Vec<u8> {
        (**self).leave()
    }

    fn back(&mut self) -> Chunk {
        (**self).back()
    }

    fn pressed(&mut self) -> Chunk {
        (**self).pressed()
    }

    fn fetched(&mut self) -> Chunk {
        (**self).fetched()
    }
}
