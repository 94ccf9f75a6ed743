//! How a run ends, and what the clock does to it.

use super::book::Absence;
use super::doing::could_not_go_on;
use super::live::{Live, Process};
use super::stop::{Ending, Stage};
use super::work::relative;
use super::{Effect, Gone, Method, Unseen};
use crate::agent::{Turn, TurnOver};
use crate::clean::whole;
use crate::failure::{Code, Failure};
use crate::protocol::limits::AGENT_MESSAGE_BYTES;
use crate::protocol::outbound::{About, Json, Outcome, Terminal};
use crate::protocol::request::Seconds;
use crate::protocol::words::{Action, Source, Status, ToolState, WaitingOn, Warning};
use std::path::PathBuf;
use std::time::Duration;

/// No heartbeat comes faster.
const HEARTBEAT_MIN: Duration = Duration::from_millis(10);

impl Live {
    /// Ends the run against the agent's will. The first reason is kept.
    pub(super) fn stop(&mut self, outcome: Outcome, reply_to: Option<String>) {
        if self.ending.is_some() {
            return;
        }
        self.out.push(Effect::Hurry);
        self.ending = Some(Ending::stop(self.now, outcome, self.driver.leaves()));
        self.withdraw(None);
        if matches!(self.ending, Some(Ending { outcome: Outcome::Cancelled { .. }, .. })) {
            self.status(Status::Cancelling, "Cancelling", reply_to);
        }
        let mut turn = Turn::default();
        self.driver.interrupt(&mut turn);
        self.turn(turn);
        if !self.driver.listens() {
            self.advance();
            self.advance();
        }
    }

    /// A message of another major version fails the run at any time, also after a result.
    pub(super) fn unsupported(&mut self, reply_to: Option<String>) {
        let failed = Outcome::Failed(super::live::unsupported());
        match &mut self.ending {
            Some(ending) if matches!(ending.outcome, Outcome::Completed { .. }) => ending.outcome = failed,
            _ => self.stop(failed, reply_to),
        }
    }

    pub(super) fn kill(&mut self, source: Source) {
        if self.ending.is_none() {
            self.stop(Outcome::Cancelled { reason: None, source }, None);
        }
        if let Some(ending) = &mut self.ending {
            ending.kill();
        }
        self.out.push(Effect::Stop(Method::Kill));
    }

    pub(super) fn advance(&mut self) {
        let Some(ending) = &mut self.ending else { return };
        match ending.advance(self.now) {
            Stage::Interrupted => {}
            Stage::Leaving => self.finish_agent(),
            Stage::Terminated => self.out.push(Effect::Stop(Method::Terminate)),
            Stage::Killed => self.out.push(Effect::Stop(Method::Kill)),
        }
    }

    /// Nothing more comes of a process of the agent's.
    pub(super) fn drained(&mut self) {
        if matches!(self.process, Process::Drained | Process::Gone) {
            return;
        }
        self.process = Process::Drained;
        let mut turn = Turn::default();
        self.driver.drained(&mut turn);
        self.turn(turn);
        for key in self.messages.unfinished() {
            let rest = self.own_words(&key, "", true).unwrap_or_default();
            self.say(&key, &rest, "", true, None, false);
        }
        for key in self.tools.unfinished() {
            let over = self.tools.end(&key, ToolState::Failed, None, &self.redactor);
            over.into_iter().for_each(|progress| self.progress(progress, None));
        }
        self.withdraw(None);
    }

    /// A process of the agent's is gone. That ends the run, unless its turn asked something.
    pub(super) fn gone(&mut self, gone: Gone) {
        if self.process == Process::Gone {
            return;
        }
        self.drained();
        self.process = Process::Gone;
        self.exit = Some(gone.exit);
        self.unreported(gone.files);
        let killed = self.ending.as_ref().is_some_and(|e| matches!(e.stage, Stage::Terminated | Stage::Killed));
        if gone.leaked && !killed {
            self.warn(Warning::LeakedProcess, "A process of the agent's outlived it and was stopped", None);
        }
        if self.ending.is_some() {
            return;
        }
        let over = self.driver.exited(gone.exit, self.alive, &gone.stderr_tail);
        if matches!(over, TurnOver::Completed { .. }) && self.asks_markers() {
            return;
        }
        let mut outcome = match over {
            // A signal came from somebody else, and whatever is more exact counts more.
            TurnOver::Failed(Failure { code: Code::AgentExited | Code::AgentError, .. })
                if self.declined && gone.exit.signal.is_none() =>
            {
                Outcome::Failed(could_not_go_on())
            }
            over => self.outcome(over),
        };
        let shown = !self.alive && !gone.stderr_tail.is_empty() && self.driver.stderr_is_fit();
        if let (Outcome::Failed(failure), true) = (&mut outcome, shown) {
            failure.stderr_tail = Some(gone.stderr_tail);
        }
        self.decide(outcome);
    }

    /// The end, once it is decided and no process is left.
    pub(super) fn conclude(&mut self) -> Option<Ending> {
        let mut ending = self.ending.take();
        if let Some(Ending { outcome: outcome @ Outcome::Completed { .. }, .. }) = &mut ending
            && let Some(failure) = self.unattended_failure()
        {
            *outcome = Outcome::Failed(failure);
        }
        let outcome = ending.as_ref().map(|ending| &ending.outcome);
        if matches!(outcome, Some(Outcome::Completed { text, .. }) if text.0.trim().is_empty()) {
            self.warn(Warning::EmptyResult, "The agent completed without any text", None);
        }
        ending
    }

    /// Whether a run that came to its end fails, because nobody answered for a permission.
    fn unattended_failure(&self) -> Option<Failure> {
        let count = self.unattended.denied.count;
        let how_many = if count == 1 { "A permission was".to_owned() } else { format!("{count} permissions were") };
        let message = format!(
            "{how_many} denied because nobody answered, and `fail_on_denied` is set: allow what the task needs with `permissions`, or answer."
        );
        (self.settings.fail_on_denied && count > 0).then(|| Failure::new(Code::Denied, message))
    }

    /// Files that changed although the agent did not say so.
    fn unreported(&mut self, files: Result<Vec<(PathBuf, Action)>, Unseen>) {
        let files = match files {
            Ok(files) => files,
            Err(why) => return self.warn(Warning::ArtifactsIncomplete, unseen(why), None),
        };
        for (path, action) in files {
            let shown = relative(&self.settings.cwd, &path);
            if !self.artifacts.covers(&shown, action) {
                self.changed(&path, action);
            }
        }
    }

    /// The terminal body.
    pub(super) fn terminal(&mut self, mut outcome: Outcome) -> Terminal {
        let (artifacts, list_cut) = self.artifacts.list();
        let truncated = list_cut
            | match &mut outcome {
                Outcome::Completed { text_cut, .. } => *text_cut,
                Outcome::Failed(failure) => self.explain(failure),
                Outcome::Cancelled { .. } => false,
            };
        Terminal {
            outcome,
            session_id: self.session_id.take(),
            artifacts,
            usage: self.usage,
            duration_ms: u64::try_from((self.now.saturating_sub(self.started)).as_millis()).unwrap_or(u64::MAX),
            metadata: self.settings.metadata.take().map(Json),
            unattended: std::mem::take(&mut self.unattended),
            completion_detected: self.completion,
            agent_exit: self.exit,
            truncated,
        }
    }

    /// Adds the model's name and the agent's words to a failure. Returns whether the words were cut.
    fn explain(&self, failure: &mut Failure) -> bool {
        if let Some(model) = self.settings.model.as_ref().or(self.model.as_ref()) {
            failure.name_model(model);
        }
        let Some(said) = failure.said.take() else { return false };
        let mut words = self.redactor.redact(&whole(&said)).trim().to_owned();
        let cut = words.len() > AGENT_MESSAGE_BYTES;
        words.truncate(words.floor_char_boundary(AGENT_MESSAGE_BYTES));
        failure.agent_message = (!words.is_empty()).then_some(words);
        cut
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let heartbeat = self.heartbeat_at();
        let ending = self.ending.as_ref().map(|ending| ending.due);
        let all = match ending {
            _ if self.process == Process::Drained => [heartbeat, None, None, None, None],
            Some(due) => [due, heartbeat, None, None, None],
            None => [heartbeat, self.clocks.run, self.clocks.start, self.idle_at(), self.question_due()],
        };
        all.into_iter().flatten().min()
    }

    /// When an open question is left alone: at once where nobody is there, so that only an answer that was ready
    /// before it was asked comes in time.
    fn question_due(&self) -> Option<Duration> {
        let deadline = self.book.deadline();
        if self.input_closed && self.book.is_waiting() { Some(Duration::ZERO) } else { deadline }
    }

    pub(super) fn heartbeat_at(&self) -> Option<Duration> {
        let every = self.settings.heartbeat_s.duration();
        (!every.is_zero()).then(|| self.clocks.frame + every.max(HEARTBEAT_MIN))
    }

    /// When the agent has been silent for too long. The clock stands while an answer is awaited, and while a tool
    /// runs, but for that only so long.
    pub(super) fn idle_at(&self) -> Option<Duration> {
        let limit = self.settings.idle_timeout_s.duration();
        if limit.is_zero() || self.clocks.active.is_zero() || self.book.is_waiting() {
            return None;
        }
        let held = self.tools.running_since().map(|since| since + self.settings.tool_timeout_s.duration());
        Some(self.clocks.active.max(held.unwrap_or_default()) + limit)
    }

    pub(super) fn tick(&mut self) {
        let now = self.now;
        let due = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        if self.process == Process::Drained {
            if due(self.heartbeat_at()) {
                self.heartbeat();
            }
            return;
        }
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
        if self.ending.is_none() && due(self.question_due()) {
            self.nobody(if self.input_closed { Absence::InputClosed } else { Absence::Timeout });
        }
        if due(self.heartbeat_at()) {
            self.heartbeat();
        }
    }

    pub(super) fn heartbeat(&mut self) {
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

fn unseen(why: Unseen) -> &'static str {
    match why {
        Unseen::Late => "Files that the agent did not report may have changed: git could not tell in time",
        Unseen::Failed => {
            "Files that the agent did not report may have changed: git could not tell: see `git status` there"
        }
    }
}
