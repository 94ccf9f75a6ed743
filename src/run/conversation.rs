//! Further prompts, and the end, the cancel and the clock of a turn.

use super::live::{Live, ProcessState, ResultSide};
use super::messages::Messages;
use super::turns::{StopCause, TurnState, WaitingPrompt};
use super::{Effect, Method, Origin};
use crate::agent::{Turn, limit};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::InboundId;
use crate::protocol::limits::PROMPTS_WAITING;
use crate::protocol::outbound::{About, Outcome, PromptId, Text, TurnReport};
use crate::protocol::prompt::{FurtherPrompt, Spoken};
use crate::protocol::question::Asks;
use crate::protocol::request::{Seconds, Settings};
use crate::protocol::words::{PromptState, Source, Status, ToolState, TurnOutcome, Warning};
use std::time::Duration;

/// The time that an agent has to stop a turn before its process is ended.
const INTERRUPT_LIMIT: Duration = Duration::from_secs(2);

impl Live {
    /// Handles a further prompt, or the end of the prompts.
    pub(super) fn spoken(&mut self, origin: Origin, spoken: Spoken) {
        if !self.is_for_us(&origin) {
            return;
        }
        let reply_to = origin.id;
        match spoken {
            Spoken::Prompt(prompt) => self.prompted(reply_to, prompt),
            Spoken::End => self.no_more_prompts(),
            Spoken::Mixed => {
                let text = "An input was ignored: give an answer, or a prompt, or `end: true`";
                self.warn(Warning::InvalidAnswer, text, reply_to);
            }
            Spoken::Wrong(why) => self.refuse_prompt(why, reply_to),
        }
    }

    fn refuse_prompt(&mut self, why: &str, reply_to: Option<InboundId>) {
        self.warn(Warning::PromptRefused, format!("A prompt was ignored: {why}"), reply_to);
    }

    fn prompted(&mut self, reply_to: Option<InboundId>, prompt: FurtherPrompt) {
        let FurtherPrompt { text, now } = prompt;
        let capable = self.settings.conversation || self.agent.driver.takes_turns();
        let refused = if self.end.ending.is_some() || self.turns.closing {
            Some("the run is ending")
        } else if self.turns.waiting.len() >= PROMPTS_WAITING {
            Some("too many prompts wait already")
        } else if !capable {
            Some("this agent takes no further turn")
        } else {
            None
        };
        if let Some(why) = refused {
            return self.refuse_prompt(why, reply_to);
        }
        self.turns.prompts += 1;
        let number = self.turns.prompts;
        if self.turns.is_waiting() {
            self.prompt_is(number, PromptState::Sent, reply_to);
            return self.begin_turn(&text);
        }
        if now && matches!(self.turns.state, TurnState::Running) && self.steered(&text) {
            return self.prompt_is(number, PromptState::Sent, reply_to);
        }
        self.turns.waiting.push_back(WaitingPrompt { number, text });
        self.prompt_is(number, PromptState::Queued, reply_to);
    }

    /// Passes a prompt to the agent while it works. Returns whether it takes one now.
    fn steered(&mut self, text: &Text) -> bool {
        let mut turn = Turn::default();
        let taken = self.agent.driver.steer(text.unredacted(), &mut turn);
        self.turn(turn);
        taken
    }

    fn prompt_is(&mut self, number: u64, state: PromptState, reply_to: Option<InboundId>) {
        let text = match state {
            PromptState::Queued => "The prompt waits",
            PromptState::Sent => "The prompt was sent",
            PromptState::Dropped => "The prompt was dropped",
        };
        self.tell(About::Prompt { prompt_id: PromptId(number), state }, text, reply_to);
    }

    fn drop_prompts(&mut self) {
        for WaitingPrompt { number, .. } in std::mem::take(&mut self.turns.waiting) {
            self.prompt_is(number, PromptState::Dropped, None);
        }
    }

    /// Ends the conversation once what runs and what waits is finished.
    pub(super) fn no_more_prompts(&mut self) {
        self.turns.closing |= self.settings.conversation;
        if self.turns.closing && self.turns.is_waiting() && self.end.ending.is_none() {
            self.conclude_conversation();
        }
    }

    fn conclude_conversation(&mut self) {
        let outcome = self.turns.conclusion();
        self.decide(outcome);
        if self.agent.process == ProcessState::Running {
            self.finish_agent();
        }
    }

    /// Ends the running turn. Returns the outcome of the run if the run is over with it.
    pub(super) fn end_turn(&mut self, outcome: Outcome) -> Option<Outcome> {
        let stopped = match self.turns.state {
            TurnState::Running => None,
            TurnState::Stopping { why, .. } => Some(why),
            TurnState::Over { .. } => return Some(outcome),
        };
        if !self.settings.conversation {
            if !matches!(outcome, Outcome::Completed { .. }) || !self.begin_waiting_turn() {
                self.drop_prompts();
                return Some(outcome);
            }
            return None;
        }
        let outcome = match stopped {
            None => outcome,
            Some(StopCause::Cancel) => Outcome::Cancelled { reason: None, source: Source::Orchestrator },
            Some(StopCause::Timeout) => {
                let message = "The turn took longer than turn_timeout_s: raise it or split the task.";
                Outcome::Failed(Failure::new(Code::Timeout, message))
            }
        };
        let lives = self.agent.process == ProcessState::Running;
        let is_fatal = matches!(&outcome, Outcome::Failed(failure) if stopped.is_none() && !(lives && leaves_a_session(failure.code)));
        if stopped.is_some() {
            self.end_open_work();
        }
        self.report_turn(&outcome);
        if is_fatal {
            self.drop_prompts();
            return Some(outcome);
        }
        match outcome {
            Outcome::Completed { .. } => self.turns.completed = Some(outcome),
            Outcome::Failed(failure) => self.turns.failed = Some(failure),
            Outcome::Cancelled { .. } => {}
        }
        self.turns.state = TurnState::Over { since: self.now };
        if self.begin_waiting_turn() {
            return None;
        }
        if self.turns.closing {
            return Some(self.turns.conclusion());
        }
        self.status(Status::WaitingForPrompt, "Waiting for a prompt", None);
        None
    }

    /// Ends the messages and tool calls that an interrupt left open.
    fn end_open_work(&mut self) {
        self.speak(Messages::finish);
        self.questions.marked.asks = Asks::default();
        self.work.tools.end_all(self.now, ToolState::Cancelled).for_each(|progress| self.progress(progress, None));
    }

    /// Emits the end of the turn, and moves its counts to those of the run.
    fn report_turn(&mut self, outcome: &Outcome) {
        let completion_detected = std::mem::take(&mut self.work.completion);
        let unattended = std::mem::take(&mut self.questions.unattended);
        self.turns.completion |= completion_detected;
        self.turns.unattended.join(unattended.clone());
        let report = TurnReport {
            number: self.turns.number,
            outcome: outcome.clone(),
            usage: self.work.usage.since(&self.turns.usage_before),
            completion_detected,
            unattended,
        };
        let what = match report.word() {
            TurnOutcome::Completed => "completed",
            TurnOutcome::Failed => "failed",
            TurnOutcome::Cancelled => "was cancelled",
        };
        let text = format!("Turn {} {what}", report.number);
        self.tell(About::Turn(Box::new(report)), text, None);
    }

    /// Begins a turn with the first prompt that waits. Returns whether one waited.
    fn begin_waiting_turn(&mut self) -> bool {
        let Some(WaitingPrompt { number, text }) = self.turns.waiting.pop_front() else { return false };
        self.prompt_is(number, PromptState::Sent, None);
        self.begin_turn(&text);
        true
    }

    fn begin_turn(&mut self, prompt: &Text) {
        let turns = &mut self.turns;
        (turns.state, turns.began, turns.usage_before) = (TurnState::Running, self.now, self.work.usage);
        turns.number += 1;
        self.questions.marked.turns = 0;
        self.result = ResultSide::default();
        self.questions.declined = false;
        self.clocks.active = self.now;
        self.status(Status::Running, "The agent is working", None);
        let one_process = !self.agent.driver.has_process_per_turn();
        if one_process && self.agent.process == ProcessState::Gone {
            return self.restart(prompt);
        }
        self.drive(|driver, turn| driver.follow_up(prompt.unredacted(), turn));
    }

    /// Starts the agent again with its session, after its process was ended.
    fn restart(&mut self, prompt: &Text) {
        let Some(driver) = self.remake.as_ref().map(|remake| remake()) else {
            let failure = Failure::new(Code::AgentExited, "The agent cannot be started again: begin a new run.");
            return self.decide(Outcome::Failed(failure));
        };
        self.agent.driver = driver;
        self.work.begin_process();
        let settings = Settings {
            prompt: prompt.unredacted().to_owned(),
            session_id: self.work.session_id.clone(),
            fork: false,
            attached: Vec::new(),
            session_cost_usd: self
                .work
                .usage
                .cost_usd
                .map(|cost| self.settings.session_cost_usd.unwrap_or_default() + cost),
            ..self.settings.clone()
        };
        let mut turn = Turn::default();
        match limit::launch(&settings, self.agent.driver.as_mut(), &mut turn) {
            Ok(launch) => {
                self.turn(turn);
                self.start(Box::new(launch));
            }
            Err(failure) => self.decide(Outcome::Failed(failure)),
        }
    }

    /// Cancels the running turn of a conversation, or a run that is none.
    pub(super) fn cancel_turn(&mut self, origin: Origin, reason: Option<Text>) {
        if !self.is_for_us(&origin) {
            return;
        }
        match self.settings.conversation {
            true => self.interrupt_turn(StopCause::Cancel, origin.id),
            false => self.cancel(origin.id, reason, Source::Orchestrator),
        }
    }

    /// Interrupts the running turn of a conversation. The agent stays.
    fn interrupt_turn(&mut self, why: StopCause, reply_to: Option<InboundId>) {
        if !matches!(self.turns.state, TurnState::Running) || self.end.ending.is_some() {
            return;
        }
        self.drop_prompts();
        self.turns.state = TurnState::Stopping { why, due: Some(self.now + INTERRUPT_LIMIT) };
        self.withdraw(None);
        self.status(Status::Cancelling, "Cancelling the turn", reply_to);
        let mut turn = Turn::default();
        let stays = self.agent.driver.interrupt_turn(&mut turn);
        self.turn(turn);
        if !stays && self.turns.is_stopping() {
            self.end_process(Method::Terminate);
        }
    }

    fn end_process(&mut self, method: Method) {
        if let TurnState::Stopping { due, .. } = &mut self.turns.state {
            *due = (method == Method::Terminate).then_some(self.now + INTERRUPT_LIMIT);
        }
        self.out.push(Effect::Stop(method));
    }

    /// The next deadline of the turn, or of the wait for a prompt.
    pub(super) fn turn_due(&self) -> Option<Duration> {
        let after = |from: Duration, limit: Option<Seconds>| limit.map(|limit| from + limit.duration());
        if !self.settings.conversation {
            return None;
        }
        match self.turns.state {
            TurnState::Running => after(self.turns.began, self.settings.turn_timeout_s),
            TurnState::Stopping { due, .. } => due,
            TurnState::Over { since } => after(since, self.settings.prompt_timeout_s),
        }
    }

    /// Handles a deadline of the turn that has passed.
    pub(super) fn turn_is_due(&mut self) {
        match self.turns.state {
            TurnState::Running => self.interrupt_turn(StopCause::Timeout, None),
            TurnState::Stopping { .. } => self.end_process(Method::Kill),
            TurnState::Over { .. } => self.no_more_prompts(),
        }
    }
}

/// Whether the agent can go on with its session after this failure.
fn leaves_a_session(code: Code) -> bool {
    [
        Code::RateLimited,
        Code::ProviderUnavailable,
        Code::LimitReached,
        Code::Refused,
        Code::ContextExceeded,
        Code::AgentError,
    ]
    .contains(&code)
}
