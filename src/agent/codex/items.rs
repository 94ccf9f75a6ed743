//! The items of a turn: messages, reasoning and tool calls.

use super::script::script_of;
use crate::agent::recent::{OpenMap, Recent, RecentMap};
use crate::agent::shell::{self, FilesSeen};
use crate::agent::text::{FinalAnswer, Fingerprint};
use crate::agent::{AgentEvent, CallKey, DriverOutput, MessageKey, Wants, edits, plan_entry, speech, title};
use crate::json::{Object, SplitPair};
use crate::protocol::outbound::{FileEdit, Json, Place, Text, ToolFacts};
use crate::protocol::question::file_line;
use crate::protocol::words::{Action, Category, ToolState};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// Item ids are unique only within a turn.
#[derive(Clone, Debug)]
pub(super) struct Spot<'a> {
    pub(super) turn: Cow<'a, str>,
    pub(super) parent: Option<CallKey>,
}

impl Spot<'_> {
    pub(super) fn key(&self, item: &str) -> String {
        [&self.turn, "/", item].concat()
    }
}

#[derive(Debug)]
struct StreamedItem {
    message: MessageKey,
    thinking: bool,
    sent: Fingerprint,
    pair: SplitPair,
}

#[derive(Clone, Debug)]
pub(super) struct Patch {
    pub(super) category: Category,
    pub(super) also: Vec<Category>,
    pub(super) title: String,
    pub(super) locations: Vec<Place>,
    pub(super) diff: String,
}

/// The maximum length of a remembered command, in bytes. A longer one keeps its shell wrapper in its name.
const REMEMBERED: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) wants: Wants,
    /// The last final message of this turn.
    pub(super) answer: Option<FinalAnswer>,
    /// The last MCP servers with a denied call.
    pub(super) denied: Recent,
    messages: u64,
    streams: OpenMap<StreamedItem>,
    patches: OpenMap<Patch>,
    /// The call that started each sub-agent, by the sub-agent's thread.
    children: RecentMap<CallKey>,
    /// The open tool calls that were reported. Those that run commands have their command, with its shell wrapper.
    begun: OpenMap<String>,
    finished: Recent,
}

impl Items {
    pub(super) fn maker(&self, thread: &str) -> Option<CallKey> {
        self.children.get(thread).copied()
    }

    pub(super) fn patch(&self, spot: &Spot<'_>, item: &str) -> Option<Patch> {
        self.patches.get(&spot.key(item)).cloned()
    }

    pub(super) fn piece(
        &mut self,
        spot: &Spot<'_>,
        params: &Object<'_>,
        thinking: Option<&str>,
        out: &mut DriverOutput,
    ) -> Option<()> {
        let (item, piece) = (params.str("itemId")?, params.raw("delta")?);
        if !self.wants.full || piece.literal()?.is_empty() {
            return Some(());
        }
        let key = match thinking {
            None => spot.key(&item),
            Some(part) => {
                let at = params.count(if part == SUMMARY { "summaryIndex" } else { "contentIndex" });
                part_key(&spot.key(&item), part, at.unwrap_or(0))
            }
        };
        if self.streams.get(&key).is_none() {
            let (message, sent) = (MessageKey::next(&mut self.messages), Fingerprint::default());
            let stream = StreamedItem { message, thinking: thinking.is_some(), sent, pair: SplitPair::default() };
            self.streams.insert(key.clone(), stream, key.len());
        }
        let stream = self.streams.get_mut(&key)?;
        let piece = stream.pair.join(piece.literal()?);
        stream.sent.push(&piece);
        out.events.push(speech(stream.message, spot.parent, stream.thinking, piece.into_owned(), false));
        Some(())
    }

    /// Withdraws incomplete streams: Codex repeats them.
    pub(super) fn withdraw(&mut self, out: &mut DriverOutput) {
        let broken = self.streams.drain();
        out.events.extend(broken.map(|(_, stream)| AgentEvent::Withdrawn { message: stream.message }));
    }

    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        self.streams.len() + self.patches.len() + self.begun.len()
    }

    pub(super) fn forget_streams(&mut self) {
        drop(self.streams.drain());
    }

    /// Returns those that run commands, with their commands.
    pub(super) fn forget_calls(&mut self, turn: &str) -> Vec<(String, String)> {
        let is_left = |key: &str| key.strip_prefix(turn).is_some_and(|rest| rest.starts_with('/'));
        self.patches.retain(|key, _| !is_left(key));
        let left = self.begun.iter().filter(|(key, command)| is_left(key) && !command.is_empty());
        let left = left.map(|(key, command)| (key.clone(), command.clone())).collect();
        self.begun.retain(|key, _| !is_left(key));
        left
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.streams.bytes() + self.patches.bytes() + self.begun.bytes()
    }

    /// Does not repeat the streamed part.
    fn whole(&mut self, key: &str, whole: String, thinking: bool, spot: &Spot<'_>, out: &mut DriverOutput) {
        let Some(stream) = self.streams.remove(key) else {
            if !whole.is_empty() {
                out.events.push(speech(MessageKey::next(&mut self.messages), spot.parent, thinking, whole, true));
            }
            return;
        };
        match whole.split_at_checked(stream.sent.bytes()) {
            Some((old, new)) if Fingerprint::of(old) == stream.sent => {
                out.events.push(speech(stream.message, spot.parent, thinking, new, true));
            }
            _ => {
                out.events.push(AgentEvent::Withdrawn { message: stream.message });
                out.events.push(speech(MessageKey::next(&mut self.messages), spot.parent, thinking, whole, true));
            }
        }
    }

    pub(super) fn item(
        &mut self,
        spot: &Spot<'_>,
        item: &Object<'_>,
        over: bool,
        out: &mut DriverOutput,
    ) -> Option<()> {
        let (kind, id) = (item.str("type")?, item.str("id")?);
        let key = spot.key(&id);
        match &*kind {
            "agentMessage" if over => return self.message(key, spot, item, out),
            "reasoning" if over => self.reasoning(&key, spot, item, out),
            "plan" if over => out.events.push(AgentEvent::PlanText(item.string("text")?.into())),
            "dynamicToolCall" if item.is("tool", crate::agent::ask_user::TOOL) => {}
            _ => self.tool(key, &kind, spot, item, over, out),
        }
        Some(())
    }

    fn tool(
        &mut self,
        key: String,
        kind: &str,
        spot: &Spot<'_>,
        item: &Object<'_>,
        over: bool,
        out: &mut DriverOutput,
    ) {
        let is_new = self.begun.get(&key).is_none();
        if is_new && self.finished.contains(&key) {
            return;
        }
        let proposes = kind == "fileChange" && !over;
        if is_new || proposes {
            let Some(tool) = tool(kind, item) else { return };
            if proposes {
                let (title, mut locations) = (tool.title.clone(), tool.locations.clone());
                let moved = |change: Object<'_>| at(change.object("kind")?.string("move_path")?);
                locations.extend(item.objects("changes").filter_map(moved));
                let (category, also) = patch_categories(item);
                let patch = Patch { category, also, title, locations, diff: diff(item) };
                let texts = key.len()
                    + patch.title.len()
                    + patch.diff.len()
                    + patch.locations.iter().map(|place| place.path.size()).sum::<usize>();
                self.patches.insert(key.clone(), patch, texts);
            }
            // If a command is refused at once, the first message about it is its end.
            if is_new {
                let Tool { category, name, title, locations } = tool;
                let (call, parent) = (CallKey::of(&key), spot.parent);
                out.events.push(AgentEvent::Tool {
                    call,
                    category,
                    name,
                    title: Some(title.into()),
                    locations,
                    input: self.wants.full.then(|| input(kind, item)).flatten(),
                    parent,
                });
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
            self.tool_over(key, kind, item, out);
        } else if is_new {
            let command = item.str("command").filter(|_| kind == "commandExecution").unwrap_or_default();
            let command = command[..command.floor_char_boundary(REMEMBERED)].to_owned();
            let bytes = key.len() + command.len();
            self.begun.insert(key, command, bytes);
        }
    }

    fn message(&mut self, key: String, spot: &Spot<'_>, item: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let said = item.string("text")?;
        let commentary = item.is("phase", "commentary");
        if spot.parent.is_none() && !commentary {
            self.answer.get_or_insert_default().replace(&said, self.wants.answer_bytes);
        }
        self.whole(&key, said, false, spot, out);
        Some(())
    }

    fn reasoning(&mut self, key: &str, spot: &Spot<'_>, item: &Object<'_>, out: &mut DriverOutput) {
        for part in [SUMMARY, CONTENT] {
            for (at, raw) in item.array(part).enumerate() {
                self.whole(&part_key(key, part, at as u64), raw.string().unwrap_or_default(), true, spot, out);
            }
        }
    }

    fn tool_over(&mut self, key: String, kind: &str, item: &Object<'_>, out: &mut DriverOutput) {
        let status = item.str("status").unwrap_or_default();
        if kind == "fileChange" {
            self.patches.remove(&key);
            if status == "completed" {
                item.objects("changes").for_each(|change| changed(&change, out));
            }
        }
        let server = || item.str("server").unwrap_or_default();
        let state = match &*status {
            "declined" => ToolState::Denied,
            "failed" if kind == "mcpToolCall" && self.denied.remove(&server()) => ToolState::Denied,
            "failed" => ToolState::Failed,
            _ => ToolState::Completed,
        };
        let output = self.wants.full.then(|| output(kind, item)).flatten();
        let facts = facts(kind, item, self.wants.facts);
        out.events.push(AgentEvent::ToolOver { call: CallKey::of(&key), state, output, facts });
    }
}

pub(super) const SUMMARY: &str = "summary";
pub(super) const CONTENT: &str = "content";

fn part_key(item: &str, part: &str, at: u64) -> String {
    format!("{item}/{part}{at}")
}

struct Tool {
    category: Category,
    name: String,
    title: String,
    locations: Vec<Place>,
}

fn tool(kind: &str, item: &Object<'_>) -> Option<Tool> {
    let field = |name: &str| item.str(name).unwrap_or_default();
    let mut locations = Vec::new();
    let (category, title) = match kind {
        "commandExecution" => {
            let command = whole_command(item);
            match looked(item, &command) {
                Some(look) => {
                    locations = look.places;
                    (look.category, look.title)
                }
                None => {
                    let actions = item.objects("commandActions");
                    locations = actions.filter_map(|action| at(action.string("path")?)).collect();
                    (Category::Execute, title(Category::Execute, "", &command))
                }
            }
        }
        "fileChange" => {
            locations = item.objects("changes").filter_map(|change| at(change.string("path")?)).collect();
            let (category, _) = patch_categories(item);
            let creates = |change: Object<'_>| change.object("kind").is_some_and(|kind| kind.is("type", "add"));
            let is_new = item.objects("changes").all(creates);
            (category, patch_title(category, is_new, &locations))
        }
        "webSearch" => (Category::Fetch, title(Category::Fetch, "web search", &field("query"))),
        "mcpToolCall" => (Category::Mcp, title(Category::Mcp, &field("server"), &field("tool"))),
        "collabAgentToolCall" => {
            let prompt = item.str("prompt").unwrap_or_else(|| field("tool"));
            (Category::Agent, title(Category::Agent, "", &prompt))
        }
        "dynamicToolCall" => (Category::Other, title(Category::Other, &field("tool"), "")),
        "imageView" => {
            locations.extend(at(field("path").into_owned()));
            (Category::Read, title(Category::Read, "", &field("path")))
        }
        "imageGeneration" => (Category::Other, "Image generation".into()),
        _ => return None,
    };
    Some(Tool { category, name: tool_name(kind, item), title, locations })
}

/// The tool behind an item, by the name under which Codex offers it to the model.
fn tool_name(kind: &str, item: &Object<'_>) -> String {
    let field = |name: &str| item.string(name).unwrap_or_default();
    match kind {
        "commandExecution" => "exec_command".into(),
        "fileChange" => "apply_patch".into(),
        "webSearch" => "web_search".into(),
        "mcpToolCall" => format!("mcp__{}__{}", field("server"), field("tool")),
        "imageView" => "view_image".into(),
        "imageGeneration" => "image_generation".into(),
        // A call of another agent, and a tool of ours.
        _ => field("tool"),
    }
}

fn input(kind: &str, item: &Object<'_>) -> Option<Json> {
    let fields: &[&str] = match kind {
        "commandExecution" => return Some(json_of(&json!({"command": whole_command(item), "cwd": item.str("cwd")}))),
        "mcpToolCall" | "dynamicToolCall" => {
            return item.raw("arguments").filter(|raw| raw.object().is_some()).map(|raw| raw.value().to_owned().into());
        }
        "fileChange" => &["changes"],
        "webSearch" => &["query"],
        "collabAgentToolCall" => &["tool", "prompt"],
        "imageView" => &["path"],
        _ => return None,
    };
    let known: BTreeMap<&str, &RawValue> =
        fields.iter().filter_map(|name| Some((*name, item.raw(name)?.value()))).collect();
    Some(json_of(&known))
}

fn json_of(value: &impl Serialize) -> Json {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()).into()
}

fn at(path: String) -> Option<Place> {
    (!path.is_empty()).then(|| Place { path: path.into(), line: None })
}

/// The command without its shell wrapper.
pub(super) fn whole_command(params: &Object<'_>) -> String {
    let Some(whole) = params.str("command") else { return only_action(params).unwrap_or_default().into_owned() };
    script_of(&whole).unwrap_or_else(|| whole.into_owned())
}

/// The work of this whole command, if it only looks at files. An action is only Codex's word for it.
pub(super) fn looked(params: &Object<'_>, command: &str) -> Option<FilesSeen> {
    params.raw("command")?;
    shell::look(command, Path::new(&*params.str("cwd")?))
}

/// Codex omits parts of a script that it considers unimportant, such as a change of the directory.
fn only_action<'a>(item: &Object<'a>) -> Option<Cow<'a, str>> {
    let mut actions = item.objects("commandActions");
    match (actions.next(), actions.next()) {
        (Some(only), None) => only.str("command"),
        _ => None,
    }
}

/// The categories of a patch with their verbs, the most severe first, because permission to edit does not cover deleting
/// or moving.
const PATCHES: [Category; 3] = [Category::Delete, Category::Move, Category::Edit];

/// The most severe category of a patch, and its other ones.
fn patch_categories(item: &Object<'_>) -> (Category, Vec<Category>) {
    let of_change = |change: Object<'_>| match change.object("kind") {
        Some(kind) if kind.is("type", "delete") => Category::Delete,
        Some(kind) if kind.raw("move_path").is_some() => Category::Move,
        _ => Category::Edit,
    };
    let changes: Vec<Category> = item.objects("changes").map(of_change).collect();
    let mut found = PATCHES.into_iter().filter(|one| changes.contains(one));
    (found.next().unwrap_or(Category::Edit), found.collect())
}

/// `is_new`: whether the patch only creates files.
fn patch_title(category: Category, is_new: bool, locations: &[Place]) -> String {
    let tool = if is_new { "write" } else { "" };
    match locations {
        [one] => title(category, tool, one.path.unredacted()),
        // The patch may change some files and delete others.
        more => title(Category::Edit, tool, &format!("{} files", more.len())),
    }
}

fn diff(item: &Object<'_>) -> String {
    let one = |change: Object<'_>| {
        let path = change.str("path").unwrap_or_default();
        let kind = change.object("kind").and_then(|kind| kind.str("type")).unwrap_or_default();
        let lines = changed_lines(&change, &kind);
        let note = edits::unseen("", "").filter(|_| lines.is_empty() && kind == "update").unwrap_or_default();
        file_line(&kind, &path) + &lines + note
    };
    item.objects("changes").map(one).collect()
}

/// The lines of a change with their signs. For a created or deleted file, `diff` is its content.
fn changed_lines(change: &Object<'_>, kind: &str) -> String {
    let diff = change.str("diff").unwrap_or_default();
    match kind {
        "add" => edits::signed("+", &diff),
        "delete" => edits::signed("-", &diff),
        _ => {
            let moved = change.object("kind").and_then(|kind| kind.string("move_path"));
            let moved = moved.map(|path| format!("Moved to: {path}"));
            // Codex writes this line itself, below the diff.
            let unsaid = moved.as_deref().filter(|moved| diff.lines().all(|line| line != *moved));
            diff.split_terminator('\n').chain(unsaid).map(|line| [line, "\n"].concat()).collect()
        }
    }
}

fn facts(kind: &str, item: &Object<'_>, edits: bool) -> ToolFacts {
    let edit = |change: Object<'_>| {
        let kind = change.object("kind");
        let moved = kind.as_ref().and_then(|kind| kind.string("move_path"));
        let kind = kind.and_then(|kind| kind.str("type")).unwrap_or_default();
        FileEdit::new(moved.or_else(|| change.string("path"))?, changed_lines(&change, &kind))
    };
    match kind {
        "commandExecution" => {
            ToolFacts { exit_code: item.number("exitCode").map(|code| code as i64), ..ToolFacts::default() }
        }
        "fileChange" if edits => {
            ToolFacts { edits: item.objects("changes").filter_map(edit).collect(), ..ToolFacts::default() }
        }
        _ => ToolFacts::default(),
    }
}

fn changed(change: &Object<'_>, out: &mut DriverOutput) {
    let Some(path) = change.string("path").map(Text::from) else { return };
    let kind = change.object("kind");
    let moved = kind.as_ref().and_then(|kind| kind.string("move_path")).map(Text::from);
    let action = match (kind.and_then(|kind| kind.str("type")).as_deref(), &moved) {
        (Some("add"), _) => Action::Created,
        (Some("delete"), _) | (_, Some(_)) => Action::Deleted,
        _ => Action::Modified,
    };
    out.events.push(AgentEvent::Changed { path, action });
    out.events.extend(moved.map(|path| AgentEvent::Changed { path, action: Action::Created }));
}

fn output(kind: &str, item: &Object<'_>) -> Option<Text> {
    match kind {
        "commandExecution" => item.string("aggregatedOutput").map(Text::from),
        "mcpToolCall" => item.object("result")?.texts("content").map(Text::from),
        _ => None,
    }
}

pub(super) fn plan(params: &Object<'_>) -> Option<AgentEvent> {
    params.list("plan")?;
    Some(AgentEvent::Plan(params.objects("plan").map(|step| plan_entry(&step, "step")).collect()))
}
