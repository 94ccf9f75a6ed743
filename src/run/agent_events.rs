//! The agent's work: turns its lines into events, and these into frames.

use super::Effect;
use super::active_run::ActiveRun;
use super::budget::ToolMoment;
use super::frames::{boxed, effect};
use super::messages::{Marks, Messages, Piece, Rules};
use super::open_questions::Asker;
use super::work::{CallDescription, CallResult, EndedCall, absolute, path, places, relative};
use crate::agent::limit::Limit;
use crate::agent::{self, CallKey, Driver, Features, Turn};
use crate::protocol::ids::SessionId;
use crate::protocol::limits::REPORTED;
use crate::protocol::outbound::{About, Artifact, Body, Entries, Outcome, PlanEntry, Progress, Text, Usage};
use crate::protocol::words::{Action, Level, PlanStatus, Status, ToolState, Warning};
use std::path::Path;

impl ActiveRun {
    pub(super) fn line(&mut self, line: agent::Line<'_>) {
        self.questions.kept.line = match &line {
            agent::Line::Text(text) => text.len(),
            agent::Line::TooLong => 0,
        };
        self.clocks.active = self.now;
        self.clocks.start = None;
        self.agent.alive = true;
        if self.status == Some(Status::Starting) && self.end.ending.is_none() {
            self.status(Status::Running, "The agent is working", None);
        }
        let mut turn = Turn { events: std::mem::take(&mut self.agent.events), ..Turn::default() };
        self.agent.driver.line(line, &mut turn);
        self.turn(turn);
    }

    /// Handles the next of the events that wait.
    pub(super) fn more(&mut self) {
        if let Some(event) = self.agent.waiting.next() {
            self.happened(event);
            self.check_kept();
        }
    }

    /// The agent's features, as far as its driver knows them now.
    pub(super) fn features(&self) -> Features {
        self.agent.driver.features(&self.settings)
    }

    /// Calls the driver, and handles the outcome.
    pub(super) fn drive(&mut self, call: impl FnOnce(&mut dyn Driver, &mut Turn)) {
        let mut turn = Turn::default();
        call(self.agent.driver.as_mut(), &mut turn);
        self.turn(turn);
    }

    /// Handles the outcome of a driver's call.
    pub(super) fn turn(&mut self, turn: Turn) {
        let Turn { mut events, send, close_input, relaunch } = turn;
        if let Some(launch) = relaunch {
            self.start(launch);
        }
        self.out.extend(send.into_iter().map(Effect::ToAgent));
        if close_input {
            self.out.push(Effect::CloseAgentInput);
        }
        for event in events.drain(..) {
            if let Some(event) = self.agent.waiting.pass(event) {
                self.happened(event);
            }
        }
        self.agent.events = events;
        self.check_kept();
    }

    fn happened(&mut self, event: agent::AgentEvent) {
        let sign = sign(&event);
        if self.status == Some(Status::Retrying) && sign == LifeSign::Work {
            self.status(Status::Running, "The agent is working", None);
        }
        self.turns.current.declined &= sign == LifeSign::None;
        if self.agent.recorded {
            self.out.extend(said(&event));
        }
        match event {
            agent::AgentEvent::Session { id, version, model } => self.session(id, version, model),
            agent::AgentEvent::Text { message, piece, done, reasoning, parent } => {
                let own = parent.is_none() && !reasoning;
                let parent = parent.and_then(|parent| self.work.tools.id(parent));
                self.speak(|messages, rules, out| {
                    messages.piece(message, Piece { text: piece, done, reasoning, own, parent }, rules, out)
                });
            }
            agent::AgentEvent::Partial { .. } => {}
            agent::AgentEvent::Withdrawn { message } => {
                if let Some(progress) = self.work.messages.withdraw(message) {
                    self.progress(progress, None);
                }
            }
            agent::AgentEvent::Tool { call, category, name, title, locations, input, parent } => {
                let places = places(&self.settings.cwd, &locations);
                let title = title.map(|title| self.titled(title));
                self.tool_began(call, CallDescription { category, name, title, places, input, parent });
            }
            agent::AgentEvent::ToolOver { call, state, output, facts } => {
                // A stop ends the running tools, which then report a failure.
                let stopped = state == ToolState::Failed && (self.is_stopping() || self.turns.is_stopping());
                let state = if stopped { ToolState::Cancelled } else { state };
                let full = self.settings.progress == Level::Full;
                self.tool_ended(call, CallResult { state, output: output.filter(|_| full), facts });
            }
            agent::AgentEvent::Plan(entries) => self.plan(entries),
            agent::AgentEvent::PlanText(text) => {
                let entries = plan_entries(&text.redacted(&self.redactor));
                self.plan(entries);
            }
            agent::AgentEvent::ModelCalled => {
                let exceeded = self.work.budget.count_model_call();
                self.keep_limit(exceeded);
            }
            agent::AgentEvent::Usage(more) => self.used(more),
            agent::AgentEvent::Changed { path: text, action } => self.changed(path(&text), action),
            agent::AgentEvent::Ask { key, mut asks, call } => {
                let call = call.and_then(|call| self.work.tools.id(call));
                asks.iter_mut().filter_map(|ask| ask.subject.as_mut()).for_each(|subject| subject.call_id = call);
                self.questions.kept.add(&key);
                self.open(Asker::Agent(key), asks);
            }
            agent::AgentEvent::AskWithdrawn { key } => {
                self.withdraw(Some(&Asker::Agent(key)));
                self.running_again();
            }
            agent::AgentEvent::ResultRefused(mismatch) => self.submitted(Err(vec![mismatch])),
            agent::AgentEvent::Retrying { text } => {
                self.status(Status::Retrying, "The agent is retrying", None);
                self.warn(Warning::AgentRetrying, text, None);
            }
            agent::AgentEvent::Warning(warning, text) => self.warn(warning, text, None),
            agent::AgentEvent::Unparsed => {
                let text = "Part of the agent's output could not be parsed and was skipped";
                self.warn(Warning::AgentOutputUnparsed, text, None);
            }
            agent::AgentEvent::Note(text) => self.out.push(Effect::Note(text.into_redacted(&self.redactor))),
            agent::AgentEvent::TurnOver(over) => self.turn_over(over),
        }
    }

    fn tool_began(&mut self, call: CallKey, seen: CallDescription) {
        let excluded = self.work.budget.excludes(&seen.name, ToolMoment::Called);
        if let Some(progress) = self.work.tools.begin(self.now, call, seen, self.room()) {
            self.progress(progress, None);
            let exceeded = self.work.budget.count_tool_call();
            self.keep_limit(excluded.or(exceeded));
        }
    }

    fn tool_ended(&mut self, call: CallKey, end: CallResult) {
        let did_work = end.state == ToolState::Completed;
        let around = (&*self.settings.cwd, &self.redactor);
        let over = self.work.tools.end(self.now, call, end, around);
        let Some(EndedCall { progress, name }) = over else { return };
        self.progress(progress, None);
        let excluded = self.work.budget.excludes(&name, ToolMoment::Done).filter(|_| did_work);
        self.keep_limit(excluded);
    }

    fn plan(&mut self, entries: Entries) {
        if let Some(text) = entries.warning("entry", "entries", "the plan") {
            self.warn(Warning::AgentOutputUnparsed, text, None);
        }
        let entries = entries.into_iter().collect();
        let about = if self.settings.is_part { About::Todo(entries) } else { About::Plan(entries) };
        self.tell(about, "The plan changed", None);
    }

    fn session(&mut self, id: Option<SessionId>, version: Option<Text>, model: Option<Text>) {
        self.work.session_id.clone_from(&id);
        self.work.model.clone_from(&model);
        let about = About::Session {
            session_id: id,
            agent_version: version,
            model,
            capabilities: Some(self.features().capabilities),
        };
        self.tell(about, "The agent's session is open", None);
    }

    /// Calls `say` with the rules of this run, emits the progress, and keeps the markers that `say` finds.
    pub(super) fn speak(&mut self, say: impl FnOnce(&mut Messages, &Rules<'_>, &mut dyn FnMut(Progress)) -> Marks) {
        let rules = Rules {
            level: self.settings.progress,
            frame_bytes: self.settings.max_frame_bytes,
            redactor: &self.redactor,
            completion_marker: &self.settings.completion_marker,
            question_markers: self.settings.question_markers,
            cuts_markers: self.agent.driver.takes_turns(),
            room: self.room(),
        };
        let (out, spare, frame, now) = (&mut self.out, &mut self.spare, &mut self.clocks.frame, self.now);
        let marks = say(&mut self.work.messages, &rules, &mut |progress| {
            *frame = now;
            out.push(effect(boxed(spare, progress), None));
        });
        self.turns.current.completion |= marks.completion;
        self.turns.current.marked.asks.append(marks.asks);
    }

    fn used(&mut self, usage: Usage) {
        self.work.set_usage(&usage);
        self.tell(About::Usage(self.work.usage), self.work.usage.line(), None);
        self.keep_limit(self.work.budget.exceeded_by(&self.work.usage));
    }

    /// Stops the agent if it exceeded a limit.
    pub(super) fn keep_limit(&mut self, exceeded: Option<Limit>) {
        if let Some(limit) = exceeded {
            self.stop(Outcome::Failed(limit.reached()), None);
        }
    }

    pub(super) fn changed(&mut self, path: &Path, action: Action) {
        let shown = relative(&self.settings.cwd, path);
        let Some(artifact_id) = self.work.artifacts.add(&shown, action) else { return };
        self.clocks.frame = self.now;
        let artifact = Artifact { artifact_id, path: shown, action, kind: "file", size_bytes: None, truncated: false };
        let measure = (action != Action::Deleted).then(|| absolute(&self.settings.cwd, path));
        self.out.push(Effect::Emit { body: Body::Artifact(Box::new(artifact)), reply_to: None, measure });
        if self.work.artifacts.is_full() {
            let text = format!("No further changed files are reported: the limit is {REPORTED}");
            self.warn(Warning::ArtifactsIncomplete, text, None);
        }
    }
}

/// The entries of a plan in one text: its lines without headings.
fn plan_entries(text: &str) -> Entries {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry =
        |line: &str| PlanEntry { text: line.trim_start_matches(['-', '*', ' ']).into(), status: PlanStatus::Pending };
    lines.map(entry).collect()
}

/// The evidence in an event that the agent continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LifeSign {
    /// The agent works, which ends the status `retrying`.
    Work,
    /// The agent continues, so it did not end because of a declined question.
    Life,
    None,
}

fn sign(event: &agent::AgentEvent) -> LifeSign {
    use agent::AgentEvent as Event;
    match event {
        Event::Text { .. } | Event::Tool { .. } | Event::Ask { .. } | Event::Plan(_) | Event::PlanText(_) => {
            LifeSign::Work
        }
        Event::Usage(_) | Event::Changed { .. } | Event::ResultRefused(_) | Event::Retrying { .. } => LifeSign::Life,
        Event::Session { .. }
        | Event::ModelCalled
        | Event::Partial { .. }
        | Event::Withdrawn { .. }
        | Event::ToolOver { .. }
        | Event::AskWithdrawn { .. }
        | Event::Warning(..)
        | Event::Unparsed
        | Event::Note(_)
        | Event::TurnOver(_) => LifeSign::None,
    }
}

/// The piece of a message in an event. Only pieces can split a secret.
fn said(event: &agent::AgentEvent) -> Option<Effect> {
    use agent::AgentEvent as Event;
    match event {
        Event::Text { message, piece, done, .. } | Event::Partial { whole: message, piece, done } => {
            Some(Effect::Said { message: *message, piece: piece.clone(), done: *done })
        }
        Event::Withdrawn { message } => Some(Effect::Said { message: *message, piece: Text::default(), done: true }),
        Event::Session { .. }
        | Event::Tool { .. }
        | Event::ToolOver { .. }
        | Event::Plan(_)
        | Event::PlanText(_)
        | Event::ModelCalled
        | Event::Usage(_)
        | Event::Changed { .. }
        | Event::Ask { .. }
        | Event::AskWithdrawn { .. }
        | Event::ResultRefused(_)
        | Event::Retrying { .. }
        | Event::Warning(..)
        | Event::Unparsed
        | Event::Note(_)
        | Event::TurnOver(_) => None,
    }
}
