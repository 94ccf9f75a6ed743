//! `implement`: carries out a plan phase by phase. A phase passes only when spektacular itself has run its commands
//! with success; the agent's word is never a result.
//!
//! | file | contents |
//! |---|---|
//! | `phase_loop` | the loop, pure: attempts, verification, the final check |
//! | `phase_io` | the I/O of the loop: sessions, commands, questions, the clock of a phase |
//! | `ready` | the conditions before any agent starts |
//! | `command`, `question` | commands of the plan, and questions of spektacular's own |
//! | `plan_file`, `protect`, `commit` | plan.md, protected paths, commits |
//! | `attempted`, `kept_state` | what a run leaves for the next one: changed files, the state of protected paths |
//! | `prompt`, `judge`, `report` | texts for the agent, permissions of our own, the report |

mod attempted;
mod command;
mod commit;
mod judge;
mod kept_state;
mod phase_io;
mod phase_loop;
mod plan_file;
mod prompt;
mod protect;
mod question;
mod ready;
mod report;

pub(crate) use ready::{Preview, Target, admit, preview};

use crate::protocol::failure::Failure;
use crate::protocol::words::PhaseOutcome;
use crate::workflow::admission::Surroundings;
use crate::workflow::counted;
use crate::workflow::project::LOCAL;
use crate::workflow::stop::Stop;
use crate::workflow::violation::Violation;
use crate::workflow::workflow_run::WorkflowRun;
use phase_io::PhaseIo;
use phase_loop::{Loop, LoopEnd};
use ready::ReadyPlan;

/// Returns the text of run.completed.
pub(crate) fn carry(outer: &mut WorkflowRun<'_>, target: Target, around: &Surroundings) -> Result<String, Stop> {
    let settings = outer.settings().clone();
    let _locks = target.lock()?;
    let reading = ReadyPlan::begin(target, &settings, &around.places);
    let read = outer.wait_for_task(None, reading)?.ok_or_else(|| Stop::from(Failure::no_thread()))?;
    let mut ready = read.map_err(|unfit| {
        outer.end.tasks = unfit.tasks;
        outer.end.violations = unfit.violations.iter().map(Violation::breach).collect();
        Stop::from(unfit.failure)
    })?;
    outer.end.tasks = Some(ready.plan.tasks() as u64);
    outer.hide(vec![format!("{}/", ready.path.folder.to_string_lossy()), format!("{LOCAL}/")]);
    let commits = match ready.look() {
        Some(look) => Some(ready.commits(outer.wait_for_task(None, look)?, &around.own)?),
        None => None,
    };
    let consent = ready.consent();
    consent.check(&settings, &outer.redactor())?;
    for (warning, text) in std::mem::take(&mut ready.warnings) {
        outer.warn(warning, text);
    }
    let mut all = Loop::new(&ready.plan.phases, &ready.options);
    let mut site = PhaseIo::new(outer, &ready, commits);
    site.tell_steps();
    let ending = consent.ask(site.outer).and_then(|()| {
        let ending = site.commit_due().and_then(|()| all.run(&mut site));
        // However the run ends, a forged plan.md is replaced, because the next run would start from it.
        let restored = site.restore();
        site.remember_changes();
        ending.and_then(|end| restored.map(|()| end))
    });
    let reports = ready.plan.phases.iter().zip(&all.progress).zip(&site.accounts);
    let reports = reports.map(|((phase, progress), account)| report::report(phase, progress, account)).collect();
    outer.end.review = all.progress.iter().flat_map(|progress| progress.findings.clone()).collect();
    outer.end.phases = reports;
    let passed = all.progress.iter().filter(|phase| is_passed(phase.state)).count();
    match ending.map_err(|stop| report::late(stop, &ready, &all.progress))? {
        LoopEnd::Complete => outer.end.complete = true,
        LoopEnd::Enough => {}
        LoopEnd::Failed(at, why, fault) => {
            let failure = report::failed(&ready, at, why, &fault, (outer.again, &outer.denials()));
            return Err(failure.into());
        }
    }
    let of = ready.plan.phases.len();
    Ok(format!("{}: {passed} of {} passed", ready.target, counted(of, "phase")))
}

fn is_passed(state: PhaseOutcome) -> bool {
    match state {
        PhaseOutcome::Done | PhaseOutcome::Passed => true,
        PhaseOutcome::Failed | PhaseOutcome::Open => false,
    }
}
