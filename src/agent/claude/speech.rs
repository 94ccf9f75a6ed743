//! The texts and thoughts of the model and its sub-agents. A block arrives in pieces and then whole, or only whole. The
//! latter needs no state.

use crate::agent::recent::OpenMap;
use crate::agent::text::Fingerprint;
use crate::agent::{AgentEvent, CallKey, DriverOutput, MessageKey, speech};
use crate::json::{Chunks, Object, Raw, SplitPair, decoded_in_place};
use crate::protocol::text::Text;
use std::borrow::Cow;
use std::ops::Range;

/// The number of bytes above which a block takes the memory of its line.
const LONG: usize = 256 << 10;

#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: u64,
    main: Speaker,
    subagents: OpenMap<Speaker, CallKey>,
    /// The event that gets the text of a long block, and the place of the block in its line.
    long: Option<(usize, Range<usize>)>,
}

#[derive(Debug, Default)]
struct Speaker {
    message: String,
    stream: Option<StreamedBlock>,
    input: Option<MessageKey>,
}

#[derive(Debug)]
struct StreamedBlock {
    message: String,
    key: MessageKey,
    thinking: bool,
    sent: Fingerprint,
    pair: SplitPair,
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

impl Blocks {
    pub(super) fn withdraw(&mut self, out: &mut DriverOutput) {
        let speakers = std::iter::once(&mut self.main).chain(self.subagents.values_mut());
        let mut broken: Vec<MessageKey> = speakers.filter_map(|one| one.stream.take()).map(|one| one.key).collect();
        broken.sort_unstable();
        out.events.extend(broken.into_iter().map(|message| AgentEvent::Withdrawn { message }));
    }

    pub(super) fn forget_streams(&mut self) {
        self.main.stream = None;
        self.subagents.values_mut().for_each(|one| one.stream = None);
        self.subagents.retain(|_, one| !one.is_silent());
    }

    fn speaker(&mut self, parent: Option<CallKey>) -> Option<&mut Speaker> {
        match parent {
            None => Some(&mut self.main),
            Some(parent) => self.subagents.get_mut(&parent),
        }
    }

    /// Forgets a speaker that streams nothing.
    fn change<T>(&mut self, parent: Option<CallKey>, change: impl FnOnce(&mut Speaker, &mut u64) -> T) -> T {
        let Some(parent) = parent else { return change(&mut self.main, &mut self.blocks) };
        let mut speaker = self.subagents.remove(&parent).unwrap_or_default();
        let changed = change(&mut speaker, &mut self.blocks);
        if !speaker.is_silent() {
            let texts = speaker.message.len() + speaker.stream.as_ref().map_or(0, |stream| stream.message.len());
            self.subagents.insert(parent, speaker, texts);
        }
        changed
    }

    /// Does not repeat the streamed part.
    pub(super) fn whole_block(
        &mut self,
        id: &str,
        parent: Option<CallKey>,
        thinking: bool,
        whole: Raw<'_>,
        out: &mut DriverOutput,
    ) {
        let is_streamed = self.speaker(parent).is_some_and(|one| one.stream.is_some());
        if whole.get().len() > LONG && !is_streamed && self.long.is_none() {
            self.long = Some((out.events.len(), whole.place()));
            return out.events.push(speech(MessageKey::next(&mut self.blocks), parent, thinking, String::new(), true));
        }
        if let Some(text) = whole.plain_str().filter(|text| !is_streamed && !text.is_empty()) {
            let key = MessageKey::next(&mut self.blocks);
            return out.events.push(speech(key, parent, thinking, text.to_owned(), true));
        }
        let mut chunks = Chunks::new(whole.get());
        let streamed = if is_streamed { self.change(parent, |one, _| one.stream.take()) } else { None };
        let (key, rest) = match streamed {
            Some(stream) if stream.message == id && stream.thinking == thinking => {
                match skip(&mut chunks, &stream.sent) {
                    Some(rest) => (stream.key, rest),
                    None => {
                        out.events.push(AgentEvent::Withdrawn { message: stream.key });
                        chunks = Chunks::new(whole.get());
                        (MessageKey::next(&mut self.blocks), String::new())
                    }
                }
            }
            other => {
                // Claude Code asked for the answer again, here without streaming, and does not say so.
                out.events.extend(other.map(|stream| AgentEvent::Withdrawn { message: stream.key }));
                if chunks.left() == 0 {
                    return;
                }
                (MessageKey::next(&mut self.blocks), String::new())
            }
        };
        out.events.push(speech(key, parent, thinking, chunks.after(rest), true));
    }

    /// Gives a long block the memory of its line, which nothing borrows any more: a copy would double it.
    pub(super) fn take_line(&mut self, line: Cow<'_, str>, out: &mut DriverOutput) {
        let Some((event, place)) = self.long.take() else { return };
        if let Some(AgentEvent::Text { piece, .. }) = out.events.get_mut(event) {
            *piece = decoded_in_place(line.into_owned(), place).into();
        }
    }

    pub(super) fn stream_event(&mut self, line: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let event = line.object("event")?;
        let parent = line.str("parent_tool_use_id").map(|call| CallKey::of(&call));
        match &*event.str("type")? {
            "content_block_delta" => return self.delta(&event.object("delta")?, parent, out),
            "message_start" => {
                let id = event.object("message")?.string("id")?;
                // Claude Code asks for a stalled answer again without saying so.
                let stalled = self.change(parent, |one, _| {
                    one.message = id;
                    one.stream.take()
                });
                out.events.extend(stalled.map(|stream| AgentEvent::Withdrawn { message: stream.key }));
            }
            "content_block_stop" => {
                let input = self.change(parent, |one, _| one.input.take());
                let end = |whole| AgentEvent::Partial { whole, piece: Text::default(), done: true };
                out.events.extend(input.map(end));
            }
            "message_stop" => self.change(parent, |one, _| one.message.clear()),
            _ => {}
        }
        Some(())
    }

    fn delta(&mut self, delta: &Object<'_>, parent: Option<CallKey>, out: &mut DriverOutput) -> Option<()> {
        let (thinking, piece) = match &*delta.str("type")? {
            "text_delta" => (false, delta.raw("text")?),
            "thinking_delta" => (true, delta.raw("thinking")?),
            "input_json_delta" => {
                let piece = delta.string("partial_json")?;
                let whole =
                    self.change(parent, |one, blocks| *one.input.get_or_insert_with(|| MessageKey::next(blocks)));
                out.events.push(AgentEvent::Partial { whole, piece: piece.into(), done: false });
                return Some(());
            }
            _ => return Some(()),
        };
        let piece = piece.literal()?;
        if piece.is_empty() {
            return Some(());
        }
        let (key, piece) = self.change(parent, |one, blocks| {
            let stream = one.stream.get_or_insert_with(|| StreamedBlock {
                message: one.message.clone(),
                key: MessageKey::next(blocks),
                thinking,
                sent: Fingerprint::default(),
                pair: SplitPair::default(),
            });
            let piece = stream.pair.join(piece);
            stream.sent.push(&piece);
            (stream.key, piece)
        });
        out.events.push(speech(key, parent, thinking, piece.into_owned(), false));
        Some(())
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.subagents.bytes()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.main.is_silent() && self.subagents.len() == 0
    }
}

impl Speaker {
    fn is_silent(&self) -> bool {
        self.message.is_empty() && self.stream.is_none() && self.input.is_none()
    }
}
