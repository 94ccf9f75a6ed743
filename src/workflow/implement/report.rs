//! The report: what became of each phase.

use super::machine::PhaseProgress;
use crate::protocol::outbound::{ArtifactRef, PhaseReport, Text};
use crate::protocol::words::Action;
use crate::workflow::plan::PlanPhase;
use std::time::Duration;

/// The most files of a phase in the report.
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
    /// Adds a changed file, once. A file that the phase created is not modified too.
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

/// The report of a phase.
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
