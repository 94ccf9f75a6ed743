//! The agent's work: turns its lines into events, and these into frames.

use super::Effect;
use super::active_run::ActiveRun;
use super::agent_side::ProcessState;
use super::blocked::BlockedText;
use super::budget::ToolMoment;
use super::frame_texts::{path, suspicion};
use super::messages::{Marks, Messages, Piece, Rules};
use super::open_questions::Asker;
use super::part::does_something;
use super::step::RunningStep;
use super::tool_calls::{CallDescription, CallResult, EndedCall};
use crate::agent::limit::{Keeper, Limit};
use crate::agent::{AgentEvent, CallKey, Driver, DriverOutput, Features, Line, MessageKey};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::limits::KEPT_BYTES;
use crate::protocol::outbound::{AgentExit, Entries, Outcome, PlanEntry, Progress, ProgressKind, Text};
use crate::protocol::words::{Category, Level, PlanStatus, Policy, Status, ToolState, Warning};

impl ActiveRun {
    pub(super) fn read_line(&mut self, line: Line<'_>) {
        self.questions.line_bytes = match &line {
            Line::Text(text) => text.len(),
            Line::TooLong => 0,
        };
        if self.effects.status == Some(Status::Starting) && !self.ladder.is_decided() {
            self.effects.status(Status::Running, "The agent is working", None);
        }
        if let Some(step) = &mut self.step {
            self.deadlines.note_output(self.effects.now, false);
            if let RunningStep::Command(command) = step {
                command.read_line(&line, &self.texts.redactor);
            }
            return;
        }
        self.seen.heard = true;
        let out = self.agent.read_line(line);
        self.deadlines.note_output(self.effects.now, self.agent.driver.is_opening());
        self.apply(out);
    }

    pub(super) fn handle_waiting_event(&mut self) {
        if let Some(event) = self.agent.waiting.next() {
            self.handle_agent_event(event);
            self.check_memory();
        }
    }

    pub(super) fn features(&self) -> Features {
        self.agent.driver.features(&self.settings)
    }

    /// A step has no driver.
    pub(super) fn drive(&mut self, call: impl FnOnce(&mut dyn Driver, &mut DriverOutput)) {
        if self.step.is_some() {
            return;
        }
        let mut out = DriverOutput::default();
        call(self.agent.driver.as_mut(), &mut out);
        self.apply(out);
    }

    pub(super) fn apply(&mut self, out: DriverOutput) {
        let DriverOutput { mut events, send, close_input, relaunch } = out;
        if let Some(launch) = relaunch {
            self.agent.start(launch, &self.settings, &mut self.effects);
        }
        self.effects.list.extend(send.into_iter().map(Effect::ToAgent));
        if close_input {
            self.effects.push(Effect::CloseAgentInput);
        }
        for event in events.drain(..) {
            if let Some(event) = self.agent.waiting.pass(event) {
                self.handle_agent_event(event);
            }
        }
        self.agent.events = events;
        self.check_memory();
    }

    fn handle_agent_event(&mut self, event: AgentEvent) {
        let sign = sign(&event);
        if self.effects.status == Some(Status::Retrying) && sign == LifeSign::Work {
            self.effects.status(Status::Running, "The agent is working", None);
        }
        self.turns.current.declined &= sign == LifeSign::None;
        match event {
            AgentEvent::Session { id, version, model } => {
                self.effects.list.extend(id.clone().map(Effect::HoldSession));
                self.agent.open_session(id, version, model);
                self.open_servers();
            }
            AgentEvent::Text { message, piece, done, reasoning, parent } => {
                let own = parent.is_none() && !reasoning;
                let parent = parent.and_then(|parent| self.tools.id(parent));
                let text = self.cut_blocked(message, piece, own, done);
                self.say(message, Piece { text, done, reasoning, own, parent });
            }
            AgentEvent::Partial { whole, piece, done } => self.effects.record(whole, &piece, done),
            AgentEvent::Withdrawn { message } => self.withdraw_message(message),
            AgentEvent::Tool { call, category, name, title, locations, input, parent } => {
                self.begin_tool(call, CallDescription { category, name, title, locations, input, parent });
            }
            AgentEvent::ToolOver { call, state, output, facts } => {
                self.end_tool(call, CallResult { state, output, facts, suspicion: None });
            }
            AgentEvent::Plan(entries) => self.effects.plan(entries, self.settings.is_part),
            AgentEvent::PlanText(text) => {
                let entries = plan_entries(&text.redacted(&self.texts.redactor));
                self.effects.plan(entries, self.settings.is_part);
            }
            AgentEvent::ModelCalled => {
                let exceeded = self.budget.count_model_call();
                self.keep_limit(exceeded);
            }
            AgentEvent::Usage(more) => {
                let exceeded = self.budget.set_usage(&more);
                self.tell_usage();
                self.keep_limit(exceeded);
            }
            AgentEvent::Changed { path: text, action } => {
                self.artifacts.report(path(&text), action, &self.texts, &mut self.effects);
            }
            AgentEvent::Ask { key, mut asks, call } => {
                let call = call.and_then(|call| self.tools.ask(call));
                asks.iter_mut().filter_map(|ask| ask.subject.as_mut()).for_each(|subject| subject.call_id = call);
                self.ask_questions(Asker::Agent(key), asks);
            }
            AgentEvent::McpServer { name, state, said } => self.server_told(name, state, said),
            AgentEvent::Commands(all) => {
                self.effects.tell(ProgressKind::Commands(all), "The agent listed its commands", None);
            }
            AgentEvent::AwaitsServers => self.await_servers(),
            AgentEvent::AskWithdrawn { key } => self.withdraw_questions(Some(&Asker::Agent(key))),
            AgentEvent::ResultRefused(mismatch) => self.submit_result(Err(vec![mismatch])),
            AgentEvent::Retrying { text, retry_at } => {
                self.effects.status(Status::Retrying, "The agent is retrying", None);
                let about = ProgressKind::Warning { code: Warning::AgentRetrying, retry_at, for_person: None };
                self.effects.tell(about, text, None);
            }
            AgentEvent::Warning(warning, text) => self.effects.warn(warning, text, None),
            AgentEvent::Unparsed => {
                let text = "Part of the agent's output could not be parsed and was skipped";
                self.effects.warn(Warning::AgentOutputUnparsed, text, None);
            }
            AgentEvent::Note(text) => self.effects.push(Effect::Note(text.into_redacted(&self.texts.redactor))),
            AgentEvent::Background(work) => self.change_background(work),
            AgentEvent::TurnBegan(origin) => self.note_turn(origin),
            AgentEvent::TurnOver(over) => self.handle_turn_end(over),
        }
    }

    fn tell_usage(&mut self) {
        let earlier = self.sums.as_ref().map(|sums| sums.usage).unwrap_or_default();
        let usage = earlier.plus(&self.budget.usage);
        self.effects.tell(ProgressKind::Usage(usage), usage.line(), None);
    }

    fn cut_blocked(&mut self, message: MessageKey, piece: Text, own: bool, done: bool) -> Text {
        match self.blocked.as_mut().filter(|_| own) {
            Some(blocked) => blocked.cut(message, &piece, done),
            None => piece,
        }
    }

    fn say(&mut self, message: MessageKey, piece: Piece) {
        self.effects.record(message, &piece.text, piece.done);
        self.speak(|messages, rules, out| messages.piece(message, piece, rules, out));
    }

    fn withdraw_message(&mut self, message: MessageKey) {
        self.blocked.iter_mut().for_each(|blocked| blocked.withdraw(message));
        self.effects.record(message, &Text::default(), true);
        if let Some(progress) = self.messages.withdraw(message) {
            self.effects.progress(progress, None);
        }
    }

    pub(super) fn begin_tool(&mut self, call: CallKey, seen: CallDescription) {
        let excluded = self.budget.excludes(&seen.name, ToolMoment::Called);
        if let Some(mut progress) = self.tools.begin(self.effects.now, call, seen, &self.texts, self.room()) {
            self.step.iter().for_each(|step| step.mark(&mut progress));
            self.effects.progress(progress, None);
            self.turns.note_work();
            let exceeded = self.budget.count_tool_call();
            self.keep_limit(excluded.or(exceeded));
        }
    }

    pub(super) fn end_tool(&mut self, call: CallKey, mut end: CallResult) {
        // A stop ends the running tools, which then report a failure. A command of a plan that takes too long has failed.
        let is_late = self.step.is_some() && self.ladder.is_late();
        let is_stopped = self.ladder.is_stopping() || self.turns.is_stopping();
        if end.state == ToolState::Failed && is_stopped && !is_late {
            end.state = ToolState::Cancelled;
        }
        let is_confined = end.state == ToolState::Failed && self.settings.sandbox.domain().is_some();
        end.suspicion = end.output.as_ref().filter(|_| is_confined).and_then(suspicion);
        end.output.take_if(|_| self.settings.progress != Level::Full);
        let did_work = end.state == ToolState::Completed;
        let over = self.tools.end(self.effects.now, call, end, &self.texts);
        let Some(EndedCall { mut progress, name, category, asked }) = over else { return };
        if let Some(step) = &self.step {
            step.mark(&mut progress);
            return self.effects.progress(progress, None);
        }
        self.effects.progress(progress, None);
        self.seen.acted |= did_work && does_something(category);
        let excluded = self.budget.excludes(&name, ToolMoment::Done);
        let exceeded = excluded.or_else(|| (!asked && self.is_denied(category)).then_some(Limit::Permissions));
        self.keep_limit(exceeded.filter(|_| did_work));
    }

    /// Whether the policy denies calls that act like this one, and the run keeps it, since nobody knows whether the agent
    /// asks.
    fn is_denied(&self, category: Category) -> bool {
        Category::ACTS.contains(&category)
            && !self.settings.sandbox.keeps(&self.settings.permissions)
            && self.settings.permissions.policy(category) == Policy::Deny
            && self.agent.driver.features(&self.settings).keepers.of(Limit::Permissions) == Keeper::Run
    }

    pub(super) fn speak(&mut self, say: impl FnOnce(&mut Messages, &Rules<'_>, &mut dyn FnMut(Progress)) -> Marks) {
        let rules = Rules {
            level: self.settings.progress,
            frame_bytes: self.settings.max_frame_bytes,
            redactor: &self.texts.redactor,
            completion: &self.turns.completion,
            question_markers: self.settings.question_markers,
            cuts_markers: self.agent.driver.takes_turns(),
            room: self.room(),
        };
        let effects = &mut self.effects;
        let marks = say(&mut self.messages, &rules, &mut |progress| effects.progress(progress, None));
        self.turns.current.completion |= marks.completion;
        self.turns.current.marked.asks.append(marks.asks);
    }

    pub(super) fn keep_limit(&mut self, exceeded: Option<Limit>) {
        if let Some(limit) = exceeded {
            self.stop(Outcome::Failed(limit.reached()), None);
        }
    }

    fn check_memory(&mut self) {
        let message = if self.held_bytes() > KEPT_BYTES || self.agent.driver.held_bytes() > KEPT_BYTES {
            "The agent has more than 32 MiB of unfinished messages, tools and questions: split the task."
        } else if self.questions.are_too_many() {
            "The agent has more than 1000 requests that wait for answers: answer them, or split the task."
        } else {
            return;
        };
        self.stop(Outcome::Failed(Failure::new(Code::ResourceExhausted, message)), None);
    }

    fn held_bytes(&self) -> usize {
        self.messages.kept + self.tools.kept + self.questions.held_bytes()
    }

    fn room(&self) -> usize {
        KEPT_BYTES.saturating_sub(self.held_bytes())
    }

    pub(super) fn begin_process(&mut self) {
        let now = self.effects.now;
        self.agent.process = ProcessState::Running;
        self.deadlines.active = now;
        let is_new = std::mem::take(&mut self.agent.is_new);
        // The limits cover all processes together.
        if self.agent.exit.is_none() || self.step.is_some() {
            self.deadlines.begin_run(now, &self.settings);
        } else if !is_new {
            return;
        }
        self.servers.begin(now, &self.settings);
        if !self.agent.alive {
            self.deadlines.await_output(now, &self.settings);
        }
    }

    pub(super) fn end_tree(&mut self, exit: AgentExit) {
        if matches!(self.agent.process, ProcessState::TreeGone | ProcessState::Ended) {
            return;
        }
        while self.step.is_none() && !self.agent.waiting.is_empty() {
            self.handle_waiting_event();
        }
        self.agent.process = ProcessState::TreeGone;
        for (message, text) in self.blocked.as_mut().map(BlockedText::finish).unwrap_or_default() {
            self.say(message, Piece { text, done: false, reasoning: false, own: true, parent: None });
        }
        self.drive(|driver, out| driver.tree_gone(exit, out));
        self.end_command(exit);
        let stops = self.ladder.is_stopping() || self.turns.is_stopping();
        self.end_open_work(if stops { ToolState::Cancelled } else { ToolState::Failed });
        self.warn_of_background();
        self.withdraw_questions(None);
    }

    pub(super) fn end_open_work(&mut self, state: ToolState) {
        self.speak(Messages::finish);
        self.tools.end_all(self.effects.now, state).for_each(|progress| self.effects.progress(progress, None));
    }
}

fn plan_entries(text: &str) -> Entries {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry =
        |line: &str| PlanEntry { text: line.trim_start_matches(['-', '*', ' ']).into(), status: PlanStatus::Pending };
    lines.map(entry).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LifeSign {
    /// The agent works, which ends the status `retrying`.
    Work,
    /// The agent continues, so it did not end because of a declined question.
    Life,
    None,
}

fn sign(event: &AgentEvent) -> LifeSign {
    use AgentEvent as Event;
    match event {
        Event::Text { .. } | Event::Tool { .. } | Event::Ask { .. } | Event::Plan(_) | Event::PlanText(_) => {
            LifeSign::Work
        }
        Event::Usage(_) | Event::Changed { .. } | Event::ResultRefused(_) | Event::Retrying { .. } => LifeSign::Life,
        Event::Session { .. }
        | Event::McpServer { .. }
        | Event::AwaitsServers
        | Event::Commands(_)
        | Event::ModelCalled
        | Event::Partial { .. }
        | Event::Withdrawn { .. }
        | Event::ToolOver { .. }
        | Event::AskWithdrawn { .. }
        | Event::Warning(..)
        | Event::Unparsed
        | Event::Note(_)
        | Event::Background(_)
        | Event::TurnBegan(_)
        | Event::TurnOver(_) => LifeSign::None,
    }
}
