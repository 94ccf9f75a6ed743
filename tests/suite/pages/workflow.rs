//! Parts of the bodies that the test of the reference compares with the page: those of workflows, and a resolved
//! question.

use spektacular::protocol::failure::PhaseFailure;
use spektacular::protocol::outbound::{
    ArtifactRef, MovedFile, PhaseReport, ProgressKind, ReviewFinding, RuleViolation, WorkflowEnd, WorkflowStarted,
};
use spektacular::protocol::question::{Answer, Subject};
use spektacular::protocol::words::{Action, PhaseOutcome, PhaseState, Resolution, WorkflowKind};
use spektacular::protocol::workflow::{ShownOptions, WorkflowOptions};

pub(crate) fn workflow_started() -> WorkflowStarted {
    let options = WorkflowOptions::default().resolved();
    WorkflowStarted {
        name: WorkflowKind::Implement,
        project: "/p".into(),
        target: Some("t".into()),
        options: ShownOptions { of: WorkflowKind::Implement, settings: options },
    }
}

pub(crate) fn phase_failure() -> PhaseFailure {
    PhaseFailure { exit_code: Some(1), command: Some("c".into()), ..PhaseFailure::default() }
}

pub(crate) fn about_phase() -> ProgressKind {
    let (phase, title, state) = ("P1".into(), "t".into(), PhaseState::Started);
    ProgressKind::Phase { phase, title, number: 1, of: 1, attempt: 1, state, agent: "a".into() }
}

pub(crate) fn workflow_end() -> WorkflowEnd {
    let (severity, text) = ("high".into(), "t".into());
    let finding = ReviewFinding { file: Some("f".into()), line: Some(1), severity, text };
    let report = PhaseReport {
        id: "P1".into(),
        title: "t".into(),
        state: PhaseOutcome::Passed,
        agent: Some("a".into()),
        attempts: 1,
        duration_ms: 1,
        cost_usd: Some(0.5),
        files: vec![ArtifactRef { path: "p".into(), action: Action::Created }],
        commit: Some("c".into()),
        head: Some("h".into()),
        unverified: vec!["u".into()],
        reviewed_by: Some("b".into()),
        review: vec![finding.clone()],
    };
    WorkflowEnd {
        target: Some("t".into()),
        tasks: Some(1),
        violations: vec![RuleViolation { file: "f".into(), line: Some(1), rule: "r", text: "t".into() }],
        kept: vec![MovedFile { path: "p".into(), to: "o".into() }],
        phases: vec![report],
        review: vec![finding],
        ..WorkflowEnd::unknown(WorkflowKind::Implement)
    }
}

pub(crate) fn about_resolved(permission: Option<(Subject, Answer)>) -> ProgressKind {
    let (subject, value) = permission.unzip();
    ProgressKind::Resolved {
        question_id: "q_1".into(),
        resolution: Resolution::Policy,
        used_default: false,
        subject,
        value,
        what: "w".into(),
    }
}
