//! The beginning of a run with an agent, and the handling of each event.

use super::active_run::{ActiveRun, AgentSide, Clocks, EndState, ProcessState, Progressed, Questions, RequestBytes};
use super::budget::Budget;
use super::frames;
use super::open_questions::{Asker, OpenQuestions};
use super::orchestrator::UNKNOWN_TYPE;
use super::stop_ladder::DecidedEnd;
use super::turns::Turns;
use super::{Event, FirstProcess, Ids, OnEof, Refusal, Start};
use crate::agent::{Driver, Turn, limit};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::{InboundId, RunId};
use crate::protocol::outbound::{
    AgentName, Body, Capabilities, Json, Metadata, Outcome, ProtocolVersion, ShownSettings, Started, Text,
};
use crate::protocol::request::Settings;
use crate::protocol::words::{Source, Status, StopReason, Warning};
use std::time::Duration;

/// The text of the result of a run that only checks, which is never shown.
const CHECKED: &str = "The settings work.";

impl ActiveRun {
    /// Begins the run. The first effect is run.started.
    pub(super) fn begin(
        now: Duration,
        (random, ids): (&str, Ids),
        on_eof: OnEof,
        run_id: RunId,
        reply_to: Option<InboundId>,
        start: Start,
    ) -> Result<Box<ActiveRun>, Box<Refusal>> {
        let Start { mut settings, display_name, mut driver, redactor, short_secrets, asking_failed, .. } = start;
        let Start { granted, remake, process, keeps_process, checks_only, .. } = start;
        let mut turn = Turn::default();
        let launch = match process {
            FirstProcess::New => converses(&settings, driver.as_ref())
                .and_then(|()| limit::launch(&settings, driver.as_mut(), &mut turn)),
            FirstProcess::Resting(_) | FirstProcess::Leaving(_) => Ok(None),
        };
        let launch = match launch {
            Ok(launch) => launch,
            Err(failure) => {
                let metadata = settings.metadata.map(Json::from);
                return Err(Box::new(Refusal { failure, metadata, redactor: Some(redactor) }));
            }
        };
        let launch = launch.filter(|_| !checks_only);
        let start_timeout = launch.as_ref().and_then(|launch| launch.start_timeout);
        settings.start_timeout_s = settings.start_timeout_s.or(start_timeout);
        let features = driver.features(&settings);
        let work = Progressed::after(ids, Budget::new(&settings, &features.keepers));
        let started = started(display_name, &settings, features.capabilities);
        let mut live = Box::new(ActiveRun {
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
            work,
            questions: Questions {
                book: OpenQuestions::new(random, ids.questions, ids.groups, granted),
                kept: RequestBytes::default(),
                input_closed: false,
            },
            turns: Turns::first(now, ids.prompts),
            remake,
            keeps_process,
            end: EndState::default(),
        });
        live.emit(Body::Started(Box::new(started)), reply_to.clone());
        live.warn_at_start(short_secrets, asking_failed, reply_to);
        if let Some(launch) = launch {
            live.turn(turn);
            live.status(Status::Starting, "Starting the agent", None);
            live.start(Box::new(launch));
        } else if let FirstProcess::New = process {
            live.agent.process = ProcessState::Gone;
            live.clocks.run = live.settings.timeout_s.map(|limit| now + limit.duration());
            live.turn(turn);
            if checks_only {
                live.decide(Outcome::Completed {
                    text: CHECKED.into(),
                    message_id: None,
                    text_cut: false,
                    structured_output: None,
                    stop_reason: StopReason::EndTurn,
                });
            }
        } else {
            live.begin_at_rest(process);
        }
        Ok(live)
    }

    /// Warns of what run.start asked for and cannot have.
    fn warn_at_start(&mut self, short_secrets: usize, asking_failed: bool, reply_to: Option<InboundId>) {
        if short_secrets > 0 {
            self.warn(Warning::ShortSecret, "A secret is too short or too plain to be redacted", reply_to);
        }
        if asking_failed {
            let text =
                "The tool ask_user is not available: cannot create its socket in the directory for temporary files";
            self.warn(Warning::UnsupportedOption, text, None);
        }
    }

    pub(super) fn ids(&self) -> Ids {
        let (questions, groups) = self.questions.book.counts();
        let (messages, calls) = (self.work.messages.count(), self.work.tools.count());
        let (artifacts, prompts) = (self.work.artifacts.count(), self.turns.prompts);
        Ids { questions, groups, messages, calls, artifacts, prompts }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.end.ending.as_ref().is_some_and(|ending| ending.stopped)
    }

    /// Handles one event. Returns the end once the run is over.
    pub(super) fn step(&mut self, event: Event<'_>) -> Option<DecidedEnd> {
        self.take(event);
        self.over()
    }

    /// The end, once the run is over.
    pub(super) fn over(&mut self) -> Option<DecidedEnd> {
        let is_done = matches!(self.agent.process, ProcessState::Gone | ProcessState::Resting);
        let over = self.end.ending.is_some() && is_done;
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
            Event::Spoken(origin, spoken, images) => self.spoken(origin, spoken, images),
            Event::CancelTurn(origin, reason) => self.cancel_turn(origin, reason),
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
            Event::SpawnFailed(failure) => self.spawn_failed(failure),
            Event::TaskOver => self.task_over(),
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
            Event::Submitted(result) => {
                self.clocks.active = self.now;
                self.submitted(result);
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
            Event::Rested(files) => self.rested(files),
            Event::CannotRest => self.cannot_rest(),
            Event::Tick => self.tick(),
        }
    }
}

/// Refuses a conversation with an agent that cannot hold one.
fn converses(settings: &Settings, driver: &dyn Driver) -> Result<(), Failure> {
    if settings.conversation && driver.features(settings).capabilities.conversation == Some(false) {
        let message = "run.start: `conversation` must be false: this agent can neither stay nor resume its session.";
        return Err(Failure::new(Code::InvalidRequest, message));
    }
    Ok(())
}

/// The body of run.started.
fn started(display_name: String, settings: &Settings, capabilities: Capabilities) -> Started {
    Started {
        agent: AgentName { name: settings.agent.clone(), display_name: display_name.into(), version: None },
        config: ShownSettings {
            settings: Box::new(settings.clone()),
            cwd: Text::from(settings.cwd.to_string_lossy().into_owned()),
            agent_args: settings.agent_args.iter().map(|arg| Text::from(arg.as_str())).collect(),
        },
        protocol: ProtocolVersion::OURS,
        capabilities,
        metadata: Metadata(settings.metadata.clone().map(Json::from)),
        workflow: None,
        truncated: false,
    }
}
