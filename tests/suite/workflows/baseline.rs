//! Tests of the baseline of `implement`: the commands of a phase before its first attempt.

use crate::support::{Case, Frame, Session, in_time, run};
use crate::workflows::commits::authored;
use crate::workflows::implement::{
    PLAN, allowed, baseline, commands, phase, plan, plan_of, project, prompts, report, states,
};
use rustix::process::Signal;
use serde_json::{Value, json};

fn one(command: &str) -> String {
    plan(&[phase(1, &[command], "")])
}

/// A run that asks whether the phase is done already.
#[track_caller]
fn asked(case: Case) -> (Session, Frame) {
    let mut session = case.spawn();
    let mut start = allowed(json!({}));
    start["interactive"] = json!(true);
    session.start(start);
    let question = session.until("run.question");
    let payload = question.payload();
    assert_eq!((&payload["kind"], &payload["header"]), (&json!("confirm"), &json!("Done already")));
    assert_eq!(payload["default"], false);
    (session, question)
}

#[test]
fn each_phase_begins_with_its_commands_outside_any_attempt() {
    let text = plan(&[phase(1, &["test -e a", "test -e b"], "")]);
    let outcome = run(project(&text, "touch a b").git(), allowed(json!({})));
    outcome.completed();
    assert_eq!(baseline(&outcome), ["P1 test -e a: failed", "P1 test -e b: failed"], "each runs, and once only");
    let first = outcome.progress("phase")[0].payload();
    assert_eq!((&first["state"], &first["attempt"]), (&json!("verifying"), &json!(0)));
    assert_eq!(first["text"], "Phase 1 of 1, before the work");
    let starting = |f: &Frame| f.payload()["status"] == "starting";
    let started = |f: &Frame| f.payload()["kind"] == "phase" && f.payload()["state"] == "started";
    let place = |is: &dyn Fn(&Frame) -> bool| outcome.frames.iter().position(is).unwrap();
    assert!(place(&starting) > place(&started), "no agent starts for a command");
    assert_eq!(report(&outcome)[0]["attempts"], 1);
    assert!(!prompts(&outcome)[0].contains("# Earlier attempt"), "{}", prompts(&outcome)[0]);
}

#[test]
fn a_phase_that_is_done_already_passes_once_a_person_agrees() {
    let text = plan(&[phase(1, &["test -e a"], ""), phase(2, &["test -e old.txt"], "")]);
    let two = || authored(project(&text, "touch a; echo $N >>n").git());
    let (mut session, question) = asked(project(&one("test -e old.txt"), "touch a").git());
    session.answer(&question, json!(true));
    let outcome = session.finish();
    assert_eq!(outcome.completed()["workflow"]["complete"], true);
    assert_eq!((prompts(&outcome).len(), &report(&outcome)[0]["attempts"]), (0, &json!(0)));
    assert_eq!((states(&outcome), commands(&outcome)), (vec!["P1 passed 0".to_owned()], Vec::new()));
    assert!(plan_of(&outcome).contains("- [x] T1.1") && plan_of(&outcome).contains("spektacular: passed attempts=0"));
    // Nobody agrees: the agent works as ever.
    let (mut session, question) = asked(project(&one("test -e old.txt"), "touch a").git());
    session.answer(&question, json!(false));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(states(&outcome), ["P1 started 1", "P1 verifying 1", "P1 passed 1"]);
    // So it is in a headless run, unless the flag agrees.
    let outcome = run(two(), allowed(json!({"commit": true})));
    outcome.completed();
    assert_eq!(prompts(&outcome).len(), 2);
    let warnings = outcome.warnings("unverified");
    assert!(warnings.len() == 1 && warnings[0].text("text").contains("--accept-done"), "{}", warnings.len());
    let outcome = run(two(), allowed(json!({"commit": true, "accept_done": true})));
    outcome.completed();
    assert_eq!((prompts(&outcome).len(), outcome.warnings("unverified").len()), (1, 0));
    assert!(report(&outcome)[1]["commit"].is_string(), "{}", report(&outcome)[1]);
    // The agent has no turn after the commands of the second phase passed. Those of the first passed after its turn.
    assert_eq!(commands(&outcome), ["P1 test -e a: completed"]);
    let did = two().run(&["implement", "--allow-verify", "--accept-done", "greeting"]);
    assert!(
        did.code == Some(0) && did.err.contains("\nBefore phase 2 of 2: Part 2\n  passed test -e old.txt ("),
        "{did:?}"
    );
}

#[test]
fn a_program_that_is_missing_ends_the_run_before_the_agent_begins() {
    // The phase may create a file that a path names, and what a program calls may be missing for any reason.
    for command in ["./made", "sh -c no-such-command"] {
        let agent = "printf '#!/bin/sh\n' >made; chmod +x made";
        let outcome = run(project(&one(command), agent).git(), allowed(json!({"attempts": 1})));
        assert_eq!(prompts(&outcome).len(), 1, "{command}");
    }
    let text = plan(&[phase(1, &["test -e a", "no-such-command --all"], "")]);
    let case = project(&text, "touch a").git();
    let did = case.run(&["implement", "--allow-verify", "greeting"]);
    assert!(did.err.contains("  not yet test -e a (") && !did.err.contains("\n  failed"), "{}", did.err);
    let outcome = run(case, allowed(json!({})));
    let failed = outcome.failed("verification_failed");
    assert_eq!((&failed["detail"]["attempt"], &failed["detail"]["exit_code"]), (&json!(0), &json!(127)));
    let message = failed["message"].as_str().unwrap();
    assert!(message.starts_with("P1 cannot pass: its command was not found: no-such-command --all."), "{message}");
    assert_eq!((prompts(&outcome).len(), states(&outcome)), (0, vec!["P1 failed 0".to_owned()]));
    assert!(plan_of(&outcome).contains("- [ ] T1.1"));
}

#[test]
fn no_command_runs_as_a_baseline_without_consent() {
    let case = project(&one("touch ran"), "touch a").git();
    let mut session = case.spawn();
    session.start(json!({"prompt": "greeting", "workflow": {"accept_done": true}}));
    let question = session.until("run.question");
    assert!(!session.case.work().join("ran").exists());
    session.answer(&question, json!("deny"));
    let outcome = session.finish();
    outcome.failed("question_declined");
    assert!(!outcome.case().work().join("ran").exists());
}

#[test]
fn a_command_that_changes_a_protected_path_before_the_work_has_failed() {
    let text = plan(&[phase(1, &["echo exit 0 >tests/run.sh", "sh tests/run.sh"], "\n### Protect\n\n- tests/\n")]);
    let case = project(&text, "touch a").git().file("work/tests/run.sh", "exit 1\n");
    let outcome = run(case, allowed(json!({"attempts": 1, "accept_done": true})));
    outcome.failed("verification_failed");
    assert_eq!(report(&outcome)[0]["state"], "failed");
}

#[test]
fn limits_and_stops_hold_for_a_baseline() {
    // The limit of a command: the phase goes on.
    let text = plan(&[phase(1, &["test -e a || sleep 600", "test -e b"], "")]);
    let outcome = run(project(&text, "touch a b").git(), allowed(json!({"verify_timeout_s": 1})));
    outcome.completed();
    assert_eq!(baseline(&outcome), ["P1 test -e a || sleep 600: failed"], "no further command runs");
    let endless = || project(&one("touch began; sleep 600"), "touch a").git();
    for (name, message) in [("timeout_s", "timeout_s"), ("phase_timeout_s", "phase_timeout_s")] {
        let mut seconds = 0.75;
        in_time(|| {
            seconds *= 2.0;
            let mut start = allowed(json!({}));
            if name == "timeout_s" {
                start[name] = json!(seconds)
            } else {
                start["workflow"][name] = json!(seconds)
            }
            let outcome = run(endless(), start);
            let failed = outcome.failed("timeout");
            assert!(failed["message"].as_str().unwrap().contains(message), "{failed}");
            let began = outcome.case().work().join("began").exists();
            if began { Ok(()) } else { Err(format!("the command did not begin within {seconds} s")) }
        });
    }
    let mut session = endless().spawn();
    session.start(allowed(json!({})));
    let began = session.case.work().join("began");
    session.wait_until("the command", || began.exists());
    session.signal(Signal::TERM);
    let outcome = session.finish();
    assert_eq!(outcome.cancelled()["source"], "signal");
    assert_eq!((prompts(&outcome).len(), &report(&outcome)[0]["attempts"]), (0, &json!(0)));
}

/// The changes of a baseline belong to the phase, also for the run that continues.
#[test]
fn a_run_that_ended_in_a_baseline_continues_with_its_commit() {
    let text = one(
        "echo x >log; test -e go && test -e a || { touch \"$D/began\"; test ! -e \"$D/wait\" || sleep 600; false; }",
    );
    let case = authored(project(&text, "touch a go").git().file("log/wait", ""));
    let mut session = case.spawn();
    session.start(allowed(json!({"commit": true})));
    let began = session.case.path("log/began");
    session.wait_until("the command", || began.exists());
    session.cancel();
    let outcome = session.finish();
    outcome.cancelled();
    std::fs::remove_file(outcome.case().path("log/wait")).unwrap();
    let did = outcome.case().run(&["implement", "--allow-verify", "--commit", "--output", "json", "greeting"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    let end: Value = serde_json::from_str(did.out.lines().last().unwrap()).unwrap();
    assert!(end["payload"]["workflow"]["phases"][0]["commit"].is_string(), "{end}");
    assert!(crate::support::read(&outcome.case().work().join(PLAN)).contains("passed attempts=1"));
}
