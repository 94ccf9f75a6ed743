//! Further prompts, and the end, the cancel and the clock of a turn.

use super::active_run::{ActiveRun, ProcessState};
use super::messages::Messages;
use super::turns::{StopCause, TurnState, WaitingPrompt};
use super::{Effect, Method, Origin};
use crate::agent::limit::Limit;
use crate::agent::{Turn, limit};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::InboundId;
use crate::protocol::image::Image;
use crate::protocol::limits::PROMPTS_WAITING;
use crate::protocol::outbound::{About, Outcome, PromptId, Text};
use crate::protocol::prompt::{FurtherPrompt, Spoken};
use crate::protocol::question::Asks;
use crate::protocol::request::{Seconds, Settings};
use crate::protocol::words::{PromptState, Source, Status, ToolState, TurnOutcome, Warning};
use std::borrow::Cow;
use std::time::Duration;

/// The time that an agent has to stop a turn before its process is ended.
const INTERRUPT_LIMIT: Duration = Duration::from_secs(2);

impl ActiveRun {
    /// Handles a further prompt with the files of its images, or the end of the prompts.
    pub(super) fn spoken(&mut self, origin: Origin, spoken: Spoken, images: Vec<Image>) {
        if !self.is_for_us(&origin) {
            return;
        }
        let reply_to = origin.id;
        match spoken {
            Spoken::Prompt(prompt) => self.prompted(reply_to, prompt, images),
            Spoken::End => self.no_more_prompts(),
            Spoken::Mixed => {
                let text = "An input was ignored: give an answer, or a prompt, or `end: true`";
                self.warn(Warning::InvalidAnswer, text, reply_to);
            }
            Spoken::Wrong(why) => self.refuse_prompt(why, reply_to),
        }
    }

    fn refuse_prompt(&mut self, why: Cow<'static, str>, reply_to: Option<InboundId>) {
        self.warn(Warning::PromptRefused, format!("A prompt was ignored: {why}"), reply_to);
    }

    fn prompted(&mut self, reply_to: Option<InboundId>, prompt: FurtherPrompt, images: Vec<Image>) {
        let now = prompt.now;
        let refused = if self.end.ending.is_some() || self.turns.closing {
            Some("the run is ending")
        } else if self.turns.waiting.len() >= PROMPTS_WAITING {
            Some("too many prompts wait already")
        } else if !self.settings.conversation && !self.agent.driver.takes_turns() {
            Some("this agent takes no further turn")
        } else if !images.is_empty() && !self.features().images {
            Some("this agent takes no images")
        } else {
            None
        };
        if let Some(why) = refused {
            return self.refuse_prompt(why.into(), reply_to);
        }
        self.turns.prompts += 1;
        let number = self.turns.prompts;
        let prompt = WaitingPrompt { number, text: prompt.text, images };
        if self.turns.is_over() {
            self.prompt_is(number, PromptState::Sent, reply_to);
            return self.begin_turn(prompt);
        }
        if now && self.turns.is_running() && self.steered(&prompt) {
            return self.prompt_is(number, PromptState::Sent, reply_to);
        }
        self.turns.waiting.push_back(prompt);
        self.prompt_is(number, PromptState::Queued, reply_to);
    }

    /// Passes a prompt to the agent while it works. Returns whether it takes one now.
    fn steered(&mut self, prompt: &WaitingPrompt) -> bool {
        let mut turn = Turn::default();
        let taken = self.agent.driver.steer(prompt.text.unredacted(), &prompt.images, &mut turn);
        self.attach(prompt.images.iter().filter(|_| taken));
        self.turn(turn);
        taken
    }

    /// Announces the images of the agent's next line.
    fn attach<'i>(&mut self, images: impl Iterator<Item = &'i Image>) {
        let images: Vec<Image> = images.cloned().collect();
        if !images.is_empty() {
            self.out.push(Effect::Attach(images));
        }
    }

    fn prompt_is(&mut self, number: u64, state: PromptState, reply_to: Option<InboundId>) {
        let text = match state {
            PromptState::Queued => "The prompt waits",
            PromptState::Sent => "The prompt was sent",
            PromptState::Dropped => "The prompt was dropped",
        };
        self.tell(About::Prompt { prompt_id: PromptId(number), state }, text, reply_to);
    }

    pub(super) fn drop_prompts(&mut self) {
        for WaitingPrompt { number, .. } in std::mem::take(&mut self.turns.waiting) {
            self.prompt_is(number, PromptState::Dropped, None);
        }
    }

    /// Ends the conversation once what runs and what waits is finished.
    pub(super) fn no_more_prompts(&mut self) {
        self.turns.closing |= self.settings.conversation;
        if self.turns.closing && self.turns.is_over() && self.end.ending.is_none() {
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
        let stopped = match self.turns.current.state {
            TurnState::Running => None,
            TurnState::Stopping { why, .. } => Some(why),
            // The agent did something of its own accord, or its process ended.
            TurnState::Over { .. } => return (!self.leaves_a_session(&outcome)).then_some(outcome),
        };
        if stopped.is_some() {
            self.end_open_work();
        }
        let outcome = stopped.map_or(outcome, StopCause::outcome);
        let goes_on = match self.settings.conversation {
            true => stopped.is_some() || self.leaves_a_session(&outcome),
            false => matches!(outcome, Outcome::Completed { .. }) && !self.turns.waiting.is_empty(),
        };
        if !goes_on {
            return Some(outcome);
        }
        self.close_turn(outcome);
        if self.begin_waiting_turn() {
            return None;
        }
        if self.turns.closing {
            return Some(self.turns.conclusion());
        }
        self.status(Status::WaitingForPrompt, "Waiting for a prompt", None);
        None
    }

    /// Whether the agent can go on with its session after a turn with this outcome.
    fn leaves_a_session(&self, outcome: &Outcome) -> bool {
        let Outcome::Failed(failure) = outcome else { return true };
        if failure.limit.is_some_and(|limit| limit.is_set(&self.settings)) {
            // A budget is the run's.
            return false;
        }
        let is_open = self.work.session_id.is_some() || self.features().process_per_turn;
        let codes =
            [Code::RateLimited, Code::ProviderUnavailable, Code::LimitReached, Code::Refused, Code::ContextExceeded];
        let lives = self.agent.process == ProcessState::Running;
        is_open && (codes.contains(&failure.code) || failure.code == Code::AgentError && lives)
    }

    /// Ends a turn that still runs when the run ends.
    pub(super) fn close_last_turn(&mut self, outcome: &Outcome) {
        self.drop_prompts();
        if !self.turns.is_over() {
            self.close_turn(outcome.clone());
        }
    }

    /// Ends the messages and tool calls that an interrupt left open.
    fn end_open_work(&mut self) {
        self.speak(Messages::finish);
        self.turns.current.marked.asks = Asks::default();
        self.work.tools.end_all(self.now, ToolState::Cancelled).for_each(|progress| self.progress(progress, None));
    }

    /// Ends the turn, and reports it if the run is a conversation.
    fn close_turn(&mut self, outcome: Outcome) {
        let report = self.turns.end_current(self.now, outcome, &self.work.usage);
        if !self.settings.conversation {
            return;
        }
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
        let Some(prompt) = self.turns.waiting.pop_front() else { return false };
        self.prompt_is(prompt.number, PromptState::Sent, None);
        self.begin_turn(prompt);
        true
    }

    fn begin_turn(&mut self, prompt: WaitingPrompt) {
        self.turns.begin_next(self.now, self.work.usage);
        self.clocks.active = self.now;
        self.status(Status::Running, "The agent is working", None);
        if let Some(limit) = self.used_up() {
            return self.keep_limit(Some(limit));
        }
        if self.agent.process == ProcessState::Gone && !self.features().process_per_turn {
            return self.restart(prompt);
        }
        if !self.agent.driver.takes_turns() {
            return self.begin_without_session(prompt);
        }
        self.attach(prompt.images.iter());
        self.drive(|driver, turn| driver.follow_up(prompt.text.unredacted(), &prompt.images, turn));
    }

    /// The budget that leaves nothing for a further turn.
    fn used_up(&self) -> Option<Limit> {
        let no_money = self.money_left().is_some_and(|left| left <= 0.0);
        self.work.budget.exhausted().or(no_money.then_some(Limit::MaxCostUsd))
    }

    /// The remaining money, in US dollars. `None`: no limit.
    fn money_left(&self) -> Option<f64> {
        let spent = self.work.usage.cost_usd.unwrap_or_default();
        self.settings.max_cost_usd.map(|max| max - spent)
    }

    /// Begins a turn of an agent whose session is unknown: a new one if no turn was completed.
    fn begin_without_session(&mut self, prompt: WaitingPrompt) {
        if !self.turns.has_completed() {
            return self.restart(prompt);
        }
        let message =
            "The agent's session is unknown, so it takes no further turn: check the agent's session_patterns.";
        self.decide(Outcome::Failed(Failure::new(Code::InvalidRequest, message)));
    }

    /// Starts the agent again with its session, after its process was ended.
    fn restart(&mut self, prompt: WaitingPrompt) {
        let Some(driver) = self.remake.as_ref().map(|remake| remake()) else {
            let failure = Failure::new(Code::AgentExited, "The agent cannot be started again: begin a new run.");
            return self.decide(Outcome::Failed(failure));
        };
        self.agent.driver = driver;
        self.work.begin_process();
        let settings = Settings {
            prompt: prompt.text.unredacted().to_owned(),
            session_id: self.work.session_id.clone(),
            fork: false,
            attached: prompt.images,
            max_cost_usd: self.money_left(),
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
                launch.into_iter().for_each(|launch| self.start(Box::new(launch)));
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
        if !self.turns.is_running() || self.end.ending.is_some() {
            return;
        }
        match why {
            StopCause::Cancel => self.drop_prompts(),
            StopCause::Timeout => {}
        }
        let due = Some(self.now + INTERRUPT_LIMIT);
        self.turns.current.state = TurnState::Stopping { why, due, with_process: false };
        self.status(Status::Cancelling, "Cancelling the turn", reply_to);
        self.withdraw(None);
        let mut turn = Turn::default();
        let stays = self.agent.driver.interrupt_turn(&mut turn);
        self.turn(turn);
        if !stays && self.turns.is_stopping() {
            self.end_process();
        }
    }

    /// Ends the agent's process to stop the turn: first by SIGTERM, then by SIGKILL.
    fn end_process(&mut self) {
        let TurnState::Stopping { due, with_process, .. } = &mut self.turns.current.state else { return };
        let method = if *with_process { Method::Kill } else { Method::Terminate };
        *due = (!*with_process).then_some(self.now + INTERRUPT_LIMIT);
        *with_process = true;
        self.out.push(Effect::Stop(method));
    }

    /// The next deadline of the turn, or of the wait for a prompt.
    pub(super) fn turn_due(&self) -> Option<Duration> {
        let after = |from: Duration, limit: Option<Seconds>| limit.map(|limit| from + limit.duration());
        if !self.settings.conversation {
            return None;
        }
        match self.turns.current.state {
            TurnState::Running => after(self.turns.current.began, self.settings.turn_timeout_s),
            TurnState::Stopping { due, .. } => due,
            TurnState::Over { since } => after(since, self.settings.prompt_timeout_s),
        }
    }

    /// Handles a deadline of the turn that has passed.
    pub(super) fn turn_is_due(&mut self) {
        match self.turns.current.state {
            TurnState::Running => self.interrupt_turn(StopCause::Timeout, None),
            TurnState::Stopping { .. } => self.end_process(),
            TurnState::Over { .. } => self.no_more_prompts(),
        }
    }
}
