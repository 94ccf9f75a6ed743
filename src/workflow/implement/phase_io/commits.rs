//! The commits of a run: their steps as parts of the run, and the watch over HEAD.

use super::PhaseIo;
use crate::process::git::{Head, moved_head};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::words::Warning;
use crate::run::StepWork;
use crate::workflow::implement::command::hidden;
use crate::workflow::implement::commit::{self, CommitMessage, Commits, GitStep, Share, list, named};
use crate::workflow::implement::phase_loop::PhaseHost;
use crate::workflow::part::{Step, StepEnd};
use crate::workflow::project::LOCAL;
use crate::workflow::stop::Stop;
use std::path::{Path, PathBuf};

/// The maximum number of files that a warning names.
const NAMED: usize = 20;

impl PhaseIo<'_, '_, '_> {
    /// Makes the commit of a phase that passed in an earlier run, if it is missing.
    pub(in crate::workflow::implement) fn commit_due(&mut self) -> Result<(), Stop> {
        let due = self.commits.as_ref().and_then(Commits::due);
        let index = due.and_then(|due| self.ready.plan.phases.iter().position(|phase| phase.number == due));
        // The final check judges a commit that a hook changes.
        index.map_or(Ok(()), |index| self.commit(index).map(drop))
    }

    /// `None`: HEAD is where the phase began, or has new commits on top. Otherwise, warns, and returns the sentence.
    pub(super) fn watch_head(&mut self, index: usize) -> Result<Option<String>, Stop> {
        let Some(from) = self.head.clone() else { return Ok(None) };
        let (folder, old) = (self.ready.project.folder().to_owned(), from.clone());
        let look = self.wait(super::GIT_LIMIT, move |until| moved_head(&folder, &old, until).ok().flatten())?;
        Ok(look.flatten().map(|now| self.tell_head(index, &from, &now)))
    }

    /// Returns the sentence of the warning, without the phase.
    pub(super) fn tell_head(&mut self, index: usize, from: &Head, now: &Head) -> String {
        let moved = format!("HEAD was {from}, and is now {now}");
        if self.accounts[index].head.as_ref() != Some(&moved) {
            let text = format!("{}: {moved}", self.phase(index).id());
            self.outer.warn(Warning::UnexpectedChange, text);
            self.accounts[index].head = Some(moved.clone());
        }
        moved
    }

    /// Runs a step of a commit, with the time limit of a command.
    fn git(&mut self, commits: &Commits, step: GitStep, arguments: &[String; 3]) -> Result<StepEnd, Stop> {
        let root = commits.root().to_string_lossy().into_owned();
        let command = hidden(&step.script(), root, arguments.clone());
        let limit = Some(self.ready.options.verify_timeout_s.duration());
        self.outer.step(Step { work: StepWork::Command(command), limit, judge: None })
    }

    /// Notes the files of a phase as the commands have judged them. Returns whether it could.
    pub(super) fn note_judged(&mut self, commits: &Commits, index: usize) -> Result<bool, Stop> {
        let now = self.outer.wait_for_task(None, commit::look(commits.root()))?;
        let share = commits.share(now, &mut self.committed.clone(), &self.ready.documents());
        let Some(share) = share.ok().filter(|share| !share.files.is_empty()) else { return Ok(false) };
        let arguments = self.arguments(commits, index, &share)?;
        let end = self.git(commits, GitStep::Judged, &arguments)?;
        Ok(end.passed())
    }

    /// Writes the lists for the steps of a commit. Returns the arguments of their scripts.
    fn arguments(&mut self, commits: &Commits, index: usize, share: &Share) -> Result<[String; 3], Stop> {
        let phase = self.phase(index);
        let names = Path::new(LOCAL).join("commit");
        let unwritable = |_| {
            Stop::failed(
                Code::ResourceExhausted,
                format!(
                    "{} cannot be written: free some space, or check the permissions of its folder.",
                    names.display()
                ),
            )
        };
        // These change after the commands have judged the files: plan.md, and the boxes of the specification.
        let plan: Vec<PathBuf> = share.files.iter().filter(|file| commits.is_own(file)).cloned().collect();
        for (name, files) in [(names.clone(), &share.files), (names.with_extension("plan"), &plan)] {
            self.ready.project.write(&name, &list(files)).map_err(unwritable)?;
        }
        let tasks: Vec<String> = phase.tasks.iter().map(crate::workflow::plan::Task::id).collect();
        let plan = self.ready.path.file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let message = CommitMessage {
            plan: &plan,
            target: &self.ready.target,
            number: phase.number,
            title: &phase.title,
            tasks: &tasks.join(" "),
        };
        let text = message.text(self.ready.options.commit_message.as_deref());
        let at = self.ready.project.folder().join(&names).to_string_lossy().into_owned();
        let git = commits.git().to_string_lossy().into_owned();
        Ok([at, text, git])
    }

    /// Returns whether the commit has other content than the commands have judged.
    pub(super) fn commit_with(&mut self, commits: &Commits, index: usize) -> Result<bool, Stop> {
        let phase = self.phase(index);
        let share = self.share(commits, index)?;
        if share.files.is_empty() {
            return Ok(false);
        }
        let arguments = self.arguments(commits, index, &share)?;
        // Nothing was noted if the phase passed in an earlier run.
        let steps = [GitStep::Judged, GitStep::Add, GitStep::Commit];
        for step in steps.into_iter().skip(usize::from(std::mem::take(&mut self.has_judged))) {
            let end = self.git(commits, step, &arguments)?;
            if !end.passed() {
                self.git(commits, GitStep::Reset, &arguments)?;
                let why = if end.timed_out { "it took longer than verify_timeout_s" } else { "see its output" };
                let mut failure = refused(&phase.id(), self.outer.again, why);
                failure.agent_message = commit::said(&end.output);
                return Err(failure.into());
            }
        }
        self.head = commit::head(self.outer.wait_for_task(None, commit::look(commits.root()))?);
        self.accounts[index].commit = self.head.as_ref().and_then(|head| head.commit.clone());
        let end = self.git(commits, GitStep::Settle, &arguments)?;
        let status = end.exit.and_then(|exit| exit.code).filter(|_| !end.timed_out);
        Ok(commit::is_changed((status, &end.output), &phase.id(), self.outer.again)?)
    }

    /// Error: the commit would lack files of the phase, or HEAD is elsewhere.
    fn share(&mut self, commits: &Commits, index: usize) -> Result<Share, Stop> {
        let (phase, again) = (self.phase(index).id(), self.outer.again);
        if let Some(moved) = self.watch_head(index)? {
            let message = format!(
                "{phase} has passed, but its commit does not belong here: {moved}. Check out what was there, or make \
                 sure that the new place is right, then {again} to make the commit and continue."
            );
            return Err(Stop::failed(Code::CommitFailed, message));
        }
        let now = self.outer.wait_for_task(None, commit::look(commits.root()))?;
        let share = commits.share(now, &mut self.committed, &self.ready.documents());
        let share = share.map_err(|_| Stop::from(refused(&phase, again, "it could not list the changes")))?;
        for (files, why) in [
            (&share.left, "because they had changed before"),
            (&share.elsewhere, "because they are in another repository"),
        ] {
            if !files.is_empty() {
                self.outer.warn(Warning::NotCommitted, not_committed(&phase, why, files));
            }
        }
        if share.elsewhere.is_empty() {
            return Ok(share);
        }
        let message = format!(
            "{phase} has passed, but a commit here cannot hold what it changed in another repository: {}. Commit that \
             there, or remove the inner .git, then {again} to make the commit and continue.",
            named(&share.elsewhere, NAMED)
        );
        Err(Stop::failed(Code::CommitFailed, message))
    }
}

fn refused(phase: &str, again: &str, why: &str) -> Failure {
    let message = format!(
        "git refused the commit of {phase}, which has passed: {why}. To make the commit and continue, {again}, or commit by \
         hand first."
    );
    Failure::new(Code::CommitFailed, message)
}

fn not_committed(phase: &str, why: &str, files: &[PathBuf]) -> String {
    format!("{phase}: not committed, {why}: {}", named(files, NAMED))
}
