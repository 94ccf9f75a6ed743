//! One run as a pure state machine: an event in, effects out. No clock, no I/O, no randomness, no channel.
//!
//! Exactly one end, three locks: [`Phase::Ended`] holds nothing and ignores everything; only [`Run::end`] builds a
//! terminal body; and the stamper refuses a frame after it.

mod asking;
mod book;
mod clock;
mod doing;
mod ending;
mod frames;
mod granted;
mod kept;
mod live;
mod marked;
mod markers;
mod messages;
mod orchestrator;
mod process;
mod shown;
mod stop;
mod unattended;
mod work;

pub use book::Answered;

use crate::agent::{Driver, Launch, MessageKey, Reply};
use crate::failure::{Code, Failure};
use crate::protocol::inbound::is_run_id;
use crate::protocol::limits::HELD_WARNINGS;
use crate::protocol::outbound::{About, AgentExit, Body, Json, Outcome, Progress, Terminal, Text, Unattended, Usage};
use crate::protocol::question::{Ask, Kind};
use crate::protocol::request::Settings;
use crate::protocol::words::{Action, Source, Warning};
use crate::redact::Redactor;
use live::Live;
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

/// A run.start that can be carried out.
pub struct Start {
    /// What is asked for.
    pub settings: Settings,
    /// The agent's name for people.
    pub display_name: String,
    /// The agent's dialect.
    pub driver: Box<dyn Driver>,
    /// All that must not be seen.
    pub redactor: Redactor,
    /// Fields of run.start's `secrets` that are too short to redact.
    pub short_secrets: usize,
    /// Whether the model was to be offered a tool to ask with, and that was not possible.
    pub asking_failed: bool,
}

/// A run.start that cannot be carried out.
#[derive(Debug)]
pub struct Refusal {
    /// Why.
    pub failure: Failure,
    /// What is still returned of it.
    pub metadata: Option<Json>,
    /// All that must not be seen of it.
    pub redactor: Option<Redactor>,
}

impl Refusal {
    /// One that returns nothing.
    pub fn new(failure: Failure) -> Box<Refusal> {
        Box::new(Refusal { failure, metadata: None, redactor: None })
    }
}

/// What an inbound message was for, where that matters: its id for `reply_to`, and the run it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The message's id.
    pub id: Option<String>,
    /// The run it names.
    pub run_id: Option<String>,
}

/// Everything that can happen to a run. Times are since the process began.
pub enum Event<'a> {
    /// run.start, checked.
    Start(Origin, Result<Box<Start>, Box<Refusal>>),
    /// run.input, with its value read.
    Input(Origin, ReadInput),
    /// run.cancel, a signal, or a person at the terminal.
    Cancel(Origin, Option<String>, Source),
    /// A line that is no message.
    Malformed(Origin),
    /// A message of another major version.
    Unsupported(Origin),
    /// A message of a type that version 1 does not know.
    UnknownType(Origin),
    /// stdin is at its end.
    InputEnded,
    /// The run cannot even begin: a bad flag, a broken configuration.
    Refused(Failure),
    /// stdout is gone: nothing can be delivered any more.
    OutputLost,
    /// The agent runs.
    Spawned,
    /// The agent could not be started.
    SpawnFailed(Failure),
    /// A line of the agent's.
    Line(crate::agent::Line<'a>),
    /// The agent's model asks by the tool that it is offered. `call` names the call.
    ToolAsk {
        /// Which call; unique in a run.
        call: u64,
        /// What is asked; at least one.
        asks: Vec<Ask>,
    },
    /// Nobody waits for this call's answers any more.
    ToolAskWithdrawn {
        /// Which call.
        call: u64,
    },
    /// There is room for the next part of a line that was too long to be taken at once.
    More,
    /// The agent's whole tree is gone and its output was read to the end. What it changed is still looked for.
    Drained,
    /// The same, once that is known.
    Gone(Gone),
    /// Messages were ignored because nobody reads stdout.
    Ignored(u64),
    /// Something that the orchestrator should know, which its message, the machine or the configuration brought up.
    Warn(Origin, Warning, String),
    /// The agent has something to say, but stdout is not read: it is not the one that is silent.
    NotRead,
    /// Time has passed.
    Tick,
}

/// The end of the agent's processes.
#[derive(Clone, Debug)]
pub struct Gone {
    /// How the agent's own process ended.
    pub exit: AgentExit,
    /// Whether something of it outlived it and was stopped.
    pub leaked: bool,
    /// The last of its stderr.
    pub stderr_tail: String,
    /// The files that changed meanwhile, as far as can be seen; also those that the agent reported.
    pub files: Result<Vec<(PathBuf, Action)>, Unseen>,
}

/// Why it is not known which files changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// It took too long.
    Late,
    /// git failed, or there are too many.
    Failed,
}

/// The payload of a run.input, with its value read.
#[derive(Debug)]
pub struct ReadInput {
    /// Whose it is. `None`: it does not say.
    pub question_id: Option<String>,
    /// What it is. `None`: it does not say, or in two ways at once.
    pub answered: Option<Answered>,
    /// For the agent, with a denial.
    pub message: Option<String>,
}

/// What a run wants done.
#[derive(Debug)]
pub enum Effect {
    /// All frames from here on belong to this run.
    RunId(String),
    /// Frames have this limit in bytes from here on.
    FrameLimit(usize),
    /// A frame. Of an artifact, the file to measure.
    Emit {
        /// What it says.
        body: Body,
        /// What caused it.
        reply_to: Option<String>,
        /// The file whose size belongs into the artifact.
        measure: Option<PathBuf>,
    },
    /// A piece of a message in the agent's line, for a recording to find what is split over pieces. Only after
    /// [`Run::recorded`].
    Said {
        /// Which message.
        message: MessageKey,
        /// The piece.
        piece: String,
        /// Whether the message is whole now.
        done: bool,
    },
    /// Start the agent.
    Spawn(Box<Launch>, Box<Settings>),
    /// A line for the agent, without its LF.
    ToAgent(String),
    /// Every question of a call of the tool is resolved.
    ToolReplies {
        /// Which call.
        call: u64,
        /// One each, in the order they were asked.
        replies: Vec<Reply>,
    },
    /// Nobody answers this call any more.
    ToolWithdrawn {
        /// Which call.
        call: u64,
    },
    /// End the agent's stdin, after what was sent.
    CloseAgentInput,
    /// The end is wanted now: nothing more is to be looked for.
    Hurry,
    /// Stop the agent's processes.
    Stop(Method),
    /// A line for people on stderr.
    Diagnose(String),
    /// The same, but only where somebody wants to know everything.
    Note(String),
}

/// How processes are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// SIGTERM to the whole tree.
    Terminate,
    /// SIGKILL to the whole tree.
    Kill,
}

/// What happens when stdin ends after run.start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEof {
    /// The run goes on.
    #[default]
    Continue,
    /// The run is cancelled.
    Cancel,
}

enum Phase {
    /// No run.start yet; warnings wait for run.started.
    Waiting(Vec<Held>),
    /// A run with an agent.
    Live(Box<Live>),
    /// The terminal frame is out.
    Ended,
}

struct Held {
    reply_to: Option<String>,
    warning: Warning,
    text: Cow<'static, str>,
    /// Further messages that were ignored, for which there was no room.
    more: u64,
}

impl Held {
    fn line(&self) -> String {
        if self.more == 0 { self.text.to_string() } else { format!("{} (and {} more messages)", self.text, self.more) }
    }
}

/// One run.
pub struct Run {
    phase: Phase,
    on_eof: OnEof,
    random: String,
    redactor: Redactor,
    exit_code: Option<u8>,
    stopping: Option<Duration>,
    ids: Ids,
}

/// The numbers of the ids given so far. A process hands them from run to run, so that no id comes twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// Questions.
    pub questions: u64,
    /// Groups of questions.
    pub groups: u64,
    /// Messages of the agent.
    pub messages: u64,
    /// Tool calls.
    pub calls: u64,
    /// Artifacts.
    pub artifacts: u64,
}

impl Run {
    /// A run that waits for its run.start. `random` makes ids unique across processes: some lower-case letters and
    /// digits. `ids` are those given before. `redactor` holds what must not be seen before there is a run.start.
    pub fn new(random: &str, ids: Ids, on_eof: OnEof, redactor: Redactor) -> Run {
        Run {
            phase: Phase::Waiting(Vec::new()),
            on_eof,
            random: random.to_owned(),
            redactor,
            exit_code: None,
            stopping: None,
            ids,
        }
    }

    /// The ids given so far.
    pub fn ids(&self) -> Ids {
        match &self.phase {
            Phase::Live(live) => live.ids(),
            Phase::Waiting(_) | Phase::Ended => self.ids,
        }
    }

    /// Whether no run.start has come yet.
    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_))
    }

    /// The exit code, once the terminal frame is built.
    pub fn exit_code(&self) -> Option<u8> {
        self.exit_code
    }

    /// All that must not be seen.
    pub fn redactor(&self) -> &Redactor {
        match &self.phase {
            Phase::Live(live) => &live.redactor,
            Phase::Waiting(_) | Phase::Ended => &self.redactor,
        }
    }

    /// Whether the agent's last line says more: [`Event::More`] takes the next part, and no line may come before.
    pub fn has_more(&self) -> bool {
        matches!(&self.phase, Phase::Live(live) if live.agent.more)
    }

    /// Since when the run is being ended at somebody's wish, so that an orchestrator that does not read is no longer
    /// waited for. It stays so after the end.
    pub fn stopping(&self) -> Option<Duration> {
        self.stopping
    }

    /// Whether the agent is being stopped before it came to its own end. Not so for a run that has its result and is
    /// only hurried.
    pub fn is_stopping(&self) -> bool {
        matches!(&self.phase, Phase::Live(live) if live.is_stopping())
    }

    /// Whether this question is open.
    pub fn is_open(&self, question_id: &str) -> bool {
        matches!(&self.phase, Phase::Live(live) if live.questions.book.find(question_id).is_some())
    }

    /// The working directory, if this question's answer is a path that must be looked at.
    pub fn path_question(&self, question_id: &str) -> Option<PathBuf> {
        let Phase::Live(live) = &self.phase else { return None };
        let ask: &Ask = &live.questions.book.find(question_id)?.1.shown;
        matches!(ask.kind, Kind::FilePath).then(|| live.settings.cwd.clone())
    }

    /// When [`Event::Tick`] is due, if nothing else happens.
    pub fn next_deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Live(live) => live.next_deadline(),
            Phase::Waiting(_) | Phase::Ended => None,
        }
    }

    /// A recording is being made: it needs [`Effect::Said`].
    pub fn recorded(&mut self) {
        if let Phase::Live(live) = &mut self.phase {
            live.agent.recorded = true;
        }
    }

    /// Takes one event, and adds to `effects` what is to be done.
    pub fn step(&mut self, now: Duration, event: Event<'_>, effects: &mut Vec<Effect>) {
        // A signal asks for an end now, also of a run that has its outcome and only waits for its reader.
        let urged = matches!(&event, Event::Cancel(_, _, source) if *source != Source::Orchestrator);
        self.take(now, event, effects);
        if urged || self.is_stopping() {
            self.stopping.get_or_insert(now);
        }
    }

    fn take(&mut self, now: Duration, event: Event<'_>, effects: &mut Vec<Effect>) {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Waiting(held) => self.waiting(now, held, event, effects),
            Phase::Live(mut live) => {
                live.now = now;
                std::mem::swap(&mut live.out, effects);
                let end = live.step(event);
                std::mem::swap(&mut live.out, effects);
                match end {
                    Some(ending) => {
                        if ending.stopped {
                            self.stopping.get_or_insert(now);
                        }
                        self.ids = live.ids();
                        let terminal = live.terminal(ending.outcome);
                        self.redactor = std::mem::take(&mut live.redactor);
                        effects.push(self.end(terminal, None));
                    }
                    None => self.phase = Phase::Live(live),
                }
            }
            Phase::Ended => {}
        }
    }

    /// The end of a run whose own code failed. Everything else about it is lost.
    pub fn crashed(&mut self, now: Duration) -> Option<Effect> {
        self.stopping.get_or_insert(now);
        if self.exit_code.is_some() {
            return None;
        }
        self.phase = Phase::Ended;
        let message = "spektacular failed by a fault of its own: please report it, with a recording of the run.";
        Some(self.end(bare(Outcome::Failed(Failure::new(Code::InternalError, message))), None))
    }

    /// The only place where a terminal body is made into an effect.
    fn end(&mut self, terminal: Terminal, reply_to: Option<String>) -> Effect {
        self.exit_code = Some(match &terminal.outcome {
            Outcome::Failed(failure) => failure.code.exit_code(),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } => 0,
        });
        self.phase = Phase::Ended;
        Effect::Emit { body: Body::Terminal(Box::new(terminal)), reply_to, measure: None }
    }

    fn waiting(&mut self, now: Duration, mut held: Vec<Held>, event: Event<'_>, effects: &mut Vec<Effect>) {
        let held_is_full = held.len() >= HELD_WARNINGS;
        let mut metadata = None;
        let (origin, outcome) = match event {
            Event::Start(origin, Ok(start)) => return self.begin(now, held, origin, *start, effects),
            Event::Start(origin, Err(refusal)) => {
                metadata = refusal.metadata;
                self.redactor = refusal.redactor.unwrap_or_else(|| std::mem::take(&mut self.redactor));
                (origin, Outcome::Failed(refusal.failure))
            }
            Event::Cancel(origin, reason, source) => {
                (origin, Outcome::Cancelled { reason: reason.map(Text::from), source })
            }
            Event::Malformed(origin) => (origin, Outcome::Failed(malformed())),
            Event::Unsupported(origin) => (origin, Outcome::Failed(orchestrator::unsupported())),
            Event::InputEnded => {
                let failure =
                    Failure::new(Code::NoStart, "stdin ended before a run.start: send one line of JSON, ended by LF.");
                (Origin::default(), Outcome::Failed(failure))
            }
            Event::Refused(failure) => (Origin::default(), Outcome::Failed(failure)),
            Event::OutputLost => {
                self.exit_code = Some(crate::failure::EXIT_UNDELIVERED);
                return;
            }
            event => {
                if let Some(warning) = early(event) {
                    match held.last_mut().filter(|_| held_is_full) {
                        Some(last) => last.more += 1,
                        None => held.push(warning),
                    }
                }
                self.phase = Phase::Waiting(held);
                return;
            }
        };
        if matches!(outcome, Outcome::Cancelled { .. }) {
            self.stopping.get_or_insert(now);
        }
        effects.push(Effect::RunId(self.run_id(&origin)));
        effects.extend(held.into_iter().map(|held| Effect::Diagnose(format!("warning: {}", held.line()))));
        effects.push(self.end(Terminal { metadata, ..bare(outcome) }, origin.id));
    }

    fn run_id(&self, origin: &Origin) -> String {
        let chosen = origin.run_id.clone().filter(|id| is_run_id(id));
        chosen.unwrap_or_else(|| format!("run_{}", self.random))
    }

    fn begin(&mut self, now: Duration, held: Vec<Held>, origin: Origin, start: Start, effects: &mut Vec<Effect>) {
        let run_id = self.run_id(&origin);
        effects.extend([Effect::RunId(run_id.clone()), Effect::FrameLimit(start.settings.max_frame_bytes)]);
        match Live::begin(now, (&self.random, self.ids), self.on_eof, run_id, origin.id.clone(), start) {
            Ok(mut live) => {
                let held = held.into_iter().map(|held| progress_warning(held.warning, &held.line(), held.reply_to));
                effects.extend(live.out.drain(..1));
                effects.extend(held);
                effects.append(&mut live.out);
                self.phase = Phase::Live(live);
            }
            Err(refusal) => {
                let Refusal { failure, metadata, redactor } = *refusal;
                self.redactor = redactor.unwrap_or_default();
                let terminal = Terminal { metadata, ..bare(Outcome::Failed(failure)) };
                effects.extend(held.into_iter().map(|held| Effect::Diagnose(format!("warning: {}", held.line()))));
                effects.push(self.end(terminal, origin.id));
            }
        }
    }
}

/// The warning that an event before run.start is worth.
fn early(event: Event<'_>) -> Option<Held> {
    let (reply_to, warning, text) = match event {
        Event::Input(origin, _) => (origin.id, Warning::UnknownQuestion, orchestrator::UNKNOWN_QUESTION.into()),
        Event::UnknownType(origin) => (origin.id, Warning::UnknownType, orchestrator::UNKNOWN_TYPE.into()),
        Event::Warn(origin, warning, text) => (origin.id, warning, text.into()),
        _ => return None,
    };
    Some(Held { reply_to, warning, text, more: 0 })
}

fn progress_warning(warning: Warning, text: &str, reply_to: Option<String>) -> Effect {
    let progress =
        Progress { text: text.into(), parent_call_id: None, about: About::Warning(warning), truncated: false };
    Effect::Emit { body: Body::Progress(Box::new(progress)), reply_to, measure: None }
}

fn malformed() -> Failure {
    Failure::new(
        Code::InvalidMessage,
        "The line is not a message: send one JSON object a line, in UTF-8, as the protocol says.",
    )
}

/// A terminal body of a run that never had an agent.
fn bare(outcome: Outcome) -> Terminal {
    Terminal {
        outcome,
        session_id: None,
        artifacts: Vec::new(),
        usage: Usage::default(),
        duration_ms: 0,
        metadata: None,
        unattended: Unattended::default(),
        completion_detected: false,
        agent_exit: None,
        truncated: false,
    }
}
