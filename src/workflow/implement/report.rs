//! The outcome of each phase: the report, and the failure of a phase that did not pass.

use super::phase_loop::{Attempt, Fault, PhaseProgress, Why};
use super::prompt::short;
use super::ready::ReadyPlan;
use crate::clean::last_bytes;
use crate::protocol::failure::{Code, Failure, PhaseFailure};
use crate::protocol::limits::STDERR_TAIL_BYTES;
use crate::protocol::outbound::{ArtifactRef, PhaseReport, Text};
use crate::protocol::words::Action;
use crate::workflow::counted;
use crate::workflow::plan::PlanPhase;
use std::borrow::Cow;
use std::time::Duration;

/// The maximum number of files of a phase in the report.
const FILES: usize = 1000;

/// The attempts, time and money that a run spent on a phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    pub(super) took: Duration,
    /// In US dollars.
    pub(super) cost_usd: Option<f64>,
    /// The files that its sessions changed.
    pub(super) files: Vec<ArtifactRef>,
    pub(super) commit: Option<String>,
}

impl Account {
    /// Adds a changed file once. A file that the phase created does not also count as modified.
    pub(super) fn add(&mut self, file: &ArtifactRef) {
        let covers = |known: &ArtifactRef| {
            let same = known.action == file.action;
            known.path == file.path && (same || (known.action, file.action) == (Action::Created, Action::Modified))
        };
        if self.files.len() < FILES && !self.files.iter().any(covers) {
            self.files.push(file.clone());
        }
    }
}

pub(super) fn report(phase: &PlanPhase, progress: &PhaseProgress, account: &Account) -> PhaseReport {
    PhaseReport {
        id: phase.id(),
        title: Text::from(phase.title.as_str()),
        state: progress.state,
        attempts: progress.attempts.into(),
        duration_ms: u64::try_from(account.took.as_millis()).unwrap_or(u64::MAX),
        cost_usd: account.cost_usd,
        files: account.files.clone(),
        commit: account.commit.clone(),
        unverified: progress.unverified.iter().map(|text| Text::from(text.as_str())).collect(),
    }
}

/// The failure for a phase that did not pass. `denials`: a sentence about denied permissions.
pub(super) fn failed(ready: &ReadyPlan, at: Attempt, why: Why, fault: &Fault, denials: &str) -> Failure {
    let phase = &ready.plan.phases[at.phase];
    let (id, target) = (phase.id(), &ready.target);
    let what = words(fault);
    let (code, mut message) = match &why {
        Why::Verification if at.number == 0 => {
            (Code::VerificationFailed, format!("{id} failed the final check twice: {what}."))
        }
        Why::Verification => {
            let attempts = counted(at.number as usize, "attempt");
            (Code::VerificationFailed, format!("{id} did not pass in {attempts}: {what}."))
        }
        Why::NoShell => {
            (Code::VerificationFailed, format!("The commands of {id} cannot run: install /bin/sh, or repair it."))
        }
        Why::NotFound => (Code::VerificationFailed, format!("{id} did not pass: in two attempts, {what}.")),
        Why::NoProgress => (Code::NoProgress, format!("The agent did nothing in two attempts at {id}.")),
        Why::Blocked(_) => (Code::Blocked, format!("The agent reported that it cannot continue with {id}.")),
    };
    message.push_str(&match &why {
        Why::NoShell => " Then run the same command to continue.".to_owned(),
        Why::Verification | Why::NoProgress | Why::Blocked(_) | Why::NotFound => {
            format!(" Correct the work or {target}, then run the same command to continue.")
        }
    });
    if let Fault::Protected(_) = fault {
        message.push_str(&format!(" To accept the changed files, remove the state line below the heading of {id}."));
    }
    message.push_str(denials);
    let mut failure = Failure::new(code, message);
    if let Why::Blocked(reason) = why {
        failure.agent_message = Some(Text::from(reason));
    }
    with_detail(failure, at, id, fault)
}

/// Adds the facts about the phase and its failed command.
fn with_detail(mut failure: Failure, at: Attempt, id: String, fault: &Fault) -> Failure {
    let mut detail = PhaseFailure { phase: id, attempt: at.number.into(), ..PhaseFailure::default() };
    if let Fault::Command(failing) = fault {
        detail.command = Some(Text::from(failing.command.as_str()));
        detail.exit_code = failing.exit_code;
        detail.timed_out = failing.timed_out;
        detail.output_tail = Text::from(last_bytes(&failing.output, STDERR_TAIL_BYTES));
    }
    failure.phase = Some(Box::new(detail));
    failure
}

/// The reason why an attempt failed, as the end of a sentence.
pub(super) fn words(fault: &Fault) -> Cow<'static, str> {
    let fixed = match fault {
        Fault::Command(failing) if failing.no_shell => "/bin/sh cannot be started",
        Fault::Command(failing) if !failing.changed.is_empty() => "its command changed protected files",
        Fault::Command(failing) if failing.timed_out => "its command took too long",
        Fault::Command(failing) if failing.not_found() => {
            return format!("its command was not found: {}", short(&failing.command, SHOWN)).into();
        }
        Fault::Command(_) => "its command failed",
        Fault::Protected(_) => "protected files changed",
        Fault::Idle => "the agent did nothing",
        Fault::Manual(_) => "a manual check was answered with No",
    };
    fixed.into()
}

/// The longest part of a command in a message, in characters.
const SHOWN: usize = 100;
