//! The rules of the loop, with a host that plays a script.

use super::{
    AgentTurn, Attempt, Failing, Fault, Loop, LoopEnd, ManualAnswer, Mark, PhaseHost, PlanPhase, TurnPrompt, Why,
};
use crate::protocol::review::ReviewFinding;
use crate::protocol::words::{PhaseOutcome, PhaseState};
use crate::protocol::workflow::{WorkflowOptions, WorkflowSettings};
use crate::workflow::plan::{State, StateLine, Task};
use crate::workflow::review::ReviewVerdict;
use std::collections::{HashMap, VecDeque};

#[derive(Default)]
struct Fake {
    log: Vec<String>,
    /// The turns of the agent. After the last one every turn does something.
    turns: VecDeque<AgentTurn>,
    /// The outcomes of each command: whether it passes. After the last one it passes.
    outcomes: HashMap<&'static str, VecDeque<bool>>,
    /// The way in which commands fail, if not with exit status 1.
    failing: Option<Failing>,
    /// Whether commands that fail pass when they run once more.
    flaky: bool,
    /// The failure of the command that runs once more now.
    again: Option<Failing>,
    differences: VecDeque<Vec<String>>,
    differences_before: VecDeque<Vec<String>>,
    checks: VecDeque<ManualAnswer>,
    /// The reviews. After the last one, the work is accepted.
    reviews: VecDeque<(ReviewVerdict, bool)>,
    /// Whether a hook changes each commit.
    hooks: VecDeque<bool>,
    /// The outcomes of each command in the baseline. After the last one it fails.
    baseline: HashMap<&'static str, VecDeque<bool>>,
    lacks_program: bool,
    /// The way in which commands fail in the baseline, if not with exit status 1.
    before: Option<Failing>,
    in_baseline: Option<usize>,
    accepts_done: bool,
    /// The turn that ends the run, counted from 1.
    cut_at: Option<usize>,
    turned: usize,
}

impl PhaseHost for Fake {
    type Stop = ();

    fn begin(&mut self, phase: usize) -> Result<(), ()> {
        self.log.push(format!("P{} begins", phase + 1));
        self.in_baseline = Some(phase);
        Ok(())
    }

    fn begin_final(&mut self) -> Result<(), ()> {
        Ok(())
    }

    fn end(&mut self, phase: usize) {
        self.log.push(format!("P{} ends", phase + 1));
    }

    fn mark(&mut self, at: Attempt, mark: Mark) -> Result<(), ()> {
        self.log.push(format!("P{} {mark:?} {}", at.phase + 1, at.number));
        Ok(())
    }

    fn tell(&mut self, at: Attempt, step: PhaseState, _why: Option<&Fault>) {
        self.in_baseline = (step == PhaseState::Verifying && at.number == 0).then_some(at.phase);
        self.log.push(format!("P{} {} {}", at.phase + 1, step.word(), at.number));
    }

    fn turn(&mut self, at: Attempt, prompt: TurnPrompt<'_>) -> Result<AgentTurn, ()> {
        let prompt = match prompt {
            TurnPrompt::First { earlier: false, reopened: None } => "new".to_owned(),
            TurnPrompt::First { earlier: true, reopened: None } => "new, earlier".to_owned(),
            TurnPrompt::First { earlier, reopened: Some(failing) } => {
                format!("new, {}reopened by {}", if earlier { "earlier, " } else { "" }, failing.command)
            }
            TurnPrompt::Retry(Fault::Command(failing)) => format!("retry: {}", failing.command),
            TurnPrompt::Retry(Fault::Protected(paths)) => format!("retry: protected {}", paths.join(" ")),
            TurnPrompt::Retry(Fault::Idle(_)) => "retry: idle".to_owned(),
            TurnPrompt::Retry(Fault::Manual(text)) => format!("retry: manual {text}"),
            TurnPrompt::Retry(Fault::Review(found)) => format!("retry: {} found", found.len()),
        };
        self.log.push(format!("P{} turn ({prompt})", at.phase + 1));
        self.turned += 1;
        if self.cut_at == Some(self.turned) {
            return Err(());
        }
        Ok(self.turns.pop_front().unwrap_or(AgentTurn { acted: true, blocked: None }))
    }

    fn differences(&mut self, _phase: usize) -> Result<Vec<String>, ()> {
        let looks = if self.in_baseline.is_some() { &mut self.differences_before } else { &mut self.differences };
        Ok(looks.pop_front().unwrap_or_default())
    }

    fn lacks_program(&mut self, _failing: &Failing) -> Result<bool, ()> {
        Ok(self.lacks_program)
    }

    fn accepts_done(&mut self, at: Attempt) -> Result<bool, ()> {
        self.log.push(format!("P{} done already?", at.phase + 1));
        Ok(self.accepts_done)
    }

    fn command(&mut self, at: Attempt, command: &str) -> Result<Option<Failing>, ()> {
        if self.in_baseline == Some(at.phase) {
            let passes = self.baseline.get_mut(command).and_then(VecDeque::pop_front).unwrap_or(false);
            self.log.push(format!("P{} before, {command}={passes}", at.phase + 1));
            let how = Failing { exit_code: Some(1), ..Failing::default() };
            return Ok((!passes).then(|| Failing { command: command.to_owned(), ..self.before.clone().unwrap_or(how) }));
        }
        if let Some(failing) = self.again.take() {
            return Ok((!self.flaky).then_some(failing));
        }
        let passes = self.outcomes.get_mut(command).and_then(VecDeque::pop_front).unwrap_or(true);
        self.log.push(format!("P{} {command}: {}", at.phase + 1, if passes { "passed" } else { "failed" }));
        let how = Failing { exit_code: Some(1), ..Failing::default() };
        let failing = Failing { command: command.to_owned(), ..self.failing.clone().unwrap_or(how) };
        let failing = (!passes).then_some(failing);
        self.again = failing.clone().filter(Failing::may_be_flaky);
        Ok(failing)
    }

    fn review(&mut self, at: Attempt) -> Result<(ReviewVerdict, bool), ()> {
        self.log.push(format!("P{} review", at.phase + 1));
        Ok(self.reviews.pop_front().unwrap_or((ReviewVerdict::Accepted, false)))
    }

    fn tell_open(&mut self, at: Attempt, findings: &[ReviewFinding]) {
        self.log.push(format!("P{} {} open", at.phase + 1, findings.len()));
    }

    fn manual(&mut self, at: Attempt, text: &str) -> Result<ManualAnswer, ()> {
        let checked = self.checks.pop_front().unwrap_or(ManualAnswer::Yes);
        self.log.push(format!("P{} manual {text}: {checked:?}", at.phase + 1));
        Ok(checked)
    }

    fn judged(&mut self, _phase: usize) -> Result<(), ()> {
        Ok(())
    }

    fn tell_flaky(&mut self, at: Attempt, command: &str) {
        self.log.push(format!("P{} flaky {command}", at.phase + 1));
    }

    fn commit(&mut self, phase: usize) -> Result<bool, ()> {
        self.log.push(format!("P{} commit", phase + 1));
        Ok(self.hooks.pop_front().unwrap_or_default())
    }
}

impl Fake {
    fn with(mut self, command: &'static str, outcomes: &[bool]) -> Fake {
        self.outcomes.insert(command, outcomes.iter().copied().collect());
        self
    }

    fn turning(mut self, turns: impl IntoIterator<Item = AgentTurn>) -> Fake {
        self.turns = turns.into_iter().collect();
        self
    }

    fn turns_and_commands(&self) -> Vec<&str> {
        let shown = |line: &&str| line.contains(" turn ") || line.contains(": ");
        self.log.iter().map(String::as_str).filter(shown).collect()
    }
}

const IDLE: AgentTurn = AgentTurn { acted: false, blocked: None };
const ACTED: AgentTurn = AgentTurn { acted: true, blocked: None };

fn blocked(acted: bool) -> AgentTurn {
    AgentTurn { acted, blocked: Some("no key".into()) }
}

fn phase(commands: &[&str]) -> PlanPhase {
    let verify = commands.iter().map(|command| (*command).to_owned()).collect();
    PlanPhase { verify, tasks: vec![Task::default()], ..PlanPhase::default() }
}

/// A phase at which an earlier run made an attempt.
fn begun(commands: &[&str], state: State) -> PlanPhase {
    PlanPhase { state: Some(StateLine { state, attempts: 1, at: String::new() }), ..phase(commands) }
}

/// A phase that an earlier run completed.
fn done(commands: &[&str]) -> PlanPhase {
    PlanPhase { tasks: Vec::new(), ..begun(commands, State::Passed) }
}

fn run<'p>(phases: &'p [PlanPhase], host: &mut Fake) -> (Result<LoopEnd, ()>, Loop<'p>) {
    run_with(phases, (3, None), host)
}

fn run_with<'p>(
    phases: &'p [PlanPhase],
    (attempts, max): (u32, Option<u64>),
    host: &mut Fake,
) -> (Result<LoopEnd, ()>, Loop<'p>) {
    let options = WorkflowSettings { attempts, max_phases: max, ..WorkflowOptions::default().resolved() };
    let mut all = Loop::new(phases, &options);
    let ending = all.run(host);
    (ending, all)
}

fn failure(ending: &Result<LoopEnd, ()>) -> Option<(Attempt, &Why, &Fault)> {
    match ending {
        Ok(LoopEnd::Failed(at, why, fault)) => Some((*at, why, fault)),
        Ok(LoopEnd::Complete | LoopEnd::Enough) | Err(()) => None,
    }
}

#[test]
fn each_phase_gets_a_session_its_commands_and_one_write() {
    let phases = [phase(&["a", "b"]), phase(&["c"])];
    let mut host = Fake::default();
    let (ending, all) = run(&phases, &mut host);
    assert_eq!(ending, Ok(LoopEnd::Complete));
    let first = [
        "P1 begins",
        "P1 InProgress 0",
        "P1 verifying 0",
        "P1 before, a=false",
        "P1 before, b=false",
        "P1 InProgress 1",
        "P1 started 1",
        "P1 turn (new)",
        "P1 verifying 1",
        "P1 a: passed",
        "P1 b: passed",
        "P1 Passed 1",
        "P1 passed 1",
        "P1 commit",
        "P1 ends",
    ];
    assert_eq!(host.log[..first.len()], first);
    assert!(all.progress.iter().all(|phase| phase.state == PhaseOutcome::Passed && phase.attempts == 1));
}

#[test]
fn a_failure_goes_back_to_the_same_session_and_commands_stop_at_the_first_failure() {
    let phases = [phase(&["a", "b", "c"])];
    let mut host = Fake::default().with("b", &[false, true]);
    let (ending, all) = run(&phases, &mut host);
    assert_eq!(ending, Ok(LoopEnd::Complete));
    let seen = [
        "P1 turn (new)",
        "P1 a: passed",
        "P1 b: failed",
        "P1 turn (retry: b)",
        "P1 a: passed",
        "P1 b: passed",
        "P1 c: passed",
    ];
    assert_eq!(host.turns_and_commands(), seen);
    assert_eq!(all.progress[0].attempts, 2);
    assert!(host.log.contains(&"P1 InProgress 2".to_owned()));
}

#[test]
fn after_the_last_attempt_the_phase_has_failed_and_no_later_phase_begins() {
    let phases = [phase(&["a"]), phase(&["b"])];
    let mut host = Fake::default().with("a", &[false; 3]);
    let (ending, all) = run(&phases, &mut host);
    let (at, why, fault) = failure(&ending).unwrap();
    assert_eq!((at, why), (Attempt { phase: 0, number: 3 }, &Why::Verification));
    assert!(matches!(fault, Fault::Command(failing) if failing.command == "a"));
    assert_eq!(all.progress[0].state, PhaseOutcome::Failed);
    assert_eq!(all.progress[1].state, PhaseOutcome::Open);
    assert_eq!(host.log.iter().filter(|line| line.starts_with("P2")).count(), 0);
    assert_eq!(&host.log[host.log.len() - 3..], ["P1 Failed 3", "P1 failed 3", "P1 ends"]);
}

#[test]
fn without_an_action_no_command_runs_and_the_second_such_attempt_in_a_row_ends_the_run() {
    let phases = [phase(&["a"])];
    let mut host = Fake::default().turning([IDLE, IDLE]);
    let (ending, _) = run(&phases, &mut host);
    let (at, why, fault) = failure(&ending).unwrap();
    assert_eq!((at.number, why, fault), (2, &Why::NoProgress, &Fault::Idle(None)));
    assert_eq!(host.turns_and_commands(), ["P1 turn (new)", "P1 turn (retry: idle)"]);
}

#[test]
fn an_action_between_two_idle_attempts_counts() {
    let phases = [phase(&["a"])];
    let mut host = Fake::default().turning([IDLE, ACTED, IDLE]).with("a", &[false]);
    let (ending, _) = run(&phases, &mut host);
    assert_eq!(failure(&ending).map(|(at, why, _)| (at.number, why)), Some((3, &Why::Verification)));
}

#[test]
fn two_idle_attempts_at_the_end_count_as_no_progress() {
    let phases = [phase(&["a"])];
    let mut host = Fake::default().turning([ACTED, IDLE, IDLE]).with("a", &[false]);
    let (ending, _) = run(&phases, &mut host);
    let (at, why, fault) = failure(&ending).unwrap();
    assert_eq!((at.number, why), (3, &Why::NoProgress));
    assert!(matches!(fault, Fault::Idle(Some(failing)) if failing.command == "a"), "{fault:?}");
    let mut host = Fake::default().turning([IDLE]);
    let (ending, _) = run_with(&phases, (1, None), &mut host);
    assert_eq!(failure(&ending).map(|(at, why, _)| (at.number, why)), Some((1, &Why::Verification)));
}

#[test]
fn the_commands_alone_decide_at_the_first_attempt_on_a_phase_that_an_earlier_run_began() {
    let phases = [begun(&["a"], State::Failed)];
    let mut host = Fake::default().turning([IDLE]);
    let (ending, _) = run(&phases, &mut host);
    assert_eq!(ending, Ok(LoopEnd::Complete));
    assert_eq!(host.turns_and_commands(), ["P1 turn (new, earlier)", "P1 a: passed"]);
    // The second attempt does not have this exception, and the first one still counts as idle.
    let mut host = Fake::default().turning([IDLE, IDLE]).with("a", &[false]);
    let (ending, _) = run(&phases, &mut host);
    assert_eq!(failure(&ending).map(|(at, why, _)| (at.number, why)), Some((2, &Why::NoProgress)));
}

#[test]
fn a_changed_protected_path_fails_the_attempt_before_any_command() {
    let phases = [phase(&["a"])];
    let mut host = Fake { differences: [vec!["tests/a".to_owned()]].into(), ..Fake::default() };
    let (ending, _) = run(&phases, &mut host);
    assert_eq!(ending, Ok(LoopEnd::Complete));
    assert_eq!(host.turns_and_commands(), ["P1 turn (new)", "P1 turn (retry: protected tests/a)", "P1 a: passed"]);
}

#[test]
fn a_blocked_agent_ends_the_run_only_if_the_attempt_fails() {
    let phases = [phase(&["a"])];
    let mut host = Fake::default().turning([blocked(true)]);
    assert_eq!(run(&phases, &mut host).0, Ok(LoopEnd::Complete));
    let mut host = Fake::default().turning([blocked(true)]).with("a", &[false]);
    let (ending, all) = run(&phases, &mut host);
    assert_eq!(failure(&ending).map(|(at, why, _)| (at.number, why)), Some((1, &Why::Blocked("no key".into()))));
    assert_eq!(all.progress[0].state, PhaseOutcome::Failed);
    let mut host = Fake::default().turning([blocked(false)]);
    let (ending, _) = run(&phases, &mut host);
    assert_eq!(
        failure(&ending).map(|(_, why, fault)| (why, fault)),
        Some((&Why::Blocked("no key".into()), &Fault::Idle(None)))
    );
}

#[test]
fn manual_checks_come_after_the_commands_up_to_the_first_no() {
    let phases = [PlanPhase { manual: vec!["x".into(), "y".into(), "z".into()], ..phase(&["a"]) }];
    let answers =
        [ManualAnswer::Yes, ManualAnswer::No, ManualAnswer::Unanswered, ManualAnswer::Yes, ManualAnswer::Unanswered];
    let mut host = Fake { checks: answers.into(), ..Fake::default() };
    let (ending, all) = run(&phases, &mut host);
    assert_eq!(ending, Ok(LoopEnd::Complete));
    let seen = [
        "P1 turn (new)",
        "P1 a: passed",
        "P1 manual x: Yes",
        "P1 manual y: No",
        "P1 turn (retry: manual y)",
        "P1 a: passed",
        "P1 manual x: Unanswered",
        "P1 manual y: Yes",
        "P1 manual z: Unanswered",
    ];
    assert_eq!(host.turns_and_commands(), seen);
    assert_eq!(all.progress[0].unverified, ["x", "z"]);
}

#[test]
fn the_final_check_runs_each_command_that_has_not_passed_since_the_last_turn_once() {
    let phases = [done(&["a", "b"]), done(&["b", "c"]), phase(&["c", "d"])];
    let mut host = Fake::default();
    assert_eq!(run(&phases, &mut host).0, Ok(LoopEnd::Complete));
    let seen = ["P3 turn (new)", "P3 c: passed", "P3 d: passed", "P1 a: passed", "P1 b: passed"];
    assert_eq!(host.turns_and_commands(), seen);
}

#[test]
fn a_plan_that_is_done_starts_no_agent() {
    let phases = [done(&["a"]), done(&["b"])];
    let mut host = Fake::default();
    let (ending, all) = run(&phases, &mut host);
    assert_eq!(ending, Ok(LoopEnd::Complete));
    assert_eq!(host.log, ["P1 a: passed", "P2 b: passed"]);
    assert!(all.progress.iter().all(|phase| phase.state == PhaseOutcome::Done && phase.attempts == 0));
}

#[test]
fn a_phase_that_fails_in_the_final_check_is_reopened_with_new_attempts() {
    let phases = [phase(&["a"]), phase(&["b"])];
    // P2's work breaks P1.
    let mut host = Fake::default().with("a", &[true, false, false, false, true]);
    let (ending, all) = run(&phases, &mut host);
    assert_eq!(ending, Ok(LoopEnd::Complete));
    let seen = [
        "P1 turn (new)",
        "P1 a: passed",
        "P2 turn (new)",
        "P2 b: passed",
        "P1 a: failed",
        "P1 turn (new, reopened by a)",
        "P1 a: failed",
        "P1 turn (retry: a)",
        "P1 a: failed",
        "P1 turn (retry: a)",
        "P1 a: passed",
        "P2 b: passed",
    ];
    assert_eq!(host.turns_and_commands(), seen);
    assert!(host.log.contains(&"P1 Reopened 1".to_owned()) && host.log.contains(&"P1 reopened 0".to_owned()));
    assert_eq!(all.progress[0].attempts, 4);
}

#[test]
fn a_phase_that_fails_twice_in_the_final_check_ends_the_run() {
    let phases = [done(&["a"]), done(&["b"])];
    let mut host = Fake::default().with("a", &[false, true, false]).with("b", &[false]);
    // P1 is reopened, passes, then P2 is reopened, and its work breaks P1 again.
    let (ending, all) = run(&phases, &mut host);
    assert_eq!(
        failure(&ending).map(|(at, why, _)| (at, why)),
        Some((Attempt { phase: 0, number: 0 }, &Why::Verification))
    );
    assert_eq!(
        all.progress.iter().map(|phase| phase.state).collect::<Vec<_>>(),
        [PhaseOutcome::Failed, PhaseOutcome::Passed]
    );
    assert_eq!(host.log.iter().filter(|line| line.contains("Reopened")).count(), 3);
    assert_eq!(host.log.last().map(String::as_str), Some("P1 failed 0"));
}

#[test]
fn max_phases_ends_well_before_the_next_phase() {
    let phases = [done(&["x"]), phase(&["a"]), phase(&["b"])];
    let mut host = Fake::default();
    let (ending, all) = run_with(&phases, (3, Some(1)), &mut host);
    assert_eq!(ending, Ok(LoopEnd::Enough));
    assert_eq!(host.turns_and_commands(), ["P2 turn (new)", "P2 a: passed"]);
    assert_eq!(all.progress[2].state, PhaseOutcome::Open);
    // The last phase of the plan: then it is complete.
    let mut host = Fake::default();
    assert_eq!(run_with(&phases[..2], (3, Some(1)), &mut host).0, Ok(LoopEnd::Complete));
}

#[test]
fn a_phase_cut_short_stays_open() {
    let phases = [phase(&["a"]), phase(&["b"])];
    let mut host = Fake { cut_at: Some(2), ..Fake::default() };
    let (ending, all) = run(&phases, &mut host);
    assert_eq!(ending, Err(()));
    let states: Vec<PhaseOutcome> = all.progress.iter().map(|phase| phase.state).collect();
    assert_eq!(states, [PhaseOutcome::Passed, PhaseOutcome::Open]);
    assert_eq!(host.log.last().map(String::as_str), Some("P2 ends"));
}

#[test]
fn a_command_that_is_not_found_twice_in_a_row_ends_the_phase() {
    let phases = [phase(&["a"])];
    let missing = Failing { exit_code: Some(127), ..Failing::default() };
    let mut host = Fake { failing: Some(missing), ..Fake::default() }.with("a", &[false; 3]);
    let (ending, all) = run(&phases, &mut host);
    let (at, why, _) = failure(&ending).unwrap();
    assert_eq!((at.number, why, all.progress[0].state), (2, &Why::NotFound, PhaseOutcome::Failed));
    // Once is a mistake that the agent may mend.
    let missing = Failing { exit_code: Some(127), ..Failing::default() };
    let mut host = Fake { failing: Some(missing), ..Fake::default() }.with("a", &[false, true]);
    assert_eq!(run(&phases, &mut host).0, Ok(LoopEnd::Complete));
}

#[test]
fn without_a_shell_the_run_ends_at_the_first_command() {
    let no_shell = || Some(Failing { no_shell: true, ..Failing::default() });
    let mut host = Fake { failing: no_shell(), ..Fake::default() }.with("a", &[false]);
    let (ending, _) = run(&[phase(&["a", "b"])], &mut host);
    let (at, why, _) = failure(&ending).unwrap();
    assert_eq!((at.number, why), (1, &Why::NoShell));
    // Before the first attempt, too.
    let mut host = Fake { before: no_shell(), ..Fake::default() };
    let (ending, _) = run(&[phase(&["a", "b"])], &mut host);
    let (at, why, _) = failure(&ending).unwrap();
    assert_eq!((at.number, why, host.turned), (0, &Why::NoShell, 0));
    let done = PlanPhase { tasks: Vec::new(), ..phase(&["a"]) };
    let mut host = Fake { failing: no_shell(), ..Fake::default() }.with("a", &[false]);
    let (ending, _) = run(&[done], &mut host);
    let (at, why, _) = failure(&ending).unwrap();
    assert_eq!((at.number, why), (0, &Why::NoShell));
}

#[test]
fn a_command_that_changes_a_protected_path_has_failed() {
    let changed = || vec!["tests/run.sh".to_owned()];
    // Looked at before the commands, after the first, and so on.
    let mut host = Fake { differences: [Vec::new(), changed()].into(), ..Fake::default() };
    let phases = [phase(&["a", "b"])];
    let (ending, all) = run(&phases, &mut host);
    assert_eq!((ending, all.progress[0].attempts), (Ok(LoopEnd::Complete), 2));
    assert_eq!(host.turns_and_commands()[..3], ["P1 turn (new)", "P1 a: passed", "P1 turn (retry: a)"]);
    // In the final check it reopens the phase.
    let done = PlanPhase { tasks: Vec::new(), ..phase(&["a"]) };
    let mut host = Fake { differences: [changed()].into(), ..Fake::default() };
    let (ending, _) = run(&[done], &mut host);
    assert_eq!(ending, Ok(LoopEnd::Complete));
    assert!(host.log.contains(&"P1 reopened 0".to_owned()), "{:?}", host.log);
}

#[test]
fn a_command_that_passes_when_it_runs_once_more_costs_no_attempt() {
    let phases = [phase(&["a", "b"])];
    let mut host = Fake { flaky: true, ..Fake::default() }.with("a", &[false]);
    let (ending, all) = run(&phases, &mut host);
    assert_eq!((ending, all.progress[0].attempts), (Ok(LoopEnd::Complete), 1));
    assert!(host.log.contains(&"P1 flaky a".to_owned()), "{:?}", host.log);
    // Nor does one that fails in the final check reopen its phase.
    let mut host = Fake { flaky: true, ..Fake::default() }.with("a", &[false]);
    assert_eq!(run(&[done(&["a"])], &mut host).0, Ok(LoopEnd::Complete));
    assert_eq!(host.log, ["P1 a: failed", "P1 flaky a"]);
}

#[test]
fn a_commit_that_a_hook_changed_is_judged_again() {
    let phases = [phase(&["a"]), phase(&["b"])];
    let mut host = Fake { hooks: [true].into(), ..Fake::default() };
    assert_eq!(run(&phases, &mut host).0, Ok(LoopEnd::Complete));
    let first = ["P1 turn (new)", "P1 a: passed", "P1 a: passed", "P2 turn (new)"];
    assert_eq!(host.turns_and_commands()[..4], first);
    // A failure reopens the phase, and the second one ends the run.
    let mut host = Fake { hooks: [true, true].into(), ..Fake::default() }.with("a", &[true, false, true, false]);
    let (ending, all) = run(&phases, &mut host);
    let failed = (Attempt { phase: 0, number: 0 }, &Why::Verification);
    assert_eq!(failure(&ending).map(|(at, why, _)| (at, why)), Some(failed));
    assert!(host.turns_and_commands().contains(&"P1 turn (new, reopened by a)"), "{:?}", host.log);
    assert_eq!(all.progress[0].state, PhaseOutcome::Failed);
    assert_eq!(host.log.iter().filter(|line| line.contains("Reopened")).count(), 2);
}

mod baseline;
mod reviews;
