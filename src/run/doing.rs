//! What the agent does in a run: its lines become events, and these become frames.

use super::Effect;
use super::book::Asker;
use super::live::{Heard, Live, Process};
use super::markers::{self, Cutter};
use super::messages::{Finder, Piece};
use super::stop::{Ending, Stage};
use super::work::{absolute, places, relative};
use crate::agent::{self, Turn, TurnOver};
use crate::failure::{Code, Failure};
use crate::protocol::limits::SESSION_ID_BYTES;
use crate::protocol::outbound::{About, Artifact, Body, Json, Outcome, PlanEntry, Text, Usage};
use crate::protocol::words::{Action, Level, PlanStatus, Status, Warning};
use crate::redact::Stream;
use std::path::Path;

impl Live {
    pub(super) fn spawned(&mut self) {
        self.process = Process::Running;
        self.clocks.active = self.now;
        if self.exit.is_some() {
            // The limits go over all processes.
            return;
        }
        self.clocks.run = self.settings.timeout_s.map(|limit| self.now + limit.duration());
        if !self.alive {
            self.clocks.start = self.settings.start_timeout_s.map(|limit| self.now + limit.duration());
        }
    }

    pub(super) fn line(&mut self, line: agent::Line<'_>) {
        self.clocks.active = self.now;
        self.clocks.start = None;
        self.alive = true;
        if self.status == Some(Status::Starting) && self.ending.is_none() {
            self.status(Status::Running, "The agent works", None);
        }
        let mut turn = Turn::default();
        self.driver.line(line, &mut turn);
        self.turn(turn);
    }

    /// The next part of a line that was too long to be taken at once.
    pub(super) fn more(&mut self) {
        self.more = false;
        let mut turn = Turn::default();
        self.driver.more(&mut turn);
        self.turn(turn);
    }

    /// Carries out what a driver wants.
    pub(super) fn turn(&mut self, turn: Turn) {
        let Turn { events, send, close_input, more, relaunch } = turn;
        self.more |= more;
        if let Some(launch) = relaunch {
            self.start(launch);
        }
        self.out.extend(send.into_iter().map(Effect::ToAgent));
        if close_input {
            self.out.push(Effect::CloseAgentInput);
        }
        for event in events {
            self.happened(event);
        }
    }

    pub(super) fn happened(&mut self, event: agent::Event) {
        if self.status == Some(Status::Retrying) && is_work(&event) {
            self.status(Status::Running, "The agent works", None);
        }
        self.declined &= !goes_on(&event);
        self.out.extend(said(&event));
        match event {
            agent::Event::Session { id, version, model } => self.session(id, version, model),
            agent::Event::Text { message, piece, done, parent } => {
                let text = parent.is_none().then(|| self.own_words(&message, &piece, done)).flatten();
                let text = text.as_deref().unwrap_or(&piece);
                self.say(&message, text, &piece, done, parent.as_deref(), false);
            }
            agent::Event::Reasoning { message, piece, done, parent } => {
                self.say(&message, &piece, &piece, done, parent.as_deref(), true);
            }
            agent::Event::Partial { .. } => {}
            agent::Event::Withdrawn { message } => {
                self.marked.heard.remove(&message);
                if let Some(progress) = self.messages.withdraw(&message) {
                    self.progress(progress, None);
                }
            }
            agent::Event::Tool { call, category, title, locations, parent } => {
                let places = places(&self.settings.cwd, &locations);
                let title = title.map(|title| self.title(&title));
                let begun = self.tools.begin(self.now, call, category, title, places, parent.as_deref());
                begun.into_iter().for_each(|progress| self.progress(progress, None));
            }
            agent::Event::ToolOver { call, state, output } => {
                let full = self.settings.progress == Level::Full;
                let output = output.as_deref().filter(|_| full);
                let over = self.tools.end(&call, state, output, &self.redactor);
                over.into_iter().for_each(|progress| self.progress(progress, None));
            }
            agent::Event::Plan(entries) => self.plan(entries),
            agent::Event::PlanText(text) => {
                let entries = plan_entries(&self.redactor.redact(&text));
                self.plan(entries);
            }
            agent::Event::Usage(more) => self.used(more),
            agent::Event::Changed { path, action } => self.changed(&path, action),
            agent::Event::Ask { key, asks } => self.open(Asker::Agent(key), asks),
            agent::Event::AskWithdrawn { key } => {
                self.withdraw(Some(&Asker::Agent(key)));
                self.running_again();
            }
            agent::Event::Retrying { text } => {
                self.status(Status::Retrying, "The agent tries again", None);
                self.warn(Warning::AgentRetrying, &text, None);
            }
            agent::Event::Warning(warning, text) => self.warn(warning, &text, None),
            agent::Event::Unparsed => {
                let text = "Part of the agent's output could not be read and was left out";
                self.warn(Warning::AgentOutputUnparsed, text, None);
            }
            agent::Event::Note(text) => self.out.push(Effect::Note(text)),
            agent::Event::TurnOver(over) => self.turn_over(over),
        }
    }

    fn plan(&mut self, entries: Vec<(String, PlanStatus)>) {
        let entry = |(text, status)| PlanEntry { text: Text(text), status };
        self.tell(About::Plan(entries.into_iter().map(entry).collect()), "The plan changed", None);
    }

    pub(super) fn session(&mut self, id: Option<String>, version: Option<String>, model: Option<String>) {
        // An id that would not fit a frame is no id that could come back.
        let id = id.filter(|id| id.len() <= SESSION_ID_BYTES);
        self.session_id.clone_from(&id);
        self.model.clone_from(&model);
        let about = About::Session {
            session_id: id,
            agent_version: version.map(Text),
            model: model.map(Text),
            capabilities: Some(self.driver.capabilities()),
        };
        self.tell(about, "The agent's session is open", None);
    }

    /// What the agent itself says, without its question markers. `None`: as it is. Markers count when the message is
    /// whole; one that is withdrawn has said nothing.
    pub(super) fn own_words(&mut self, message: &str, piece: &str, done: bool) -> Option<String> {
        let heard = self.marked.heard.entry(message.to_owned()).or_insert_with(|| Heard {
            cutter: Cutter::default(),
            asks: Vec::new(),
            finder: Finder::new(&self.settings.completion_marker),
        });
        heard.finder.piece(piece, done);
        let markers = self.settings.question_markers;
        let text = markers.then(|| heard.cutter.push(piece, done, &mut heard.asks));
        let heard = done.then(|| self.marked.heard.remove(message)).flatten();
        let takes_turns = self.driver.takes_turns();
        if let Some(heard) = heard {
            self.completion |= heard.finder.found;
            self.marked.asks.extend(heard.asks);
        }
        text.filter(|_| takes_turns)
    }

    pub(super) fn say(&mut self, key: &str, text: &str, said: &str, done: bool, parent: Option<&str>, reasoning: bool) {
        let parent = parent.and_then(|parent| self.tools.id(parent));
        let piece = Piece { key, text, said, done, reasoning, parent };
        let frame_bytes = self.settings.max_frame_bytes;
        let said = self.messages.piece(piece, self.settings.progress, frame_bytes, &self.redactor);
        said.into_iter().for_each(|progress| self.progress(progress, None));
    }

    pub(super) fn used(&mut self, usage: Usage) {
        self.usage = usage;
        let count = |n: Option<u64>| n.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
        let text = format!("{} tokens in, {} out", count(self.usage.input_tokens), count(self.usage.output_tokens));
        self.tell(About::Usage(self.usage), text, None);
    }

    pub(super) fn changed(&mut self, path: &Path, action: Action) {
        let shown = relative(&self.settings.cwd, path);
        let Some(artifact_id) = self.artifacts.add(&shown, action) else { return };
        self.clocks.frame = self.now;
        let artifact =
            Artifact { artifact_id, path: Text(shown), action, kind: "file", size_bytes: None, truncated: false };
        let measure = (action != Action::Deleted).then(|| absolute(&self.settings.cwd, path));
        self.out.push(Effect::Emit { body: Box::new(Body::Artifact(Box::new(artifact))), reply_to: None, measure });
    }

    pub(super) fn turn_over(&mut self, over: TurnOver) {
        if let Some(ending) = &mut self.ending {
            // What we asked for by the interrupt: now it can leave.
            if ending.stage == Stage::Interrupted {
                ending.advance(self.now);
                self.finish_agent();
            }
            return;
        }
        if matches!(over, TurnOver::Completed { .. }) && self.asks_markers() {
            return;
        }
        let outcome = self.outcome(over);
        self.withdraw(None);
        self.ending = Some(Ending::after_result(self.now, outcome, self.driver.leaves()));
        self.finish_agent();
    }

    pub(super) fn finish_agent(&mut self) {
        let mut turn = Turn::default();
        self.driver.finish(&mut turn);
        self.turn(turn);
    }

    pub(super) fn outcome(&mut self, over: TurnOver) -> Outcome {
        match over {
            TurnOver::Completed { answer, structured, stop } => {
                // A result repeats the last message; where an agent has only the result, the marker is in it alone.
                self.completion |= answer.text.contains(&self.settings.completion_marker);
                let shown = self.settings.progress != Level::Minimal;
                let message_id = self.messages.id_of(&answer.print).filter(|_| shown);
                let text_cut = answer.is_cut();
                let text = match self.settings.question_markers && self.driver.takes_turns() {
                    true => markers::without(answer.text),
                    false => answer.text,
                };
                // A text that was cut may end in a part of a secret: the uncertain end is dropped.
                let text = if text_cut { Stream::default().push(&self.redactor, &text) } else { text };
                let structured_output = structured.map(Json);
                Outcome::Completed { message_id, text: Text(text), text_cut, structured_output, stop_reason: stop }
            }
            TurnOver::Failed(failure) => Outcome::Failed(failure),
            TurnOver::Interrupted if self.declined => Outcome::Failed(could_not_go_on()),
            TurnOver::Interrupted => {
                let message = "The agent's turn was interrupted, but not by this run: start it again.";
                Outcome::Failed(Failure::new(Code::AgentError, message))
            }
        }
    }
}

/// The failure of an agent that did nothing more once it was told that its question was declined.
pub(super) fn could_not_go_on() -> Failure {
    let message = "A question was declined, and the agent ended without an answer to it: answer it, or say in the \
                   prompt what the agent wants to know.";
    Failure::new(Code::QuestionDeclined, message)
}

/// The entries of a plan that is one text: its lines but for headings.
fn plan_entries(text: &str) -> Vec<(String, PlanStatus)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| (line.trim_start_matches(['-', '*', ' ']).to_owned(), PlanStatus::Pending)).collect()
}

/// Whether an event shows that the agent works again.
fn is_work(event: &agent::Event) -> bool {
    use agent::Event;
    matches!(
        event,
        Event::Text { .. }
            | Event::Reasoning { .. }
            | Event::Tool { .. }
            | Event::Ask { .. }
            | Event::Plan(_)
            | Event::PlanText(_)
    )
}

/// Whether an event shows that the agent does more than to hear what it was told.
fn goes_on(event: &agent::Event) -> bool {
    use agent::Event;
    is_work(event) || matches!(event, Event::Usage(_) | Event::Changed { .. } | Event::Retrying { .. })
}

/// What an event says in pieces. Only then can a secret be split.
fn said(event: &agent::Event) -> Option<Effect> {
    match event {
        agent::Event::Text { message, piece, done, .. }
        | agent::Event::Reasoning { message, piece, done, .. }
        | agent::Event::Partial { whole: message, piece, done } => {
            Some(Effect::Said { message: message.clone(), piece: piece.clone(), done: *done })
        }
        agent::Event::Withdrawn { message } => {
            Some(Effect::Said { message: message.clone(), piece: String::new(), done: true })
        }
        _ => None,
    }
}
