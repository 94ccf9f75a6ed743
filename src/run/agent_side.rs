//! The agent of a run: its driver, its process and its session.

use super::budget::Budget;
use super::effects::Effects;
use super::event::WaitingEvents;
use super::turns::{CurrentTurn, WaitingPrompt};
use super::{Effect, Remake};
use crate::agent::limit::{self, Limit};
use crate::agent::{AgentEvent, Driver, DriverOutput, Launch, Line};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::SessionId;
use crate::protocol::image::Image;
use crate::protocol::limits::AGENT_MESSAGE_BYTES;
use crate::protocol::outbound::{AgentExit, Capabilities, McpServerState, Outcome, ProgressKind, Text};
use crate::protocol::request::{Seconds, Settings};
use crate::protocol::words::LimitField;
use crate::redact::Redactor;

pub(super) struct AgentSide {
    pub(super) driver: Box<dyn Driver>,
    pub(super) process: ProcessState,
    /// Whether it has had no process yet.
    pub(super) is_new: bool,
    pub(super) exit: Option<AgentExit>,
    /// Whether the agent has written anything.
    pub(super) alive: bool,
    pub(super) waiting: WaitingEvents,
    /// Empty between two lines. Kept for its memory.
    pub(super) events: Vec<AgentEvent>,
    remake: Option<Remake>,
    pub(super) keeps_process: bool,
    pub(super) session_id: Option<SessionId>,
    /// Whether the agent has said which session it opened, or that it could not open one.
    is_session_known: bool,
    version: Option<Text>,
    pub(super) model: Option<Text>,
    /// The agent of the run, while another one has a part.
    aside: Option<Box<SetAside>>,
}

struct SetAside {
    driver: Box<dyn Driver>,
    remake: Option<Remake>,
    session: (Option<SessionId>, Option<Text>, Option<Text>),
    settings: Settings,
}

impl AgentSide {
    pub(super) fn new(driver: Box<dyn Driver>, remake: Option<Remake>) -> AgentSide {
        AgentSide {
            driver,
            process: ProcessState::Due,
            is_new: true,
            exit: None,
            alive: false,
            waiting: WaitingEvents::default(),
            events: Vec::new(),
            remake,
            keeps_process: false,
            session_id: None,
            is_session_known: false,
            version: None,
            model: None,
            aside: None,
        }
    }

    /// Lets another agent take the next part. `settings`: those of the last part.
    pub(super) fn invite(&mut self, guest: Remake, settings: Settings) {
        let driver = std::mem::replace(&mut self.driver, guest());
        let remake = self.remake.replace(guest);
        let session = (self.session_id.take(), self.version.take(), self.model.take());
        self.aside = Some(Box::new(SetAside { driver, remake, session, settings }));
    }

    pub(super) fn bring_back(&mut self) -> Option<Settings> {
        let SetAside { driver, remake, session, settings } = *self.aside.take()?;
        (self.driver, self.remake) = (driver, remake);
        (self.session_id, self.version, self.model) = session;
        Some(settings)
    }

    pub(super) fn fresh_driver(&self) -> Option<Box<dyn Driver>> {
        self.remake.as_ref().map(|remake| remake())
    }

    pub(super) fn begin_session(&mut self) {
        if let Some(driver) = self.fresh_driver() {
            self.driver = driver;
        }
        self.begin_next_process();
    }

    pub(super) fn begin_next_process(&mut self) {
        (self.process, self.exit, self.alive) = (ProcessState::Due, None, false);
        (self.session_id, self.version, self.model) = (None, None, None);
        self.waiting = WaitingEvents::default();
    }

    pub(super) fn read_line(&mut self, line: Line<'_>) -> DriverOutput {
        self.alive = true;
        let mut out = DriverOutput { events: std::mem::take(&mut self.events), ..DriverOutput::default() };
        self.driver.line(line, &mut out);
        out
    }

    pub(super) fn send_prompt(&mut self, prompt: &WaitingPrompt, effects: &mut Effects) -> DriverOutput {
        effects.attach(prompt.images.iter());
        let mut out = DriverOutput::default();
        self.driver.take_commands(prompt.raw);
        self.driver.follow_up(prompt.text.unredacted(), &prompt.images, &mut out);
        out
    }

    /// Also returns whether the agent takes a prompt now.
    pub(super) fn steer(&mut self, prompt: &WaitingPrompt, effects: &mut Effects) -> (DriverOutput, bool) {
        let mut out = DriverOutput::default();
        self.driver.take_commands(prompt.raw);
        let is_taken = self.driver.steer(prompt.text.unredacted(), &prompt.images, &mut out);
        effects.attach(prompt.images.iter().filter(|_| is_taken));
        (out, is_taken)
    }

    pub(super) fn open_session(&mut self, id: Option<SessionId>, version: Option<Text>, model: Option<Text>) {
        (self.session_id, self.version, self.model) = (id, version, model);
        self.is_session_known = true;
    }

    /// The session that run.start names, if a run that ends like this has left it as it was.
    pub(super) fn untouched_session(&self, settings: &Settings, outcome: &Outcome) -> Option<SessionId> {
        let is_refused = matches!(outcome, Outcome::Failed(failure)
            if matches!(failure.code, Code::SessionNotFound | Code::InvalidRequest));
        settings.session_id.clone().filter(|_| !self.is_session_known && !settings.fork && !is_refused)
    }

    pub(super) fn session(
        &self,
        mcp_servers: Vec<McpServerState>,
        settings: &Settings,
        rewind: Option<bool>,
    ) -> ProgressKind {
        let capabilities = Capabilities { rewind, ..self.driver.features(settings).capabilities };
        ProgressKind::Session {
            session_id: self.session_id.clone(),
            agent_version: self.version.clone(),
            model: self.model.clone(),
            capabilities: Some(capabilities),
            mcp_servers,
        }
    }

    pub(super) fn can_begin_again(&self, turn: &CurrentTurn, settings: &Settings) -> bool {
        let holds_nothing = !turn.worked && (self.session_id.is_none() || turn.number == 1);
        self.remake.is_some() && (holds_nothing || (self.session_id.is_some() && self.may_resume(settings)))
    }

    pub(super) fn drop_lost_session(&mut self, settings: &Settings) {
        if !self.may_resume(settings) {
            self.session_id = None;
        }
    }

    fn may_resume(&self, settings: &Settings) -> bool {
        self.driver.features(settings).capabilities.resume != Some(false)
    }

    pub(super) fn start(&mut self, launch: Box<Launch>, settings: &Settings, effects: &mut Effects) {
        self.process = ProcessState::Due;
        effects.push(Effect::Spawn(launch, Box::new(settings.clone())));
    }

    pub(super) fn relaunch(
        &mut self,
        settings: &Settings,
        prompt: WaitingPrompt,
        budget: &Budget,
    ) -> Result<(DriverOutput, Launch), Failure> {
        let Some(remake) = &self.remake else {
            return Err(Failure::new(Code::AgentExited, "The agent cannot be started again: begin a new run."));
        };
        let driver = remake();
        // The orchestrator asked for no session.
        let in_words = |failure: Failure| if failure.code == Code::InvalidRequest { lost_session() } else { failure };
        self.launch(driver, settings, prompt, budget).map_err(in_words)
    }

    pub(super) fn launch(
        &mut self,
        driver: Box<dyn Driver>,
        settings: &Settings,
        prompt: WaitingPrompt,
        budget: &Budget,
    ) -> Result<(DriverOutput, Launch), Failure> {
        self.driver = driver;
        // A process that ended before its session was open has left the session of the run.start as it was.
        let opened = self.session_id.is_some();
        let session_id = self.session_id.clone().or_else(|| settings.session_id.clone());
        let used = budget.usage.cost_usd.filter(|_| session_id.is_some());
        let settings = Settings {
            prompt: prompt.text.unredacted().to_owned(),
            session_id,
            fork: settings.fork && !opened,
            attached: prompt.images,
            max_cost_usd: budget.money_left(settings),
            session_cost_usd: used.map(|cost| settings.session_cost_usd.unwrap_or_default() + cost),
            ..settings.clone()
        };
        let mut out = DriverOutput::default();
        let launch = limit::launch(&settings, self.driver.as_mut(), &mut out)?;
        Ok((out, launch))
    }

    pub(super) fn replace(&mut self, remake: Option<Remake>) {
        (self.remake, self.is_new, self.alive) = (remake, true, false);
        self.open_session(None, None, None);
    }

    pub(super) fn refuses(&self, settings: &Settings, images: &[Image]) -> Option<&'static str> {
        match () {
            () if !settings.conversation && !self.driver.takes_turns() => Some("this agent takes no further turn"),
            () if !images.is_empty() && !self.driver.features(settings).images => Some("this agent takes no images"),
            () => None,
        }
    }

    /// Adds the model's name and the agent's message to a failure. Returns whether the message was cut.
    pub(super) fn explain(&self, failure: &mut Failure, settings: &Settings, redactor: &Redactor) -> bool {
        let reported = self.model.as_ref().map(|model| model.redacted(redactor));
        if let Some(model) = settings.model.as_deref().or(reported.as_deref()) {
            failure.name_model(model);
        }
        failure.value = failure.value.or(failure.limit.and_then(|limit| limit_value(limit, settings)));
        let Some(said) = failure.agent_message.take() else { return false };
        let mut words = said.redacted(redactor).trim().to_owned();
        let cut = words.len() > AGENT_MESSAGE_BYTES;
        words.truncate(words.floor_char_boundary(AGENT_MESSAGE_BYTES));
        failure.agent_message = (!words.is_empty()).then(|| words.into());
        cut
    }

    pub(super) fn continues_after(&self, outcome: &Outcome, settings: &Settings) -> bool {
        let Outcome::Failed(failure) = outcome else { return true };
        let budget = failure.limit.and_then(|limit| Limit::from_word(limit.word()));
        if budget.is_some_and(|limit| limit.is_set(settings)) {
            // A budget is the run's.
            return false;
        }
        let is_open = self.session_id.is_some() || self.driver.features(settings).process_per_turn;
        let codes = [
            Code::RateLimited,
            Code::ProviderUnavailable,
            Code::QuotaExceeded,
            Code::LimitReached,
            Code::Refused,
            Code::ContextExceeded,
        ];
        let lives = self.process == ProcessState::Running;
        is_open && (codes.contains(&failure.code) || failure.code == Code::AgentError && lives)
    }
}

fn lost_session() -> Failure {
    let message = "The agent did not stop its turn, was ended, and cannot resume its session: begin a new run.";
    Failure::new(Code::AgentExited, message)
}

/// An agent may have one process per turn, and has at most one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessState {
    Due,
    Running,
    /// The process tree is gone, and the search for changed files is running. Only heartbeats are due.
    TreeGone,
    /// The agent has ended. The run is over, waits for answers that begin another turn, or is in a step without a process.
    Ended,
    /// The process rests for a later part of the run, and this part is over.
    Resting,
}

/// The value of a limit in these settings. `None`: it is not a number, or not one of them.
pub(crate) fn limit_value(limit: LimitField, settings: &Settings) -> Option<f64> {
    let count = |count: Option<u64>| count.map(|count| count as f64);
    let seconds = |seconds: Option<Seconds>| seconds.map(|seconds| seconds.0);
    match limit {
        LimitField::AllowedTools
        | LimitField::DisallowedTools
        | LimitField::McpServers
        | LimitField::Permissions
        | LimitField::PhaseTimeout => None,
        LimitField::MaxTurns => count(settings.max_turns),
        LimitField::MaxToolCalls => count(settings.max_tool_calls),
        LimitField::MaxTokens => count(settings.max_tokens),
        LimitField::MaxCostUsd => settings.max_cost_usd,
        LimitField::Timeout => seconds(settings.timeout_s),
        LimitField::TurnTimeout => seconds(settings.turn_timeout_s),
        LimitField::StartTimeout => seconds(settings.start_timeout_s),
        LimitField::IdleTimeout => Some(settings.idle_timeout_s.0),
        LimitField::QuestionTimeout => Some(settings.question_timeout_s.0),
    }
}
