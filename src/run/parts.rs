//! Begins and ends the parts of a workflow's run, which `part` describes. What belongs to the agent, to its turns and to
//! their limits begins anew with a part; everything else is the run's.

use super::active_run::ActiveRun;
use super::agent_side::ProcessState;
use super::blocked::BlockedText;
use super::budget::Budget;
use super::messages::Messages;
use super::part::{Closing, Part, PartEnd, PartWork, Sums, Turn, TurnBegin, completed};
use super::servers::Servers;
use super::step::RunningStep;
use super::tool_calls::Tools;
use super::turns::Turns;
use crate::agent::{DriverOutput, Features, Launch, limit};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::{MessageId, Outcome, ProgressKind, Terminal, Usage};
use crate::protocol::request::Settings;
use crate::protocol::words::{Level, Status};

impl ActiveRun {
    /// Begins a part, or ends it at once if the run was cancelled between two parts.
    pub(super) fn begin_part(&mut self, part: Part) {
        let Part { settings, work } = part;
        self.ladder.begin_part(self.effects.now);
        self.effects.begin_part();
        self.deadlines.begin_part(self.effects.now);
        self.artifacts.begin_part();
        self.messages = Messages::after(self.messages.count);
        self.tools = Tools::after(self.tools.count);
        self.servers = Servers::new(&settings);
        self.turns = Turns::first(self.effects.now, self.turns.prompts, &settings);
        self.background.clear();
        (self.step, self.blocked, self.seen) = Default::default();
        let last = std::mem::replace(&mut self.settings, settings);
        let counted = std::mem::take(&mut self.budget).counted;
        if self.ladder.is_decided() {
            return;
        }
        match work {
            PartWork::Turn(turn) | PartWork::Rest(turn) => self.begin_turns(turn, last, counted),
            PartWork::Leave => {
                self.go_on_in_process(last, counted);
                self.decide(completed(""));
                self.finish_agent();
            }
            PartWork::Step(step) => self.begin_step(step),
        }
    }

    /// `last`: the settings of the process's last turn; `counted`: its usage so far.
    fn go_on_in_process(&mut self, last: Settings, counted: Usage) {
        let Settings { nonce, ask_server, mcp_servers, .. } = last;
        // The process has the servers that it was started with.
        self.settings = Settings { nonce, ask_server, mcp_servers, ..self.settings.clone() };
        self.budget = Budget::new(&self.settings, &self.features().keepers);
        self.budget.continue_process(counted);
        (self.agent.alive, self.agent.process) = (true, ProcessState::Running);
        self.deadlines.begin_run(self.effects.now, &self.settings);
    }

    fn begin_turns(&mut self, turn: Turn, last: Settings, counted: Usage) {
        let Turn { start, keeps_process, offers_blocked, whole, asking_failed, guest } = turn;
        (self.whole, self.agent.keeps_process) = (whole, keeps_process);
        self.blocked = offers_blocked.then(BlockedText::default);
        let mut out = DriverOutput::default();
        let launch = match start {
            TurnBegin::SameProcess => {
                self.go_on_in_process(last, counted);
                self.effects.status(Status::Running, "The agent is working", None);
                let prompt = self.settings.prompt.clone();
                return self.drive(|driver, out| driver.follow_up(&prompt, &[], out));
            }
            TurnBegin::NextProcess => {
                self.agent.begin_next_process();
                self.agent.driver.follow_up(&self.settings.prompt, &[], &mut out);
                out.relaunch.take().map(|launch| *launch).ok_or_else(gone)
            }
            TurnBegin::NewSession | TurnBegin::Resume(_) => {
                if let Some(guest) = guest {
                    self.agent.invite(guest, last);
                    self.effects.starts_agent(self.settings.agent.clone());
                }
                self.agent.begin_session();
                limit::launch(&self.settings, self.agent.driver.as_mut(), &mut out)
            }
        };
        self.budget = Budget::new(&self.settings, &self.features().keepers);
        self.tell_missing(None, asking_failed);
        match launch {
            Ok(launch) => self.launch(launch, out),
            Err(failure) => {
                self.agent.process = ProcessState::Ended;
                self.decide(Outcome::Failed(failure));
            }
        }
    }

    pub(super) fn launch(&mut self, launch: Launch, out: DriverOutput) {
        self.settings.start_timeout_s = self.settings.start_timeout_s.or(launch.start_timeout);
        self.apply(out);
        self.effects.status(Status::Starting, "Starting the agent", None);
        self.agent.start(Box::new(launch), &self.settings, &mut self.effects);
    }

    /// The features of an agent whose process has not begun.
    pub(super) fn features_at_start(&self, settings: &Settings) -> Features {
        self.agent.fresh_driver().map_or_else(|| self.features(), |driver| driver.features(settings))
    }

    pub(super) fn end_part(&mut self, mut outcome: Outcome) -> PartEnd {
        let (unattended, completion) = self.turns.take_sums();
        let usage = self.budget.usage;
        let sums = self.sums.get_or_insert_default();
        sums.usage = sums.usage.plus(&usage);
        sums.unattended.join(unattended);
        sums.completion |= completion;
        let is_session = self.step.is_none();
        match &mut outcome {
            Outcome::Completed { text, .. } if is_session => {
                let shows = self.settings.progress >= Level::Normal && !self.effects.said && !text.is_blank();
                if shows {
                    // An agent that sends no messages has its text only in the result.
                    sums.results += 1;
                    let message_id = MessageId::Result(sums.results);
                    let about = ProgressKind::Text { message_id, done: true, withdrawn: false };
                    self.effects.tell(about, text.clone(), None);
                }
            }
            Outcome::Failed(failure) => {
                self.agent.explain(failure, &self.settings, &self.texts.redactor);
            }
            Outcome::Completed { .. } | Outcome::Cancelled { .. } => {}
        }
        let mut seen = std::mem::take(&mut self.seen);
        seen.files = std::mem::take(&mut self.artifacts.of_part);
        seen.blocked = self.blocked.take().and_then(|blocked| blocked.reason);
        let ended = self.step.take().map(RunningStep::into_end);
        let (exit, output, reply) = ended.unwrap_or((self.agent.exit, String::new(), None));
        let end = PartEnd {
            outcome,
            exit,
            stays: self.agent.process == ProcessState::Resting,
            session_id: self.agent.session_id.clone(),
            takes_turns: self.agent.driver.takes_turns(),
            usage,
            tool_calls: self.budget.tool_calls,
            denied: self.denied,
            seen,
            output,
            reply,
        };
        if let Some(settings) = self.agent.bring_back() {
            self.settings = settings;
        }
        end
    }

    pub(super) fn close(&mut self, closing: Closing) -> Terminal {
        let Closing { outcome, workflow, killed } = closing;
        self.agent.exit = killed.or(self.agent.exit);
        let Sums { usage, unattended, completion, .. } = self.sums.take().unwrap_or_default();
        let terminal = self.terminal_of(outcome, false);
        let (completion_detected, workflow) = (completion, workflow.map(Box::new));
        Terminal { usage, unattended, completion_detected, workflow, ..terminal }
    }
}

fn gone() -> Failure {
    Failure::new(Code::InternalError, "The session cannot continue: start it again.")
}
