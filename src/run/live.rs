//! A run with an agent: its state, and the handling of each event.

use super::book::{Asker, Book};
use super::clock::Clocks;
use super::frames;
use super::kept::Kept;
use super::marked::Marked;
use super::messages::Messages;
use super::orchestrator::UNKNOWN_TYPE;
use super::process::ProcessState;
use super::stop::Ending;
use super::work::{Artifacts, Tools};
use super::{Effect, Event, Ids, Late, OnEof, Refusal, Start};
use crate::agent::{AgentEvent, Driver, Turn};
use crate::failure::{Code, Failure};
use crate::protocol::outbound::{AgentExit, Body, Json, Outcome, Progress, Started, Text, Unattended, Usage};
use crate::protocol::request::Settings;
use crate::protocol::words::{Source, Status, Warning};
use crate::redact::Redactor;
use std::time::Duration;

/// The state of a run with an agent.
pub(super) struct Live {
    pub(super) now: Duration,
    /// The effects of the current event.
    pub(super) out: Vec<Effect>,
    /// The memory of the last progress.
    pub(super) spare: Option<Box<Progress>>,
    pub(super) settings: Settings,
    /// The working directory, as it stands in texts before a relative path.
    pub(super) folder: String,
    pub(super) redactor: Redactor,
    pub(super) run_id: String,
    pub(super) on_eof: OnEof,
    pub(super) status: Option<Status>,
    pub(super) clocks: Clocks,
    pub(super) agent: AgentSide,
    pub(super) work: Work,
    pub(super) questions: Questions,
    pub(super) end: End,
}

/// The agent and its process.
pub(super) struct AgentSide {
    pub(super) driver: Box<dyn Driver>,
    pub(super) process: ProcessState,
    /// The exit of the last process.
    pub(super) exit: Option<AgentExit>,
    /// Whether the agent has written anything.
    pub(super) alive: bool,
    /// Whether a part of the agent's last line remains.
    pub(super) more: bool,
    /// Empty between two lines. Kept to reuse its memory.
    pub(super) events: Vec<AgentEvent>,
    /// Whether a recording needs the pieces of messages.
    pub(super) recorded: bool,
}

impl AgentSide {
    fn before_spawn(driver: Box<dyn Driver>) -> AgentSide {
        AgentSide {
            driver,
            process: ProcessState::Due,
            exit: None,
            alive: false,
            more: false,
            events: Vec::new(),
            recorded: false,
        }
    }
}

/// The agent's work so far.
pub(super) struct Work {
    pub(super) messages: Messages,
    pub(super) tools: Tools,
    pub(super) artifacts: Artifacts,
    /// Whether the agent wrote the completion marker.
    pub(super) completion: bool,
    pub(super) usage: Usage,
    pub(super) session_id: Option<String>,
    /// The model that the agent reports.
    pub(super) model: Option<Text>,
}

/// The questions of the run.
pub(super) struct Questions {
    pub(super) book: Book,
    /// The questions that nobody answered.
    pub(super) unattended: Unattended,
    pub(super) marked: Marked,
    pub(super) kept: Kept,
    /// Whether a required question was declined and the agent has done nothing since.
    pub(super) declined: bool,
    pub(super) input_closed: bool,
}

/// The end of the run.
#[derive(Default)]
pub(super) struct End {
    /// Set once the end is decided.
    pub(super) ending: Option<Ending>,
    /// The number of signals, or requests of a person, to end the run.
    pub(super) signals: u32,
    /// A cancel after the outcome was decided.
    pub(super) late: Option<Late>,
}

/// The body of run.started.
fn started(display_name: String, settings: &Settings, driver: &dyn Driver) -> Started {
    Started {
        agent: settings.agent.clone(),
        display_name: display_name.into(),
        settings: Box::new(settings.clone()),
        capabilities: driver.capabilities(),
        metadata: settings.metadata.clone().map(Json::from),
        cwd: Text::from(settings.cwd.to_string_lossy().into_owned()),
        agent_args: settings.agent_args.iter().map(|arg| Text::from(arg.as_str())).collect(),
        workflow: None,
        truncated: false,
    }
}

impl Live {
    /// Begins the run. The first effect is run.started.
    pub(super) fn begin(
        now: Duration,
        (random, ids): (&str, Ids),
        on_eof: OnEof,
        run_id: String,
        reply_to: Option<String>,
        start: Start,
    ) -> Result<Box<Live>, Box<Refusal>> {
        let Start { mut settings, display_name, mut driver, redactor, short_secrets, asking_failed, granted } = start;
        let has_process = driver.has_process();
        let mut turn = Turn::default();
        let launch = match driver.launch(&settings, &mut turn) {
            Ok(launch) => launch,
            Err(failure) => {
                let metadata = settings.metadata.map(Json::from);
                return Err(Box::new(Refusal { failure, metadata, redactor: Some(redactor) }));
            }
        };
        settings.start_timeout_s = settings.start_timeout_s.or(launch.start_timeout);
        let started = started(display_name, &settings, driver.as_ref());
        let mut live = Box::new(Live {
            now,
            out: Vec::new(),
            spare: None,
            folder: frames::folder(&settings.cwd.to_string_lossy()),
            settings,
            redactor,
            run_id,
            on_eof,
            status: None,
            clocks: Clocks { begun: now, run: None, start: None, active: now, frame: now },
            agent: AgentSide::before_spawn(driver),
            work: Work {
                messages: Messages::after(ids.messages),
                tools: Tools::after(ids.calls),
                artifacts: Artifacts::after(ids.artifacts),
                completion: false,
                usage: Usage::default(),
                session_id: None,
                model: None,
            },
            questions: Questions {
                book: Book::new(random, ids.questions, ids.groups, granted),
                unattended: Unattended::default(),
                marked: Marked::default(),
                kept: Kept::default(),
                declined: false,
                input_closed: false,
            },
            end: End::default(),
        });
        live.emit(Body::Started(Box::new(started)), reply_to.clone());
        if short_secrets > 0 {
            live.warn(Warning::ShortSecret, "A secret is too short or too plain to be redacted", reply_to);
        }
        if asking_failed {
            let text =
                "The tool ask_user is not available: cannot create its socket in the directory for temporary files";
            live.warn(Warning::UnsupportedOption, text, None);
        }
        if has_process {
            live.turn(turn);
            live.status(Status::Starting, "Starting the agent", None);
            live.start(Box::new(launch));
        } else {
            live.agent.process = ProcessState::Gone;
            live.clocks.run = live.settings.timeout_s.map(|limit| now + limit.duration());
            live.turn(turn);
        }
        Ok(live)
    }

    /// The counters of the ids.
    pub(super) fn ids(&self) -> Ids {
        let (questions, groups) = self.questions.book.counts();
        let (messages, calls) = (self.work.messages.count(), self.work.tools.count());
        Ids { questions, groups, messages, calls, artifacts: self.work.artifacts.count() }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.end.ending.as_ref().is_some_and(|ending| ending.stopped)
    }

    /// Handles one event. Returns the end once the run is over.
    pub(super) fn step(&mut self, event: Event<'_>) -> Option<Ending> {
        self.take(event);
        self.over()
    }

    /// The end, once the run is over.
    pub(super) fn over(&mut self) -> Option<Ending> {
        let over = self.end.ending.is_some() && self.agent.process == ProcessState::Gone;
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
                    self.end.signals += 1;
                }
                if self.is_for_us(&origin) {
                    self.cancel(origin.id, reason, source);
                }
            }
            Event::Malformed(origin, flaw) => {
                let text = format!("A line on stdin was ignored: {}", flaw.clause());
                self.warn(Warning::MalformedMessage, text, origin.id);
            }
            Event::Unsupported(origin) => self.unsupported(origin.id),
            Event::UnknownType(origin) => self.warn(Warning::UnknownType, UNKNOWN_TYPE, origin.id),
            Event::InputEnded => self.input_ended(),
            // This event comes only before the run begins.
            Event::Over(..) => {}
            Event::Refused(failure) => self.stop(Outcome::Failed(failure), None),
            Event::OutputLost => {
                let failure = Failure::new(Code::InternalError, "stdout is closed: nothing can be delivered.");
                self.stop(Outcome::Failed(failure), None);
            }
            Event::Spawned => self.spawned(),
            Event::SpawnFailed(failure) => {
                self.agent.process = ProcessState::Gone;
                self.decide(Outcome::Failed(failure));
            }
            Event::ErrandOver => {
                let exit = AgentExit { code: None, signal: None };
                let over = self.agent.driver.exited(exit, true, &Text::default());
                self.turn_over(over);
            }
            Event::Line(line) => self.line(line),
            Event::More => self.more(),
            Event::ToolAsk { call, asks } => {
                self.clocks.active = self.now;
                self.open(Asker::Tool(call), asks.into_iter().collect());
            }
            Event::ToolAskWithdrawn { call } => {
                self.clocks.active = self.now;
                self.withdraw(Some(&Asker::Tool(call)));
                self.running_again();
            }
            Event::Ignored(count) => {
                let text = format!("{count} messages were ignored while stdout was not read");
                self.warn(Warning::MalformedMessage, text, None);
            }
            Event::Warn(origin, warning, text) => self.warn(warning, text, origin.id),
            Event::NotRead => {
                self.clocks.active = self.now;
                self.clocks.start = None;
            }
            Event::Drained(exit) => self.drained(exit),
            Event::Gone(gone) => self.gone(gone),
            Event::Tick => self.tick(),
        }
    }
}
