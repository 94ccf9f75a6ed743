//! Carries out the steps of a workflow without its agent: a command, a question of spektacular's own, or the wait for work
//! in a thread.

use super::active_run::ActiveRun;
use super::agent_side::ProcessState;
use super::open_questions::Asker;
use super::part::{ShellCommand, StepWork, completed};
use super::step::RunningStep;
use super::tool_calls::{CallDescription, CallResult};
use crate::agent::{CallKey, Launch, Program, Reply};
use crate::protocol::outbound::{AgentExit, Text, ToolFacts};
use crate::protocol::words::{Category, ToolState};

/// The text of the result, which is never shown.
const OVER: &str = "The step is over.";
const KEY: &str = "command";

impl ActiveRun {
    pub(super) fn begin_step(&mut self, step: StepWork) {
        self.agent.process = ProcessState::Ended;
        match step {
            StepWork::Command(command) => self.begin_command(command),
            StepWork::Ask(ask) => {
                self.step = Some(RunningStep::Ask(None));
                self.deadlines.begin_run(self.effects.now, &self.settings);
                self.ask_questions(Asker::Step, std::iter::once(*ask).collect());
            }
            StepWork::Task => {
                self.step = Some(RunningStep::Task);
                self.deadlines.begin_run(self.effects.now, &self.settings);
            }
        }
    }

    fn begin_command(&mut self, command: ShellCommand) {
        let ShellCommand { args, env, title, phase } = command;
        self.step = Some(RunningStep::of_command(phase));
        if let Some(title) = title {
            let (category, name, title) = (Category::Execute, "sh".to_owned(), Some(Text::from(title)));
            let (locations, input, parent) = (Vec::new(), None, None);
            let seen = CallDescription { category, name, title, locations, input, parent };
            self.begin_tool(CallKey::of(KEY), seen);
        }
        let shell = Launch::new(Program::Command("/bin/sh".into()), "command");
        let launch = Launch { args, env, close_input: true, ..shell };
        self.agent.start(Box::new(launch), &self.settings, &mut self.effects);
    }

    pub(super) fn end_command(&mut self, exit: AgentExit) {
        let Some(RunningStep::Command(command)) = &mut self.step else { return };
        command.finish(&self.texts.redactor);
        let output = Some(Text::from(command.tail.clone()));
        let state = if exit.code == Some(0) { ToolState::Completed } else { ToolState::Failed };
        let facts = ToolFacts { exit_code: exit.code.map(i64::from), ..ToolFacts::default() };
        self.end_tool(CallKey::of(KEY), CallResult { state, output, facts, suspicion: None });
    }

    pub(super) fn answer_step(&mut self, replies: Vec<Reply>) {
        if let Some(RunningStep::Ask(reply)) = &mut self.step {
            *reply = replies.into_iter().next();
            self.end_step();
        }
    }

    /// Every exit counts as completed, because the exit status is the result.
    pub(super) fn end_step(&mut self) {
        self.decide(completed(OVER));
    }

    pub(super) fn end_task(&mut self) {
        if let Some(RunningStep::Task) = self.step {
            self.end_step();
        }
    }
}
