//! The effects of the current event, among them the frames, and the heartbeat between frames.

use super::Effect;
use crate::agent::MessageKey;
use crate::protocol::ids::InboundId;
use crate::protocol::image::Image;
use crate::protocol::outbound::{Artifact, Body, Entries, Progress, ProgressKind, PromptId, Text};
use crate::protocol::request::{Seconds, Settings};
use crate::protocol::sentence::Sentence;
use crate::protocol::utc::UtcTime;
use crate::protocol::words::{Level, PromptState, Status, WaitingOn, Warning};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

const HEARTBEAT_MIN: Duration = Duration::from_millis(10);

pub(super) struct Effects {
    pub(super) now: Duration,
    /// Since 1970.
    pub(super) date: Duration,
    pub(super) list: Vec<Effect>,
    /// The memory of the last progress.
    pub(super) spare: Option<Box<Progress>>,
    pub(super) level: Level,
    pub(super) recorded: bool,
    pub(super) status: Option<Status>,
    shown: Option<Status>,
    /// Whether this part of the run has shown a text of the agent.
    pub(super) said: bool,
    /// The options without effect that were reported, because each session of a workflow repeats the warnings about them.
    /// `None`: the run is a session of the agent.
    pub(super) warned: Option<HashSet<Text>>,
    last_frame: Duration,
    /// The time between heartbeats. `None`: there are none.
    heartbeat: Option<Duration>,
}

impl Effects {
    pub(super) fn new(now: Duration, settings: &Settings) -> Effects {
        let every = settings.heartbeat_s.duration();
        Effects {
            now,
            date: Duration::ZERO,
            list: Vec::new(),
            spare: None,
            level: settings.progress,
            recorded: false,
            status: None,
            shown: None,
            said: false,
            warned: None,
            last_frame: now,
            heartbeat: (!every.is_zero()).then(|| every.max(HEARTBEAT_MIN)),
        }
    }

    pub(super) fn begin_part(&mut self) {
        (self.status, self.said, self.last_frame) = (None, false, self.now);
    }

    pub(super) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    pub(super) fn attach<'i>(&mut self, images: impl Iterator<Item = &'i Image>) {
        let images: Vec<Image> = images.cloned().collect();
        if !images.is_empty() {
            self.push(Effect::Attach(images));
        }
    }

    pub(super) fn emit(&mut self, body: Body, reply_to: Option<InboundId>) {
        self.last_frame = self.now;
        self.list.push(Effect::Emit { body, reply_to, measure: None });
    }

    pub(super) fn artifact(&mut self, artifact: Artifact, measure: Option<PathBuf>) {
        self.last_frame = self.now;
        self.list.push(Effect::Emit { body: Body::Artifact(Box::new(artifact)), reply_to: None, measure });
    }

    pub(super) fn progress(&mut self, progress: Progress, reply_to: Option<InboundId>) {
        if self.level < progress.about.level() {
            return;
        }
        self.said |= matches!(progress.about, ProgressKind::Text { .. });
        let body = match self.spare.take() {
            Some(mut memory) => {
                *memory = progress;
                memory
            }
            None => Box::new(progress),
        };
        self.emit(Body::Progress(body), reply_to);
    }

    pub(super) fn tell(&mut self, about: ProgressKind, text: impl Into<Text>, reply_to: Option<InboundId>) {
        self.progress(Progress::new(about, text), reply_to);
    }

    pub(super) fn warn(&mut self, warning: Warning, text: impl Into<Sentence>, reply_to: Option<InboundId>) {
        let progress = Progress::warning(warning, text);
        let is_repeated = |warned: &mut HashSet<Text>| !warned.insert(progress.text.clone());
        if warning != Warning::UnsupportedOption || !self.warned.as_mut().is_some_and(is_repeated) {
            self.progress(progress, reply_to);
        }
    }

    pub(super) fn tell_of_npx(&mut self, package: &str) {
        let text = format!("Starting the agent: npx runs {package}, and downloads it first if necessary");
        self.tell(ProgressKind::Status { status: Status::Starting, until: None, agent: None }, text, None);
    }

    pub(super) fn status(&mut self, status: Status, text: &str, reply_to: Option<InboundId>) {
        if self.status.replace(status) == Some(status) {
            return;
        }
        // Only the first process of a run is one that starts.
        if self.shown != Some(status) && (status != Status::Starting || self.shown.is_none()) {
            self.shown = Some(status);
            self.tell(ProgressKind::Status { status, until: None, agent: None }, text, reply_to);
        }
    }

    pub(super) fn starts_agent(&mut self, agent: String) {
        let status = Status::Starting;
        (self.status, self.shown) = (Some(status), Some(status));
        self.tell(ProgressKind::Status { status, until: None, agent: Some(agent) }, "Starting the agent", None);
    }

    /// `until`: since 1970. `why`: the failure's code.
    pub(super) fn waits_for_limit(&mut self, until: Duration, why: &str) {
        (self.status, self.shown) = (Some(Status::WaitingForLimit), Some(Status::WaitingForLimit));
        let until = UtcTime::of_seconds(until.as_secs_f64());
        let end = until.map(|until| format!(" until {}", until.text())).unwrap_or_default();
        let text = format!("Waiting{end} for the provider's limit to end ({why})");
        self.tell(ProgressKind::Status { status: Status::WaitingForLimit, until, agent: None }, text, None);
    }

    pub(super) fn record(&mut self, message: MessageKey, piece: &Text, done: bool) {
        if self.recorded {
            self.push(Effect::Said { message, piece: piece.clone(), done });
        }
    }

    /// `is_part`: the run is part of a workflow, which has a plan of its own.
    pub(super) fn plan(&mut self, entries: Entries, is_part: bool) {
        if let Some(text) = entries.warning("entry", "entries", "the plan") {
            self.warn(Warning::AgentOutputUnparsed, text, None);
        }
        let entries = entries.into_iter().collect();
        self.tell(
            if is_part { ProgressKind::Todo(entries) } else { ProgressKind::Plan(entries) },
            "The plan changed",
            None,
        );
    }

    /// `said`: the prompt, if this is the first report about it.
    pub(super) fn prompt(&mut self, number: u64, state: PromptState, said: Option<&Text>, reply_to: Option<InboundId>) {
        let text = match state {
            PromptState::Queued => "The prompt waits",
            PromptState::Sent => "The prompt was sent",
            PromptState::Dropped => "The prompt was dropped",
        };
        let about = ProgressKind::Prompt { prompt_id: PromptId(number), state, said: said.cloned() };
        self.tell(about, text, reply_to);
    }

    /// `idle`: the time since the agent's last output.
    pub(super) fn heartbeat(&mut self, idle: Duration, waiting_on: WaitingOn) {
        let text = match waiting_on {
            WaitingOn::Input => "Waiting for an answer",
            WaitingOn::Agent if self.status == Some(Status::WaitingForLimit) => {
                "Waiting for the provider's limit to end"
            }
            WaitingOn::Agent => "Waiting for the agent",
            WaitingOn::Prompt => "Waiting for a prompt",
        };
        let idle_s = Seconds((idle.as_millis() as f64) / 1000.0);
        self.tell(ProgressKind::Heartbeat { idle_s, waiting_on }, text, None);
        // Even if the level suppressed this heartbeat, the next one is due after a whole period.
        self.last_frame = self.now;
    }

    pub(super) fn heartbeat_at(&self) -> Option<Duration> {
        self.heartbeat.map(|every| self.last_frame + every)
    }
}
