//! Tests of `worktree.setup`: the commands run in a new worktree after consent and before the agent, and an agent starts
//! only in a worktree that is complete.

use crate::support::{Case, procs, read};
use crate::workflows::implement::{PLAN, phase, plan, project};
use crate::workflows::worktree::{commit_all, repository, state, worktree};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// The case with these commands.
fn with(case: Case, commands: &Value) -> Case {
    case.env("SPEKTACULAR_WORKTREE_SETUP", &commands.to_string())
}

fn frames(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_commands_run_after_consent_and_before_the_agent() {
    let commands = json!({"worktree": {"setup": ["echo 1 >made; pwd >>made", "echo 2 >>made"]}});
    let case = repository("cp made seen").file("home/.config/spektacular/config.json", &commands.to_string());
    let mut session = case.args(&["--worktree=fix"]).spawn();
    session.start(json!({"interactive": true}));
    let question = session.until("run.question");
    let asked = question.payload();
    assert_eq!((&asked["header"], &asked["purpose"]), (&json!("Setup"), &json!("permission")), "{asked}");
    assert_eq!(asked["subject"]["detail"], "setup: echo 1 >made; pwd >>made\nsetup: echo 2 >>made", "{asked}");
    assert!(asked["subject"]["locations"][0]["path"].as_str().unwrap().ends_with("spektacular/config.json"), "{asked}");
    let tree = worktree(&session.case, "fix");
    assert!(!tree.join("made").exists(), "nothing runs before consent");
    session.answer(&question, json!("allow_once"));
    let outcome = session.finish_unchecked();
    outcome.completed();
    assert_eq!(outcome.frames.iter().filter(|frame| frame.kind() == "run.started").count(), 1);
    let terminal = outcome.frames.last().unwrap().payload();
    assert!(terminal.get("workflow").is_none(), "a session is no workflow: {terminal}");
    assert_eq!(read(&tree.join("seen")), format!("1\n{}\n2\n", tree.display()));
}

#[test]
fn without_consent_nothing_runs_and_no_worktree_stays() {
    for (flags, code, why) in [
        (&[][..], 2, "nobody can consent to them: read them, then allow them with --allow-setup"),
        (&["--permissions", "read-only"], 2, "nobody can consent"),
        (&["--answer", "permission=deny"], 6, "Nobody consented to the commands"),
    ] {
        let case = with(repository("touch ran"), &json!(["touch \"$HOME/ran\""]));
        let did = case.run(&[&["adhoc", "--worktree=fix"], flags, &["Work"]].concat());
        assert_eq!(did.code, Some(code), "{flags:?}: {did:?}");
        assert!(did.err.contains(why), "{flags:?}: {}", did.err);
        assert!(!case.path("home/ran").exists());
        assert_eq!(state(&case), (1, String::new()), "{flags:?}");
    }
    for flags in [&["--allow-setup"][..], &["--yes"]] {
        let case = with(repository("touch work"), &json!(["touch \"$HOME/ran\""]));
        let did = case.run(&[&["adhoc", "--worktree=fix"], flags, &["Work"]].concat());
        assert_eq!((did.code, case.path("home/ran").exists()), (Some(0), true), "{flags:?}: {did:?}");
    }
}

#[test]
fn a_setup_that_fails_ends_the_run_before_the_agent() {
    let case = with(repository("touch \"$HOME/agent\""), &json!(["echo why; exit 3", "touch \"$HOME/second\""]));
    let did = case.run(&["adhoc", "--worktree=fix", "--allow-setup", "--output", "json", "Work"]);
    assert_eq!(did.code, Some(1), "{did:?}");
    let all = frames(&did.out);
    let error = &all.last().unwrap()["payload"];
    assert_eq!(error["code"], "verification_failed", "{error}");
    let detail = &error["detail"];
    assert_eq!(
        (&detail["phase"], &detail["exit_code"], &detail["output_tail"]),
        (&json!("setup"), &json!(3), &json!("why\n"))
    );
    assert!(!case.path("home/agent").exists() && !case.path("home/second").exists());
    assert!(did.err.contains("was not completed and was removed"), "{}", did.err);
    assert_eq!(state(&case), (1, String::new()));
}

/// A command that hangs ends with the run, and leaves no process.
#[test]
fn a_stop_and_a_limit_end_a_setup_that_hangs() {
    let hangs = json!(["echo $$ >\"$HOME/pid\"; sleep 600"]);
    let case = with(repository(":"), &hangs);
    let session = case.args(&["--worktree=fix", "--allow-setup", "--prompt", "go"]).spawn();
    session.wait_until("the command", || {
        fs::read_to_string(session.case.path("home/pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    session.signal(Signal::TERM);
    let outcome = session.finish_unchecked();
    outcome.cancelled();
    let pid = read(&outcome.case().path("home/pid")).trim().parse().unwrap();
    assert!(!procs::alive(pid));
    assert_eq!(state(outcome.case()), (1, String::new()));
    let case = with(project(&plan(&[phase(1, &["true"], "")]), "echo said").git(), &hangs);
    commit_all(&case);
    let flags = ["--worktree=fix", "--allow-verify", "--verify-timeout", "1", "--output", "json", "greeting"];
    let did = case.run(&[&["implement"], &flags[..]].concat());
    let all = frames(&did.out);
    let last = &all.last().unwrap()["payload"];
    assert_eq!((&last["detail"]["timed_out"], did.code), (&json!(true), Some(1)), "{last}");
    assert!(last["workflow"].is_object(), "{last}");
}

#[test]
fn implement_sets_up_its_worktree_first() {
    let case = with(
        project(&plan(&[phase(1, &["test -e dep && test -e made"], "")]), "test -e dep && touch made").git(),
        &json!(["touch dep"]),
    );
    fs::write(case.work().join(".gitignore"), "dep\n").unwrap();
    commit_all(&case);
    let did = case.run(&["implement", "--worktree=build", "--allow-verify", "--output", "json", "greeting"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    assert!(read(&worktree(&case, "build").join(PLAN)).contains("- [x] T1.1"));
    assert_eq!(frames(&did.out).last().unwrap()["payload"]["workflow"]["complete"], true);
}

#[test]
fn commands_of_a_project_that_nobody_trusts_never_run() {
    let case =
        repository("touch new").file("work/.spektacular/config.json", "{\"worktree\":{\"setup\":[\"touch ran\"]}}\n");
    commit_all(&case);
    let did = case.run(&["adhoc", "--worktree=one", "--allow-setup", "--yes", "Work"]);
    assert!(did.code == Some(0) && did.err.contains("these keys in it are ignored: worktree"), "{did:?}");
    assert!(!worktree(&case, "one").join("ran").exists());
    assert_eq!(case.run(&["config", "trust"]).code, Some(0));
    assert_eq!(case.run(&["adhoc", "--worktree=two", "--allow-setup", "Work"]).code, Some(0));
    assert!(worktree(&case, "two").join("ran").exists());
}

/// What a set-up makes is no work of the agent's, also where git ignores it; and the session goes on where it is.
#[test]
fn a_setup_alone_keeps_no_worktree_and_a_session_goes_on_in_it() {
    let case = repository(":");
    fs::write(case.work().join(".gitignore"), "deps\n").unwrap();
    commit_all(&case);
    let case = with(case, &json!(["mkdir deps; touch deps/a"]));
    let did = case.run(&["adhoc", "--worktree=fix", "--allow-setup", "Look"]);
    assert!(did.code == Some(0) && did.err.contains("had no changes and was removed"), "{did:?}");
    let case = with(repository("echo x >>new"), &json!(["true"]));
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "--allow-setup", "--name", "mine", "Work"]).code, Some(0));
    assert_eq!(case.run(&["adhoc", "--session", "mine", "Work"]).code, Some(0));
    assert_eq!(read(&worktree(&case, "fix").join("new")), "x\nx\n");
}
