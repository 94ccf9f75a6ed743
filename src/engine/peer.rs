//! The other side of a run, which sees its frames and answers its questions.

use super::outbox::Outbox;
use crate::agent::registry::Agent;
use crate::io::inbox::RawLine;
use crate::io::output::Chunk;
use crate::protocol::failure::Failure;
use crate::protocol::ids::RunId;
use crate::protocol::inbound::Inbound;
use crate::protocol::redacted::Redacted;
use crate::protocol::request::Settings;
use crate::protocol::unknown::UnknownNames;
use serde_json::value::RawValue;
use std::time::{Instant, SystemTime};

/// A body to be shown, with its envelope.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// The body. A peer may cut it, or join several runs into one.
    pub body: &'a mut Redacted,
    /// The id of the message that caused the frame.
    pub reply_to: Option<&'a str>,
    /// The id of the run.
    pub run_id: &'a RunId,
    /// The limit of a frame, in bytes.
    pub max_bytes: usize,
    /// The time of the frame.
    pub at: SystemTime,
    /// The scripted answer that this question gets at once.
    pub in_advance: Option<InAdvance>,
}

/// A scripted answer in the form that may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InAdvance {
    /// A JSON value, redacted.
    Value(String),
    /// The answer is a secret, or comes from a file or an environment variable.
    Hidden,
    /// The question is declined.
    Declined,
}

/// A peer's interpretation of a line of input.
#[derive(Debug, Default)]
pub struct Understood {
    /// The bytes to show at once.
    pub chunk: Chunk,
    /// The messages in the line, in order.
    pub messages: Vec<Inbound>,
}

/// Both directions of a conversation: turns raw input into messages, and bodies into bytes. Only a terminal overrides
/// the default methods.
pub trait Peer {
    /// Interprets a line of input. `at`: the time when it was read.
    fn hear(&mut self, line: &RawLine, at: Instant) -> Understood;

    /// Admits a run.start that the protocol considers valid. `workflow`: its field of that name; `said`: the other
    /// fields that it sets; `unknown`: the unknown fields to warn about. A peer that joins several runs into one may
    /// change the settings, or refuse them.
    ///
    /// # Errors
    /// The reason for the refusal.
    fn admit(
        &mut self,
        _settings: &mut Settings,
        _agent: &Agent,
        workflow: Option<&RawValue>,
        _said: &[&'static str],
        unknown: &mut UnknownNames,
    ) -> Result<(), Failure> {
        if workflow.is_some() {
            unknown.add("workflow", || None);
        }
        Ok(())
    }

    /// Adds the bytes of a body to `out`, or none if the peer does not show it.
    fn show(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox);

    /// Handles the loss of the last frames, whose sequence numbers are free again because nobody saw them.
    fn dropped(&mut self, _frames: u64) {}

    /// Whether the bytes go to a person's screen, so that the agent's escape sequences must be removed.
    fn is_screen(&self) -> bool {
        false
    }

    /// The bytes of a diagnostic line for stderr. `line` has no LF.
    fn note(&mut self, line: &str) -> Chunk {
        Chunk { err: format!("{line}\n").into_bytes(), ..Chunk::default() }
    }

    /// The bytes of a diagnostic line that only a verbose peer shows.
    fn debug(&mut self, _line: &str) -> Chunk {
        Chunk::default()
    }

    /// Handles Enter without an open question, which has moved the cursor.
    fn pressed(&mut self) -> Chunk {
        Chunk::default()
    }

    /// The time at which the peer next shows something without an event.
    fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// The bytes to show at the time of [`Peer::wake_at`], or after a resize of the terminal.
    fn woken(&mut self) -> Chunk {
        Chunk::default()
    }

    /// The bytes for stderr that clear the status line and the prompt, because this process is suspended or shows
    /// nothing more.
    fn leave(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Shows the status line and the prompt again after this process was suspended.
    fn back(&mut self) -> Chunk {
        Chunk::default()
    }

    /// Handles the return of the process to the foreground, and shows the questions that waited for it.
    fn fetched(&mut self) -> Chunk {
        Chunk::default()
    }
}
