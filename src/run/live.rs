//! A run that has an agent: what the agent's events, the orchestrator's messages and the clock make of it.

use super::book::{Absence, Asker, Book};
use super::markers::Cutter;
use super::messages::{Finder, Messages};
use super::stop::Ending;
use super::work::{Artifacts, Tools};
use super::{Effect, Event, Ids, OnEof, Origin, Refusal, Start};
use crate::agent::{Driver, Launch, Turn};
use crate::failure::{Code, Failure};
use crate::protocol::outbound::{About, AgentExit, Body, Json, Outcome, Progress, Started, Text, Unattended, Usage};
use crate::protocol::question::Ask;
use crate::protocol::request::Settings;
use crate::protocol::words::{Source, Status, Warning};
use crate::redact::Redactor;
use std::collections::HashMap;
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
    /// What nobody answered so far.
    pub(super) unattended: Unattended,
    pub(super) run_id: String,
    pub(super) on_eof: OnEof,
    pub(super) driver: Box<dyn Driver>,
    pub(super) messages: Messages,
    pub(super) tools: Tools,
    pub(super) artifacts: Artifacts,
    /// Whether the completion marker was in what the agent said.
    pub(super) completion: bool,
    pub(super) marked: Marked,
    pub(super) usage: Usage,
    pub(super) session_id: Option<String>,
    /// The model that the agent says it uses.
    pub(super) model: Option<String>,
    pub(super) status: Option<Status>,
    /// Whether the agent's last line says more than was taken from it.
    pub(super) more: bool,
    pub(super) input_closed: bool,
    pub(super) started: Duration,
    pub(super) clocks: Clocks,
    /// Whether the agent gave a sign of life.
    pub(super) alive: bool,
    /// Whether the agent was told that a question which needs an answer was declined, and has done nothing since.
    pub(super) declined: bool,
    pub(super) process: Process,
    /// How the last process ended.
    pub(super) exit: Option<AgentExit>,
    pub(super) ending: Option<Ending>,
    pub(super) signals: u32,
}

/// The agent's process. An agent may have one a turn; at most one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    /// It is to be started.
    Due,
    /// It runs.
    Running,
    /// It is gone, and what it changed is being looked for: only heartbeats are due.
    Drained,
    /// It is gone. The run is over, or it waits for answers that begin another turn.
    Gone,
}

/// What question markers have brought up.
#[derive(Default)]
pub(super) struct Marked {
    /// What is heard of the messages that are not whole yet.
    pub(super) heard: HashMap<String, Heard>,
    /// The questions of this turn.
    pub(super) asks: Vec<Ask>,
    /// The texts of those that were asked.
    pub(super) texts: Vec<String>,
    /// Further turns so far.
    pub(super) turns: u32,
}

/// What is heard of one message of the agent's own: it counts when the message is whole.
pub(super) struct Heard {
    pub(super) cutter: Cutter,
    pub(super) asks: Vec<Ask>,
    pub(super) finder: Finder,
}

pub(super) struct Clocks {
    /// The whole run's limit, once the agent runs.
    pub(super) run: Option<Duration>,
    /// The limit for the first sign of life; none once there was one.
    pub(super) start: Option<Duration>,
    /// The agent's last sign of life, or the last answer it waited for.
    pub(super) active: Duration,
    /// Our last frame.
    pub(super) frame: Duration,
}

impl Live {
    /// The first effect is run.started.
    pub(super) fn begin(
        now: Duration,
        (random, ids): (&str, Ids),
        on_eof: OnEof,
        run_id: String,
        reply_to: Option<String>,
        start: Start,
    ) -> Result<Box<Live>, Box<Refusal>> {
        let Start { mut settings, display_name, mut driver, redactor, short_secrets, asking_failed } = start;
        let mut turn = Turn::default();
        let launch = match driver.launch(&settings, &mut turn) {
            Ok(launch) => launch,
            Err(failure) => {
                let metadata = settings.metadata.map(Json);
                return Err(Box::new(Refusal { failure, metadata, redactor: Some(redactor) }));
            }
        };
        settings.start_timeout_s = settings.start_timeout_s.or(launch.start_timeout);
        let started = Started {
            agent: settings.agent.clone(),
            display_name,
            settings: Box::new(settings.clone()),
            capabilities: driver.capabilities(),
            metadata: settings.metadata.clone().map(Json),
            cwd: Text(settings.cwd.to_string_lossy().into_owned()),
            agent_args: settings.agent_args.iter().map(|arg| Text::from(arg.as_str())).collect(),
            truncated: false,
        };
        let mut live = Box::new(Live {
            now,
            out: Vec::new(),
            book: Book::new(random, ids.questions, ids.groups),
            unattended: Unattended::default(),
            completion: false,
            clocks: Clocks { run: None, start: None, active: now, frame: now },
            marked: Marked::default(),
            settings,
            redactor,
            run_id,
            on_eof,
            driver,
            messages: Messages::after(ids.messages),
            tools: Tools::after(ids.calls),
            artifacts: Artifacts::after(ids.artifacts),
            usage: Usage::default(),
            session_id: None,
            model: None,
            status: None,
            more: false,
            input_closed: false,
            started: now,
            alive: false,
            declined: false,
            process: Process::Due,
            exit: None,
            ending: None,
            signals: 0,
        });
        live.emit(Body::Started(Box::new(started)), reply_to.clone());
        if short_secrets > 0 {
            live.warn(Warning::ShortSecret, "A secret is too short or too plain to be redacted", reply_to);
        }
        if asking_failed {
            let text = "The model is not offered the tool ask_user: no socket could be made for temporary files";
            live.warn(Warning::UnsupportedOption, text, None);
        }
        live.turn(turn);
        live.status(Status::Starting, "The agent is being started", None);
        live.start(Box::new(launch));
        Ok(live)
    }

    /// Has a process of the agent's started.
    pub(super) fn start(&mut self, launch: Box<Launch>) {
        self.process = Process::Due;
        self.out.push(Effect::Spawn(launch, Box::new(self.settings.clone())));
    }

    /// The ids given so far.
    pub(super) fn ids(&self) -> Ids {
        let (questions, groups) = self.book.counts();
        let (messages, calls) = (self.messages.count(), self.tools.count());
        Ids { questions, groups, messages, calls, artifacts: self.artifacts.count() }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.stopped)
    }

    /// Takes one event. An end: the run is over.
    pub(super) fn step(&mut self, event: Event<'_>) -> Option<Ending> {
        self.take(event);
        let over = self.ending.is_some() && self.process == Process::Gone;
        over.then(|| self.conclude()).flatten()
    }

    fn take(&mut self, event: Event<'_>) {
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
                if source != Source::Orchestrator {
                    self.signals += 1;
                }
                if self.is_for_us(&origin) {
                    self.cancel(origin.id, reason, source);
                }
            }
            Event::Malformed(origin) => {
                self.warn(Warning::MalformedMessage, "A line on stdin was ignored: it is not a message", origin.id);
            }
            Event::Unsupported(origin) => self.unsupported(origin.id),
            Event::UnknownType(origin) => self.warn(Warning::UnknownType, UNKNOWN_TYPE, origin.id),
            Event::InputEnded => self.input_ended(),
            Event::Refused(failure) => self.stop(Outcome::Failed(failure), None),
            Event::OutputLost => {
                let failure = Failure::new(Code::InternalError, "stdout is closed: nothing can be delivered.");
                self.stop(Outcome::Failed(failure), None);
            }
            Event::Spawned => self.spawned(),
            Event::SpawnFailed(failure) => {
                self.process = Process::Gone;
                self.decide(Outcome::Failed(failure));
            }
            Event::Line(line) => self.line(line),
            Event::More => self.more(),
            Event::ToolAsk { call, asks } => {
                self.clocks.active = self.now;
                self.open(Asker::Tool(call), asks);
            }
            Event::ToolAskWithdrawn { call } => {
                self.clocks.active = self.now;
                self.withdraw(Some(&Asker::Tool(call)));
                self.running_again();
            }
            Event::Ignored(count) => {
                let text = format!("{count} messages were ignored while stdout was not read");
                self.warn(Warning::MalformedMessage, &text, None);
            }
            Event::Warn(origin, warning, text) => self.warn(warning, &text, origin.id),
            Event::NotRead => {
                self.clocks.active = self.now;
                self.clocks.start = None;
            }
            Event::Drained => self.drained(),
            Event::Gone(gone) => self.gone(gone),
            Event::Tick => self.tick(),
        }
    }

    /// The outcome, unless it was decided before.
    pub(super) fn decide(&mut self, outcome: Outcome) {
        self.ending.get_or_insert_with(|| Ending::after_result(self.now, outcome, self.driver.leaves()));
    }

    // Frames.

    pub(super) fn emit(&mut self, body: Body, reply_to: Option<String>) {
        self.clocks.frame = self.now;
        self.out.push(Effect::Emit { body: Box::new(body), reply_to, measure: None });
    }

    pub(super) fn progress(&mut self, progress: Progress, reply_to: Option<String>) {
        if self.settings.progress >= progress.about.level() {
            self.emit(Body::Progress(Box::new(progress)), reply_to);
        }
    }

    pub(super) fn tell(&mut self, about: About, text: impl Into<Text>, reply_to: Option<String>) {
        self.progress(Progress { text: text.into(), parent_call_id: None, about, truncated: false }, reply_to);
    }

    pub(super) fn warn(&mut self, warning: Warning, text: &str, reply_to: Option<String>) {
        self.tell(About::Warning(warning), text, reply_to);
    }

    pub(super) fn status(&mut self, status: Status, text: &str, reply_to: Option<String>) {
        if self.status != Some(status) {
            self.status = Some(status);
            self.tell(About::Status(status), text, reply_to);
        }
    }

    /// A text for people: redacted, then with short paths, then cut.
    pub(super) fn short(&self, text: &str) -> String {
        self.cut(&self.redactor.redact(text))
    }

    /// The same for the first line of a text.
    pub(super) fn title(&self, text: &str) -> String {
        let clean = self.redactor.redact(text);
        let line = clean.split('\n').map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        self.cut(&line.replace('\r', " "))
    }

    fn cut(&self, text: &str) -> String {
        let mut short = shorten(text, &self.settings.cwd.to_string_lossy());
        if let Some((cut, _)) = short.char_indices().nth(TITLE_CHARS) {
            short.truncate(cut);
            short.push('…');
        }
        short
    }

    // The orchestrator.

    pub(super) fn is_for_us(&mut self, origin: &Origin) -> bool {
        let ours = origin.run_id.as_ref().is_none_or(|id| *id == self.run_id);
        if !ours {
            let text = "A message was ignored: it names another run";
            self.warn(Warning::UnknownRun, text, origin.id.clone());
        }
        ours
    }

    pub(super) fn cancel(&mut self, reply_to: Option<String>, reason: Option<String>, source: Source) {
        self.out.push(Effect::Hurry);
        if self.signals > 1 {
            return self.kill(source);
        }
        if self.ending.is_some() {
            // The outcome stands; only the end is hurried.
            return self.advance();
        }
        self.stop(Outcome::Cancelled { reason: reason.map(Text::from), source }, reply_to);
    }

    pub(super) fn input_ended(&mut self) {
        if self.input_closed {
            return;
        }
        self.input_closed = true;
        if self.on_eof == OnEof::Cancel {
            return self.cancel(None, None, Source::Orchestrator);
        }
        self.nobody(Absence::InputClosed);
    }
}

/// The longest title, in characters.
const TITLE_CHARS: usize = 120;

/// Takes the working directory off the paths in a text that begin with it.
fn shorten(text: &str, cwd: &str) -> String {
    let folder = format!("{}/", cwd.trim_end_matches('/'));
    if folder == "/" {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&folder) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        // `/a/b/` is not the working directory in `/x/a/b/`.
        let inside = out.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~'));
        out.push_str(if inside { &folder } else { "" });
        rest = &found[folder.len()..];
    }
    out + rest
}

/// The failure of a message of another major version.
pub(super) fn unsupported() -> Failure {
    Failure::new(Code::UnsupportedVersion, "This program speaks version 1 of the protocol: send \"v\":\"1\".")
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn only_the_working_directory_itself_is_taken_off() {
        for (text, cwd, short) in [
            ("Write: /w/p/a.txt", "/w/p", "Write: a.txt"),
            ("cat /w/p/a '/w/p/b' >/w/p/c", "/w/p", "cat a 'b' >c"),
            ("Write: /var/tmp/x", "/tmp", "Write: /var/tmp/x"),
            ("get https://example.com/a", "/", "get https://example.com/a"),
        ] {
            assert_eq!(shorten(text, cwd), short);
        }
    }
}
