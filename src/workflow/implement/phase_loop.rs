//! The loop of `implement` as a plain function over a [`PhaseHost`]: which phase comes next, when an attempt has failed,
//! when the commands run, and how the run ends. Only the host touches processes, files and clocks.

use super::is_passed;
use crate::protocol::review::ReviewFinding;
use crate::protocol::words::{PhaseOutcome, PhaseState};
use crate::protocol::workflow::WorkflowSettings;
use crate::workflow::conversation::AgentTurn;
use crate::workflow::plan::PlanPhase;
use crate::workflow::review::ReviewVerdict;
use std::collections::HashSet;
use std::ops::ControlFlow;

#[derive(Clone, Debug)]
pub(crate) struct PhaseProgress {
    pub(crate) state: PhaseOutcome,
    /// The number of attempts in this run.
    pub(crate) attempts: u32,
    /// The manual checks of the last attempt that nobody answered.
    pub(crate) unverified: Vec<String>,
    pub(crate) findings: Vec<ReviewFinding>,
    /// The number of times that findings went back to the agent.
    rounds: u32,
}

/// The state that plan.md records for a phase, with the change of its boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    InProgress,
    /// Passed, with all boxes ticked.
    Passed,
    Failed,
    /// Failed, with all boxes unticked.
    Reopened,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failing {
    pub(crate) command: String,
    /// `None`: a signal or its time limit ended it, or it could not start.
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) timed_out: bool,
    /// The protected paths that it changed. It has failed then, whatever its exit status.
    pub(crate) changed: Vec<String>,
    /// Whether there is no `/bin/sh` to run it.
    pub(crate) no_shell: bool,
    /// The end of its joined stdout and stderr, redacted.
    pub(crate) output: String,
}

/// The exit status with which a shell reports that it did not find a command.
const NOT_FOUND: i32 = 127;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Command(Failing),
    /// These protected paths changed since the phase began.
    Protected(Vec<String>),
    /// The agent did nothing. The command of the phase that failed last in this run.
    Idle(Option<Box<Failing>>),
    Manual(String),
    Review(Vec<ReviewFinding>),
}

impl Failing {
    pub(crate) fn not_found(&self) -> bool {
        self.exit_code == Some(NOT_FOUND)
    }

    fn may_be_flaky(&self) -> bool {
        !(self.timed_out || self.no_shell || self.not_found()) && self.changed.is_empty()
    }
}

impl Fault {
    fn no_shell(&self) -> bool {
        matches!(self, Fault::Command(failing) if failing.no_shell)
    }

    fn not_found(&self) -> bool {
        matches!(self, Fault::Command(failing) if failing.not_found())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnPrompt<'a> {
    /// A new session with the phase's prompt.
    First {
        /// Whether an earlier run began the phase.
        earlier: bool,
        /// The reason why the final check reopened the phase.
        reopened: Option<&'a Failing>,
    },
    /// A further turn of the same session.
    Retry(&'a Fault),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManualAnswer {
    Yes,
    No,
    /// Declined, timed out, or no user is present.
    Unanswered,
}

/// A phase, by its index, and an attempt at it, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) phase: usize,
    /// 0: the baseline or the final check.
    pub(crate) number: u32,
}

/// Everything outside the loop. An error ends the run at once and leaves the plan unchanged.
pub(crate) trait PhaseHost {
    type Stop;
    /// Begins a phase: starts its clock and records its protected paths.
    fn begin(&mut self, phase: usize) -> Result<(), Self::Stop>;
    /// Stops the phase's clock.
    fn end(&mut self, phase: usize);
    /// Writes the state line, and the boxes if the mark changes them.
    fn mark(&mut self, at: Attempt, mark: Mark) -> Result<(), Self::Stop>;
    fn tell(&mut self, at: Attempt, step: PhaseState, why: Option<&Fault>);
    /// Gives the agent a turn. Afterwards, nothing of the agent runs any longer, and plan.md is as it was.
    fn turn(&mut self, at: Attempt, prompt: TurnPrompt<'_>) -> Result<AgentTurn, Self::Stop>;
    /// Records the protected paths of all phases, before the final check.
    fn begin_final(&mut self) -> Result<(), Self::Stop>;
    /// The protected paths that changed since the phase, or the final check, began.
    fn differences(&mut self, phase: usize) -> Result<Vec<String>, Self::Stop>;
    /// Whether the system lacks the program of a command that failed in the baseline.
    fn lacks_program(&mut self, failing: &Failing) -> Result<bool, Self::Stop>;
    /// Whether a phase whose commands pass before any work counts as passed.
    fn accepts_done(&mut self, at: Attempt) -> Result<bool, Self::Stop>;
    /// `None`: the command passed.
    fn command(&mut self, at: Attempt, command: &str) -> Result<Option<Failing>, Self::Stop>;
    /// Notes the work that all commands of a phase have judged, for its commit.
    fn judged(&mut self, phase: usize) -> Result<(), Self::Stop>;
    fn tell_flaky(&mut self, at: Attempt, command: &str);
    /// Also returns whether the review may have changed files.
    fn review(&mut self, at: Attempt) -> Result<(ReviewVerdict, bool), Self::Stop>;
    fn tell_open(&mut self, at: Attempt, findings: &[ReviewFinding]);
    fn manual(&mut self, at: Attempt, text: &str) -> Result<ManualAnswer, Self::Stop>;
    /// Commits a passed phase, if the run commits. Returns whether the commit has other content than the commands judged.
    fn commit(&mut self, phase: usize) -> Result<bool, Self::Stop>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The last attempt failed, or the final check failed twice in the phase.
    Verification,
    /// The agent did nothing in two attempts in a row.
    NoProgress,
    Blocked(String),
    NoShell,
    /// The program of a command is missing before any attempt.
    NoProgram,
    /// A command was not found in two attempts in a row.
    NotFound,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoopEnd {
    /// Every command of the plan has passed in the final state.
    Complete,
    /// The maximum number of phases has passed.
    Enough,
    Failed(Attempt, Why, Fault),
}

/// The state of the loop. The progress of the phases stays readable after an error of the host.
pub(crate) struct Loop<'p> {
    phases: &'p [PlanPhase],
    attempts: u32,
    max_phases: Option<u64>,
    /// The maximum number of times that the findings about a phase go back to the agent. `None`: nobody reviews.
    review_rounds: Option<u32>,
    pub(crate) progress: Vec<PhaseProgress>,
    /// Commands that have passed since the agent's last turn.
    passed: HashSet<&'p str>,
    /// For each phase, the failure for which the final check reopened it.
    reopened: Vec<Option<Failing>>,
}

impl<'p> Loop<'p> {
    pub(crate) fn new(phases: &'p [PlanPhase], options: &WorkflowSettings) -> Loop<'p> {
        let state = |phase: &PlanPhase| if phase.is_done() { PhaseOutcome::Done } else { PhaseOutcome::Open };
        let progress = phases.iter().map(|phase| PhaseProgress {
            state: state(phase),
            attempts: 0,
            unverified: Vec::new(),
            findings: Vec::new(),
            rounds: 0,
        });
        Loop {
            phases,
            attempts: options.attempts,
            max_phases: options.max_phases,
            review_rounds: options.review.as_ref().map(|_| options.review_rounds),
            progress: progress.collect(),
            passed: HashSet::new(),
            reopened: vec![None; phases.len()],
        }
    }

    pub(crate) fn run<W: PhaseHost>(&mut self, host: &mut W) -> Result<LoopEnd, W::Stop> {
        loop {
            let Some(phase) = self.first_open() else {
                match self.final_check(host)? {
                    Some(ending) => return Ok(ending),
                    None => continue,
                }
            };
            if self.has_enough() {
                return Ok(LoopEnd::Enough);
            }
            host.begin(phase)?;
            let end = self.phase(phase, host);
            host.end(phase);
            if let Some(failed) = end? {
                return Ok(failed);
            }
        }
    }

    fn first_open(&self) -> Option<usize> {
        self.progress.iter().position(|phase| !is_passed(phase.state))
    }

    fn has_enough(&self) -> bool {
        let passed = self.progress.iter().filter(|phase| phase.state == PhaseOutcome::Passed).count();
        self.max_phases.is_some_and(|most| passed as u64 >= most)
    }

    /// Runs the phase's commands once, before its first attempt in this run. A failure says nothing about anybody's work:
    /// it ends no more than the baseline. `Break`: the phase is over; `None`: it passed.
    fn baseline<W: PhaseHost>(&mut self, phase: usize, host: &mut W) -> Result<ControlFlow<Option<LoopEnd>>, W::Stop> {
        let at = Attempt { phase, number: 0 };
        // It is known why the final check reopened a phase, and no command runs beside a changed protected path.
        if self.reopened[phase].is_some() || !host.differences(phase)?.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        if !self.phases[phase].was_attempted() {
            // The commands' changes belong to the phase, also for the next run.
            host.mark(at, Mark::InProgress)?;
        }
        host.tell(at, PhaseState::Verifying, None);
        let mut passes = true;
        for command in &self.phases[phase].verify {
            let Some(failing) = run_once(at, command, host)? else {
                self.passed.insert(command);
                continue;
            };
            passes = false;
            let why = match failing.no_shell {
                true => Some(Why::NoShell),
                false => host.lacks_program(&failing)?.then_some(Why::NoProgram),
            };
            let is_late = failing.timed_out;
            if let Some(why) = why {
                let fault = Fault::Command(failing);
                self.progress[phase].state = PhaseOutcome::Failed;
                host.tell(at, PhaseState::Failed, Some(&fault));
                return Ok(ControlFlow::Break(Some(LoopEnd::Failed(at, why, fault))));
            }
            if is_late {
                break;
            }
        }
        if passes {
            host.judged(phase)?;
        }
        if passes && host.accepts_done(at)? && self.manual_checks(at, host)?.is_none() {
            return self.pass(at, host).map(ControlFlow::Break);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Runs all attempts at one phase. `None`: it passed.
    fn phase<W: PhaseHost>(&mut self, phase: usize, host: &mut W) -> Result<Option<LoopEnd>, W::Stop> {
        if let ControlFlow::Break(end) = self.baseline(phase, host)? {
            return Ok(end);
        }
        let earlier = self.phases[phase].was_attempted() && self.progress[phase].attempts == 0;
        let reopened = self.reopened[phase].clone();
        let (mut last, mut last_failing, mut idle) = (None::<Fault>, None::<Box<Failing>>, 0);
        self.progress[phase].rounds = 0;
        let mut number = 0;
        loop {
            number += 1;
            let at = Attempt { phase, number };
            host.mark(at, Mark::InProgress)?;
            self.progress[phase].attempts += 1;
            self.progress[phase].state = PhaseOutcome::Open;
            host.tell(at, PhaseState::Started, None);
            let prompt = match &last {
                None => TurnPrompt::First { earlier, reopened: reopened.as_ref() },
                Some(fault) => TurnPrompt::Retry(fault),
            };
            self.passed.clear();
            let turn = host.turn(at, prompt)?;
            // An agent may leave the work as it is because it disagrees with a review.
            let was_reviewed = matches!(last, Some(Fault::Review(_)));
            idle = if turn.acted || was_reviewed { 0 } else { idle + 1 };
            let excused = was_reviewed || earlier && number == 1;
            let judged = self.judge(at, turn.acted || excused, host)?;
            let judged = match judged {
                None => self.review(at, turn.acted || !was_reviewed, turn.blocked.is_some(), host)?,
                fault => fault,
            };
            let judged = match judged {
                None => self.manual_checks(at, host)?,
                fault => fault,
            };
            let Some(mut fault) = judged else {
                return self.pass(at, host);
            };
            match &mut fault {
                Fault::Command(failing) => last_failing = Some(Box::new(failing.clone())),
                Fault::Idle(failing) => failing.clone_from(&last_failing),
                Fault::Protected(_) | Fault::Manual(_) | Fault::Review(_) => {}
            }
            let why = match turn.blocked {
                _ if fault.no_shell() => Some(Why::NoShell),
                Some(reason) => Some(Why::Blocked(reason)),
                None if fault.not_found() && last.as_ref().is_some_and(Fault::not_found) => Some(Why::NotFound),
                None if idle >= 2 => Some(Why::NoProgress),
                None if number >= self.attempts => Some(Why::Verification),
                None => None,
            };
            if let Some(why) = why {
                self.progress[phase].state = PhaseOutcome::Failed;
                host.mark(at, Mark::Failed)?;
                host.tell(at, PhaseState::Failed, Some(&fault));
                return Ok(Some(LoopEnd::Failed(at, why, fault)));
            }
            host.tell(at, PhaseState::Failed, Some(&fault));
            last = Some(fault);
        }
    }

    /// Records that a phase passed, and commits it. `None`: it stays so.
    fn pass<W: PhaseHost>(&mut self, at: Attempt, host: &mut W) -> Result<Option<LoopEnd>, W::Stop> {
        host.mark(at, Mark::Passed)?;
        self.progress[at.phase].state = PhaseOutcome::Passed;
        host.tell(at, PhaseState::Passed, None);
        if host.commit(at.phase)? { self.judge_commit(at, host) } else { Ok(None) }
    }

    /// Judges an attempt by its protected paths and commands. `None`: they are as they must be.
    fn judge<W: PhaseHost>(&mut self, at: Attempt, counts: bool, host: &mut W) -> Result<Option<Fault>, W::Stop> {
        let differences = host.differences(at.phase)?;
        if !differences.is_empty() {
            return Ok(Some(Fault::Protected(differences)));
        }
        if !counts {
            return Ok(Some(Fault::Idle(None)));
        }
        Ok(self.run_commands(at, host)?.map(Fault::Command))
    }

    /// Has the work reviewed whose commands have passed. `is_new`: whether it may differ from what was reviewed last;
    /// `is_last`: whether the agent cannot go on. `None`: nothing goes back to the agent.
    fn review<W: PhaseHost>(
        &mut self,
        at: Attempt,
        is_new: bool,
        is_last: bool,
        host: &mut W,
    ) -> Result<Option<Fault>, W::Stop> {
        let Some(rounds) = self.review_rounds else { return Ok(None) };
        let mut found = false;
        if is_new {
            host.tell(at, PhaseState::Reviewing, None);
            let (verdict, changed) = host.review(at)?;
            if changed {
                // Its changes belong to the attempt.
                self.passed.clear();
                if let Some(fault) = self.judge(at, true, host)? {
                    return Ok(Some(fault));
                }
            }
            found = matches!(verdict, ReviewVerdict::Found(_));
            match verdict {
                ReviewVerdict::Found(findings) => self.progress[at.phase].findings = findings,
                ReviewVerdict::Accepted => self.progress[at.phase].findings.clear(),
                // Nobody knows whether the last findings still hold.
                ReviewVerdict::Unreviewed => {}
            }
        }
        let progress = &mut self.progress[at.phase];
        if progress.findings.is_empty() {
            return Ok(None);
        }
        if found && !is_last && progress.rounds < rounds && at.number < self.attempts {
            progress.rounds += 1;
            return Ok(Some(Fault::Review(progress.findings.clone())));
        }
        host.tell_open(at, &progress.findings);
        Ok(None)
    }

    /// Asks for the phase's manual checks up to the first No. `None`: there was none.
    fn manual_checks<W: PhaseHost>(&mut self, at: Attempt, host: &mut W) -> Result<Option<Fault>, W::Stop> {
        let mut unverified = Vec::new();
        for text in &self.phases[at.phase].manual {
            match host.manual(at, text)? {
                ManualAnswer::Yes => {}
                ManualAnswer::No => return Ok(Some(Fault::Manual(text.clone()))),
                ManualAnswer::Unanswered => unverified.push(text.clone()),
            }
        }
        self.progress[at.phase].unverified = unverified;
        Ok(None)
    }

    /// Runs the phase's commands up to the first failure. `None`: all passed.
    fn run_commands<W: PhaseHost>(&mut self, at: Attempt, host: &mut W) -> Result<Option<Failing>, W::Stop> {
        host.tell(at, PhaseState::Verifying, None);
        for command in &self.phases[at.phase].verify {
            if let Some(failing) = run_command(at, command, host)? {
                return Ok(Some(failing));
            }
            self.passed.insert(command);
        }
        host.judged(at.phase)?;
        Ok(None)
    }

    /// Judges a passed phase again, because its commit has other content than what was judged.
    fn judge_commit<W: PhaseHost>(&mut self, at: Attempt, host: &mut W) -> Result<Option<LoopEnd>, W::Stop> {
        self.passed.clear();
        match self.run_commands(at, host)? {
            Some(failing) => self.reopen(at.phase, failing, host),
            None => Ok(None),
        }
    }

    /// Reopens a phase that had passed. Returns the end of the run if that happens for the second time.
    fn reopen<W: PhaseHost>(
        &mut self,
        phase: usize,
        failing: Failing,
        host: &mut W,
    ) -> Result<Option<LoopEnd>, W::Stop> {
        let at = Attempt { phase, number: 0 };
        self.progress[phase].state = PhaseOutcome::Failed;
        host.mark(Attempt { phase, number: self.progress[phase].attempts }, Mark::Reopened)?;
        let fault = Fault::Command(failing.clone());
        let is_second = self.reopened[phase].replace(failing).is_some();
        if !is_second && !fault.no_shell() {
            host.tell(at, PhaseState::Reopened, Some(&fault));
            return Ok(None);
        }
        host.tell(at, PhaseState::Failed, Some(&fault));
        let why = if fault.no_shell() { Why::NoShell } else { Why::Verification };
        Ok(Some(LoopEnd::Failed(at, why, fault)))
    }

    /// Runs every command that has not passed since the agent's last turn. `None`: a phase was reopened.
    fn final_check<W: PhaseHost>(&mut self, host: &mut W) -> Result<Option<LoopEnd>, W::Stop> {
        let mut begun = false;
        for (index, phase) in self.phases.iter().enumerate() {
            let at = Attempt { phase: index, number: 0 };
            for command in &phase.verify {
                if self.passed.contains(command.as_str()) {
                    continue;
                }
                if !std::mem::replace(&mut begun, true) {
                    host.begin_final()?;
                }
                let Some(failing) = run_command(at, command, host)? else {
                    self.passed.insert(command);
                    continue;
                };
                return self.reopen(index, failing, host);
            }
        }
        Ok(Some(LoopEnd::Complete))
    }
}

/// Runs a failed command once more: one that passes then is flaky, and not the agent's fault. `None`: it passed.
fn run_command<W: PhaseHost>(at: Attempt, command: &str, host: &mut W) -> Result<Option<Failing>, W::Stop> {
    let first = run_once(at, command, host)?;
    if !first.as_ref().is_some_and(Failing::may_be_flaky) {
        return Ok(first);
    }
    let second = run_once(at, command, host)?;
    if second.is_none() {
        host.tell_flaky(at, command);
    }
    Ok(second)
}

/// A command that changes a protected path has failed: it could rewrite the next check. `None`: it passed.
fn run_once<W: PhaseHost>(at: Attempt, command: &str, host: &mut W) -> Result<Option<Failing>, W::Stop> {
    let failing = host.command(at, command)?;
    let changed = host.differences(at.phase)?;
    if changed.is_empty() {
        return Ok(failing);
    }
    let passed = || Failing { command: command.to_owned(), exit_code: Some(0), ..Failing::default() };
    Ok(Some(Failing { changed, ..failing.unwrap_or_else(passed) }))
}

#[cfg(test)]
mod tests;
