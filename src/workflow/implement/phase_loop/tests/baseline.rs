//! The commands of a phase before its first attempt.

use super::{Fake, State, VecDeque, begun, done, failure, phase, run};
use crate::protocol::words::PhaseOutcome;
use crate::workflow::implement::phase_loop::{Failing, Fault, LoopEnd, ManualAnswer, Why};
use crate::workflow::plan::PlanPhase;
use std::collections::HashMap;

fn before(passes: &[(&'static str, bool)]) -> HashMap<&'static str, VecDeque<bool>> {
    passes.iter().map(|(command, passes)| (*command, [*passes].into())).collect()
}

#[test]
fn a_phase_whose_commands_pass_before_any_work_passes_once_somebody_agrees() {
    let phases = [phase(&["a"]), phase(&["b", "c"])];
    let baseline = || before(&[("b", true), ("c", true)]);
    let mut host = Fake { baseline: baseline(), accepts_done: true, ..Fake::default() };
    let (ending, all) = run(&phases, &mut host);
    assert_eq!(ending, Ok(LoopEnd::Complete));
    // The agent has no turn after these commands passed, so the final check does not run them again.
    assert_eq!(host.turns_and_commands(), ["P1 turn (new)", "P1 a: passed"]);
    assert_eq!((all.progress[1].state, all.progress[1].attempts), (PhaseOutcome::Passed, 0));
    let end = ["P2 done already?", "P2 Passed 0", "P2 passed 0", "P2 commit", "P2 ends"];
    assert_eq!(host.log[host.log.len() - end.len()..], end);
    let mut host = Fake { baseline: baseline(), ..Fake::default() };
    let (ending, all) = run(&phases, &mut host);
    assert_eq!((ending, all.progress[1].attempts), (Ok(LoopEnd::Complete), 1));
    // The commands that passed before the agent's turn pass again after it.
    assert_eq!(host.turns_and_commands()[2..], ["P2 turn (new)", "P2 b: passed", "P2 c: passed", "P1 a: passed"]);
}

#[test]
fn a_manual_check_holds_for_a_phase_that_is_done_already() {
    let phases = [PlanPhase { manual: vec!["x".into()], ..phase(&["a"]) }];
    let (baseline, checks) = (before(&[("a", true)]), [ManualAnswer::No].into());
    let mut host = Fake { baseline, checks, accepts_done: true, ..Fake::default() };
    let (ending, all) = run(&phases, &mut host);
    assert_eq!((ending, all.progress[0].attempts), (Ok(LoopEnd::Complete), 1));
}

#[test]
fn a_missing_program_of_any_command_ends_the_run_before_the_agent_begins() {
    let mut host = Fake { baseline: before(&[("a", true)]), lacks_program: true, ..Fake::default() };
    let phases = [phase(&["a", "b", "c"])];
    let (ending, all) = run(&phases, &mut host);
    let (at, why, fault) = failure(&ending).unwrap();
    assert_eq!((at.number, why, host.turned), (0, &Why::NoProgram, 0));
    assert!(matches!(fault, Fault::Command(failing) if failing.command == "b"), "{fault:?}");
    assert_eq!((all.progress[0].state, all.progress[0].attempts), (PhaseOutcome::Failed, 0));
    assert_eq!(host.log[host.log.len() - 2..], ["P1 failed 0", "P1 ends"]);
}

#[test]
fn a_baseline_ends_at_a_command_that_takes_too_long() {
    let late = Failing { timed_out: true, ..Failing::default() };
    let mut host = Fake { before: Some(late), ..Fake::default() };
    assert_eq!(run(&[phase(&["a", "b"])], &mut host).0, Ok(LoopEnd::Complete));
    assert_eq!(host.log.iter().filter(|line| line.contains(" before, ")).count(), 1, "{:?}", host.log);
}

#[test]
fn a_command_that_changes_a_protected_path_before_the_work_has_failed() {
    let changed = || vec!["tests/run.sh".to_owned()];
    let differences_before = [Vec::new(), changed()].into();
    let mut host = Fake { baseline: before(&[("a", true)]), differences_before, accepts_done: true, ..Fake::default() };
    let phases = [phase(&["a"])];
    let (ending, all) = run(&phases, &mut host);
    assert_eq!((ending, all.progress[0].attempts), (Ok(LoopEnd::Complete), 1));
    // No command runs where an earlier run changed such a path.
    let mut host = Fake { differences_before: [changed()].into(), accepts_done: true, ..Fake::default() };
    let (ending, _) = run(&[begun(&["a"], State::Failed)], &mut host);
    assert_eq!((ending, host.turned), (Ok(LoopEnd::Complete), 1));
    assert!(!host.log.contains(&"P1 verifying 0".to_owned()), "{:?}", host.log);
}

#[test]
fn a_phase_that_the_final_check_reopens_has_no_baseline() {
    let mut host = Fake::default().with("a", &[false]);
    assert_eq!(run(&[done(&["a"])], &mut host).0, Ok(LoopEnd::Complete));
    assert!(!host.log.contains(&"P1 verifying 0".to_owned()), "{:?}", host.log);
}
