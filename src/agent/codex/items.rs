//! The items of a turn: messages, reasoning and tool calls.

use crate::agent::json::Object;
use crate::agent::recent::{Recent, RecentMap};
use crate::agent::text::{FinalAnswer, Fingerprint};
use crate::agent::{AgentEvent, CallKey, MessageKey, Turn, title};
use crate::protocol::outbound::{Place, PlanEntry, Text};
use crate::protocol::words::{Action, Category, PlanStatus, ToolState};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The turn and sub-agent of an item. Item ids are unique only within a turn.
#[derive(Clone, Debug)]
pub(super) struct Spot<'a> {
    /// Its turn.
    pub(super) turn: Cow<'a, str>,
    /// The call whose sub-agent made it.
    pub(super) parent: Option<CallKey>,
}

impl Spot<'_> {
    fn key(&self, item: &str) -> String {
        [&self.turn, "/", item].concat()
    }
}

/// A message or reasoning item that is being streamed.
#[derive(Debug)]
struct StreamedItem {
    message: MessageKey,
    thinking: bool,
    sent: Fingerprint,
}

/// A proposed file change.
#[derive(Clone, Debug)]
pub(super) struct Patch {
    pub(super) category: Category,
    /// Its further categories.
    pub(super) also: Vec<Category>,
    pub(super) title: String,
    pub(super) locations: Vec<Place>,
    pub(super) diff: String,
}

/// The state of all items.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// Whether to pass on pieces.
    pub(super) deltas: bool,
    /// Whether to pass on tools' outputs.
    pub(super) outputs: bool,
    /// The maximum size of a final answer in a frame, in bytes.
    pub(super) answer_bytes: usize,
    /// The last final message of this turn.
    pub(super) answer: Option<FinalAnswer>,
    /// MCP servers with a denied call.
    pub(super) denied: Vec<String>,
    /// The messages and thoughts so far.
    messages: u64,
    streams: BTreeMap<String, StreamedItem>,
    patches: HashMap<String, Patch>,
    /// The call that started each sub-agent, by the sub-agent's thread.
    children: RecentMap<CallKey>,
    /// The open tool calls that were reported.
    begun: HashSet<String>,
    finished: Recent,
}

impl Items {
    /// The call whose sub-agent works in this thread.
    pub(super) fn maker(&self, thread: &str) -> Option<CallKey> {
        self.children.get(thread).copied()
    }

    /// The file change that waits for approval.
    pub(super) fn patch(&self, spot: &Spot<'_>, item: &str) -> Option<Patch> {
        self.patches.get(&spot.key(item)).cloned()
    }

    /// Handles a piece of a message or of reasoning. `None`: a required field is missing.
    pub(super) fn piece(
        &mut self,
        spot: &Spot<'_>,
        params: &Object<'_>,
        thinking: Option<&str>,
        turn: &mut Turn,
    ) -> Option<()> {
        let (item, piece) = (params.str("itemId")?, params.str("delta")?);
        if !self.deltas || piece.is_empty() {
            return Some(());
        }
        let key = match thinking {
            None => spot.key(&item),
            Some(part) => {
                let at = params.count(if part == SUMMARY { "summaryIndex" } else { "contentIndex" });
                part_key(&spot.key(&item), part, at.unwrap_or(0))
            }
        };
        let messages = &mut self.messages;
        let stream = self.streams.entry(key).or_insert_with(|| StreamedItem {
            message: next(messages),
            thinking: thinking.is_some(),
            sent: Fingerprint::default(),
        });
        stream.sent.push(&piece);
        turn.events.push(speech(stream.message, piece.into_owned(), false, stream.thinking, spot));
        Some(())
    }

    /// Withdraws incomplete streams: Codex repeats them.
    pub(super) fn withdraw(&mut self, turn: &mut Turn) {
        let broken = std::mem::take(&mut self.streams);
        turn.events.extend(broken.into_values().map(|stream| AgentEvent::Withdrawn { message: stream.message }));
    }

    /// How many items are remembered because they are open.
    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        self.streams.len() + self.patches.len() + self.begun.len()
    }

    /// Forgets the items that an interrupt left unfinished.
    pub(super) fn forget_streams(&mut self) {
        self.streams.clear();
    }

    /// Forgets the tool calls that a turn left unfinished.
    pub(super) fn forget_calls(&mut self, turn: &str) {
        let is_kept = |key: &str| key.strip_prefix(turn).is_none_or(|rest| !rest.starts_with('/'));
        self.patches.retain(|key, _| is_kept(key));
        self.begun.retain(|key| is_kept(key));
    }

    /// Handles a complete message or reasoning item. Does not repeat what was streamed.
    fn whole(&mut self, key: &str, whole: String, thinking: bool, spot: &Spot<'_>, turn: &mut Turn) {
        let Some(stream) = self.streams.remove(key) else {
            if !whole.is_empty() {
                turn.events.push(speech(next(&mut self.messages), whole, true, thinking, spot));
            }
            return;
        };
        match whole.split_at_checked(stream.sent.bytes()) {
            Some((old, new)) if Fingerprint::of(old) == stream.sent => {
                turn.events.push(speech(stream.message, new.to_owned(), true, thinking, spot));
            }
            _ => {
                turn.events.push(AgentEvent::Withdrawn { message: stream.message });
                turn.events.push(speech(next(&mut self.messages), whole, true, thinking, spot));
            }
        }
    }

    /// Handles `item/started` and `item/completed`. `None`: a required field is missing.
    pub(super) fn item(&mut self, spot: &Spot<'_>, item: &Object<'_>, over: bool, turn: &mut Turn) -> Option<()> {
        let (kind, id) = (item.str("type")?, item.str("id")?);
        let key = spot.key(&id);
        match &*kind {
            "agentMessage" if over => return self.message(key, spot, item, turn),
            "reasoning" if over => self.reasoning(&key, spot, item, turn),
            "plan" if over => turn.events.push(AgentEvent::PlanText(item.string("text")?.into())),
            "dynamicToolCall" if item.is("tool", crate::agent::ask_user::TOOL) => {}
            _ => self.tool(key, &kind, spot, item, over, turn),
        }
        Some(())
    }

    fn tool(&mut self, key: String, kind: &str, spot: &Spot<'_>, item: &Object<'_>, over: bool, turn: &mut Turn) {
        let is_new = !self.begun.contains(&key);
        if is_new && self.finished.contains(&key) {
            return;
        }
        let proposes = kind == "fileChange" && !over;
        if is_new || proposes {
            let Some(tool) = tool(kind, item) else { return };
            if proposes {
                let (title, locations) = (tool.title.clone(), tool.locations.clone());
                let (category, also) = patch_categories(item);
                let patch = Patch { category, also, title, locations, diff: diff(item) };
                self.patches.insert(key.clone(), patch);
            }
            // The first message about a command that is refused at once is its end.
            if is_new {
                let Tool { category, title, locations } = tool;
                let (call, parent) = (CallKey::of(&key), spot.parent);
                turn.events.push(AgentEvent::Tool { call, category, title: Some(title.into()), locations, parent });
            }
        }
        for raw in item.array("receiverThreadIds") {
            if let Some(thread) = raw.string() {
                self.children.insert(&thread, CallKey::of(&key));
            }
        }
        if over {
            self.begun.remove(&key);
            self.finished.add(&key);
            self.tool_over(key, kind, item, turn);
        } else if is_new {
            self.begun.insert(key);
        }
    }

    fn message(&mut self, key: String, spot: &Spot<'_>, item: &Object<'_>, turn: &mut Turn) -> Option<()> {
        let said = item.string("text")?;
        let commentary = item.is("phase", "commentary");
        if spot.parent.is_none() && !commentary {
            self.answer.get_or_insert_default().replace(&said, self.answer_bytes);
        }
        self.whole(&key, said, false, spot, turn);
        Some(())
    }

    fn reasoning(&mut self, key: &str, spot: &Spot<'_>, item: &Object<'_>, turn: &mut Turn) {
        for part in [SUMMARY, CONTENT] {
            for (at, raw) in item.array(part).enumerate() {
                self.whole(&part_key(key, part, at as u64), raw.string().unwrap_or_default(), true, spot, turn);
            }
        }
    }

    fn tool_over(&mut self, key: String, kind: &str, item: &Object<'_>, turn: &mut Turn) {
        let status = item.str("status").unwrap_or_default();
        if kind == "fileChange" {
            self.patches.remove(&key);
            if status == "completed" {
                item.objects("changes").for_each(|change| changed(&change, turn));
            }
        }
        let server = item.str("server").filter(|_| kind == "mcpToolCall").unwrap_or_default();
        let refused = self.denied.iter().position(|denied| kind == "mcpToolCall" && *denied == server);
        let state = match (&*status, refused) {
            ("declined", _) => ToolState::Denied,
            ("failed", Some(at)) => {
                self.denied.remove(at);
                ToolState::Denied
            }
            ("failed", None) => ToolState::Failed,
            _ => ToolState::Completed,
        };
        let output = self.outputs.then(|| output(kind, item)).flatten();
        turn.events.push(AgentEvent::ToolOver { call: CallKey::of(&key), state, output });
    }
}

fn next(messages: &mut u64) -> MessageKey {
    *messages += 1;
    MessageKey(*messages)
}

fn speech(message: MessageKey, piece: String, done: bool, reasoning: bool, spot: &Spot<'_>) -> AgentEvent {
    AgentEvent::Text { message, piece: piece.into(), done, reasoning, parent: spot.parent }
}

/// The parts of a reasoning item.
pub(super) const SUMMARY: &str = "summary";
pub(super) const CONTENT: &str = "content";

fn part_key(item: &str, part: &str, at: u64) -> String {
    format!("{item}/{part}{at}")
}

/// The category and title of a tool call.
struct Tool {
    category: Category,
    title: String,
    locations: Vec<Place>,
}

fn tool(kind: &str, item: &Object<'_>) -> Option<Tool> {
    let field = |name: &str| item.str(name).unwrap_or_default();
    let mut locations = Vec::new();
    let (category, title) = match kind {
        "commandExecution" => {
            locations = item.objects("commandActions").filter_map(|action| at(action.string("path")?)).collect();
            (Category::Execute, title("Shell", &command(item)))
        }
        "fileChange" => {
            locations = item.objects("changes").filter_map(|change| at(change.string("path")?)).collect();
            let (category, _) = patch_categories(item);
            (category, patch_title(category, &locations))
        }
        "webSearch" => (Category::Fetch, title("Web search", &field("query"))),
        "mcpToolCall" => (Category::Mcp, title(&field("server"), &field("tool"))),
        "collabAgentToolCall" => {
            let prompt = item.str("prompt").unwrap_or_else(|| field("tool"));
            (Category::Agent, title("Agent", &prompt))
        }
        "dynamicToolCall" => (Category::Other, title("Tool", &field("tool"))),
        "imageView" => {
            locations.extend(at(field("path").into_owned()));
            (Category::Read, title("View image", &field("path")))
        }
        "imageGeneration" => (Category::Other, "Image generation".into()),
        _ => return None,
    };
    Some(Tool { category, title, locations })
}

fn at(path: String) -> Option<Place> {
    (!path.is_empty()).then(|| Place { path: path.into(), line: None })
}

/// A command without its shell wrapper.
pub(super) fn command<'a>(item: &Object<'a>) -> Cow<'a, str> {
    let mut actions = item.objects("commandActions");
    match (actions.next(), actions.next()) {
        (Some(only), None) => only.str("command"),
        _ => None,
    }
    .or_else(|| item.str("command"))
    .unwrap_or_default()
}

/// The categories of a patch, the gravest first: permission to edit does not cover deleting or moving.
fn patch_categories(item: &Object<'_>) -> (Category, Vec<Category>) {
    let of_change = |change: Object<'_>| match change.object("kind") {
        Some(kind) if kind.is("type", "delete") => Category::Delete,
        Some(kind) if kind.raw("move_path").is_some() => Category::Move,
        _ => Category::Edit,
    };
    let all: Vec<Category> = item.objects("changes").map(of_change).collect();
    let mut there = [Category::Delete, Category::Move, Category::Edit].into_iter().filter(|one| all.contains(one));
    (there.next().unwrap_or(Category::Edit), there.collect())
}

fn patch_title(category: Category, locations: &[Place]) -> String {
    let verb = match category {
        Category::Delete => "Delete",
        Category::Move => "Move",
        _ => "Edit",
    };
    match locations {
        [one] => title(verb, one.path.unredacted()),
        more => format!("Edit {} files", more.len()),
    }
}

/// The diffs of all files, joined.
fn diff(item: &Object<'_>) -> String {
    let one = |change: Object<'_>| {
        let (path, diff) = (change.str("path").unwrap_or_default(), change.str("diff").unwrap_or_default());
        let kind = change.object("kind").and_then(|kind| kind.str("type")).unwrap_or_default();
        // For a created or deleted file, `diff` is its content.
        let sign = match &*kind {
            "add" => "+",
            "delete" => "-",
            _ => "",
        };
        let body: String = diff.lines().map(|line| format!("{sign}{line}\n")).collect();
        format!("{kind} {path}\n{body}")
    };
    item.objects("changes").map(one).collect()
}

fn changed(change: &Object<'_>, turn: &mut Turn) {
    let Some(path) = change.string("path").map(Text::from) else { return };
    let kind = change.object("kind");
    let moved = kind.as_ref().and_then(|kind| kind.string("move_path")).map(Text::from);
    let action = match (kind.and_then(|kind| kind.str("type")).as_deref(), &moved) {
        (Some("add"), _) => Action::Created,
        (Some("delete"), _) | (_, Some(_)) => Action::Deleted,
        _ => Action::Modified,
    };
    turn.events.push(AgentEvent::Changed { path, action });
    turn.events.extend(moved.map(|path| AgentEvent::Changed { path, action: Action::Created }));
}

/// A tool's output.
fn output(kind: &str, item: &Object<'_>) -> Option<Text> {
    match kind {
        "commandExecution" => item.string("aggregatedOutput").map(Text::from),
        "mcpToolCall" => {
            let result = item.object("result")?;
            let texts: Vec<String> = result.objects("content").filter_map(|part| part.string("text")).collect();
            (!texts.is_empty()).then(|| texts.join("\n").into())
        }
        _ => None,
    }
}

/// Handles `turn/plan/updated`. `None`: a required field is missing.
pub(super) fn plan(params: &Object<'_>) -> Option<AgentEvent> {
    let entry = |step: Object<'_>| {
        let status = match step.str("status").as_deref() {
            Some("inProgress") => PlanStatus::InProgress,
            Some("completed") => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        };
        PlanEntry { text: step.string("step").unwrap_or_default().into(), status }
    };
    params.list("plan")?;
    Some(AgentEvent::Plan(params.objects("plan").map(entry).collect()))
}
