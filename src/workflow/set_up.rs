//! The commands that set up a new worktree, as steps of its run before everything else.

use super::consent::Consent;
use super::part::Step;
use super::stop::Stop;
use super::workflow_run::WorkflowRun;
use crate::clean::last_bytes;
use crate::protocol::failure::{Code, Failure, PhaseFailure};
use crate::protocol::limits::STDERR_TAIL_BYTES;
use crate::protocol::outbound::Text;
use crate::run::{ShellCommand, StepWork};
use std::path::Path;
use std::time::Duration;

/// The label of these commands in questions and failures.
const LABEL: &str = "setup";
/// Like that of a plan's commands, in a folder.
const IN_FOLDER: &str = "cd \"$2\" || exit; exec 2>&1; exec /bin/sh -c \"$1\"";

/// The commands of `worktree.setup`.
#[derive(Clone, Debug)]
pub(crate) struct SetUp {
    /// The file or the variable with the commands.
    pub from: String,
    pub commands: Vec<String>,
    pub is_allowed: bool,
    /// The time limit of each command.
    pub limit: Duration,
}

impl SetUp {
    /// Error: nobody consented, or a command failed.
    pub(crate) fn run(&self, outer: &mut WorkflowRun<'_>, folder: &Path) -> Result<(), Stop> {
        let consent = Consent {
            header: "Setup",
            of: self.from.clone(),
            purpose: "to set up the worktree",
            commands: self.commands.iter().map(|command| (LABEL.to_owned(), command.clone())).collect(),
            is_given: self.is_allowed,
            flag: "--allow-setup",
        };
        consent.check(&outer.settings().clone(), &outer.redactor())?;
        consent.ask(outer)?;
        self.commands.iter().try_for_each(|command| self.command(outer, command, folder))
    }

    fn command(&self, outer: &mut WorkflowRun<'_>, command: &str, folder: &Path) -> Result<(), Stop> {
        let args = ["-c", IN_FOLDER, "sh", command].map(str::to_owned).into_iter();
        let args = args.chain([folder.to_string_lossy().into_owned()]).collect();
        let env = outer.agent().base.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let shell = ShellCommand { args, env, title: Some(command.to_owned()), phase: None };
        let end = outer.step(Step { work: StepWork::Command(shell), limit: Some(self.limit), judge: None })?;
        if end.passed() {
            return Ok(());
        }
        let exit_code = end.exit.and_then(|exit| exit.code);
        let how = match exit_code {
            _ if end.timed_out => format!("took longer than {} s", self.limit.as_secs()),
            Some(code) => format!("failed with exit status {code}"),
            None => "was ended by a signal, or could not start".to_owned(),
        };
        let message = format!("A command of worktree.setup {how}, so the agent was not started: correct the command.");
        let phase = Some(Box::new(PhaseFailure {
            phase: LABEL.to_owned(),
            attempt: 1,
            command: Some(Text::from(command)),
            exit_code,
            timed_out: end.timed_out,
            output_tail: Text::from(last_bytes(&end.output, STDERR_TAIL_BYTES)),
        }));
        Err(Failure { phase, ..Failure::new(Code::VerificationFailed, message) }.into())
    }
}
