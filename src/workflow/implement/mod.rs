//! `implement`: carries out a plan phase by phase. A phase counts once spektacular itself has run its commands and they
//! have passed; the agent's word is never a result.
//!
//! | file | contents |
//! |---|---|
//! | `machine` | the loop, pure: attempts, verification, the final check |
//! | `site` | the loop's world: sessions, commands, questions, the clock of a phase |
//! | `ready` | what must hold before any agent starts |
//! | `conversation`, `observer`, `blocked` | the agent's sessions, and what is noticed in them |
//! | `command`, `question` | parts of the run without an agent |
//! | `plan_file`, `protect`, `commit` | plan.md, protected paths, commits |
//! | `prompt`, `judge`, `report` | texts for the agent, permissions of our own, the report |

mod blocked;
mod command;
mod commit;
mod conversation;
mod judge;
mod machine;
mod observer;
mod plan_file;
mod prompt;
mod protect;
mod question;
mod ready;
mod report;
mod site;

pub use ready::{Preview, Target, admit, preview};

use crate::config::Places;
use crate::failure::{Code, Failure, PhaseFailure};
use crate::protocol::limits::STDERR_TAIL_BYTES;
use crate::protocol::outbound::Text;
use crate::protocol::words::PhaseOutcome;
use crate::protocol::words::RefusalReason as Reason;
use crate::workflow::outer::{Ended, Outer};
use crate::workflow::plan::PlanPhase;
use crate::workflow::stop::Stop;
use machine::{Attempt, Fault, Loop, LoopEnd, LoopPhase, Why};
use ready::ReadyPlan;
use site::Site;

/// Carries out the plan, and ends the run.
pub fn carry(mut outer: Outer<'_>, target: Target, places: &Places) -> Ended {
    let outcome = begin(&mut outer, target, places);
    outer.close(outcome)
}

fn begin(outer: &mut Outer<'_>, target: Target, places: &Places) -> Result<String, Stop> {
    let settings = outer.settings().clone();
    let _locks = target.lock()?;
    let mut ready = ReadyPlan::read(target, &settings, places).map_err(|unfit| {
        outer.end.violations = unfit.breaches();
        Stop::from(unfit.failure)
    })?;
    outer.end.tasks = Some(ready.plan.tasks() as u64);
    outer.hide(vec![format!("{}/", ready.path.folder.to_string_lossy()), ".spektacular/local/".into()]);
    let commits = match ready.look() {
        Some(look) => Some(ready.commits(outer.errand(None, look)?)?),
        None => None,
    };
    ready.consentable(&settings)?;
    for (warning, text) in std::mem::take(&mut ready.warnings) {
        outer.warn(warning, text);
    }
    let phases: Vec<LoopPhase> = ready.plan.phases.iter().map(phase).collect();
    let attempts = u32::try_from(ready.attempts).unwrap_or(u32::MAX);
    let mut all = Loop::new(&phases, attempts, ready.max_phases);
    let mut site = Site::new(outer, &ready, commits);
    site.tell_steps();
    let ending = ready.consent(site.outer).and_then(|()| {
        let ending = all.run(&mut site);
        // A forged plan.md counts for nothing, however the run ends: the next one would begin with it.
        let restored = site.restore();
        ending.and_then(|end| restored.map(|()| end))
    });
    let reports = ready.plan.phases.iter().zip(&all.progress).zip(&site.accounts);
    let reports = reports.map(|((phase, progress), account)| report::report(phase, progress, account)).collect();
    outer.end.phases = reports;
    let passed = all.progress.iter().filter(|phase| is_passed(phase.state)).count();
    match ending? {
        LoopEnd::Complete => outer.end.complete = true,
        LoopEnd::Enough => {}
        LoopEnd::Failed(at, why, fault) => {
            let failure = failed(&ready, at, why, &fault, &outer.denials());
            return Err(failure.into());
        }
    }
    let of = ready.plan.phases.len();
    let noun = if of == 1 { "phase" } else { "phases" };
    Ok(format!("{}: {passed} of {of} {noun} passed", ready.target))
}

fn is_passed(state: PhaseOutcome) -> bool {
    match state {
        PhaseOutcome::Done | PhaseOutcome::Passed => true,
        PhaseOutcome::Failed | PhaseOutcome::Open => false,
    }
}

/// A phase as the loop sees it.
fn phase(phase: &PlanPhase) -> LoopPhase {
    LoopPhase {
        commands: phase.verify.iter().map(|command| command.text.clone()).collect(),
        manual: phase.manual.iter().map(|check| check.text.clone()).collect(),
        done: phase.is_done(),
        begun: phase.state.is_some(),
    }
}

/// The refusal of a phase that protects too much.
fn too_large(phase: &PlanPhase) -> Failure {
    let message = format!(
        "{} protects more than 10,000 files or 64 MiB: name fewer under `### Protect` in the plan.",
        phase.id()
    );
    Failure::refused_for(Reason::TooLarge, message)
}

/// The failure of a phase that did not pass. `denials`: a sentence about permissions that were denied.
fn failed(ready: &ReadyPlan, at: Attempt, why: Why, fault: &Fault, denials: &str) -> Failure {
    let phase = &ready.plan.phases[at.phase];
    let (id, target) = (phase.id(), &ready.target);
    let what = words(fault);
    let (code, mut message) = match &why {
        Why::Verification if at.number == 0 => {
            (Code::VerificationFailed, format!("{id} failed the final check twice: {what}."))
        }
        Why::Verification => {
            let attempts = if at.number == 1 { "1 attempt".to_owned() } else { format!("{} attempts", at.number) };
            (Code::VerificationFailed, format!("{id} did not pass in {attempts}: {what}."))
        }
        Why::NoProgress => (Code::NoProgress, format!("The agent did nothing in two attempts at {id}.")),
        Why::Blocked(_) => (Code::Blocked, format!("The agent says that it cannot go on with {id}.")),
    };
    message.push_str(&format!(" Correct the work or {target}, and run the same command to go on."));
    message.push_str(denials);
    let mut failure = Failure::new(code, message);
    if let Why::Blocked(reason) = why {
        failure.agent_message = Some(Text::from(reason));
    }
    let mut detail = PhaseFailure { phase: id, attempt: at.number.into(), ..PhaseFailure::default() };
    if let Fault::Command(failing) = fault {
        detail.command = Some(Text::from(failing.command.as_str()));
        detail.exit_code = failing.exit_code;
        detail.timed_out = failing.timed_out;
        detail.output_tail = Text::from(prompt::last(&failing.output, STDERR_TAIL_BYTES));
    }
    failure.phase = Some(Box::new(detail));
    failure
}

/// Why an attempt failed, as the end of a sentence.
fn words(fault: &Fault) -> &'static str {
    match fault {
        Fault::Command(failing) if failing.timed_out => "its command took too long",
        Fault::Command(_) => "its command fails",
        Fault::Protected(_) => "protected files changed",
        Fault::Idle => "the agent did nothing",
        Fault::Manual(_) => "a manual check was answered with No",
    }
}

/// A text on one line, cut to this many characters.
fn short(text: &str, chars: usize) -> String {
    let line = crate::clean::one_line(text);
    match line.char_indices().nth(chars) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line,
    }
}

/// The running program's own path.
fn program() -> String {
    crate::process::myself::file().map_or_else(|| "spektacular".into(), |path| path.to_string_lossy().into_owned())
}
