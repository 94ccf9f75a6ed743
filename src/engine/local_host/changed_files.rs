//! The search for changed files at the agent's end, which git answers.

use super::rest::Rested;
use super::{EndWithFiles, LocalHost};
use crate::engine::changes::Waiting;
use crate::process::git::{Changes, GitResult, Incomplete};
use crate::run::AgentEnd;
use crossbeam_channel::Receiver;
use std::time::Instant;

impl LocalHost {
    /// Determines the changed files. `None`: the agent's end waits for git.
    pub(in crate::engine) fn find_changes(&mut self, end: AgentEnd, stopping: bool) -> Option<EndWithFiles> {
        match self.watch.compare(stopping) {
            Some(changes) => Some(self.with_files(end, changes, stopping)),
            None => {
                self.watch.wait(Waiting::Run(end));
                None
            }
        }
    }

    fn with_files(&mut self, end: AgentEnd, changes: Changes, stopping: bool) -> EndWithFiles {
        (end, self.watch.files(changes, stopping))
    }

    /// The channel of git's answer.
    pub(in crate::engine) fn git(&self) -> Receiver<GitResult> {
        self.watch.told()
    }

    /// The time at which the wait for git ends.
    pub(in crate::engine) fn tires_at(&self) -> Option<Instant> {
        self.watch.due()
    }

    /// Handles git's answer, or its failure.
    pub(in crate::engine) fn git_told(&mut self, told: Option<GitResult>, stopping: bool) -> Option<EndWithFiles> {
        let changes = self.watch.finish_job(told);
        match self.watch.waited() {
            None => {}
            Some(Waiting::Sweep) => self.sweep(stopping),
            Some(Waiting::Run(end)) => {
                let changes = changes.unwrap_or(Changes::Incomplete(Incomplete::Late));
                return Some(self.with_files(end, changes, stopping));
            }
            Some(Waiting::BaselineAtRest) => self.compare_at_rest(),
            Some(Waiting::Rest) => {
                let changes = changes.unwrap_or(Changes::Incomplete(Incomplete::Late));
                self.rested = Some(Rested::Files(self.watch.files(changes, stopping)));
            }
        }
        None
    }

    /// Abandons git once the wait is over.
    pub(in crate::engine) fn tire_of_git(&mut self, stopping: bool) -> Option<EndWithFiles> {
        if self.watch.due().is_none_or(|due| due > Instant::now()) {
            return None;
        }
        self.watch.end();
        match self.watch.waited() {
            None => {}
            Some(Waiting::Sweep) => self.sweep(stopping),
            Some(Waiting::Run(end)) => {
                return Some(self.with_files(end, Changes::Incomplete(Incomplete::Late), stopping));
            }
            Some(Waiting::BaselineAtRest | Waiting::Rest) => {
                let files = self.watch.files(Changes::Incomplete(Incomplete::Late), stopping);
                self.rested = Some(Rested::Files(files));
            }
        }
        None
    }
}
