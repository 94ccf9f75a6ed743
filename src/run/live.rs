//! A run that has an agent: what the agent's events, the orchestrator's messages and the clock make of it.

use super::book::{Absence, Answered, Book, Resolved, Taken};
use super::markers::{self, Cutter};
use super::messages::{Finder, Messages, Piece};
use super::stop::{Ending, Stage};
use super::work::{Artifacts, Tools, absolute, add_usage, places, relative};
use super::{Effect, Event, Gone, Input, Method, OnEof, Origin, Start};
use crate::agent::{self, AskKey, Driver, Reply, Turn, TurnOver};
use crate::failure::{Code, Failure};
use crate::protocol::limits::MARKER_TURNS;
use crate::protocol::outbound::{
    About, AgentExit, Artifact, Body, Json, Outcome, Place, PlanEntry, Progress, Question, Started, SubjectFrame,
    Terminal, Text, Usage,
};
use crate::protocol::question::{Ask, Kind, Subject};
use crate::protocol::request::{Seconds, Settings};
use crate::protocol::words::{Action, Source, Status, WaitingOn, Warning};
use crate::redact::Redactor;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

pub(super) const UNKNOWN_QUESTION: &str = "The answer was ignored: no such question is open";
pub(super) const UNKNOWN_TYPE: &str = "A message was ignored: version 1 has no such type";

/// The state of a run with an agent.
pub(super) struct Live {
    pub(super) now: Duration,
    pub(super) out: Vec<Effect>,
    pub(super) settings: Settings,
    pub(super) redactor: Redactor,
    pub(super) book: Book,
    run_id: String,
    on_eof: OnEof,
    driver: Box<dyn Driver>,
    messages: Messages,
    tools: Tools,
    artifacts: Artifacts,
    finder: Finder,
    marked: Marked,
    usage: Usage,
    session_id: Option<String>,
    status: Option<Status>,
    input_closed: bool,
    started: Duration,
    clocks: Clocks,
    /// Whether the agent gave a sign of life.
    alive: bool,
    exit: Option<AgentExit>,
    ending: Option<Ending>,
    signals: u32,
}

/// What question markers have brought up.
#[derive(Default)]
struct Marked {
    cutters: HashMap<String, Cutter>,
    /// The questions of this turn.
    asks: Vec<Ask>,
    /// The texts of those that were asked.
    texts: Vec<String>,
    /// Further turns so far.
    turns: u32,
}

/// The key of the group that question markers make; no driver has such a key.
const MARKERS: &str = "\0markers";

struct Clocks {
    /// The whole run's limit, once the agent runs.
    run: Option<Duration>,
    /// The limit for the first sign of life; none once there was one.
    start: Option<Duration>,
    /// The agent's last sign of life, or the last answer it waited for.
    active: Duration,
    /// Our last frame.
    frame: Duration,
}

/// A failure before run.started, with what must still not be seen.
type Refusal = (Failure, Redactor);

impl Live {
    /// The first effect is run.started.
    pub(super) fn begin(
        now: Duration,
        random: &str,
        on_eof: OnEof,
        run_id: String,
        reply_to: Option<String>,
        start: Start,
    ) -> Result<Box<Live>, Refusal> {
        let Start { mut settings, display_name, mut driver, redactor, short_secrets } = start;
        let mut turn = Turn::default();
        let launch = match driver.launch(&settings, &mut turn) {
            Ok(launch) => launch,
            Err(failure) => return Err((failure, redactor)),
        };
        settings.start_timeout = settings.start_timeout.or(launch.start_timeout);
        let started = Started {
            agent: settings.agent.clone(),
            display_name,
            settings: Box::new(settings.clone()),
            capabilities: driver.capabilities(),
            metadata: settings.metadata.clone().map(Json),
            agent_args: settings.agent_args.iter().map(|arg| Text::from(arg.as_str())).collect(),
            truncated: false,
        };
        let mut live = Box::new(Live {
            now,
            out: Vec::new(),
            book: Book::new(random),
            finder: Finder::new(&settings.completion_marker),
            clocks: Clocks { run: None, start: None, active: now, frame: now },
            marked: Marked::default(),
            settings,
            redactor,
            run_id,
            on_eof,
            driver,
            messages: Messages::default(),
            tools: Tools::default(),
            artifacts: Artifacts::default(),
            usage: Usage::default(),
            session_id: None,
            status: None,
            input_closed: false,
            started: now,
            alive: false,
            exit: None,
            ending: None,
            signals: 0,
        });
        live.emit(Body::Started(Box::new(started)), reply_to);
        if short_secrets > 0 {
            live.warn(Warning::ShortSecret, "A secret is too short or too plain to be redacted", None);
        }
        live.turn(turn);
        live.out.push(Effect::Spawn(Box::new(launch), Box::new(live.settings.clone())));
        Ok(live)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.stopped)
    }

    /// Takes one event. An outcome: the run is over.
    pub(super) fn step(&mut self, event: Event<'_>) -> Option<Outcome> {
        match event {
            Event::Start(origin, _) => {
                self.warn(Warning::DuplicateStart, "A second run.start was ignored: one process is one run", origin.id);
            }
            Event::Input(origin, input) => {
                if self.is_for_us(&origin) {
                    self.input(origin.id, input);
                }
            }
            Event::Cancel(origin, reason, source) => {
                if source == Source::Signal {
                    self.signals += 1;
                }
                if self.is_for_us(&origin) {
                    self.cancel(origin.id, reason, source);
                }
            }
            Event::Malformed(origin) => {
                self.warn(Warning::MalformedMessage, "A line on stdin was ignored: it is not a message", origin.id);
            }
            Event::Unsupported(origin) => self.stop(Outcome::Failed(unsupported()), origin.id),
            Event::UnknownType(origin) => self.warn(Warning::UnknownType, UNKNOWN_TYPE, origin.id),
            Event::InputEnded => self.input_ended(),
            Event::Refused(failure) => self.stop(Outcome::Failed(failure), None),
            Event::OutputLost => {
                let failure = Failure::new(Code::InternalError, "stdout is closed: nothing can be delivered.");
                self.stop(Outcome::Failed(failure), None);
            }
            Event::Spawned => self.spawned(),
            Event::SpawnFailed(failure) => return Some(self.decided().unwrap_or(Outcome::Failed(failure))),
            Event::Line(line) => self.line(line),
            Event::Gone(gone) => return Some(self.gone(gone)),
            Event::Tick => self.tick(),
        }
        None
    }

    fn decided(&mut self) -> Option<Outcome> {
        self.ending.take().map(|ending| ending.outcome)
    }

    // Frames.

    fn emit(&mut self, body: Body, reply_to: Option<String>) {
        self.clocks.frame = self.now;
        self.out.push(Effect::Emit { body: Box::new(body), reply_to, measure: None });
    }

    fn progress(&mut self, progress: Progress, reply_to: Option<String>) {
        if self.settings.progress >= progress.about.level() {
            self.emit(Body::Progress(Box::new(progress)), reply_to);
        }
    }

    fn tell(&mut self, about: About, text: impl Into<Text>, reply_to: Option<String>) {
        self.progress(Progress { text: text.into(), parent_call_id: None, about, truncated: false }, reply_to);
    }

    fn warn(&mut self, warning: Warning, text: &str, reply_to: Option<String>) {
        self.tell(About::Warning(warning), text, reply_to);
    }

    fn status(&mut self, status: Status, text: &str, reply_to: Option<String>) {
        if self.status != Some(status) {
            self.status = Some(status);
            self.tell(About::Status(status), text, reply_to);
        }
    }

    /// A text for people, with paths inside the working directory made short.
    fn short(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.settings.cwd.to_string_lossy()), "")
    }

    // The orchestrator.

    fn is_for_us(&mut self, origin: &Origin) -> bool {
        let ours = origin.run_id.as_ref().is_none_or(|id| *id == self.run_id);
        if !ours {
            let text = "A message was ignored: it names another run";
            self.warn(Warning::UnknownRun, text, origin.id.clone());
        }
        ours
    }

    fn input(&mut self, reply_to: Option<String>, input: Input) {
        let Some(id) = input.question_id else {
            let text = "An answer was ignored: `question_id` must be a string";
            return self.warn(Warning::InvalidAnswer, text, reply_to);
        };
        let Some(answered) = input.answered else {
            let text = "An answer was ignored: give exactly one of `value`, `value_from` and `declined: true`";
            return self.warn(Warning::InvalidAnswer, text, reply_to);
        };
        if self.book.find(&id).is_some_and(|(_, member)| is_secret(&member.shown.kind, &answered)) {
            self.keep_secret(&answered, &reply_to);
        }
        match self.book.take(self.now, &id, &answered, input.message, &self.settings) {
            Taken::Unknown => self.warn(Warning::UnknownQuestion, UNKNOWN_QUESTION, reply_to),
            Taken::Again(id, why) => self.ask(&id, Some(why), reply_to),
            Taken::Resolved(resolved) => self.resolved(vec![*resolved], false, Absence::Timeout, reply_to),
        }
    }

    /// A secret answer is a secret before anything is done with it.
    fn keep_secret(&mut self, answered: &Answered, reply_to: &Option<String>) {
        let (Answered::Value(raw, _) | Answered::Kept(raw, _)) = answered else { return };
        let Some(text) = crate::protocol::json::string(raw) else { return };
        if !self.redactor.add(&text) {
            let what = "The secret answer is too short or too plain to be redacted";
            self.warn(Warning::ShortSecret, what, reply_to.clone());
        }
    }

    fn cancel(&mut self, reply_to: Option<String>, reason: Option<String>, source: Source) {
        if self.signals > 1 {
            return self.kill(source);
        }
        if self.ending.is_some() {
            // The outcome stands; only the end is hurried.
            return self.advance();
        }
        self.stop(Outcome::Cancelled { reason: reason.map(Text::from), source }, reply_to);
    }

    fn input_ended(&mut self) {
        if self.input_closed {
            return;
        }
        self.input_closed = true;
        if self.on_eof == OnEof::Cancel {
            return self.cancel(None, None, Source::Orchestrator);
        }
        self.nobody(Absence::InputClosed);
    }

    // Questions.

    fn open(&mut self, key: AskKey, asks: Vec<Ask>) {
        if self.ending.is_some() {
            // Nobody is asked any more; the agent must still not wait for ever.
            let mut turn = Turn::default();
            self.driver.answer(&key, &vec![Reply::Declined(None); asks.len()], &mut turn);
            return self.turn(turn);
        }
        let group = self.book.add(self.now, key, asks, &self.settings, &self.redactor);
        let resolved = self.book.settle(&group, &self.settings);
        let waiting: Vec<String> =
            self.book.open().filter(|(g, _)| g.id == group).map(|(_, member)| member.id.clone()).collect();
        self.resolved(resolved, false, Absence::Headless, None);
        if self.ending.is_some() || waiting.is_empty() {
            return;
        }
        self.status(Status::WaitingForInput, "Waiting for an answer", None);
        for id in waiting {
            self.ask(&id, None, None);
        }
        if self.input_closed {
            self.nobody(Absence::InputClosed);
        }
    }

    fn ask(&mut self, id: &str, error: Option<String>, reply_to: Option<String>) {
        let Some((group, member)) = self.book.find(id) else { return };
        let mut left = self.book.left(group, self.now);
        if let Some(end) = self.clocks.run {
            left = left.min(end.saturating_sub(self.now));
        }
        let mut ask = member.shown.clone();
        if ask.subject.is_some() {
            ask.text = self.short(&ask.text);
        }
        let question = Question {
            question_id: member.id.clone(),
            group_id: group.id.clone(),
            group_size: group.members.len(),
            timeout_s: Seconds(left.as_millis() as f64 / 1000.0),
            attempt: member.attempt,
            error: error.map(Text::from),
            subject: ask.subject.as_ref().map(|subject| self.subject(subject)),
            ask,
            truncated: false,
        };
        self.emit(Body::Question(Box::new(question)), reply_to);
    }

    fn subject(&self, subject: &Subject) -> SubjectFrame {
        let place = |location: &crate::protocol::question::Location| Place {
            path: Text(relative(&self.settings.cwd, Path::new(&location.path))),
            line: location.line,
        };
        SubjectFrame {
            category: subject.category,
            title: Text(self.short(&subject.title)),
            locations: subject.locations.iter().map(place).collect(),
            detail: Text(subject.detail.clone()),
        }
    }

    /// Nobody answers what is open.
    fn nobody(&mut self, absence: Absence) {
        let (resolved, fails) = self.book.nobody(self.now, absence, &self.settings);
        self.resolved(resolved, fails, absence, None);
    }

    /// Says how questions were resolved, hands complete groups to the driver, and ends the run if that is what came
    /// of it.
    fn resolved(&mut self, resolved: Vec<Resolved>, fails: bool, absence: Absence, reply_to: Option<String>) {
        let some = !resolved.is_empty();
        for one in resolved {
            let permission = one.ask.subject.as_ref().map(|subject| (self.subject(subject), one.value));
            let about = About::Resolved {
                question_id: one.question_id,
                resolution: one.resolution,
                used_default: one.used_default,
                permission,
            };
            let text = format!("{}: {}", self.short(&one.ask.text), one.resolution.word().replace('_', " "));
            self.tell(about, text, reply_to.clone());
        }
        if fails {
            let failure = match absence {
                Absence::Timeout => Failure::new(
                    Code::QuestionTimeout,
                    "A question was not answered in time: answer it, or raise question_timeout_s.",
                ),
                _ => Failure::new(
                    Code::InputClosed,
                    "stdin is closed and a question needs an answer: keep stdin open, or run headless.",
                ),
            };
            return self.stop(Outcome::Failed(failure), None);
        }
        if some {
            self.clocks.active = self.now;
            self.answer_complete();
            self.running_again();
        }
    }

    fn answer_complete(&mut self) {
        for (key, replies) in self.book.completed() {
            if key == AskKey(MARKERS.into()) {
                self.further_turn(&replies);
                continue;
            }
            let mut turn = Turn::default();
            self.driver.answer(&key, &replies, &mut turn);
            self.turn(turn);
        }
    }

    /// The answers to question markers go back as a further turn of the same session.
    fn further_turn(&mut self, replies: &[Reply]) {
        let prompt = markers::prompt(&std::mem::take(&mut self.marked.texts), replies);
        let mut turn = Turn::default();
        self.driver.follow_up(&prompt, &mut turn);
        self.turn(turn);
    }

    /// A turn ended well. Whether its question markers keep the run going.
    fn asks_markers(&mut self) -> bool {
        let asks = std::mem::take(&mut self.marked.asks);
        if asks.is_empty() || (!self.settings.interactive && self.marked.turns > 0) {
            return false;
        }
        self.marked.turns += 1;
        if self.marked.turns > MARKER_TURNS {
            let message = "The agent asked in 20 further turns and did not come to an end: make the task clearer.";
            self.ending =
                Some(Ending::after_result(self.now, Outcome::Failed(Failure::new(Code::LimitReached, message))));
            self.finish_agent();
            return true;
        }
        self.marked.texts = asks.iter().map(|ask| ask.text.clone()).collect();
        self.open(AskKey(MARKERS.into()), asks);
        true
    }

    fn running_again(&mut self) {
        if self.status == Some(Status::WaitingForInput) && !self.book.is_waiting() && self.ending.is_none() {
            self.status(Status::Running, "The agent works", None);
        }
    }

    fn withdraw(&mut self, key: Option<&AskKey>) {
        let resolved = self.book.withdraw(key);
        self.resolved(resolved, false, Absence::Timeout, None);
    }

    // The agent.

    fn spawned(&mut self) {
        self.clocks.active = self.now;
        self.clocks.run = self.settings.timeout.map(|limit| self.now + limit.duration());
        if !self.alive {
            self.clocks.start = self.settings.start_timeout.map(|limit| self.now + limit.duration());
        }
    }

    fn line(&mut self, line: agent::Line<'_>) {
        self.clocks.active = self.now;
        self.clocks.start = None;
        self.alive = true;
        if self.status.is_none() && self.ending.is_none() {
            self.status(Status::Running, "The agent works", None);
        }
        let mut turn = Turn::default();
        self.driver.line(line, &mut turn);
        self.turn(turn);
    }

    /// Carries out what a driver wants.
    fn turn(&mut self, turn: Turn) {
        let Turn { events, send, close_input } = turn;
        self.out.extend(send.into_iter().map(Effect::ToAgent));
        if close_input {
            self.out.push(Effect::CloseAgentInput);
        }
        for event in events {
            self.happened(event);
        }
    }

    fn happened(&mut self, event: agent::Event) {
        if self.status == Some(Status::Retrying) && !matches!(event, agent::Event::Retrying { .. }) {
            self.status(Status::Running, "The agent works", None);
        }
        match event {
            agent::Event::Session { id, version, model } => self.session(id, version, model),
            agent::Event::Text { message, piece, done, parent } => {
                let piece = if parent.is_none() { self.own_words(&message, piece, done) } else { piece };
                self.say(&message, &piece, done, parent.as_deref(), false);
            }
            agent::Event::Reasoning { message, piece, done, parent } => {
                self.say(&message, &piece, done, parent.as_deref(), true);
            }
            agent::Event::Withdrawn { message } => {
                if let Some(progress) = self.messages.withdraw(&message, self.settings.progress) {
                    self.progress(progress, None);
                }
            }
            agent::Event::Tool { call, category, title, locations, parent } => {
                let places = places(&self.settings.cwd, &locations);
                let title = self.short(&title);
                let begun = self.tools.begin(self.now, call, category, title, places, parent.as_deref());
                begun.into_iter().for_each(|progress| self.progress(progress, None));
            }
            agent::Event::ToolOver { call, state, output } => {
                let full = self.settings.progress == crate::protocol::words::Level::Full;
                let output = output.as_deref().filter(|_| full);
                let over = self.tools.end(&call, state, output, &self.redactor);
                over.into_iter().for_each(|progress| self.progress(progress, None));
            }
            agent::Event::Plan(entries) => {
                let entries: Vec<PlanEntry> =
                    entries.into_iter().map(|(text, status)| PlanEntry { text: Text(text), status }).collect();
                self.tell(About::Plan(entries), "The plan changed", None);
            }
            agent::Event::Usage(more) => self.used(more),
            agent::Event::Changed { path, action } => self.changed(&path, action),
            agent::Event::Ask { key, asks } => self.open(key, asks),
            agent::Event::AskWithdrawn { key } => {
                self.withdraw(Some(&key));
                self.running_again();
            }
            agent::Event::Retrying { text } => {
                self.status(Status::Retrying, "The agent tries again", None);
                self.warn(Warning::AgentRetrying, &text, None);
            }
            agent::Event::Warning(warning, text) => self.warn(warning, &text, None),
            agent::Event::Unparsed => {
                let text = "A line of the agent's could not be read and was left out";
                self.warn(Warning::AgentOutputUnparsed, text, None);
            }
            agent::Event::TurnOver(over) => self.turn_over(over),
        }
    }

    fn session(&mut self, id: Option<String>, version: Option<String>, model: Option<String>) {
        self.session_id.clone_from(&id);
        let about = About::Session {
            session_id: id,
            agent_version: version.map(Text),
            model: model.map(Text),
            capabilities: Some(self.driver.capabilities()),
        };
        self.tell(about, "The agent's session is open", None);
    }

    /// What the agent itself says, without its question markers.
    fn own_words(&mut self, message: &str, piece: String, done: bool) -> String {
        self.finder.piece(&piece, done);
        if !self.settings.question_markers {
            return piece;
        }
        let cutter = self.marked.cutters.entry(message.to_owned()).or_default();
        let text = cutter.push(&piece, done, &mut self.marked.asks);
        if done {
            self.marked.cutters.remove(message);
        }
        text
    }

    fn say(&mut self, key: &str, text: &str, done: bool, parent: Option<&str>, reasoning: bool) {
        let parent = parent.and_then(|parent| self.tools.id(parent));
        let piece = Piece { key, text, done, reasoning, parent };
        let frame_bytes = self.settings.max_frame_bytes;
        let said = self.messages.piece(piece, self.settings.progress, frame_bytes, &self.redactor);
        said.into_iter().for_each(|progress| self.progress(progress, None));
    }

    fn used(&mut self, more: Usage) {
        add_usage(&mut self.usage, more);
        let count = |n: Option<u64>| n.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
        let text = format!("{} tokens in, {} out", count(self.usage.input_tokens), count(self.usage.output_tokens));
        self.tell(About::Usage(self.usage), text, None);
    }

    fn changed(&mut self, path: &Path, action: Action) {
        let shown = relative(&self.settings.cwd, path);
        let Some(artifact_id) = self.artifacts.add(&shown, action) else { return };
        self.clocks.frame = self.now;
        let artifact =
            Artifact { artifact_id, path: Text(shown), action, kind: "file", size_bytes: None, truncated: false };
        let measure = (action != Action::Deleted).then(|| absolute(&self.settings.cwd, path));
        self.out.push(Effect::Emit { body: Box::new(Body::Artifact(Box::new(artifact))), reply_to: None, measure });
    }

    fn turn_over(&mut self, over: TurnOver) {
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
        self.ending = Some(Ending::after_result(self.now, outcome));
        self.finish_agent();
    }

    fn finish_agent(&mut self) {
        let mut turn = Turn::default();
        self.driver.finish(&mut turn);
        self.turn(turn);
    }

    fn outcome(&mut self, over: TurnOver) -> Outcome {
        match over {
            TurnOver::Completed { text, structured, stop } => {
                // A result repeats the last message; where an agent has only the result, the marker is in it alone.
                self.finder.piece(&text, true);
                let text = if self.settings.question_markers { markers::without(&text) } else { text };
                let message_id = self
                    .messages
                    .id_of(&text)
                    .filter(|_| self.settings.progress != crate::protocol::words::Level::Minimal);
                Outcome::Completed {
                    message_id,
                    text: Text(text),
                    text_cut: false,
                    structured_output: structured.map(Json),
                    stop_reason: stop,
                }
            }
            TurnOver::Failed(failure) => Outcome::Failed(failure),
            TurnOver::Interrupted => {
                let message = "The agent's turn was interrupted, but not by this run: start it again.";
                Outcome::Failed(Failure::new(Code::AgentError, message))
            }
        }
    }

    // The end.

    /// Ends the run against the agent's will. The first reason is kept.
    fn stop(&mut self, outcome: Outcome, reply_to: Option<String>) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(Ending::stop(self.now, outcome));
        self.withdraw(None);
        if matches!(self.ending, Some(Ending { outcome: Outcome::Cancelled { .. }, .. })) {
            self.status(Status::Cancelling, "Cancelling", reply_to);
        }
        let mut turn = Turn::default();
        self.driver.interrupt(&mut turn);
        self.turn(turn);
    }

    fn kill(&mut self, source: Source) {
        if self.ending.is_none() {
            self.stop(Outcome::Cancelled { reason: None, source }, None);
        }
        if let Some(ending) = &mut self.ending {
            ending.kill();
        }
        self.out.push(Effect::Stop(Method::Kill));
    }

    fn advance(&mut self) {
        let Some(ending) = &mut self.ending else { return };
        match ending.advance(self.now) {
            Stage::Interrupted => {}
            Stage::Leaving => self.finish_agent(),
            Stage::Terminated => self.out.push(Effect::Stop(Method::Terminate)),
            Stage::Killed => self.out.push(Effect::Stop(Method::Kill)),
        }
    }

    fn gone(&mut self, gone: Gone) -> Outcome {
        for key in self.messages.unfinished() {
            self.say(&key, "", true, None, false);
        }
        self.exit = Some(gone.exit);
        let killed = self.ending.as_ref().is_some_and(|e| matches!(e.stage, Stage::Terminated | Stage::Killed));
        let outcome = match self.decided() {
            Some(outcome) => outcome,
            None => {
                let over = self.driver.exited(gone.exit, self.alive, &gone.stderr_tail);
                let mut outcome = self.outcome(over);
                if let (Outcome::Failed(failure), false, false) =
                    (&mut outcome, self.alive, gone.stderr_tail.is_empty())
                {
                    failure.stderr_tail = Some(gone.stderr_tail);
                }
                outcome
            }
        };
        self.withdraw(None);
        if gone.leaked && !killed {
            self.warn(Warning::LeakedProcess, "A process of the agent's outlived it and was stopped", None);
        }
        if matches!(&outcome, Outcome::Completed { text, .. } if text.0.trim().is_empty()) {
            self.warn(Warning::EmptyResult, "The agent completed without any text", None);
        }
        outcome
    }

    /// The terminal body.
    pub(super) fn terminal(&mut self, outcome: Outcome) -> Terminal {
        let (artifacts, truncated) = self.artifacts.list();
        Terminal {
            outcome,
            session_id: self.session_id.take(),
            artifacts,
            usage: self.usage,
            duration_ms: u64::try_from((self.now.saturating_sub(self.started)).as_millis()).unwrap_or(u64::MAX),
            metadata: self.settings.metadata.take().map(Json),
            completion_detected: self.finder.found,
            agent_exit: self.exit,
            truncated,
        }
    }

    // The clock.

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let heartbeat = self.heartbeat_at();
        let ending = self.ending.as_ref().map(|ending| ending.due);
        let all = match ending {
            Some(due) => [due, heartbeat, None, None, None],
            None => [heartbeat, self.clocks.run, self.clocks.start, self.idle_at(), self.book.deadline()],
        };
        all.into_iter().flatten().min()
    }

    fn heartbeat_at(&self) -> Option<Duration> {
        let every = self.settings.heartbeat.duration();
        (!every.is_zero()).then(|| self.clocks.frame + every)
    }

    /// When the agent has been silent for too long. The clock stands while an answer is awaited, and while a tool
    /// runs, but for that only so long.
    fn idle_at(&self) -> Option<Duration> {
        let limit = self.settings.idle_timeout.duration();
        if limit.is_zero() || self.clocks.active.is_zero() || self.book.is_waiting() {
            return None;
        }
        let held = self.tools.running_since().map(|since| since + self.settings.tool_timeout.duration());
        Some(self.clocks.active.max(held.unwrap_or_default()) + limit)
    }

    fn tick(&mut self) {
        let now = self.now;
        let due = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        if due(self.ending.as_ref().and_then(|ending| ending.due)) {
            self.advance();
        }
        if self.ending.is_none() {
            let late = [
                (self.clocks.run, Code::Timeout, "The run took longer than timeout_s: raise it or split the task."),
                (
                    self.clocks.start,
                    Code::StartTimeout,
                    "The agent gave no sign of life within start_timeout_s: check its installation.",
                ),
                (
                    self.idle_at(),
                    Code::IdleTimeout,
                    "The agent was silent for longer than idle_timeout_s: raise it, or see what the agent waits for.",
                ),
            ];
            let first = late.into_iter().filter(|(at, ..)| due(*at)).min_by_key(|(at, ..)| *at);
            if let Some((_, code, message)) = first {
                return self.stop(Outcome::Failed(Failure::new(code, message)), None);
            }
        }
        if self.ending.is_none() && due(self.book.deadline()) {
            self.nobody(Absence::Timeout);
        }
        if due(self.heartbeat_at()) {
            self.heartbeat();
        }
    }

    fn heartbeat(&mut self) {
        let idle = self.now.saturating_sub(self.clocks.active);
        let waiting_on = if self.book.is_waiting() { WaitingOn::Input } else { WaitingOn::Agent };
        let text = match waiting_on {
            WaitingOn::Input => "Waiting for an answer",
            WaitingOn::Agent => "Waiting for the agent",
        };
        let idle_s = Seconds((idle.as_millis() as f64) / 1000.0);
        self.tell(About::Heartbeat { idle_s, waiting_on }, text, None);
        // Also where nothing was emitted, the next one is a whole period away.
        self.clocks.frame = self.now;
    }
}

/// Whether an answer must not be seen: any to a secret, and free text that was kept off the pipe.
fn is_secret(kind: &Kind, answered: &Answered) -> bool {
    match (kind, answered) {
        (Kind::Secret, _) => true,
        (Kind::Select { choices, .. }, Answered::Kept(raw, _)) => {
            let text = crate::protocol::json::string(raw).unwrap_or_default();
            !choices.as_slice().iter().any(|choice| choice.value == text || choice.label.eq_ignore_ascii_case(&text))
        }
        (Kind::Text | Kind::FilePath, Answered::Kept(..)) => true,
        _ => false,
    }
}

/// The failure of a message of another major version.
pub(super) fn unsupported() -> Failure {
    Failure::new(Code::UnsupportedVersion, "This program speaks version 1 of the protocol: send \"v\":\"1\".")
}
