//! The outcome of each phase: the report, and the failure of a phase that did not pass.

use super::is_passed;
use super::phase_loop::{Attempt, Failing, Fault, PhaseProgress, Why};
use super::prompt::short;
use super::ready::ReadyPlan;
use crate::clean::last_bytes;
use crate::protocol::failure::{Code, Failure, PhaseFailure};
use crate::protocol::limits::STDERR_TAIL_BYTES;
use crate::protocol::outbound::{ArtifactRef, PhaseReport, Text};
use crate::protocol::words::{Action, LimitField};
use crate::workflow::counted;
use crate::workflow::plan::PlanPhase;
use crate::workflow::stop::Stop;
use std::borrow::Cow;
use std::time::Duration;

/// The maximum number of files of a phase in the report.
const FILES: usize = 1000;

#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    pub(super) took: Duration,
    pub(super) cost_usd: Option<f64>,
    /// The agent that worked on it last.
    pub(super) agent: Option<String>,
    /// The agent that reviewed it last.
    pub(super) reviewed_by: Option<String>,
    pub(super) files: Vec<ArtifactRef>,
    pub(super) commit: Option<String>,
    /// The move of HEAD to another branch, or off its commit.
    pub(super) head: Option<String>,
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
        agent: account.agent.clone(),
        attempts: progress.attempts.into(),
        duration_ms: u64::try_from(account.took.as_millis()).unwrap_or(u64::MAX),
        cost_usd: account.cost_usd,
        files: account.files.clone(),
        commit: account.commit.clone(),
        head: account.head.clone().map(Text::from),
        reviewed_by: account.reviewed_by.clone(),
        review: progress.findings.clone(),
        unverified: progress.unverified.iter().map(|text| Text::from(text.as_str())).collect(),
    }
}

/// `again`: the way to continue. `denials`: a sentence about denied permissions.
pub(super) fn failed(
    ready: &ReadyPlan,
    at: Attempt,
    why: Why,
    fault: &Fault,
    (again, denials): (&str, &str),
) -> Failure {
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
        Why::NoProgram => (Code::VerificationFailed, format!("{id} cannot pass: {what}.")),
        Why::NotFound => (Code::VerificationFailed, format!("{id} did not pass: in two attempts, {what}.")),
        Why::NoProgress => {
            let before = match fault {
                Fault::Idle(Some(failing)) => format!(" Before that, {}.", failed_command(failing)),
                Fault::Idle(None) | Fault::Command(_) | Fault::Protected(_) | Fault::Manual(_) | Fault::Review(_) => {
                    String::new()
                }
            };
            (Code::NoProgress, format!("The agent did nothing in two attempts at {id}.{before}"))
        }
        Why::Blocked(_) => (Code::Blocked, format!("The agent reported that it cannot continue with {id}.")),
    };
    message.push_str(&match &why {
        Why::NoShell => format!(" Then {again} to continue."),
        Why::NoProgram => format!(" Install its program, or correct {target}, then {again} to continue."),
        Why::Verification | Why::NoProgress | Why::Blocked(_) | Why::NotFound => {
            format!(" Correct the work or {target}, then {again} to continue.")
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

fn with_detail(mut failure: Failure, at: Attempt, id: String, fault: &Fault) -> Failure {
    let mut detail = PhaseFailure { phase: id, attempt: at.number.into(), ..PhaseFailure::default() };
    let failing = match fault {
        Fault::Command(failing) => Some(failing),
        Fault::Idle(failing) => failing.as_deref(),
        Fault::Protected(_) | Fault::Manual(_) | Fault::Review(_) => None,
    };
    if let Some(failing) = failing {
        detail.command = Some(Text::from(failing.command.as_str()));
        detail.exit_code = failing.exit_code;
        detail.timed_out = failing.timed_out;
        detail.output_tail = Text::from(last_bytes(&failing.output, STDERR_TAIL_BYTES));
    }
    failure.phase = Some(Box::new(detail));
    failure
}

/// Adds the facts about the phase to the failure of its time limit.
pub(super) fn late(stop: Stop, ready: &ReadyPlan, progress: &[PhaseProgress]) -> Stop {
    match stop {
        Stop::Failed(mut failure) if failure.limit == Some(LimitField::PhaseTimeout) => {
            failure.value = ready.options.phase_timeout_s.map(|limit| limit.0);
            let open = ready.plan.phases.iter().zip(progress).find(|(_, progress)| !is_passed(progress.state));
            failure.phase = open.map(|(phase, progress)| {
                let attempt = progress.attempts.into();
                Box::new(PhaseFailure { phase: phase.id(), attempt, ..PhaseFailure::default() })
            });
            Stop::Failed(failure)
        }
        other @ (Stop::Failed(_) | Stop::Cancelled { .. } | Stop::Lost) => other,
    }
}

/// The reason why an attempt failed, as the end of a sentence.
pub(super) fn words(fault: &Fault) -> Cow<'static, str> {
    match fault {
        Fault::Command(failing) => failed_command(failing),
        Fault::Protected(_) => "protected files changed".into(),
        Fault::Idle(_) => "the agent did nothing".into(),
        Fault::Manual(_) => "a manual check was answered with No".into(),
        Fault::Review(found) => format!("the review has {}", counted(found.len(), "finding")).into(),
    }
}

fn failed_command(failing: &Failing) -> Cow<'static, str> {
    if failing.no_shell {
        "/bin/sh cannot be started".into()
    } else if !failing.changed.is_empty() {
        "its command changed protected files".into()
    } else if failing.timed_out {
        "its command took too long".into()
    } else if failing.not_found() {
        format!("its command was not found: {}", short(&failing.command, SHOWN)).into()
    } else {
        "its command failed".into()
    }
}

/// The longest part of a command in a message, in characters.
const SHOWN: usize = 100;
