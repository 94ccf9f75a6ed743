//! `session/update`: messages, thoughts, tool calls and plans. Updates of a tool call are upserts by its id.

use super::Acp;
use super::call::{Call, Diff, INPUT_BYTES, texts};
use super::errors::is_denial_notice;
use super::profile::OwnCall;
use super::session::Phase;
use crate::agent::text::hash;
use crate::agent::{AgentEvent, CallKey, DriverOutput, MessageKey, edits, plan_entry, result, speech};
use crate::json::{Object, Raw, SplitPair};
use crate::protocol::outbound::{FileEdit, Json, Text, ToolFacts};
use crate::protocol::schema::Mismatch;
use crate::protocol::words::{Action, Category, ToolState};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A message that is being streamed.
#[derive(Debug)]
pub(super) struct Said {
    key: MessageKey,
    thought: bool,
    id: Option<String>,
    pair: SplitPair,
}

impl Acp {
    /// `None`: a required field is missing.
    pub(super) fn update(&mut self, params: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let shown = match self.phase {
            Phase::Prompting => true,
            Phase::Replaying(_) => {
                self.phase = Phase::Replaying(true);
                false
            }
            // Messages before our prompt are a replay.
            Phase::Initializing
            | Phase::Opening
            | Phase::ChoosingMode(_)
            | Phase::ChoosingModel
            | Phase::AwaitingServers
            | Phase::Idle
            | Phase::Over => false,
        };
        // A sub-agent may have its own session.
        let [session, update] = params.raws(["sessionId", "update"]);
        let update = update.and_then(Raw::object);
        let is_other = session.and_then(Raw::str).is_some_and(|id| id != self.session);
        if let Some(update) = update.as_ref().filter(|_| !is_other) {
            self.mode_changed(update, out);
        }
        if !shown || is_other {
            if let Some(update) = &update {
                // The agent may list its commands before it tells its session's id.
                if !is_other || self.session.is_empty() {
                    self.list_commands(update, out);
                }
                self.pass_over(update, out);
            }
            return Some(());
        }
        let update = update?;
        match &*update.str("sessionUpdate")? {
            "agent_message_chunk" => return self.chunk(&update, false, out),
            "agent_thought_chunk" => return self.chunk(&update, true, out),
            "user_message_chunk" => {
                self.pass_over(&update, out);
                return Some(());
            }
            "tool_call" | "tool_call_update" => self.tool(&update, out)?,
            "plan" => out.events.push(plan(&update)?),
            "usage_update" => {
                let count = |name: &str| update.count(name).filter(|count| *count > 0);
                self.used.context_tokens = count("used").or(self.used.context_tokens);
                self.used.context_window = count("size").or(self.used.context_window);
                // In a resumed session the cost includes earlier runs.
                let is_cost = self.start.resume.is_none() && !self.steps.reported;
                let cost = update.object("cost").filter(|cost| is_cost && cost.is("currency", "USD"));
                self.used.cost_usd = cost.and_then(|cost| cost.number("amount")).or(self.used.cost_usd);
            }
            _ => self.list_commands(&update, out),
        }
        self.end_passed(out);
        Some(())
    }

    /// Skips a part of a replay, of a sub-agent's session or of the user's message. Recordings need its message pieces
    /// to find a secret that is split between them.
    fn pass_over(&mut self, update: &Object<'_>, out: &mut DriverOutput) {
        let is_chunk = update.str("sessionUpdate").is_some_and(|kind| kind.ends_with("_chunk"));
        let Some(piece) = update.object("content").and_then(|content| content.string("text")).filter(|_| is_chunk)
        else {
            return self.end_passed(out);
        };
        let id = update.str("messageId").map(Cow::into_owned);
        if self.passed.as_ref().is_some_and(|(_, passed)| *passed != id) {
            self.end_passed(out);
        }
        let (whole, _) = self.passed.get_or_insert_with(|| (MessageKey::next(&mut self.messages), id));
        let whole = *whole;
        out.events.push(AgentEvent::Partial { whole, piece: piece.into(), done: false });
    }

    fn end_passed(&mut self, out: &mut DriverOutput) {
        if let Some((whole, _)) = self.passed.take() {
            out.events.push(AgentEvent::Partial { whole, piece: Text::default(), done: true });
        }
    }

    fn chunk(&mut self, update: &Object<'_>, thought: bool, out: &mut DriverOutput) -> Option<()> {
        let [content, id] = update.raws(["content", "messageId"]);
        let [kind, text] = content.and_then(Raw::object)?.raws(["type", "text"]);
        let piece = match kind.and_then(Raw::str) {
            Some(other) if other != "text" => return Some(()),
            _ => text?,
        };
        let text = piece.str()?;
        if text.is_empty() || (!thought && is_mode_note(&text)) {
            return Some(());
        }
        if !thought && !self.denied.is_empty() && is_denial_notice(&text) {
            // Not the model's answer: the turn ends here, and the model hears of the denial in a further one.
            self.end_message(out);
            let key = MessageKey::next(&mut self.messages);
            out.events.push(speech(key, None, false, text, true));
            return Some(());
        }
        let id = id.and_then(Raw::str);
        if self.said.as_ref().is_some_and(|said| said.thought != thought || said.id.as_deref() != id.as_deref()) {
            self.end_message(out);
        }
        if self.said.is_none() && !thought {
            self.answer.replace("", self.wants.answer_bytes);
            self.denied.clear();
        }
        let said = self.said.get_or_insert_with(|| {
            let (key, pair) = (MessageKey::next(&mut self.messages), SplitPair::default());
            Said { key, thought, id: id.map(Cow::into_owned), pair }
        });
        let text = said.pair.join(piece.literal()?);
        if !thought {
            self.answer.push(&text, self.wants.answer_bytes);
        }
        out.events.push(speech(said.key, None, thought, text, false));
        Some(())
    }

    pub(super) fn end_message(&mut self, out: &mut DriverOutput) {
        if let Some(mut said) = self.said.take() {
            let rest = said.pair.finish();
            if !said.thought {
                self.answer.push(rest, self.wants.answer_bytes);
            }
            out.events.push(speech(said.key, None, said.thought, rest, true));
        }
    }

    pub(super) fn learn<'a>(&mut self, about: &Object<'a>) -> Option<Cow<'a, str>> {
        let [id, title, kind, input] = about.raws(["toolCallId", "title", "kind", "rawInput"]);
        let id = id.and_then(Raw::str)?;
        let known = self.calls.remove(&*id);
        let first = known.is_none();
        let title = title.and_then(Raw::str).filter(|title| !title.trim().is_empty());
        let kind = kind.and_then(Raw::str);
        let names = self.profile.names_tools;
        let (cwd, servers) = (&self.cwd, &self.start.server_names);
        // Only the first title counts: a later one may be in the model's own words.
        let own = self.profile.own_call.as_ref().filter(|_| first);
        let mut tools = self.own_tools.iter();
        let fits =
            |tool: &&str, own: &OwnCall| own.fits(&self.ask_server, tool, &id, title.as_deref(), kind.as_deref());
        let own = own.is_some_and(|own| tools.any(|tool| fits(tool, own)));
        let mut call = known.unwrap_or_default();
        call.own |= own;
        if first && names && about.is("status", "pending") {
            call.name = title.as_deref().map(str::to_owned);
        }
        if let Some(title) = title {
            call.text = title.into_owned();
            call.retitled = true;
        }
        if let Some(kind) = kind {
            call.category = Some(category(&kind, &id, call.name.as_deref(), servers));
            call.server = call.name.as_deref().and_then(|name| server_of(name, servers)).map(str::to_owned);
        }
        call.take_places(about, cwd);
        let streamed = texts(about).last().filter(|_| self.profile.streams_inputs && input.is_none());
        let streamed = streamed.filter(|text| Object::parse(text).is_some());
        if let Some(input) = input.map(Raw::get).or(streamed.as_deref()).filter(|raw| *raw != "{}") {
            // An input that is too long to keep also replaces the earlier one.
            call.input_is_lost = input.len() > INPUT_BYTES;
            call.input = if call.input_is_lost { String::new() } else { input.to_owned() };
            call.input_is_asked = false;
            if self.profile.inputs_follow {
                call.take_look(cwd);
            }
        }
        let texts = id.len() + call.size();
        self.calls.insert(id.clone().into_owned(), call, texts);
        Some(id)
    }

    pub(super) fn show(&mut self, id: &str, out: &mut DriverOutput) {
        let profile = self.profile;
        let Some(call) = self.calls.get_mut(id) else { return };
        let news = std::mem::take(&mut call.retitled) || !call.shown;
        call.shown = true;
        let is_wanted = self.wants.full && !call.input.is_empty() && !call.input_is_asked;
        let input = Some(hash(&call.input)).filter(|input| is_wanted && call.reported_input != Some(*input));
        call.reported_input = input.or(call.reported_input);
        let input = input.and_then(|_| RawValue::from_string(call.input.clone()).ok()).map(Json::from);
        out.events.push(AgentEvent::Tool {
            call: CallKey::of(id),
            category: call.category(),
            name: call.tool_name(id, profile).unwrap_or_default().to_owned(),
            title: news.then(|| call.title().into()),
            locations: call.locations.clone(),
            input,
            parent: None,
        });
    }

    fn tool(&mut self, update: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let [id, status] = update.raws(["toolCallId", "status"]);
        let id = id.and_then(Raw::str)?;
        self.end_message(out);
        self.called = true;
        let status = status.and_then(Raw::str).unwrap_or_default();
        let over = matches!(&*status, "completed" | "failed");
        let call = self.calls.get(&*id);
        if call.is_none() && self.finished.contains(&id) {
            // Only the changed files may be new.
            if over {
                self.tool_over(&id, update, status == "failed", out);
            }
            return Some(());
        }
        let known = call.is_some_and(|call| call.shown);
        if call.is_none() && status == "failed" && self.refuses_result(&id, update) {
            let text = texts(update).next().unwrap_or_default();
            out.events.push(AgentEvent::ResultRefused(refusal(&text)));
            self.finished.add(&id);
            return Some(());
        }
        // The title of the final update may describe a different thing.
        if !(over && known) {
            self.learn(update)?;
        }
        if self.calls.get(&*id).is_some_and(|call| call.own) {
            if over {
                self.forget(&id);
            }
            return Some(());
        }
        // A pending call has not begun: its input is incomplete, or it waits for permission.
        if status == "pending" && !known {
            return Some(());
        }
        if !known || !over {
            self.show(&id, out);
        }
        self.ask_deferred(&id, over, out);
        if over {
            self.tool_over(&id, update, status == "failed", out);
        }
        Some(())
    }

    /// Whether the agent refused a call of our tool for results because of its input.
    fn refuses_result(&self, id: &str, update: &Object<'_>) -> bool {
        let own = self.profile.own_call.as_ref().filter(|_| self.own_tools.contains(&result::TOOL));
        update.str("title").is_none() && own.is_some_and(|own| own.is_id(&self.ask_server, result::TOOL, id))
    }

    fn tool_over(&mut self, id: &str, update: &Object<'_>, failed: bool, out: &mut DriverOutput) {
        self.withdraw(Some(id), out);
        let raw = update.object("rawOutput");
        let detail = raw.as_ref().and_then(|raw| raw.object("metadata"));
        // Some agents report a failed command as completed, with its exit code.
        let exit = detail.as_ref().and_then(|detail| detail.number("exit"));
        let is_refused = self.calls.get(id).is_some_and(Call::is_refused);
        let failed = failed || is_refused || exit.is_some_and(|exit| exit != 0.0);
        // Some agents report a stopped tool as completed.
        let state = match failed || self.cancelling {
            true if texts(update).next().is_some_and(|text| is_refusal_by_rule(&text)) => ToolState::Denied,
            true if is_refused => ToolState::Denied,
            true => ToolState::Failed,
            false => ToolState::Completed,
        };
        if !failed {
            let category = self.calls.get(id).map_or(Category::Other, Call::category);
            changed(update, detail.as_ref(), category, out);
        }
        let output = self.wants.full.then(|| {
            let texts: Vec<String> = texts(update).collect();
            let whole = raw.and_then(|raw| raw.string("output"));
            whole.or_else(|| (!texts.is_empty()).then(|| texts.join("\n"))).map(Text::from)
        });
        let mut facts = ToolFacts { exit_code: exit.map(|exit| exit as i64), ..ToolFacts::default() };
        if self.wants.facts && !failed {
            facts.edits = self.edits(id, update, detail.as_ref());
        }
        out.events.push(AgentEvent::ToolOver { call: CallKey::of(id), state, output: output.flatten(), facts });
        self.forget(id);
    }

    fn edits(&self, id: &str, update: &Object<'_>, detail: Option<&Object<'_>>) -> Vec<FileEdit> {
        let call = self.calls.get(id);
        let place = call.and_then(|call| call.locations.first()).map(|at| at.path.clone());
        let path = || detail.and_then(|detail| detail.string("filepath")).map(Text::from).or(place).unwrap_or_default();
        let file = detail.and_then(|detail| detail.object("filediff"));
        let unified = file.and_then(|file| file.str("patch")).or_else(|| detail?.str("diff"));
        if let Some(diff) = unified {
            return FileEdit::new(path(), edits::unified(&diff)).into_iter().collect();
        }
        let diffs = Diff::all(update);
        let is_new = detail.is_some_and(|detail| detail.bool("exists") == Some(false));
        if diffs.is_empty() && is_new {
            // The input of a permission request replaces that of the call, and has a diff in place of the content.
            let input = call.and_then(|call| Object::parse(&call.input));
            let lines = input.and_then(|input| match input.str("content") {
                Some(content) => Some(edits::signed("+", &content)),
                None => input.str("diff").map(|diff| edits::unified(&diff)),
            });
            return lines.and_then(|lines| FileEdit::new(path(), lines)).into_iter().collect();
        }
        diffs.iter().filter_map(|diff| FileEdit::new(diff.path.clone(), diff.hunks())).collect()
    }

    pub(super) fn forget(&mut self, id: &str) {
        if self.calls.remove(id).is_some() {
            self.finished.add(id);
        }
    }
}

/// Whether Gemini refused a call by its rules, as every sub-agent that may act: nobody would hear what it asks for.
fn is_refusal_by_rule(text: &str) -> bool {
    text.starts_with("Tool execution for ") && text.trim_end().ends_with(" denied by policy.")
}

/// The reason why an agent refused an input: `params/a must be integer`.
fn refusal(text: &str) -> Mismatch {
    match text.strip_prefix("params").and_then(|text| text.split_once(' ')) {
        Some((path, text)) => Mismatch { path: path.into(), text: text.into() },
        None => Mismatch::of_whole(text),
    }
}

/// Gemini reports a mode change as a message from the model.
fn is_mode_note(text: &str) -> bool {
    let word = text.strip_prefix("[MODE_UPDATE] ").unwrap_or_default();
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn category(kind: &str, id: &str, name: Option<&str>, servers: &[String]) -> Category {
    let name = name.unwrap_or(id);
    match kind {
        "read" => Category::Read,
        "edit" => Category::Edit,
        "delete" => Category::Delete,
        "move" => Category::Move,
        "search" => Category::Search,
        "execute" => Category::Execute,
        "fetch" => Category::Fetch,
        "switch_mode" => Category::Mode,
        // OpenCode's tool and Gemini's, whose name begins the call's id.
        _ if name == "task" || name.starts_with("invoke_agent__") => Category::Agent,
        _ if name.starts_with("mcp_") => Category::Mcp,
        _ if server_of(name, servers).is_some() => Category::Mcp,
        "think" => Category::Think,
        _ => Category::Other,
    }
}

fn server_of<'a>(tool: &str, servers: &'a [String]) -> Option<&'a str> {
    let owns = |server: &&String| tool.strip_prefix(&***server).is_some_and(|rest| rest.starts_with('_'));
    servers.iter().find(owns).map(String::as_str)
}

fn changed(update: &Object<'_>, detail: Option<&Object<'_>>, category: Category, out: &mut DriverOutput) {
    let of_diff = |diff: Diff<'_>| AgentEvent::Changed { path: diff.path, action: diff.action };
    let diffs: Vec<AgentEvent> = Diff::all(update).into_iter().map(of_diff).collect();
    if !diffs.is_empty() {
        return out.events.extend(diffs);
    }
    let Some(detail) = detail.filter(|_| category == Category::Edit) else { return };
    let file = detail.object("filediff").and_then(|diff| diff.string("file"));
    let Some(path) = detail.string("filepath").or(file) else { return };
    let action = if detail.bool("exists") == Some(false) { Action::Created } else { Action::Modified };
    out.events.push(AgentEvent::Changed { path: path.into(), action });
}

fn plan(update: &Object<'_>) -> Option<AgentEvent> {
    update.list("entries")?;
    Some(AgentEvent::Plan(update.objects("entries").map(|entry| plan_entry(&entry, "content")).collect()))
}

#[cfg(test)]
mod tests {
    use super::is_mode_note;

    #[test]
    fn only_a_complete_mode_note_is_dropped() {
        assert!(is_mode_note("[MODE_UPDATE] yolo") && is_mode_note("[MODE_UPDATE] auto_edit"));
        for text in ["[MODE_UPDATE]", "[MODE_UPDATE] ", "[MODE_UPDATE] a b", "x [MODE_UPDATE] yolo", "yolo"] {
            assert!(!is_mode_note(text), "{text}");
        }
    }
}
