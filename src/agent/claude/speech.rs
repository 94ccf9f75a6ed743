//! Content blocks of a message: streamed ones, and ones too long for a single event.

use super::Claude;
use crate::agent::json::{Object, Raw};
use crate::agent::text::{Chunks, Fingerprint, LONG};
use crate::agent::{Event, Turn};

/// A text or thinking block that is being streamed.
#[derive(Debug)]
pub(super) struct StreamedBlock {
    pub(super) message: String,
    pub(super) key: String,
    pub(super) thinking: bool,
    pub(super) sent: Fingerprint,
}

/// A block whose text goes out in parts. The rest is the JSON string in `line` from `at` to `end`.
#[derive(Debug)]
pub(super) struct QueuedBlock {
    pub(super) key: String,
    pub(super) parent: Option<String>,
    pub(super) thinking: bool,
    pub(super) line: String,
    pub(super) at: usize,
    pub(super) end: usize,
}

impl QueuedBlock {
    pub(super) fn event(&self, piece: String, done: bool) -> Event {
        let (message, parent) = (self.key.clone(), self.parent.clone());
        Event::Text { message, piece, done, reasoning: self.thinking, parent }
    }
}

/// Skips the streamed beginning of a block. `None`: the block does not begin with it.
fn skip(chunks: &mut Chunks<'_>, sent: &Fingerprint) -> Option<String> {
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

impl Claude {
    pub(super) fn withdraw_streams(&mut self, turn: &mut Turn) {
        let mut broken: Vec<StreamedBlock> = self.streams.drain().map(|(_, stream)| stream).collect();
        broken.sort_by(|a, b| a.key.cmp(&b.key));
        turn.events.extend(broken.into_iter().map(|stream| Event::Withdrawn { message: stream.key }));
    }

    /// Handles a complete block. Does not repeat what was streamed.
    pub(super) fn whole_block(
        &mut self,
        id: &str,
        parent: &Option<String>,
        thinking: bool,
        whole: Raw<'_>,
        turn: &mut Turn,
    ) {
        let mut chunks = Chunks::new(whole.get());
        let streamed = self.streams.remove(parent);
        let (key, rest) = match streamed {
            Some(stream) if stream.message == id && stream.thinking == thinking => {
                match skip(&mut chunks, &stream.sent) {
                    Some(rest) => (stream.key, rest),
                    None => {
                        turn.events.push(Event::Withdrawn { message: stream.key });
                        chunks = Chunks::new(whole.get());
                        (self.next_block(id), String::new())
                    }
                }
            }
            _ if chunks.left() == 0 => return,
            _ => (self.next_block(id), String::new()),
        };
        let mut speech = QueuedBlock { key, parent: parent.clone(), thinking, line: String::new(), at: 0, end: 0 };
        if chunks.left() > LONG && self.long.is_empty() {
            turn.events.push(speech.event(rest, false));
            // Keeps the line itself once nothing borrows it: a copy would double the memory.
            speech.at = chunks.remaining().as_ptr().addr() - self.line_address;
            speech.end = speech.at + chunks.left();
            self.long.push_back(speech);
            turn.more = true;
            return;
        }
        let whole = rest + &chunks.collect::<String>();
        turn.events.push(speech.event(whole, true));
    }

    fn next_block(&mut self, id: &str) -> String {
        let count = self.blocks.entry(id.to_owned()).or_default();
        *count += 1;
        format!("{id}/{count}")
    }

    pub(super) fn stream_event(&mut self, line: &Object<'_>, turn: &mut Turn) -> Option<()> {
        let event = line.object("event")?;
        let parent = line.string("parent_tool_use_id");
        match event.string("type")?.as_str() {
            "message_start" => {
                let id = event.object("message")?.string("id")?;
                self.streaming.insert(parent, id);
            }
            "content_block_stop" => {
                let whole = format!("{parent:?}/input");
                turn.events.push(Event::Partial { whole, piece: String::new(), done: true });
            }
            "content_block_delta" => return self.delta(&event.object("delta")?, parent, turn),
            _ => {}
        }
        Some(())
    }

    fn delta(&mut self, delta: &Object<'_>, parent: Option<String>, turn: &mut Turn) -> Option<()> {
        let (thinking, piece) = match delta.string("type")?.as_str() {
            "text_delta" => (false, delta.string("text")?),
            "thinking_delta" => (true, delta.string("thinking")?),
            "input_json_delta" => {
                let (whole, piece) = (format!("{parent:?}/input"), delta.string("partial_json")?);
                turn.events.push(Event::Partial { whole, piece, done: false });
                return Some(());
            }
            _ => return Some(()),
        };
        if piece.is_empty() {
            return Some(());
        }
        if !self.streams.contains_key(&parent) {
            let message = self.streaming.get(&parent).cloned().unwrap_or_default();
            let key = self.next_block(&message);
            self.streams.insert(parent.clone(), StreamedBlock { message, key, thinking, sent: Fingerprint::default() });
        }
        if let Some(stream) = self.streams.get_mut(&parent) {
            stream.sent.push(&piece);
            let speech = QueuedBlock { key: stream.key.clone(), parent, thinking, line: String::new(), at: 0, end: 0 };
            turn.events.push(speech.event(piece, false));
        }
        Some(())
    }
}
