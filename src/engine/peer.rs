//! The other side of a run, which sees its frames and answers its questions.

use crate::io::outbox::Outbox;
use crate::io::output::Chunk;
use crate::protocol::ids::RunId;
use crate::protocol::inbound::{Inbound, Message};
use crate::protocol::redacted::Redacted;
use crate::redact::Redactor;
use std::time::{Instant, SystemTime};

#[derive(Debug)]
pub struct Outgoing<'a> {
    /// A peer may cut it.
    pub body: &'a mut Redacted,
    pub reply_to: Option<&'a str>,
    pub run_id: &'a RunId,
    pub max_bytes: usize,
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
    Declined,
}

/// A peer's interpretation of a person's keys.
#[derive(Debug, Default)]
pub struct Understood {
    pub chunk: Chunk,
    /// The messages that they make, in order.
    pub messages: Vec<Inbound>,
}

pub trait Peer {
    /// Handles a message of the orchestrator before the run does, and may change it.
    fn heard(&mut self, _message: &mut Message) {}

    /// Handles the end of stdin inside a line, which does not count.
    fn input_cut(&mut self) {}

    /// Handles the prompt of a valid run.start. `redactor` knows every secret of the run.
    fn prompted(&mut self, _prompt: &str, _redactor: &Redactor) {}

    /// Adds the bytes of a body to `out`, or none if the peer does not show it.
    fn show(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox);

    /// Handles the loss of the last frames, whose sequence numbers are free again because nobody saw them.
    fn dropped(&mut self, frames: u64);

    /// The screen on which a person sees the run. `None`: a program reads it.
    fn screen(&mut self) -> Option<&mut dyn ScreenPeer>;
}

/// A person's screen. The agent's escape sequences must be removed from everything that it shows.
pub trait ScreenPeer {
    /// Interprets keys that a person typed. `at`: the time when they were read.
    fn typed(&mut self, keys: &[u8], at: Instant) -> Understood;

    /// `line` has no LF.
    fn note(&mut self, line: &str) -> Chunk;

    /// The bytes of a diagnostic line that only a verbose screen shows.
    fn debug(&mut self, line: &str) -> Chunk;

    /// Handles Ctrl-C. `None`: it ends the run, as any other request to end does.
    fn interrupted(&mut self) -> Option<Understood>;

    /// The time at which the screen next changes without an event.
    fn wake_at(&self) -> Option<Instant>;

    fn changed(&mut self, change: ScreenChange) -> Chunk;

    /// The bytes for stderr that clear the status line and the prompt, because this process is suspended or shows
    /// nothing more.
    fn clear_last_line(&mut self) -> Vec<u8>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenChange {
    /// The time of [`ScreenPeer::wake_at`] came, or the terminal was resized.
    Due,
    /// Enter was pressed without an open question, which has moved the cursor.
    Enter,
    Resumed,
    /// This process came back to the foreground, so that the questions that waited for it can be shown.
    Foreground,
}
