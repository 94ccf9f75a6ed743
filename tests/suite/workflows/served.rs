//! A cancel or a signal is served while spektacular waits for git in `implement`.

use crate::support::{self, Case, Session, in_time, procs};
use crate::workflows::implement::{allowed, commands, phase, plan, project, prompts};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// A git whose `status` never ends once the file `hang` exists. It records the ids of the hanging processes.
const GIT: &str = "#!/bin/sh
case \" $* \" in *' status '*)
  if test -e \"${0%/*}/../hang\"; then echo $$ >>\"${0%/*}/../pids\"; exec sleep 1000; fi;;
esac
exec /usr/bin/git \"$@\"
";

fn case(agent: &str) -> Case {
    project(&plan(&[phase(1, &["test -s a"], "")]), agent).git().program("git", GIT)
}

/// The git processes that hang or have hung.
fn pids(session: &Session) -> Vec<i32> {
    support::read(&session.case.path("pids")).lines().map(|line| line.parse().unwrap()).collect()
}

/// Starts the run and waits until git has hung this many times.
fn stuck(case: Case, workflow: Value, times: usize) -> Session {
    let mut session = case.spawn();
    session.start(allowed(workflow));
    session.wait_until("git", || pids(&session).len() >= times);
    session
}

/// Waits until no git process is left. A killed process may need a while to exit.
#[track_caller]
fn wait_for_the_end_of_git(session: &Session) {
    let pids = pids(session);
    assert!(!pids.is_empty());
    session.wait_until("the end of git", || !pids.iter().any(|pid| procs::alive(*pid)));
}

/// Ends the run with this event, and checks that git was stopped too.
#[track_caller]
fn stopped(mut session: Session, how: impl FnOnce(&mut Session)) -> support::Outcome {
    how(&mut session);
    session.until("run.cancelled");
    wait_for_the_end_of_git(&session);
    session.finish()
}

#[test]
fn a_cancel_is_served_while_git_lists_the_changes_before_a_turn() {
    let session = stuck(case("echo 1 >a").file("hang", ""), json!({}), 1);
    let outcome = stopped(session, |session| drop(session.cancel()));
    assert_eq!(prompts(&outcome).len(), 0, "the agent was started after the cancel");
}

#[test]
fn a_cancel_is_served_while_git_lists_the_changes_after_a_turn() {
    // The first search that hangs is the session's search for changed files.
    let session = stuck(case("echo 1 >a; touch \"$D/../hang\""), json!({}), 2);
    let outcome = stopped(session, |session| drop(session.cancel()));
    assert_eq!(commands(&outcome), [""; 0], "a command was started after the cancel");
}

#[test]
fn a_signal_is_served_while_git_lists_the_changes_before_the_first_phase() {
    let session = stuck(case("echo 1 >a").file("hang", ""), json!({"commit": true}), 1);
    let outcome = stopped(session, |session| session.signal(Signal::TERM));
    assert_eq!(outcome.cancelled()["source"], "signal");
    assert_eq!(prompts(&outcome).len(), 0);
}

#[test]
fn a_cancel_is_served_while_git_lists_the_files_of_a_commit() {
    let commands = ["test -s a && touch ../hang"];
    let case = project(&plan(&[phase(1, &commands, ""), phase(2, &["true"], "")]), "echo 1 >a").git();
    // The first search that hangs is the command's search for changed files.
    let session = stuck(case.program("git", GIT), json!({"commit": true}), 2);
    let outcome = stopped(session, |session| drop(session.cancel()));
    assert_eq!(prompts(&outcome).len(), 1, "a second phase was begun after the cancel");
    assert!(support::list(&outcome.cancelled()["workflow"]["phases"])[0]["commit"].is_null());
}

#[test]
fn the_limit_of_a_phase_covers_git() {
    let mut seconds = 0.25;
    in_time(|| {
        seconds *= 2.0;
        let mut session = case("echo 1 >a").file("hang", "").spawn();
        session.start(allowed(json!({"phase_timeout_s": seconds})));
        session.until("run.failed");
        let began = !pids(&session).is_empty();
        if began {
            wait_for_the_end_of_git(&session);
        }
        let outcome = session.finish();
        outcome.failed("timeout");
        assert_eq!(prompts(&outcome).len(), 0);
        if began { Ok(()) } else { Err(format!("git did not begin within {seconds} s")) }
    });
}

#[test]
fn a_signal_that_ends_a_dry_run_ends_git_too() {
    let case = case("echo 1 >a").file("hang", "").args(&["--dry-run", "--commit", "greeting"]);
    let mut session = case.spawn();
    session.wait_until("git", || !pids(&session).is_empty());
    session.signal(Signal::TERM);
    session.wait_exit();
    wait_for_the_end_of_git(&session);
}

#[test]
fn a_cancel_is_served_while_protected_files_are_read() {
    // The file is sparse, but hashing it takes time. Before the first phase, it is read once per phase.
    let protects = "\n### Protect\n\n- large\n";
    let phases: Vec<String> = (1..=99).map(|number| phase(number, &["true"], protects)).collect();
    let case = project(&plan(&phases), "true");
    fs::File::create(case.work().join("large")).unwrap().set_len(63 << 20).unwrap();
    let mut session = case.spawn();
    session.start(allowed(json!({})));
    session.until("run.started");
    session.cancel();
    session.until("run.cancelled");
    assert_eq!(prompts(&session.finish()).len(), 0);
}

/// The limit of the run holds before the first process, too.
#[test]
fn the_limit_of_time_covers_the_reading_of_protected_files() {
    let phases: Vec<String> = (1..=99).map(|number| phase(number, &["true"], "\n### Protect\n\n- large\n")).collect();
    let case = project(&plan(&phases), "true");
    fs::File::create(case.work().join("large")).unwrap().set_len(63 << 20).unwrap();
    let mut start = allowed(json!({}));
    start["timeout_s"] = json!(0.01);
    let outcome = support::run(case, start);
    outcome.failed("timeout");
    assert_eq!(prompts(&outcome).len(), 0);
}

#[test]
fn a_pipe_in_place_of_a_lock_blocks_nothing() {
    let case = case("echo 1 >a").file("work/.spektacular/local/locks/x", "");
    let lock = case.work().join(".spektacular/local/locks/greeting.lock");
    rustix::fs::mknodat(rustix::fs::CWD, &lock, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let outcome = support::run(case, allowed(json!({})));
    let failed = outcome.failed("invalid_request");
    assert!(failed["message"].as_str().unwrap().contains("greeting.lock must be a regular file"), "{failed}");
}
