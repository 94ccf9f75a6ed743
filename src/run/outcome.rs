//! The turns of a run and their ends: the beginning of a turn, its outcome, and the outcome of the run with its terminal
//! body. The steps that stop the agent are in `stop`.

use super::active_run::ActiveRun;
use super::agent_side::ProcessState;
use super::frame_texts::suspicion;
use super::open_questions::Asker;
use super::step::RunningStep;
use super::stop_ladder::DecidedEnd;
use super::turn_end::{NextStep, could_not_go_on};
use super::turns::{StopCause, TurnCause, TurnState, Turns, WaitingPrompt};
use super::{AgentEnd, CheckpointOrder, FoundFiles};
use crate::agent::result::correction;
use crate::agent::{DriverOutput, Launch, Reply, TurnOver, unwritable};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::{CheckpointId, InboundId};
use crate::protocol::outbound::{Json, Metadata, Outcome, Terminal};
use crate::protocol::question::Asks;
use crate::protocol::schema::Mismatch;
use crate::protocol::words::{PromptState, Status, ToolState, Warning};

impl ActiveRun {
    pub(super) fn begin_turn(&mut self, prompt: WaitingPrompt) {
        self.turns.begin_next(TurnCause::Prompt(prompt.number), self.effects.now, self.budget.usage);
        self.turns.keep_prompt(&prompt, &self.settings);
        self.turns.completion.note_text(&prompt.text);
        self.deadlines.active = self.effects.now;
        self.effects.status(Status::Running, "The agent is working", None);
        if let Some(limit) = self.budget.used_up(&self.settings) {
            return self.keep_limit(Some(limit));
        }
        self.checkpoint(CheckpointOrder::Begin(CheckpointId::Prompt(prompt.number)));
        self.pass_prompt(prompt);
    }

    pub(super) fn pass_prompt(&mut self, prompt: WaitingPrompt) {
        let is_ended = self.agent.process == ProcessState::Ended && !self.features().process_per_turn;
        if !is_ended && self.agent.driver.takes_turns() {
            let out = self.agent.send_prompt(&prompt, &mut self.effects);
            return self.apply(out);
        }
        if !is_ended && self.turns.has_completed() {
            let message =
                "The agent's session is unknown, so it takes no further turn: check the agent's session_patterns.";
            return self.decide(Outcome::Failed(Failure::new(Code::InvalidRequest, message)));
        }
        // The process was ended, or the session is unknown because no turn was completed.
        match self.agent.relaunch(&self.settings, prompt, &self.budget) {
            Ok(launched) => self.begin_launched(launched),
            Err(failure) => self.decide(Outcome::Failed(failure)),
        }
    }

    pub(super) fn begin_launched(&mut self, (out, launch): (DriverOutput, Launch)) {
        self.budget.begin_process();
        self.apply(out);
        self.agent.start(Box::new(launch), &self.settings, &mut self.effects);
    }

    /// Returns whether the agent can go on with the turn.
    fn continue_turn(&mut self, prompt: &str) -> bool {
        self.turns.current.worked = true;
        self.drive(|driver, out| driver.follow_up(prompt, &[], out));
        self.agent.process != ProcessState::Ended || self.ladder.is_decided()
    }

    pub(super) fn answer_markers(&mut self, replies: &[Reply]) {
        let prompt = self.turns.current.answers(replies, !self.settings.interactive);
        if !self.continue_turn(&prompt) {
            let message = "The agent asked a question but cannot take a further turn: start a new run with the answer in the prompt.";
            self.decide(Outcome::Failed(Failure::new(Code::AgentExited, message)));
        }
    }

    pub(super) fn submit_result(&mut self, result: Result<Json, Vec<Mismatch>>) {
        if let Some(failure) = self.turns.current.submit(result) {
            self.stop(Outcome::Failed(failure), None);
        }
    }

    /// Returns the end of a turn that is over.
    fn after_turn(&mut self, over: TurnOver) -> Option<TurnOver> {
        let over = match &mut self.blocked {
            Some(blocked) => blocked.end(over),
            None => over,
        };
        let takes_turns = self.agent.driver.takes_turns();
        match self.turns.current.next_step(over, &self.settings, takes_turns, &mut self.effects) {
            NextStep::Ask(asks) => {
                self.ask_questions(Asker::Markers, asks);
                None
            }
            NextStep::Correct(violations) => {
                let prompt = correction(&violations, self.features().result_way);
                (!self.continue_turn(&prompt)).then(|| TurnOver::Failed(Failure::result_invalid(violations)))
            }
            NextStep::End(over) => Some(over),
        }
    }

    pub(super) fn handle_turn_end(&mut self, over: TurnOver) {
        if self.ladder.is_decided() {
            // This is the reply to our interrupt: now the agent can exit.
            if self.ladder.is_interrupting() {
                self.advance();
            }
            return;
        }
        if self.turns.ends_with_process() || self.turns.awaits_limit() {
            return;
        }
        let Some(over) = self.after_turn(over) else { return };
        let outcome = self.outcome(over);
        // A sub-agent that goes on still waits for its answers.
        if self.background.is_empty() {
            self.withdraw_questions(None);
        }
        if let Some(outcome) = self.end_turn(outcome) {
            self.decide(outcome);
            self.release_agent();
        }
    }

    fn outcome(&mut self, over: TurnOver) -> Outcome {
        let takes_turns = self.agent.driver.takes_turns();
        let Turns { current, completion, .. } = &mut self.turns;
        current.outcome(over, &self.messages, (&self.settings, completion), takes_turns, &self.texts)
    }

    /// Ends the running turn. Returns the outcome of the run if the run is over with it.
    pub(super) fn end_turn(&mut self, mut outcome: Outcome) -> Option<Outcome> {
        self.date_limit(&mut outcome);
        if self.hands_over(&mut outcome, false)
            || self.awaits_limit_of(&mut outcome)
            || self.hands_over(&mut outcome, true)
        {
            return None;
        }
        let stopped = match self.turns.current.state {
            TurnState::Running | TurnState::AwaitingLimit(_) => None,
            TurnState::Stopping { why, .. } => Some(why),
            // The agent did something of its own accord, or its process ended.
            TurnState::Over { .. } => {
                return (!self.agent.continues_after(&outcome, &self.settings)).then_some(outcome);
            }
        };
        if stopped.is_some() {
            self.end_open_work(ToolState::Cancelled);
            self.turns.current.marked.asks = Asks::default();
        }
        let outcome = stopped.map_or(outcome, StopCause::outcome);
        let goes_on = match self.settings.conversation {
            true => stopped.is_some() || self.agent.continues_after(&outcome, &self.settings),
            false => {
                let is_more_due = !self.turns.waiting.is_empty() || self.turns.sent.is_some();
                matches!(outcome, Outcome::Completed { .. }) && (is_more_due || self.awaits_background())
            }
        };
        if !goes_on {
            return Some(outcome);
        }
        self.turns.end_current(outcome, &self.budget.usage, &self.settings, &mut self.effects);
        if self.turns.current.cause != TurnCause::Agent {
            self.checkpoint(CheckpointOrder::End);
        }
        if let Some(cause) = self.turns.sent.take() {
            self.begin_unprompted(cause);
            return None;
        }
        if let Some(prompt) = self.turns.waiting.pop_front() {
            self.effects.prompt(prompt.number, PromptState::Sent, None, None);
            self.begin_turn(prompt);
            return None;
        }
        if !self.ends_when_idle() {
            self.effects.status(Status::WaitingForPrompt, "Waiting for a prompt", None);
            return None;
        }
        if self.awaits_background() {
            self.await_background();
            return None;
        }
        Some(self.turns.conclusion())
    }

    /// The agent stays.
    pub(super) fn interrupt_turn(&mut self, why: StopCause, reply_to: Option<InboundId>) {
        let awaits_limit = self.turns.awaits_limit();
        if !(self.turns.current.is_running() || awaits_limit) || self.ladder.is_decided() {
            return;
        }
        match why {
            StopCause::Cancel => self.turns.drop_waiting(&mut self.effects),
            StopCause::Timeout => {}
        }
        self.turns.interrupt(why, self.effects.now);
        self.effects.status(Status::Cancelling, "Cancelling the turn", reply_to);
        self.withdraw_questions(None);
        if awaits_limit {
            return self.end_limit_wait(why);
        }
        let mut stays = false;
        self.drive(|driver, out| stays = driver.interrupt_turn(out));
        if !stays {
            self.turns.signal_tree(&mut self.effects);
        }
    }

    /// Ends the conversation once what runs and what waits is finished.
    pub(super) fn close_conversation(&mut self) {
        self.turns.closing |= self.settings.conversation;
        let is_idle = self.turns.is_over() && self.checkpoints.running.is_none();
        if self.turns.closing && is_idle && !self.ladder.is_decided() {
            if self.awaits_background() {
                return self.await_background();
            }
            self.conclude();
        }
    }

    pub(super) fn conclude(&mut self) {
        let outcome = self.turns.conclusion();
        self.decide(outcome);
        match (self.agent.process == ProcessState::Running, self.settings.conversation) {
            (true, true) => self.finish_agent(),
            (true, false) => self.release_agent(),
            (false, _) => {}
        }
    }

    /// Handles the end of the search for changed files. This ends the run, unless the agent's turn asked a question.
    pub(super) fn end_agent(&mut self, end: AgentEnd, files: FoundFiles) {
        if self.agent.process == ProcessState::Ended {
            return;
        }
        self.end_tree(end.exit);
        self.agent.process = ProcessState::Ended;
        match &mut self.step {
            Some(RunningStep::Command(command)) => command.exit = Some(end.exit),
            Some(RunningStep::Ask(_) | RunningStep::Task) => {}
            None => self.agent.exit = Some(end.exit),
        }
        self.artifacts.report_found(files, &self.texts, &mut self.effects);
        let by_agent = || Some("A process outlived the agent and was stopped".into());
        if let Some(text) = self.step.as_ref().map_or_else(by_agent, RunningStep::leaked).filter(|_| end.leaked) {
            self.effects.warn(Warning::LeakedProcess, text, None);
        }
        if self.ladder.is_decided() {
            return;
        }
        if self.step.is_some() {
            return self.end_step();
        }
        if self.turns.awaits_limit() {
            return self.tick_limit();
        }
        let over = self.agent.driver.exited(end.exit, self.agent.alive, &end.stderr);
        let over = unwritable::explained(over, end.exit, &end.stderr);
        let Some(over) = self.after_turn(over) else { return };
        // A signal came from elsewhere, and a more specific failure takes precedence.
        let is_general = matches!(&over, TurnOver::Failed(Failure { code: Code::AgentExited | Code::AgentError, .. }));
        let is_declined = is_general && self.turns.current.declined && end.exit.signal.is_none();
        let mut outcome = if is_declined { Outcome::Failed(could_not_go_on()) } else { self.outcome(over) };
        let features = self.features();
        let is_start = matches!(&outcome, Outcome::Failed(Failure { code: Code::AgentStartFailed, .. }));
        if let Outcome::Failed(failure) = &mut outcome
            && (is_general || is_start)
            && self.settings.sandbox.domain().is_some()
            && let Some(hint) = suspicion(&end.stderr)
        {
            failure.message = failure.message.clone().with(&format!(" In this run's sandbox: {hint}."));
        }
        // A command whose exit decides has no other words for its failure.
        let is_only_word = !self.agent.alive || features.process_per_turn;
        let shown = is_only_word && !end.stderr.is_empty() && features.stderr_is_fit;
        if let (Outcome::Failed(failure), true) = (&mut outcome, shown) {
            failure.stderr_tail = Some(Box::new(end.stderr));
        }
        self.end_turn_without_process(outcome);
    }

    /// Takes the end, once it is decided and the last process is gone or rests.
    pub(super) fn take_end(&mut self) -> Option<DecidedEnd> {
        let is_done = matches!(self.agent.process, ProcessState::Ended | ProcessState::Resting);
        let mut end = self.ladder.take_if(is_done)?;
        self.turns.drop_waiting(&mut self.effects);
        if !self.turns.is_over() {
            self.turns.end_current(end.outcome.clone(), &self.budget.usage, &self.settings, &mut self.effects);
        }
        if let Outcome::Completed { text, .. } = &end.outcome {
            if let Some(failure) = self.turns.denied_failure(&self.settings) {
                end.outcome = Outcome::Failed(failure);
            } else if text.is_blank() && !self.settings.is_part {
                self.effects.warn(Warning::EmptyResult, "The agent completed without any text", None);
            }
        }
        Some(end)
    }

    /// Builds the terminal body of a run without parts.
    pub(super) fn terminal(&mut self, mut outcome: Outcome) -> Terminal {
        let truncated = match &mut outcome {
            Outcome::Completed { text_cut, structured_output, .. } => {
                // A reader that fails on the result would lose the whole frame.
                *text_cut | structured_output.take_if(|json| json.is_hard_to_read()).is_some()
            }
            Outcome::Failed(failure) => self.agent.explain(failure, &self.settings, &self.texts.redactor),
            Outcome::Cancelled { .. } => false,
        };
        self.terminal_of(outcome, truncated)
    }

    /// `truncated`: whether the outcome is cut.
    pub(super) fn terminal_of(&mut self, outcome: Outcome, truncated: bool) -> Terminal {
        let (artifacts, list_cut) = self.artifacts.list();
        let (unattended, completion_detected) = self.turns.take_sums();
        let untouched = self.agent.untouched_session(&self.settings, &outcome);
        Terminal {
            session_id: self.agent.session_id.take().or(untouched),
            artifacts,
            usage: self.budget.usage,
            duration_ms: self.deadlines.elapsed_ms(self.effects.now),
            metadata: Metadata(self.settings.metadata.take().map(Json::from)),
            unattended,
            completion_detected,
            agent_exit: self.agent.exit,
            turns: self.settings.conversation.then_some(self.turns.current.number),
            truncated: truncated | list_cut,
            ..Terminal::new(outcome)
        }
    }
}
