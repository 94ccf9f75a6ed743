//! A session: its run and its turns.

mod asking;
mod commands;
mod steering;

use super::CHILDREN;
use super::questions::Question;
use super::refusal::RequestError;
use super::runs::{self, PromptResult, RunOutcome, message};
use super::settings::Chosen;
use super::shared::{ChildKey, ServerEffect, SharedState};
use super::store::{StoredSession, title};
use super::updates::{self, SessionCost};
use crate::json::Object;
use crate::protocol::limits::INBOUND_LINE_BYTES;
use crate::protocol::messages::KindName;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use steering::Handed;

const SPOKEN_BYTES: usize = 64 << 10;

/// The parameters of a session that do not change.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) cwd: String,
    pub(super) add_dirs: Vec<String>,
    /// The MCP servers as run.start takes them, if there are some. Kept as JSON, because many small values in memory
    /// take many times their length.
    pub(super) servers: Option<String>,
}

#[derive(Debug)]
pub(super) struct ClientPrompt {
    /// The id of the request, verbatim.
    pub(super) id: String,
    pub(super) text: String,
    pub(super) images: Vec<String>,
    /// Its length in the request, in bytes, which bounds the text and the files of the images.
    pub(super) size: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Child {
    #[default]
    None,
    /// It takes messages. `ready`: it waits for a prompt.
    Live {
        key: ChildKey,
        ready: bool,
    },
    Leaving(ChildKey),
    /// The last child of the session that was closed before this one resumed it. It still writes the agent's session,
    /// and nothing of it is passed on.
    Former(ChildKey),
}

/// The form of the question in front of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    /// No question, or one that was answered and is not resolved yet.
    #[default]
    Nothing,
    /// A request with this number.
    Form(u64),
    Text,
}

#[derive(Default)]
pub(super) struct ClientSession {
    id: String,
    place: Place,
    pub(super) chosen: Chosen,
    agent_session: Option<String>,
    title: Option<String>,
    child: Child,
    /// The number of children so far, which makes the ids of messages and tools unique.
    runs: u64,
    cost: SessionCost,
    /// Whether the agent has taken a prompt of this session.
    begun: bool,
    /// Whether the settings have changed since the child started.
    changed: bool,
    in_turn: bool,
    cancelled: bool,
    /// The id of the prompt's request that the turn answers. In a turn without one, a question waits for the next prompt.
    active: Option<String>,
    images: Vec<String>,
    pub(super) waiting: VecDeque<ClientPrompt>,
    /// Whether the agent takes prompts while it works.
    steers: bool,
    /// Whether the child takes prompts as commands unless they say otherwise.
    runs_raw: bool,
    handed: Handed,
    /// The questions that are open, except permissions. The first one is in front of the client.
    questions: VecDeque<Question>,
    shown: Shown,
    /// The requests for permission that are open, by the ids of their questions.
    permissions: BTreeMap<String, u64>,
    /// The calls of tools that the client knows and that have not ended.
    calls: BTreeSet<String>,
    /// The agent's text in this turn without its blanks, to find out whether it contains the final answer. Kept up to
    /// [`SPOKEN_BYTES`].
    spoken: String,
}

impl ClientSession {
    pub(super) fn new(id: String, place: Place) -> ClientSession {
        ClientSession { id, place, ..ClientSession::default() }
    }

    /// `former`: its last child, if that has not ended.
    pub(super) fn resumed(stored: StoredSession, place: Place, former: Option<ChildKey>) -> ClientSession {
        let StoredSession { id, agent_session, title, runs, chosen, .. } = stored;
        let (agent_session, title) = (Some(agent_session), Some(title).filter(|title| !title.is_empty()));
        let child = former.map_or(Child::None, Child::Former);
        ClientSession { agent_session, title, child, runs, chosen, begun: true, ..ClientSession::new(id, place) }
    }

    pub(super) fn listed(&self, agent: &str) -> StoredSession {
        StoredSession {
            id: self.id.clone(),
            agent: agent.to_owned(),
            agent_session: self.agent_session.clone().unwrap_or_default(),
            cwd: self.place.cwd.clone(),
            title: self.title.clone().unwrap_or_default(),
            updated: String::new(),
            runs: self.runs,
            chosen: self.chosen.clone(),
        }
    }

    pub(super) fn prompt(&mut self, prompt: ClientPrompt, shared: &mut SharedState) {
        if self.title.is_none() {
            // Before it is cut: half a secret is not found.
            let title = title(&shared.host.redact(&prompt.text, self.place.servers.as_deref()));
            shared.update(&self.id, &json!({"sessionUpdate": "session_info_update", "title": title}));
            self.title = Some(title);
        }
        shared.waiting += prompt.size;
        self.waiting.push_back(prompt);
        self.advance(shared);
        if self.active.is_some() && !self.waiting.is_empty() {
            self.steer(shared);
        }
    }

    fn advance(&mut self, shared: &mut SharedState) {
        if self.active.is_some() || self.waiting.is_empty() {
            return;
        }
        if self.in_turn {
            // The prompt is the answer to the question, if there is one. If not, it waits for the end of the turn.
            if self.shown == Shown::Text
                && let Some(prompt) = self.take_prompt(shared)
                && let Some(question) = self.questions.front()
            {
                let answer = question.payload_of_text(&prompt.text);
                prompt.images.iter().for_each(|path| shared.host.remove(path));
                let line = message("run.input", &answer);
                if line.len() > INBOUND_LINE_BYTES {
                    shared.refuse(&prompt.id, &RequestError::too_long());
                    return self.advance(shared);
                }
                self.shown = Shown::Nothing;
                self.remember_prompt(&prompt.id, &prompt.text, shared);
                self.active = Some(prompt.id);
                self.send(line, shared);
            }
            return;
        }
        match self.child {
            Child::Live { key, ready: true } if self.changed => self.leave(key, shared),
            Child::Live { ready: true, .. } => self.begin_turn(false, shared),
            Child::None => self.begin_turn(true, shared),
            Child::Live { ready: false, .. } | Child::Leaving(_) | Child::Former(_) => {}
        }
    }

    fn take_prompt(&mut self, shared: &mut SharedState) -> Option<ClientPrompt> {
        let prompt = self.waiting.pop_front()?;
        shared.waiting -= prompt.size;
        Some(prompt)
    }

    fn begin_turn(&mut self, starts: bool, shared: &mut SharedState) {
        let Some(ClientPrompt { id, text, images, .. }) = self.take_prompt(shared) else { return };
        let (kind, fields) = if starts { ("run.start", self.start_fields(shared)) } else { ("run.input", json!({})) };
        let mut payload = runs::prompt(fields, &text, &images);
        if starts {
            self.mark_first(&text, &mut payload, shared);
        } else {
            self.mark_command(&text, &mut payload, shared);
        }
        let line = runs::named_message(runs::PROMPT, kind, &payload);
        let line = line.ok_or_else(RequestError::too_long);
        let line = match line.and_then(|line| if starts { self.may_start(shared).map(|()| line) } else { Ok(line) }) {
            Ok(line) => line,
            Err(refusal) => {
                shared.refuse(&id, &refusal);
                images.iter().for_each(|path| shared.host.remove(path));
                return self.advance(shared);
            }
        };
        if starts {
            let key = shared.start(&self.id, &self.place.cwd);
            self.child = Child::Live { key, ready: false };
            self.runs += 1;
            self.cost.begin_run();
            self.changed = false;
        } else {
            self.set_ready(false);
        }
        self.send(line, shared);
        self.remember_prompt(&id, &text, shared);
        (self.active, self.images, self.in_turn, self.cancelled) = (Some(id), images, true, false);
        self.spoken.clear();
    }

    fn may_start(&self, shared: &SharedState) -> Result<(), RequestError> {
        let name = &shared.facts.display_name;
        if self.begun && (self.agent_session.is_none() || !shared.facts.resume) {
            let message = format!("{name} cannot resume a session: create a new one with session/new.");
            return Err(RequestError::internal("session_not_found", &message));
        }
        if shared.children.len() >= CHILDREN {
            let message = "Too many runs are ending: try again in a few seconds.";
            return Err(RequestError::internal("resource_exhausted", message));
        }
        Ok(())
    }

    /// The fields of run.start except the prompt.
    fn start_fields(&self, shared: &SharedState) -> Value {
        let facts = &shared.facts;
        let mut fields = json!({});
        for (name, value) in &facts.fields {
            fields[*name] = value.clone();
        }
        let own = [
            ("agent", json!(facts.agent)),
            ("cwd", json!(self.place.cwd)),
            ("progress", json!("full")),
            ("heartbeat_s", json!(0)),
            ("conversation", json!(facts.conversation)),
            // A session belongs to one agent.
            ("fallback", json!([])),
        ];
        own.into_iter().for_each(|(name, value)| fields[name] = value);
        if !facts.question_limit {
            // A person may be away from the editor.
            fields["question_timeout_s"] = json!(crate::protocol::limits::SECONDS);
        }
        if !self.place.add_dirs.is_empty() {
            fields["add_dirs"] = json!(self.place.add_dirs);
        }
        if let Some(servers) = &self.place.servers {
            fields["mcp_servers"] = serde_json::from_str(servers).unwrap_or_default();
        }
        if let Some(session) = &self.agent_session {
            fields["session_id"] = json!(session);
        }
        self.chosen.put(&mut fields);
        fields
    }

    fn tell(&self, kind: &str, payload: &Value, shared: &mut SharedState) {
        self.send(message(kind, payload), shared);
    }

    fn send(&self, line: String, shared: &mut SharedState) {
        if let Child::Live { key, .. } = self.child {
            shared.put(ServerEffect::Tell(key, line));
        }
    }

    fn set_ready(&mut self, is_ready: bool) {
        if let Child::Live { ready, .. } = &mut self.child {
            *ready = is_ready;
        }
    }

    fn leave(&mut self, key: ChildKey, shared: &mut SharedState) {
        self.child = Child::Leaving(key);
        shared.put(ServerEffect::Tell(key, message("run.input", &json!({"end": true}))));
        shared.put(ServerEffect::End(key));
    }

    /// Takes changed settings, which the next turn has.
    pub(super) fn change(&mut self, chosen: Chosen) {
        self.changed |= chosen != self.chosen;
        self.chosen = chosen;
    }

    pub(super) fn cancel(&mut self, shared: &mut SharedState) {
        while let Some(prompt) = self.take_prompt(shared) {
            prompt.images.iter().for_each(|path| shared.host.remove(path));
            shared.result(&prompt.id, &PromptResult::of("cancelled"));
        }
        if !self.in_turn || self.cancelled {
            return;
        }
        self.cancelled = true;
        if self.shown == Shown::Text {
            self.shown = Shown::Nothing;
        }
        // The client answers these by itself.
        for request in std::mem::take(&mut self.permissions).into_values() {
            shared.asked.remove(&request);
        }
        self.tell("run.cancel", &json!({"scope": "turn"}), shared);
        if let Child::Live { key, .. } = self.child {
            shared.put(ServerEffect::Limit(key));
        }
    }

    pub(super) fn close(&mut self, shared: &mut SharedState) {
        self.cancel(shared);
        self.end_turn(RunOutcome::cancelled(), shared);
        self.drop_handed(shared);
        if let Child::Live { key, .. } = self.child {
            self.child = Child::Leaving(key);
            shared.put(ServerEffect::End(key));
        }
    }

    pub(super) fn child_ended(&mut self, key: ChildKey, shared: &mut SharedState) {
        match self.child {
            Child::Live { key: ours, .. } | Child::Leaving(ours) | Child::Former(ours) if ours == key => {}
            Child::None | Child::Live { .. } | Child::Leaving(_) | Child::Former(_) => return,
        }
        self.child = Child::None;
        let refusal = RequestError::internal(
            "internal_error",
            "The run of this session ended unexpectedly: send the prompt again.",
        );
        self.end_turn(RunOutcome::Failed(refusal), shared);
        self.drop_handed(shared);
        self.advance(shared);
    }

    fn end_turn(&mut self, outcome: RunOutcome, shared: &mut SharedState) {
        if !std::mem::take(&mut self.in_turn) {
            return;
        }
        self.images.drain(..).for_each(|path| shared.host.remove(&path));
        self.questions.clear();
        self.withdraw_shown(shared);
        for request in std::mem::take(&mut self.permissions).into_values() {
            shared.withdraw(request);
        }
        self.end_calls(shared);
        shared.keep_history(&self.id);
        let cancelled = std::mem::take(&mut self.cancelled);
        if let Child::Live { key, .. } = self.child
            && cancelled
        {
            shared.put(ServerEffect::Unlimit(key));
        }
        if let (None, RunOutcome::Failed(refusal)) = (&self.active, &outcome) {
            self.say(&format!("\n\n{}\n", refusal.message), "failure", shared);
        }
        for id in self.active.take().into_iter().chain(std::mem::take(&mut self.handed.joined)) {
            match &outcome {
                RunOutcome::Failed(_) if cancelled => shared.result(&id, &PromptResult::of("cancelled")),
                RunOutcome::Failed(refusal) => shared.refuse(&id, refusal),
                RunOutcome::Stopped(result) => shared.result(&id, result),
            }
        }
    }

    /// Reports calls that have not ended as failed: no further update of them will come.
    fn end_calls(&mut self, shared: &mut SharedState) {
        for call in std::mem::take(&mut self.calls) {
            let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "failed"});
            shared.update(&self.id, &update);
        }
    }

    /// An id of the child, unique in the session.
    fn unique(&self, id: &str) -> String {
        format!("{}:{id}", self.runs)
    }

    fn say(&self, text: &str, message: &str, shared: &mut SharedState) {
        let chunk = updates::chunk("agent_message_chunk", text, &self.unique(message));
        chunk.iter().for_each(|chunk| shared.update(&self.id, chunk));
    }

    pub(super) fn frame(&mut self, key: ChildKey, frame: &Object<'_>, shared: &mut SharedState) {
        if !matches!(self.child, Child::Live { key: ours, .. } | Child::Leaving(ours) if ours == key) {
            return;
        }
        let (kind, payload) = (frame.string("type").unwrap_or_default(), frame.object("payload"));
        let Some(payload) = payload else { return };
        match kind.as_str() {
            "run.started" => self.learn_steering(&payload),
            "run.progress" => self.progress(&payload, &frame.string("reply_to").unwrap_or_default(), shared),
            "run.question" => self.question(&payload, shared),
            "run.completed" | "run.failed" | "run.cancelled" => {
                self.learn_session(&payload, shared);
                self.child = Child::Leaving(key);
                shared.put(ServerEffect::End(key));
                self.begun |= kind == "run.completed";
                self.say_answer(payload.string("text").filter(|_| kind == "run.completed"), shared);
                self.end_turn(RunOutcome::of_run(&kind, &payload), shared);
                self.drop_handed(shared);
            }
            _ => {}
        }
    }

    /// `cause`: the id of the message to which the frame replies.
    fn progress(&mut self, frame: &Object<'_>, cause: &str, shared: &mut SharedState) {
        // A later version of the child's program may know more kinds.
        let Some(kind) = KindName::from_word(&frame.string("kind").unwrap_or_default()) else { return };
        match kind {
            KindName::Text => self.piece("agent_message_chunk", frame, shared),
            KindName::Reasoning => self.piece("agent_thought_chunk", frame, shared),
            KindName::Tool => self.tool(frame, shared),
            KindName::Plan => shared.update(&self.id, &updates::plan(frame)),
            KindName::Usage => {
                updates::usage(frame, &mut self.cost).iter().for_each(|update| shared.update(&self.id, update))
            }
            KindName::Commands => self.learn_commands(frame, shared),
            KindName::Session => {
                self.learn_steering(frame);
                self.learn_session(frame, shared);
            }
            // The agent's own turn, which answers no prompt of the client's.
            KindName::Turn if frame.is("origin", "agent") => self.store(shared),
            KindName::Turn => {
                self.begun |= frame.is("outcome", "completed");
                self.say_answer(frame.string("final_text"), shared);
                self.end_turn(RunOutcome::of_turn(frame), shared);
                self.store(shared);
            }
            KindName::Status if frame.is("status", "waiting_for_prompt") => {
                self.set_ready(true);
                self.advance(shared);
            }
            KindName::Warning => self.warn(frame, cause, shared),
            KindName::Prompt if cause == runs::PROMPT => {}
            KindName::Prompt => self.prompt_state(frame, cause == runs::STEER, shared),
            KindName::Resolved => self.resolved(&frame.string("question_id").unwrap_or_default(), shared),
            // No other status says anything to the client. Heartbeats and checkpoints are off, and only workflows have
            // todos and phases.
            KindName::Status | KindName::Heartbeat | KindName::Checkpoint | KindName::Todo | KindName::Phase => {}
        }
    }

    /// Passes a warning on. One that a prompt was not taken ends its turn: nothing else will.
    fn warn(&mut self, frame: &Object<'_>, cause: &str, shared: &mut SharedState) {
        let (code, text) = (frame.string("code").unwrap_or_default(), frame.string("text").unwrap_or_default());
        if cause == runs::STEER && runs::is_ignored(&code, true) {
            let id = self.handed.unreported.pop_front();
            id.into_iter().for_each(|id| shared.refuse(&id, &RequestError::internal(&code, &text)));
        } else if self.in_turn && runs::is_ignored(&code, cause == runs::PROMPT) {
            self.end_turn(RunOutcome::Failed(RequestError::internal(&code, &text)), shared);
            // The run still waits for a prompt, and does not say so again.
            self.set_ready(true);
            self.advance(shared);
        } else {
            shared.notice(&self.id, &text);
        }
    }

    /// Says the final answer of an agent that gives it in its result alone.
    fn say_answer(&mut self, answer: Option<String>, shared: &mut SharedState) {
        let answer = answer.filter(|_| self.active.is_some() && self.spoken.len() < SPOKEN_BYTES).unwrap_or_default();
        if !self.spoken.contains(&without_blanks(&answer)) {
            self.say(&answer, "answer", shared);
        }
    }

    fn piece(&mut self, kind: &str, frame: &Object<'_>, shared: &mut SharedState) {
        let message = self.unique(&frame.string("message_id").unwrap_or_default());
        let text = frame.string("text").unwrap_or_default();
        if kind == "agent_message_chunk" && self.spoken.len() < SPOKEN_BYTES {
            self.spoken.push_str(&without_blanks(&text));
        }
        let chunk = updates::chunk(kind, &text, &message);
        chunk.iter().for_each(|chunk| shared.update(&self.id, chunk));
    }

    fn tool(&mut self, frame: &Object<'_>, shared: &mut SharedState) {
        let call = self.unique(&frame.string("call_id").unwrap_or_default());
        let is_new =
            if frame.is("state", "started") { self.calls.insert(call.clone()) } else { !self.calls.remove(&call) };
        shared.update(&self.id, &updates::tool(frame, &call, &self.place.cwd, is_new));
    }

    fn learn_session(&mut self, frame: &Object<'_>, shared: &mut SharedState) {
        let known = frame.string("session_id").filter(|id| self.agent_session.as_ref() != Some(id));
        if known.is_some() {
            self.agent_session = known;
            self.store(shared);
        }
    }

    pub(super) fn store(&self, shared: &mut SharedState) {
        if self.agent_session.is_some() && shared.facts.resume {
            let stored = self.listed(&shared.facts.agent);
            shared.host.store(&stored);
        }
    }
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}
