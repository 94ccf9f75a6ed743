//! The demo agent carries an idea through spec, plan and implement in any folder, and a failure on the way is detected.

use crate::support::check::{self, Seen};
use crate::support::{Case, list, read};
use serde_json::{Value, json};

const PLAN: &str = ".spektacular/plans/greet-the-reader/plan.md";
const GREP: &str = "grep -q Goodbye spektacular-demo/goodbye.txt";
/// The three commands, without their output mode.
const COMMANDS: [&[&str]; 3] = [
    &["spec", "--agent", "demo", "--headless", "Greet the reader"],
    &["plan", "--agent", "demo", "greet-the-reader"],
    &["implement", "--agent", "demo", "--yes", "greet-the-reader"],
];

/// Runs a command to its end. Checks the invariants of its frames and returns the frames.
#[track_caller]
fn frames(case: &Case, args: &[&str], more: &[&str]) -> Vec<Value> {
    let did = case.run(&[args, more, &["--output", "json"]].concat());
    let values: Vec<Value> = did.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<Seen<'_>> = did.out.lines().zip(&values).map(|(raw, value)| Seen { raw, value }).collect();
    assert_eq!(check::frames(&seen, did.code), Ok(()), "{did:?}");
    assert_eq!((did.code, did.err.as_str()), (Some(0), ""), "{did:?}");
    values
}

fn payloads<'f>(frames: &'f [Value], kind: &str) -> Vec<&'f Value> {
    frames.iter().map(|frame| &frame["payload"]).filter(|payload| payload["kind"] == kind).collect()
}

#[test]
fn the_three_commands_end_complete_in_any_folder_and_phase_2_fails_once() {
    for case in [Case::new(), Case::new().git()] {
        for args in &COMMANDS[..2] {
            let made = frames(&case, args, &[]);
            assert_eq!(made.last().unwrap()["payload"]["workflow"]["complete"], true, "{args:?}");
        }
        let record = case.path("tmp/run.jsonl").display().to_string();
        let done = frames(&case, COMMANDS[2], &["--record", &record]);
        let end = &done.last().unwrap()["payload"];
        assert_eq!((&end["workflow"]["complete"], &end["workflow"]["tasks"]), (&json!(true), &json!(2)));
        assert_eq!(end["text"], format!("{PLAN}: 2 of 2 phases passed"));
        let attempts: Vec<&Value> = list(&end["workflow"]["phases"]).iter().map(|phase| &phase["attempts"]).collect();
        assert_eq!(attempts, [1, 2]);
        let states: Vec<String> = payloads(&done, "phase")
            .iter()
            .map(|phase| format!("{} {} {}", phase["phase"], phase["state"], phase["attempt"]).replace('"', ""))
            .collect();
        let again = ["P2 started 2", "P2 verifying 2", "P2 passed 2"];
        let of_2 = [&["P2 verifying 0", "P2 started 1", "P2 verifying 1", "P2 failed 1"][..], &again].concat();
        assert_eq!(states, [&["P1 verifying 0", "P1 started 1", "P1 verifying 1", "P1 passed 1"][..], &of_2].concat());
        let tools = payloads(&done, "tool");
        let greps: Vec<&Value> = tools
            .iter()
            .filter(|tool| tool["text"].as_str().is_some_and(|text| text.starts_with(GREP)))
            .map(|tool| &tool["state"])
            .collect();
        // It runs once before the work, and once more if it fails after an attempt.
        assert_eq!(
            greps,
            [["started", "failed"], ["started", "failed"], ["started", "failed"], ["started", "completed"]].concat()
        );
        // The third session is the second attempt at phase 2. Each session has a recording of its own.
        let has_failure = |name: &str| read(&case.path(name)).contains("# Verification failed");
        assert!(!has_failure("tmp/run.jsonl") && !has_failure("tmp/run-2.jsonl") && has_failure("tmp/run-3.jsonl"));
        assert!(!case.path("tmp/run-4.jsonl").exists());
        let plan = read(&case.work().join(PLAN));
        assert_eq!((plan.matches("- [x] T").count(), plan.matches("- [ ]").count()), (2, 0), "{plan}");
        assert_eq!(read(&case.work().join("spektacular-demo/goodbye.txt")), "Goodbye, world.\n");
    }
}

#[test]
fn a_person_sees_the_failure_and_its_repair() {
    let case = Case::new();
    for args in &COMMANDS[..2] {
        assert_eq!(case.run(args).code, Some(0), "{args:?}");
    }
    let did = case.run(COMMANDS[2]);
    assert_eq!(did.code, Some(0), "{did:?}");
    let at = |wanted: &str| did.err.find(wanted).unwrap_or_else(|| panic!("no {wanted}: {did:?}"));
    let (failed, again) = (at(&format!("  failed {GREP} (")), at("Phase 2, attempt 2\n"));
    assert!(failed < again && again < at(&format!("  passed {GREP} (")), "{}", did.err);
    assert!(failed < at("\nPhase 2 of 2 failed: its command failed\n"), "{}", did.err);
    assert!(again < at("    -Godbye, world.\n    +Goodbye, world.\n"), "{}", did.err);
    assert!(at("Phase 2 passed\nFinal check\n  passed test -s spektacular-demo/hello.txt (") > again, "{}", did.err);
    assert!(did.out.contains("There was a spelling mistake in spektacular-demo/goodbye.txt: I corrected it.\n"));
    assert!(did.out.ends_with(&format!("\n{PLAN}: 2 of 2 phases passed\n")), "{did:?}");
    // The plan is done, but its files were removed. The final check detects that.
    std::fs::remove_dir_all(case.work().join("spektacular-demo")).unwrap();
    let again = case.run(COMMANDS[2]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.err.contains("Phase 1 is open again: The greeting\n"), "{again:?}");
    assert!(!again.out.contains("spelling mistake"), "a file that is gone has none: {again:?}");
}
