//! The review of a phase whose commands have passed.

use super::{ACTED, Fake, IDLE, blocked, failure, phase};
use crate::protocol::review::{ReviewFinding, Reviewer};
use crate::protocol::workflow::{WorkflowOptions, WorkflowSettings};
use crate::workflow::implement::phase_loop::{Loop, LoopEnd, Why};
use crate::workflow::review::ReviewVerdict;

fn found(count: usize) -> (ReviewVerdict, bool) {
    let finding = ReviewFinding { file: None, line: None, severity: "high".into(), text: "It is wrong.".into() };
    (ReviewVerdict::Found(vec![finding; count]), false)
}

/// Runs one phase with reviews. Returns the log of the host, the end, and the number of findings that stay open.
fn run(rounds: u32, attempts: u32, mut host: Fake) -> (Vec<String>, Result<LoopEnd, ()>, usize) {
    let phases = [phase(&["a"])];
    let review = Some(Reviewer::default());
    let options = WorkflowSettings { review, review_rounds: rounds, attempts, ..WorkflowOptions::default().resolved() };
    let mut all = Loop::new(&phases, &options);
    let end = all.run(&mut host);
    let seen = |line: &String| [" turn ", ": ", "review", "open"].iter().any(|part| line.contains(part));
    (host.log.into_iter().filter(seen).collect(), end, all.progress[0].findings.len())
}

#[test]
fn findings_go_back_until_the_work_is_accepted() {
    let host = Fake { reviews: [found(2), found(1)].into(), ..Fake::default() };
    let (log, end, open) = run(2, 3, host);
    assert_eq!((end, open), (Ok(LoopEnd::Complete), 0));
    let reviewed = |n: u32| [format!("P1 reviewing {n}"), "P1 review".to_owned()];
    let mut expected = vec!["P1 turn (new)".to_owned(), "P1 a: passed".into()];
    expected.extend(reviewed(1));
    expected.extend(["P1 turn (retry: 2 found)".into(), "P1 a: passed".into()]);
    expected.extend(reviewed(2));
    expected.extend(["P1 turn (retry: 1 found)".into(), "P1 a: passed".into()]);
    expected.extend(reviewed(3));
    assert_eq!(log, expected);
}

#[test]
fn what_is_open_after_the_rounds_or_the_attempts_does_not_fail_the_phase() {
    for (rounds, attempts, turns) in [(1, 3, 2), (0, 3, 1), (5, 2, 2), (5, 1, 1)] {
        let host = Fake { reviews: [found(3), found(2), found(2)].into(), ..Fake::default() };
        let (log, end, open) = run(rounds, attempts, host);
        assert_eq!(end, Ok(LoopEnd::Complete), "{rounds} {attempts}");
        assert_eq!(log.iter().filter(|line| line.contains("turn")).count(), turns);
        assert_eq!((open, log.last().unwrap()), (if turns == 1 { 3 } else { 2 }, &format!("P1 {open} open")));
    }
}

#[test]
fn no_review_passes_a_phase_whose_commands_fail() {
    let outcomes = [("a", [false, false, false].into())].into();
    let (log, end, _) = run(2, 2, Fake { outcomes, ..Fake::default() });
    assert_eq!(failure(&end).map(|(_, why, _)| why), Some(&Why::Verification));
    assert!(log.iter().all(|line| !line.contains("review")), "{log:?}");
    // Work that the findings led to must pass too.
    let outcomes = [("a", [true, false].into())].into();
    let host = Fake { outcomes, reviews: [found(1)].into(), ..Fake::default() };
    let (_, end, _) = run(2, 2, host);
    assert_eq!(failure(&end).map(|(_, why, _)| why), Some(&Why::Verification));
}

#[test]
fn an_agent_that_leaves_its_work_as_it_is_leaves_the_findings_open() {
    for turn in [IDLE, blocked(true)] {
        let host =
            Fake { turns: [ACTED, turn.clone()].into(), reviews: [found(1), found(1)].into(), ..Fake::default() };
        let (log, end, open) = run(2, 3, host);
        assert_eq!((end, open), (Ok(LoopEnd::Complete), 1), "{turn:?}");
        assert_eq!(log.iter().filter(|line| line.contains("turn")).count(), 2, "{log:?}");
    }
}

#[test]
fn an_agent_that_fails_to_review_closes_no_finding() {
    let host = Fake { reviews: [found(1), (ReviewVerdict::Unreviewed, false)].into(), ..Fake::default() };
    assert_eq!(run(2, 3, host).2, 1);
    let host = Fake { reviews: [(ReviewVerdict::Unreviewed, false)].into(), ..Fake::default() };
    let (log, end, open) = run(2, 3, host);
    assert_eq!((end, open, log.len()), (Ok(LoopEnd::Complete), 0, 4));
}

#[test]
fn a_review_that_changes_files_is_followed_by_the_commands() {
    let outcomes = [("a", [true, false].into())].into();
    let host = Fake { outcomes, reviews: [(ReviewVerdict::Accepted, true)].into(), ..Fake::default() };
    let (log, end, _) = run(2, 3, host);
    assert_eq!(end, Ok(LoopEnd::Complete));
    let commands: Vec<&String> = log.iter().filter(|line| line.contains("a: ") || line.contains("turn")).collect();
    assert_eq!(
        commands,
        ["P1 turn (new)", "P1 a: passed", "P1 a: failed", "P1 turn (retry: a)", "P1 a: passed"],
        "the command fails after the review"
    );
}
