//! Connects a [`Run`] with its peer and its [`Host`]: it turns input into events of the run, and carries out the
//! run's effects. It has no thread and no channel and never waits: its owner calls it when something happens, and takes
//! the bytes to write.

mod carry_out;
mod parts;

pub use parts::Recorded;

use super::answers::Script;
use super::ask_connections::AskOutcome;
use super::host::Host;
use super::images;
use super::job::{Admission, FirstSteps, Job, Prepared, Successor};
use super::peer::{Peer, ScreenChange, Understood};
use super::prepare;
use super::recordings::Recordings;
use super::server_reports::ServerReport;
use super::stderr;
use crate::agent::{Launch, Line};
use crate::clean::last_bytes;
use crate::config::Layers;
use crate::io::failpoint::point;
use crate::io::outbox::Outbox;
use crate::io::output::Chunk;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::RunId;
use crate::protocol::image::Image;
use crate::protocol::inbound::{Addressee, CancelScope, Inbound, Message, unknown_type};
use crate::protocol::limits;
use crate::protocol::outbound::{Json, Terminal};
use crate::protocol::prompt::PromptInput;
use crate::protocol::question::AnswerInput;
use crate::protocol::request::{Options, Payload, Settings};
use crate::protocol::words::{Level, OnRateLimit, Source as CancelSource, Warning};
use crate::recording::Moment;
use crate::run::{AgentEnd, Answered, Effect, Event, FoundFiles, Origin, ReadInput, Refusal, Remake, Run};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::DerefMut;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub struct Conductor<P, H> {
    pub(super) run: Run,
    pub(super) peer: P,
    host: H,
    /// Empty between two events. Kept to reuse its memory.
    effects: Vec<Effect>,
    pub(super) answers: Script,
    layers: Layers,
    pub(super) frame_out: FrameOut,
    pub(super) recordings: Recordings,
    agent: AgentLink,
    signal_source: CancelSource,
    pub(super) signal: Option<i32>,
    admission: Option<Admission>,
    first_steps: Option<Box<FirstSteps>>,
    successors: VecDeque<Successor>,
    pub(super) took_over: Option<Successor>,
    pub(super) reviewer: Option<Successor>,
    /// Below this directory, recordings follow no symbolic link.
    project: Option<PathBuf>,
    incomplete_recording: bool,
}

#[derive(Default)]
struct AgentLink {
    /// The process to start once run.started is queued.
    due: Option<(Box<Launch>, Box<Settings>)>,
    /// The time when the first process started.
    spawned_at: Option<Duration>,
    /// The images that a later line for the agent contains as labels.
    images: Vec<Image>,
    unsent: Option<Failure>,
    cannot_rest: bool,
    hands_over: bool,
    stderr: stderr::StderrLines,
    mirror_stderr: bool,
}

pub(super) struct FrameOut {
    outbox: Outbox,
    run_id: RunId,
    frame_limit: usize,
    log_id: bool,
    ignored: u64,
    /// Whether the terminal body was emitted, or can no longer be.
    pub(super) finished: bool,
    terminal: Option<Terminal>,
}

impl<P: DerefMut<Target: Peer>, H: Host> Conductor<P, H> {
    /// `random`: makes ids unique across processes. The caller handles the job's `begin`.
    pub fn new(job: Job, mut peer: P, host: H, random: &str) -> Conductor<P, H> {
        let Job { layers, warnings, answers, on_eof, record, project, debug_log, mirror_stderr, signal_source, .. } =
            job;
        let Job { admission, first_steps, log_id, .. } = job;
        let (recordings, opened) = Recordings::open(record, project.as_deref(), debug_log);
        let redactor = prepare::redactor(&host, peer.screen().is_some());
        let mut run = Run::new(random, on_eof, redactor);
        run.workflow = admission.as_ref().map(|admission| admission.workflow);
        let mut conductor = Conductor {
            run,
            peer,
            host,
            effects: Vec::new(),
            answers,
            layers,
            frame_out: FrameOut {
                outbox: Outbox::default(),
                run_id: RunId::generated(random),
                frame_limit: limits::FRAME_BYTES,
                log_id,
                ignored: 0,
                finished: false,
                terminal: None,
            },
            recordings,
            agent: AgentLink { mirror_stderr, ..AgentLink::default() },
            signal_source,
            signal: None,
            admission,
            first_steps,
            successors: VecDeque::new(),
            took_over: None,
            reviewer: None,
            project,
            incomplete_recording: false,
        };
        for (warning, text) in warnings {
            conductor.step(Event::Warn(Origin::default(), warning, text));
        }
        if opened.is_err() {
            conductor.step(Event::Refused(Failure::no_recording()));
        }
        conductor
    }

    pub fn step(&mut self, event: Event<'_>) {
        let taken = catch_unwind(AssertUnwindSafe(|| {
            point("step");
            let mut effects = std::mem::take(&mut self.effects);
            self.run.set_date(self.host.date());
            self.run.step(self.host.now(), event, &mut effects);
            effects.drain(..).for_each(|effect| self.carry_out(effect));
            self.effects = effects;
            self.refuse_unsent();
            if std::mem::take(&mut self.agent.cannot_rest) {
                self.step(Event::CannotRest);
            }
            if std::mem::take(&mut self.agent.hands_over) {
                self.hand_over();
            }
        }));
        if taken.is_err() {
            self.crash(Failure::of_our_own());
        }
    }

    /// Stops the agent and ends the run after a fault of our own.
    pub(super) fn crash(&mut self, failure: Failure) {
        self.host.abort();
        let end = self.run.crashed(self.host.now(), failure);
        end.into_iter().for_each(|effect| self.carry_out(effect));
        self.frame_out.finished |= !self.run.is_between();
    }

    pub(super) fn heard(&mut self, mut inbound: Inbound) {
        self.peer.heard(&mut inbound.message);
        self.inbound(inbound);
    }

    pub(super) fn typed(&mut self, keys: &[u8], at: Instant) {
        if let Some(understood) = self.peer.screen().map(|screen| screen.typed(keys, at)) {
            self.understood(understood);
        }
    }

    /// Handles Ctrl-C at a terminal, or a signal that cannot be told from it.
    pub(super) fn interrupted(&mut self, signal: i32) {
        match self.peer.screen().and_then(|screen| screen.interrupted()) {
            Some(understood) => self.understood(understood),
            None => self.signalled(signal),
        }
    }

    fn understood(&mut self, understood: Understood) {
        self.frame_out.outbox.push(understood.chunk);
        understood.messages.into_iter().for_each(|message| self.inbound(message));
    }

    pub(super) fn prepared(&mut self, prepared: Prepared) {
        let Prepared { above, answers, start } = prepared;
        self.layers.above = above.over(std::mem::take(&mut self.layers.above));
        self.answers = answers;
        if let Some(options) = start {
            let payload = Payload { options, ..Payload::default() };
            self.inbound(Inbound::bare(Message::Start(Box::new(payload))));
        }
    }

    pub fn inbound(&mut self, inbound: Inbound) {
        if self.frame_out.outbox.is_overfull() && self.is_noise(&inbound.message) {
            self.frame_out.ignored += 1;
            return;
        }
        if self.frame_out.ignored > 0 {
            let ignored = std::mem::take(&mut self.frame_out.ignored);
            self.step(Event::Ignored(ignored));
        }
        let origin = Origin { id: inbound.id, run: inbound.run };
        let event = match inbound.message {
            Message::Malformed(flaw) => Event::Malformed(origin, flaw),
            Message::Unsupported => Event::Unsupported(origin),
            Message::UnknownType(kind) => Event::UnknownType(origin, unknown_type(&kind, self.run.redactor())),
            Message::Cancel { reason, scope: CancelScope::Turn } => Event::CancelTurn(origin, reason),
            Message::Cancel { reason, scope: CancelScope::Run } => {
                Event::Cancel(origin, reason, CancelSource::Orchestrator)
            }
            Message::Prompt(input) => self.prompt(origin, input),
            Message::Start(_) if !self.run.is_waiting() => {
                let failure =
                    Failure::new(Code::InvalidRequest, "A second run.start was sent: one process is one run.");
                Event::Start(origin, Err(Refusal::new(failure)))
            }
            Message::Start(start) => self.start(origin, *start),
            Message::Answer(input) => {
                let cwd = input.question_id.as_ref().and_then(|id| self.run.path_question(id));
                let answered: Option<Answered> =
                    input.given.map(|given| prepare::answer(given, cwd.as_deref(), &self.host));
                let AnswerInput { question_id, message, updated_input, unknown, given: _ } = input;
                Event::Answer(origin, ReadInput { question_id, answered, message, updated_input, unknown })
            }
        };
        self.step(event);
    }

    fn prompt(&self, origin: Origin, input: PromptInput) -> Event<'static> {
        let images = match (&input, self.run.settings()) {
            (PromptInput::Prompt(prompt), Some(settings)) => {
                images::attach(&prompt.images, &settings.cwd, &"`images`".into(), &self.host)
            }
            (PromptInput::Prompt(_) | PromptInput::End | PromptInput::Rewind(_), _)
            | (PromptInput::Mixed | PromptInput::Wrong(_), _) => Ok(Vec::new()),
        };
        match images {
            Ok(images) => Event::Prompt(origin, input, images),
            Err(failure) => {
                let why = failure.message.text().redacted(self.run.redactor()).trim_end_matches('.').to_owned();
                Event::Prompt(origin, PromptInput::Wrong(why.into()), Vec::new())
            }
        }
    }

    fn start(&mut self, origin: Origin, payload: Payload) -> Event<'static> {
        let Payload { options, wrong, mut unknown, workflow } = payload;
        let said: Vec<&'static str> = Options::NAMES.iter().copied().filter(|name| options.says(name)).collect();
        let origins = self.layers.origins.without(&options);
        let (options, agent) = self.layers.under(options);
        let agent = agent.as_deref();
        let model_warnings = self.layers.model_warnings(&options, agent);
        // Read before the checks, because a refusal returns the metadata.
        let (redactor, short_secrets) = prepare::redactor_for(self.run.redactor().clone(), &options, agent, &self.host);
        let redactor = prepare::with_successors(redactor, &options, &self.layers.agents, &self.host);
        let metadata = options.metadata.clone().map(Json::from);
        let agents = (&self.layers.agents, &origins);
        let kept = self.admission.is_some().then(|| options.clone());
        let checked = if origin.run == Addressee::Invalid {
            Err(Failure::invalid_run_id())
        } else {
            prepare::settings(options, wrong, agent, agents, &self.host)
        };
        let (mut redactor, mut has_steps) = (redactor, false);
        let admitted = checked.and_then(|mut ready| {
            ready.settings.tool_facts = self.peer.screen().is_some() || ready.settings.progress == Level::Full;
            self.peer.prompted(&ready.settings.prompt, &redactor);
            let Some(admission) = self.admission.take() else {
                if workflow.is_some() {
                    unknown.add_unused("workflow", "spec, plan and implement");
                }
                if let Some(keep) = self.first_steps.take() {
                    keep(&ready.settings, &ready.agent);
                    has_steps = true;
                }
                return Ok((ready, None));
            };
            let workflow = workflow.as_deref();
            let admit = admission.admit;
            let mut started = admit(&mut ready.settings, &ready.agent, workflow, &said, &mut unknown)?;
            if let Some((review, options)) = started.options.settings.review.as_ref().zip(kept) {
                self.reviewer = prepare::reviewer(review, &ready, options, agents, &self.host)?;
                let agent = self.reviewer.as_ref().map(|reviewer| &reviewer.agent);
                redactor = prepare::redactor_for(redactor.clone(), &Options::default(), agent, &self.host).0;
            }
            started.redact(&redactor);
            Ok((ready, Some(Box::new(started))))
        });
        if let Some(text) = unknown.warning("field", " of run.start", &redactor) {
            self.step(Event::Warn(origin.clone(), Warning::UnknownField, text));
        }
        let start = match admitted {
            Ok((mut ready, workflow)) => {
                self.successors = ready.take_successors();
                let waits = ready.settings.on_rate_limit == OnRateLimit::Wait;
                let goes_on = ready.settings.conversation || waits || workflow.is_some() || has_steps;
                let agent = goes_on.then(|| ready.agent.clone());
                let mut start = ready.start(redactor, short_secrets, &mut self.host);
                start.remake = agent.map(|agent| Box::new(move || agent.driver()) as Remake);
                (start.workflow, start.has_steps) = (workflow, has_steps);
                Ok(Box::new(start))
            }
            Err(failure) => Err(Box::new(Refusal { failure, metadata, redactor: Some(redactor) })),
        };
        for text in model_warnings {
            self.step(Event::Warn(origin.clone(), Warning::UnsupportedOption, text));
        }
        Event::Start(origin, start)
    }

    /// Whether the only reply would be a warning. If the outbox is overfull, such messages are only counted.
    fn is_noise(&self, message: &Message) -> bool {
        match message {
            Message::Malformed(_) | Message::UnknownType(_) => true,
            Message::Answer(input) => !input.question_id.as_ref().is_some_and(|id| self.run.is_open(id)),
            Message::Start(_) => !self.run.is_waiting(),
            Message::Prompt(input) => {
                matches!(input, PromptInput::Mixed | PromptInput::Wrong(_) | PromptInput::Rewind(None))
            }
            Message::Unsupported | Message::Cancel { .. } => false,
        }
    }

    pub fn signalled(&mut self, signal: i32) {
        self.signal.get_or_insert(signal);
        self.step(Event::Cancel(Origin::default(), None, self.signal_source));
    }

    /// An owned line can be kept without a copy.
    pub fn line<'a>(&mut self, line: impl Into<Cow<'a, str>>) {
        let line = line.into();
        self.record(|| Moment::Agent(line.to_string()));
        self.step(Event::Line(Line::Text(line)));
        self.complete_recording();
    }

    pub fn more(&mut self) {
        self.step(Event::More);
        self.complete_recording();
    }

    /// `text`: a line with its LF, or a part of one.
    pub fn stderr_text(&mut self, text: &str) {
        let clean = self.agent.stderr.push(self.run.redactor(), text);
        self.said_on_stderr(clean);
        self.step(Event::Stderr(text));
    }

    pub(super) fn stderr_ended(&mut self) {
        let rest = self.agent.stderr.finish(self.run.redactor());
        self.said_on_stderr(rest);
    }

    fn said_on_stderr(&mut self, lines: Vec<String>) {
        for line in lines {
            if self.agent.mirror_stderr {
                self.note(&line);
            }
            self.record(|| Moment::Stderr(line));
        }
        self.complete_recording();
    }

    pub(super) fn asked(&mut self, outcome: AskOutcome) {
        self.step(match outcome {
            AskOutcome::Came => Event::AskServerCame,
            AskOutcome::Asked(call, asks) => Event::ToolAsk { call, asks },
            AskOutcome::Withdrawn(call) => Event::ToolAskWithdrawn { call },
            AskOutcome::Submitted(result) => Event::Submitted(result),
        });
    }

    pub fn server_reported(&mut self, report: ServerReport) {
        let tail = stderr::tail(&report.words, self.run.redactor());
        let words = last_bytes(&tail, limits::AGENT_MESSAGE_BYTES).to_owned();
        self.step(Event::McpServer { position: report.position, state: report.state, words: words.into() });
    }

    /// Handles the end of the agent's output. The search for changed files may still run.
    pub fn tree_gone(&mut self, end: &AgentEnd) {
        let exit = end.exit;
        self.record(|| match exit.signal {
            Some(signal) => Moment::Signal(signal),
            None => Moment::Exit(exit.code.unwrap_or_default()),
        });
        self.recordings.write_complete_lines(self.run.redactor(), true);
        if end.lost_session {
            self.step(Event::SessionLost);
        }
        self.step(Event::TreeGone(exit));
    }

    pub fn agent_ended(&mut self, end: AgentEnd, files: FoundFiles) {
        let stderr = stderr::tail(end.stderr.unredacted(), self.run.redactor()).into();
        let files = files.map(|files| self.recordings.without_own(files));
        self.step(Event::AgentEnded(AgentEnd { stderr, ..end }, files));
    }

    pub fn tick(&mut self) {
        self.step(Event::Tick);
        if self.repaint_at().is_some_and(|at| at <= Instant::now()) {
            self.screen_changed(ScreenChange::Due);
        }
    }

    pub(super) fn screen_changed(&mut self, change: ScreenChange) {
        if let Some(screen) = self.peer.screen() {
            self.frame_out.outbox.push(screen.changed(change));
        }
    }

    fn note(&mut self, line: &str) {
        self.frame_out.outbox.push(match self.peer.screen() {
            Some(screen) => screen.note(line),
            None => {
                let id = if self.frame_out.log_id { &format!("[{}] ", &*self.frame_out.run_id) } else { "" };
                Chunk { err: format!("{id}{line}\n").into_bytes(), ..Chunk::default() }
            }
        });
    }

    /// Drops all waiting frames except the terminal one, because nobody reads them and the run must end.
    pub(super) fn drop_progress(&mut self) {
        let dropped = self.frame_out.outbox.drop_progress();
        self.peer.dropped(dropped);
    }

    pub fn answer_in_advance(&mut self) {
        while let Some(answer) = self.answers.due.pop_front() {
            self.inbound(answer);
        }
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    pub(super) fn host(&self) -> &H {
        &self.host
    }

    pub fn due(&self) -> Option<&Launch> {
        self.agent.due.as_ref().map(|(launch, _)| &**launch)
    }

    /// Whether no frame can be delivered any more.
    pub(super) fn is_lost(&self) -> bool {
        self.frame_out.outbox.is_closed()
    }

    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.frame_out.outbox
    }

    pub(super) fn waiting(&self) -> &Outbox {
        &self.frame_out.outbox
    }

    /// The time at which the peer next shows something without an event. `None`: never, or other bytes wait, behind
    /// which it would only queue.
    pub(super) fn repaint_at(&mut self) -> Option<Instant> {
        self.peer.screen().filter(|_| self.frame_out.outbox.is_empty())?.wake_at()
    }

    pub(super) fn leave(&mut self) -> Vec<u8> {
        self.peer.screen().map(|screen| screen.clear_last_line()).unwrap_or_default()
    }
}
