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
use crate::redact::Redactor;
use serde_json::value::RawValue;
use std::time::{Instant, SystemTime};

/// A body to be shown, with its envelope.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// The body. A peer may cut it, or join several runs into one.
    pub body: &'a mut Redacted,
    /// The id of the message that caused the frame.
    pub reply_to: Option<&'a str>,
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
/// the methods with a default. A peer that wraps another one passes them on to it.
pub trait Peer {
    /// The peer that this one wraps.
    fn inner(&self) -> Option<&dyn Peer> {
        None
    }

    /// The peer that this one wraps, mutably.
    fn inner_mut(&mut self) -> Option<&mut dyn Peer> {
        None
    }

    /// Interprets a line of input. `at`: the time when it was read.
    fn read_line(&mut self, line: &RawLine, at: Instant) -> Understood;

    /// Admits a run.start that the protocol considers valid. `workflow`: its field of that name; `said`: the other
    /// fields that it sets; `unknown`: the unknown fields to warn about; `redactor`: knows every secret of the run. A
    /// peer that joins several runs into one may change the settings, or refuse them.
    fn admit(
        &mut self,
        _settings: &mut Settings,
        _agent: &Agent,
        workflow: Option<&RawValue>,
        _said: &[&'static str],
        unknown: &mut UnknownNames,
        _redactor: &Redactor,
    ) -> Result<(), Failure> {
        if workflow.is_some() {
            unknown.add("workflow", || None);
        }
        Ok(())
    }

    /// Adds the bytes of a body to `out`, or none if the peer does not show it.
    fn show(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox);

    /// Handles the loss of the last frames, whose sequence numbers are free again because nobody saw them.
    fn dropped(&mut self, frames: u64) {
        if let Some(inner) = self.inner_mut() {
            inner.dropped(frames);
        }
    }

    /// Whether the bytes go to a person's screen, so that the agent's escape sequences must be removed.
    fn is_screen(&self) -> bool {
        self.inner().is_some_and(Peer::is_screen)
    }

    /// The bytes of a diagnostic line for stderr. `line` has no LF.
    fn note(&mut self, line: &str) -> Chunk {
        match self.inner_mut() {
            Some(inner) => inner.note(line),
            None => Chunk { err: format!("{line}\n").into_bytes(), ..Chunk::default() },
        }
    }

    /// The bytes of a diagnostic line that only a verbose peer shows.
    fn debug(&mut self, line: &str) -> Chunk {
        self.inner_mut().map(|inner| inner.debug(line)).unwrap_or_default()
    }

    /// Handles Ctrl-C. `None`: it ends the run, as any other request to end does.
    fn interrupted(&mut self) -> Option<Understood> {
        self.inner_mut().and_then(Peer::interrupted)
    }

    /// Handles Enter without an open question, which has moved the cursor.
    fn enter_pressed(&mut self) -> Chunk {
        self.inner_mut().map(Peer::enter_pressed).unwrap_or_default()
    }

    /// The time at which the peer next shows something without an event.
    fn wake_at(&self) -> Option<Instant> {
        self.inner().and_then(Peer::wake_at)
    }

    /// The bytes to show at the time of [`Peer::wake_at`], or after a resize of the terminal.
    fn refresh(&mut self) -> Chunk {
        self.inner_mut().map(Peer::refresh).unwrap_or_default()
    }

    /// The bytes for stderr that clear the status line and the prompt, because this process is suspended or shows
    /// nothing more.
    fn clear_last_line(&mut self) -> Vec<u8> {
        self.inner_mut().map(Peer::clear_last_line).unwrap_or_default()
    }

    /// Shows the status line and the prompt again after this process was suspended.
    fn resumed(&mut self) -> Chunk {
        self.inner_mut().map(Peer::resumed).unwrap_or_default()
    }

    /// Handles the return of the process to the foreground, and shows the questions that waited for it.
    fn foregrounded(&mut self) -> Chunk {
        self.inner_mut().map(Peer::foregrounded).unwrap_or_default()
    }
}
