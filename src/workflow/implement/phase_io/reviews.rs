//! The review of a phase, and the record of the work tree before it.

use super::PhaseIo;
use crate::process::query::Until;
use crate::protocol::words::Warning;
use crate::workflow::project::FILE_BYTES_MAX;
use crate::workflow::review::{ReviewVerdict, in_project, shown_difference};
use crate::workflow::started::{self, PhaseStart, Since};
use crate::workflow::stop::Stop;
use std::fmt::Write;
use std::path::Path;

impl PhaseIo<'_, '_, '_> {
    /// Remembers the work tree before the phase, for reviews and for `diff`.
    pub(super) fn record_start(&mut self, index: usize) -> Result<(), Stop> {
        let phase = self.phase(index);
        let is_first = self.ready.plan.phases.iter().all(|phase| phase.state.is_none() && !phase.is_done());
        let is_first = is_first && self.accounts.iter().all(|account| account.agent.is_none());
        let start = PhaseStart {
            number: phase.number,
            begun: phase.state.is_some() && self.underway[index],
            is_first,
            reviews: self.ready.options.review.is_some(),
        };
        match started::begin(&self.ready.project, &self.ready.path.folder, start) {
            Some(task) => {
                let left = self.left()?;
                self.outer.wait_for_task(left, task).map(drop)
            }
            None => Ok(()),
        }
    }

    /// Also returns whether the review may have changed files.
    pub(super) fn review_phase(&mut self, index: usize) -> Result<(ReviewVerdict, bool), Stop> {
        let (phase, project) = (self.phase(index), self.ready.project.clone());
        let subject = format!("Phase {}: {}\n\n{}", phase.number, phase.title, phase.text.trim());
        let difference = self.phase_difference(index)?;
        let spec = self.ready.plan.spec.as_ref().map(|spec| project.read(Path::new(&spec.path), FILE_BYTES_MAX));
        let spec = spec.and_then(Result::ok).flatten().unwrap_or_default();
        let prompt = self.ready.prompts.review(&subject, &String::from_utf8_lossy(&spec), &difference);
        let tree = self.work_tree()?;
        let (cost, left) = (self.outer.usage().cost_usd, self.left()?);
        let verdict = self.outer.review(&phase.id(), prompt, left, |file| in_project(&project, file));
        self.account(index, cost);
        let verdict = verdict?;
        if verdict != ReviewVerdict::Unreviewed {
            self.accounts[index].reviewed_by = Some(self.outer.reviewer());
        }
        self.restore()?;
        let reported = self.outer.seen().files.iter().any(|file| !super::is_own(file.path.shown()));
        let changed = if reported { Some(true) } else { self.changed_since(tree)? };
        if changed == Some(true) {
            let text = format!("{}: the review changed files, so the commands run again", phase.id());
            self.outer.warn(Warning::UnexpectedChange, text);
        }
        // What git cannot tell counts as a change: nothing that has not been verified passes.
        let may_differ = changed != Some(false);
        if may_differ {
            self.stamps = None;
        }
        Ok((verdict, may_differ))
    }

    fn phase_difference(&mut self, index: usize) -> Result<String, Stop> {
        let (project, plan) = (self.ready.project.clone(), self.ready.path.folder.clone());
        let since = Since::Phase(self.phase(index).number);
        let look = move |until: &Until| started::difference(&project, &plan, since, until);
        if let Some(difference) = self.wait(started::LIMIT, look)?.flatten() {
            return Ok(shown_difference(&difference));
        }
        let mut text = "The changes cannot be shown here. The agent changed these files; read them:\n".to_owned();
        for file in &self.accounts[index].files {
            let _ = write!(text, "\n- {} ({})", file.path.shown(), file.action.word());
        }
        Ok(text)
    }
}
