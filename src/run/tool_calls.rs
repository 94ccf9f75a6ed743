//! The agent's tool calls: their ids, and the frames about them.

use super::frame_texts::{FrameTexts, path, with_hint};
use crate::agent::CallKey;
use crate::protocol::limits::TOOL_OUTPUT_BYTES;
use crate::protocol::outbound::{CallId, FileEdit, Json, Place, Progress, ProgressKind, Text, ToolExit, ToolFacts};
use crate::protocol::words::{Category, ToolState};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Tools {
    pub(super) count: u64,
    running: BTreeMap<CallKey, Call>,
    /// The time when each running call began, by its number.
    began: BTreeMap<u64, Duration>,
    over: EndedCalls,
    /// The size of all running calls, in bytes.
    pub(super) kept: usize,
}

pub(super) struct CallDescription {
    pub(super) category: Category,
    /// The tool, as the agent knows it.
    pub(super) name: String,
    pub(super) title: Option<Text>,
    pub(super) locations: Vec<Place>,
    /// The input, if frames show it. `None`: unchanged.
    pub(super) input: Option<Json>,
    /// The agent's key of the call whose sub-agent made this call.
    pub(super) parent: Option<CallKey>,
}

pub(super) struct EndedCall {
    pub(super) progress: Progress,
    pub(super) name: String,
    pub(super) category: Category,
    /// Whether the agent asked for permission.
    pub(super) asked: bool,
}

pub(super) struct CallResult {
    pub(super) state: ToolState,
    pub(super) output: Option<Text>,
    pub(super) facts: ToolFacts,
    /// The hint at a grant, if the call may have failed at the sandbox.
    pub(super) suspicion: Option<String>,
}

impl CallResult {
    fn bare(state: ToolState) -> CallResult {
        CallResult { state, output: None, facts: ToolFacts::default(), suspicion: None }
    }
}

#[derive(Clone, Debug)]
struct Call {
    number: u64,
    category: Category,
    name: String,
    title: Text,
    began: Duration,
    places: Vec<Place>,
    /// The input that no frame has shown yet.
    input: Option<Json>,
    parent: Option<CallId>,
    kept: usize,
    /// Whether places were dropped for lack of room.
    cut: bool,
    asked: bool,
}

/// The approximate size of an entry without its texts, in bytes.
pub(super) const ENTRY_BYTES: usize = 256;

/// The most recently ended calls. Agents repeat updates about them, and their sub-agents may still send messages.
#[derive(Debug, Default)]
struct EndedCalls {
    numbers: BTreeMap<CallKey, u64>,
    /// Oldest first.
    order: VecDeque<CallKey>,
}

const OVER: usize = 1024;

impl EndedCalls {
    fn add(&mut self, key: CallKey, number: u64) {
        self.order.push_back(key);
        self.numbers.insert(key, number);
        if self.order.len() > OVER
            && let Some(oldest) = self.order.pop_front()
        {
            self.numbers.remove(&oldest);
        }
    }

    fn number(&self, key: CallKey) -> Option<u64> {
        self.numbers.get(&key).copied()
    }
}

impl Tools {
    /// Creates an empty list that continues the numbers of earlier parts.
    pub(super) fn after(count: u64) -> Tools {
        Tools { count, ..Tools::default() }
    }

    /// A new description of a call without a title keeps the old title. Returns the progress of a new call.
    pub(super) fn begin(
        &mut self,
        now: Duration,
        key: CallKey,
        seen: CallDescription,
        texts: &FrameTexts,
        room: usize,
    ) -> Option<Progress> {
        let CallDescription { category, name, title, locations, input, parent } = seen;
        let (title, places) = (title.map(|title| texts.short_title(title)), texts.places(&locations));
        if let Some(call) = self.running.get_mut(&key) {
            (call.category, call.places) = (category, places);
            call.title = title.unwrap_or(std::mem::take(&mut call.title));
            call.input = input.or(call.input.take());
            self.kept -= call.kept;
            call.fit(room + call.kept);
            self.kept += call.kept;
            return None;
        }
        if self.over.number(key).is_some() {
            return None;
        }
        let parent = parent.and_then(|parent| self.id(parent));
        self.count += 1;
        let title = title.unwrap_or_default();
        let number = self.count;
        let (kept, cut, asked) = (0, false, false);
        let mut call = Call { number, category, name, title, began: now, places, input, parent, kept, cut, asked };
        call.bound_input();
        let progress = call.clone().into_progress(CallResult::bare(ToolState::Started), None, false);
        (call.input, call.cut) = (None, false);
        call.fit(room);
        self.kept += call.kept;
        self.began.insert(self.count, now);
        self.running.insert(key, call);
        Some(progress)
    }

    /// `None`: the call is not running.
    pub(super) fn end(
        &mut self,
        now: Duration,
        key: CallKey,
        end: CallResult,
        texts: &FrameTexts,
    ) -> Option<EndedCall> {
        let call = self.running.remove(&key)?;
        self.kept -= call.kept;
        self.began.remove(&call.number);
        self.over.add(key, call.number);
        let CallResult { state, output, mut facts, suspicion } = end;
        let (output, truncated) = output.map(|text| texts.limited(text, TOOL_OUTPUT_BYTES)).unzip();
        let mut room = TOOL_OUTPUT_BYTES;
        facts.edits.retain_mut(|edit| {
            let is_shown = room > 0;
            room = room.saturating_sub(fit(edit, room, texts));
            is_shown
        });
        let (name, category, asked) = (call.name.clone(), call.category, call.asked);
        let end = CallResult { state, output, facts, suspicion };
        let progress = call.into_progress(end, Some(now), truncated == Some(true));
        Some(EndedCall { progress, name, category, asked })
    }

    /// Ends all running calls in this state, in the order in which they began.
    pub(super) fn end_all(&mut self, now: Duration, state: ToolState) -> impl Iterator<Item = Progress> + use<> {
        self.began.clear();
        self.kept = 0;
        let mut open: Vec<(CallKey, Call)> = std::mem::take(&mut self.running).into_iter().collect();
        open.sort_by_key(|(_, call)| call.number);
        for (key, call) in &open {
            self.over.add(*key, call.number);
        }
        open.into_iter().map(move |(_, call)| call.into_progress(CallResult::bare(state), Some(now), false))
    }

    /// Notes that the agent asks for permission for a call. Returns the protocol's id of the call.
    pub(super) fn ask(&mut self, key: CallKey) -> Option<CallId> {
        if let Some(call) = self.running.get_mut(&key) {
            call.asked = true;
        }
        self.id(key)
    }

    pub(super) fn id(&self, key: CallKey) -> Option<CallId> {
        let number = self.running.get(&key).map(|call| call.number);
        number.or_else(|| self.over.number(key)).map(CallId)
    }

    /// The time at which the latest running call began.
    pub(super) fn running_since(&self) -> Option<Duration> {
        self.began.last_key_value().map(|(_, began)| *began)
    }
}

impl Call {
    fn bound_input(&mut self) {
        self.cut |= self.input.as_ref().is_some_and(|input| input.size() > TOOL_OUTPUT_BYTES);
        self.input.take_if(|input| input.size() > TOOL_OUTPUT_BYTES);
    }

    fn fit(&mut self, room: usize) {
        self.kept = ENTRY_BYTES + self.name.len() + self.title.size();
        self.bound_input();
        let input = self.input.as_ref().map_or(0, Json::size);
        if self.kept + input > room {
            self.cut |= self.input.take().is_some();
        } else {
            self.kept += input;
        }
        let all = self.places.len();
        self.places.retain(|place| {
            let more = self.kept + size_of::<Place>() + place.path.size();
            let fits = more <= room;
            self.kept = if fits { more } else { self.kept };
            fits
        });
        self.cut |= self.places.len() < all;
    }

    fn into_progress(self, end: CallResult, ended: Option<Duration>, truncated: bool) -> Progress {
        let Call { number, category, name, mut title, began, places: locations, input, parent, kept: _, cut, asked: _ } =
            self;
        let CallResult { state, output, facts, suspicion } = end;
        title.push_own(state.suffix());
        if let Some(hint) = &suspicion {
            title = with_hint(&title, hint);
        }
        let took = |at: Duration| u64::try_from(at.saturating_sub(began).as_millis()).unwrap_or(u64::MAX);
        let about = ProgressKind::Tool {
            call_id: CallId(number),
            name: Some(name).filter(|name| !name.is_empty()).map(Text::from),
            category,
            state,
            locations,
            duration_ms: ended.map(took),
            exit_code: ToolExit { code: facts.exit_code, in_frame: ended.is_some() && category == Category::Execute },
            sandbox_suspected: suspicion.is_some(),
            phase: None,
            input,
            output,
            diff: facts.edits,
        };
        Progress { text: title, parent_call_id: parent, about, truncated: truncated || cut }
    }
}

/// Cuts an edit to the remaining room. Returns the edit's size.
fn fit(edit: &mut FileEdit, room: usize, texts: &FrameTexts) -> usize {
    edit.path = texts.relative(path(&edit.path));
    (edit.lines, edit.is_cut) = texts.limited(std::mem::take(&mut edit.lines), room);
    size_of::<FileEdit>() + edit.path.size() + edit.lines.size()
}
