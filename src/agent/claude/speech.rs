//! Blocks of a message: those of which pieces came, and those that are too long to be said at once.

use crate::agent::Event;
use crate::agent::text::{Chunks, Fingerprint};

/// A text or thinking block of which pieces came.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) message: String,
    pub(super) key: String,
    pub(super) thinking: bool,
    pub(super) sent: Fingerprint,
}

/// A block of a message. What is still to be said of it stands in `line` from `at` to `end`, as it was written.
#[derive(Debug)]
pub(super) struct Speech {
    pub(super) key: String,
    pub(super) parent: Option<String>,
    pub(super) thinking: bool,
    pub(super) line: String,
    pub(super) at: usize,
    pub(super) end: usize,
}

impl Speech {
    pub(super) fn event(&self, piece: String, done: bool) -> Event {
        let (message, parent) = (self.key.clone(), self.parent.clone());
        if self.thinking {
            Event::Reasoning { message, piece, done, parent }
        } else {
            Event::Text { message, piece, done, parent }
        }
    }
}

/// Takes what was streamed off the beginning of a block. `None`: the block says something else.
pub(super) fn skip(chunks: &mut Chunks<'_>, sent: &Fingerprint) -> Option<String> {
    let mut seen = Fingerprint::default();
    while seen.bytes() < sent.bytes() {
        let chunk = chunks.next()?;
        let (old, new) = chunk.split_at_checked((sent.bytes() - seen.bytes()).min(chunk.len()))?;
        seen.push(old);
        if !new.is_empty() {
            return (seen == *sent).then(|| new.to_owned());
        }
    }
    (seen == *sent).then(String::new)
}
