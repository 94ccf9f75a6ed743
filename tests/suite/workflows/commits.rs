//! Tests of `implement --commit` after a run that did not finish its phase: what earlier attempts changed belongs to the
//! phase, and what another hand changed does not.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::case::Did;
use crate::support::{Case, Outcome, read, run};
use crate::workflows::implement::{PLAN, allowed, commands, phase, plan, project, prompts, states};

/// Does the work in its first run, and then only says that it is done. `$D/wait` makes it wait after the work.
const AGENT: &str = "mkdir -p sub; if ! [ -e made ]; then echo code >made; echo more >sub/it; rm old.txt; fi
while [ -e \"$D/wait\" ]; do sleep 0.02; done; echo said";

#[track_caller]
fn git(case: &Case, args: &[&str]) -> String {
    let mut git = Command::new("/usr/bin/git");
    let output = git.args(args).current_dir(case.work()).env_clear().env("HOME", case.path("home")).output().unwrap();
    assert!(output.status.success(), "{args:?} {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A clean repository with a plan of one phase.
fn repository(command: &str) -> Case {
    authored(project(&plan(&[phase(1, &[command], "")]), AGENT).git())
}

pub(crate) fn authored(case: Case) -> Case {
    let names = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
    names.iter().fold(case, |case, name| case.env(name, "t@example.org"))
}

fn write_hook(case: &Case, script: &str) {
    let hook = case.work().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A first run that a signal ends once the agent has done its work.
#[track_caller]
fn interrupted(signal: Signal) -> Outcome {
    let case = repository("test -e made").file("log/wait", "");
    let made = case.work().join("made");
    let mut session = case.spawn();
    session.start(allowed(json!({"commit": true})));
    session.wait_until("the work", || made.exists() && !made.with_file_name("old.txt").exists());
    session.signal(signal);
    let outcome = match signal {
        Signal::KILL => session.finish_unchecked(),
        _ => session.finish(),
    };
    fs::remove_file(outcome.case().path("log/wait")).unwrap();
    outcome
}

/// A first run of one attempt, which fails until `$D/right` exists.
#[track_caller]
fn failed(workflow: Value) -> Outcome {
    let outcome = run(repository("test -e \"$D/right\""), allowed(workflow));
    outcome.failed("verification_failed");
    fs::write(outcome.case().path("log/right"), "").unwrap();
    outcome
}

/// The same command again.
fn again(first: &Outcome, flags: &[&str]) -> Did {
    let fixed = ["implement", "--allow-verify", "--commit", "greeting"];
    first.case().run(&[&fixed, flags].concat())
}

#[track_caller]
fn commits(first: &Outcome, flags: &[&str], files: &[&str]) -> Did {
    let did = again(first, flags);
    assert_eq!(did.code, Some(0), "{did:?}");
    let shown = git(first.case(), &["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(shown.lines().collect::<Vec<_>>(), files);
    did
}

const ALL: [&str; 4] = [PLAN, "made", "old.txt", "sub/it"];

#[test]
fn the_work_of_an_interrupted_run_is_committed_with_its_phase() {
    for signal in [Signal::TERM, Signal::KILL] {
        let first = interrupted(signal);
        let did = commits(&first, &[], &ALL);
        assert!(!did.err.contains("not committed"), "{signal:?}: {}", did.err);
        assert_eq!(git(first.case(), &["status", "--porcelain", "--", ":!.spektacular"]), "");
    }
}

#[test]
fn the_work_of_failed_attempts_is_committed_once_the_phase_passes() {
    commits(&failed(json!({"commit": true, "attempts": 1})), &[], &ALL);
    // A run without commits counts too.
    commits(&failed(json!({"attempts": 1})), &[], &ALL);
}

/// The report and the recording lie in the work tree, and neither makes it dirty nor becomes a part of the work.
#[test]
fn our_own_files_are_neither_changes_nor_work() {
    let case = repository("test -e made");
    let flags = ["--report", "run.html", "--record", "run.jsonl"];
    let did = case.run(&[&["implement", "--allow-verify", "--commit", "greeting"], &flags[..]].concat());
    assert_eq!(did.code, Some(0), "{did:?}");
    let files = git(&case, &["show", "--format=", "--name-only", "HEAD"]);
    assert!(files.contains("made") && !files.contains("run"), "{files}");
    assert!(read(&case.work().join("run.html")).contains("greeting"));
    assert!(!did.err.contains("not committed"), "{did:?}");
}

#[test]
fn what_another_hand_changed_since_is_refused_or_named() {
    let first = interrupted(Signal::TERM);
    for file in ["made", "own"] {
        fs::write(first.case().work().join(file), "mine\n").unwrap();
    }
    let did = again(&first, &[]);
    assert!(did.code == Some(2) && did.err.contains("--allow-dirty"), "{did:?}");
    let did = commits(&first, &["--allow-dirty"], &[PLAN, "old.txt", "sub/it"]);
    let warning = did.err.lines().find(|line| line.contains("not committed")).unwrap_or_else(|| panic!("{}", did.err));
    assert!(warning.contains("made") && !warning.contains("own"), "{warning}");
    assert_eq!(read(&first.case().work().join("made")), "mine\n");
    assert_eq!(git(first.case(), &["status", "--porcelain", "--", ":!.spektacular"]), "?? made\n?? own\n");
}

/// A phase has passed, but its commit is missing: the same command makes it first.
#[test]
fn a_commit_that_is_missing_is_made_by_the_same_command() {
    for (hook, is_refused) in [("exit 1", true), ("touch \"$D/hook\"; sleep 600", false)] {
        let two = [phase(1, &["test -e made"], ""), phase(2, &["test -e two"], "")];
        let agent = "case $P in *'# Implement Phase 1'*) touch made;; *) touch two;; esac; echo said";
        let case = authored(project(&plan(&two), agent).git());
        write_hook(&case, hook);
        let reached = case.path("log/hook");
        let mut session = case.spawn();
        session.start(allowed(json!({"commit": true})));
        if !is_refused {
            session.wait_until("the hook", || reached.exists());
            session.signal(Signal::TERM);
        }
        let first = session.finish();
        if is_refused {
            first.failed("commit_failed");
        }
        fs::remove_file(first.case().work().join(".git/hooks/pre-commit")).unwrap();
        commits(&first, &[], &[PLAN, "two"]);
        let files = git(first.case(), &["show", "--format=%s", "--name-only", "HEAD~1"]);
        assert_eq!(files.lines().collect::<Vec<_>>(), ["greeting: phase 1, Part 1", "", PLAN, "made"]);
    }
}

#[test]
fn files_of_a_phase_that_passed_without_a_commit_are_named() {
    let two = [phase(1, &["test -e made"], ""), phase(2, &["test -e two"], "")];
    let agent = "case $P in *'# Implement Phase 1'*) touch made;; *) touch two;; esac; echo said";
    let first = run(authored(project(&plan(&two), agent).git()), allowed(json!({"max_phases": 1})));
    first.completed();
    assert_eq!(again(&first, &[]).code, Some(2));
    let did = commits(&first, &["--allow-dirty"], &[PLAN, "two"]);
    let warning = did.err.lines().find(|line| line.contains("not committed")).unwrap_or_else(|| panic!("{}", did.err));
    assert!(warning.contains("P2") && warning.contains("made"), "{warning}");
}

#[test]
fn a_process_that_git_leaves_behind_is_not_the_agents() {
    let case = authored(project(&plan(&[phase(1, &["test -e made"], "")]), "touch made").git());
    write_hook(&case, "setsid sleep 600 </dev/null >/dev/null 2>&1 &");
    let outcome = run(case, allowed(json!({"commit": true})));
    outcome.completed();
    assert_eq!(outcome.warnings("leaked_process").len(), 0);
    // A command of the plan is named.
    let left = "test ! -e made || { setsid sleep 600 </dev/null >/dev/null 2>&1 & }";
    let outcome = run(project(&plan(&[phase(1, &[left], "")]), "touch made").git(), allowed(json!({})));
    outcome.completed();
    let warnings = outcome.warnings("leaked_process");
    let texts: Vec<&str> = warnings.iter().map(|warning| warning.text("text")).collect();
    assert!(texts.len() == 1 && texts[0].contains("a command of P1"), "{texts:?}");
}

#[test]
fn a_passed_phase_leaves_no_record() {
    let text = plan(&[phase(1, &["true"], ""), phase(2, &["test -e \"$D/right\""], "")]);
    let agent = "case $P in *'# Implement Phase 1'*) touch one;; *) touch two;; esac; echo said";
    let first = run(project(&text, agent).git(), allowed(json!({"attempts": 1})));
    first.failed("verification_failed");
    // The files of the first phase belong to no later commit.
    let did = again(&first, &[]);
    assert!(did.code == Some(2) && did.err.contains("--allow-dirty"), "{did:?}");
}

/// A repository whose hook does this before each commit.
fn hooked(command: &str, hook: &str) -> Case {
    let text = plan(&[phase(1, &[command], "")]);
    let case = authored(project(&text, "echo good >a; echo $N >>n").git());
    write_hook(&case, hook);
    case
}

#[track_caller]
fn is_clean(case: &Case) {
    assert_eq!(git(case, &["status", "--porcelain", "--", ":!.spektacular"]), "");
}

/// The commands judge what is committed, also where a hook formats it, and the index holds it afterwards.
#[test]
fn a_commit_that_a_hook_changed_is_verified_again() {
    let hook = "echo formatted >>a; echo new >b; git add a b";
    let outcome = run(hooked("grep -q good a", hook), allowed(json!({"commit": true})));
    let done = outcome.completed();
    assert_eq!(done["workflow"]["complete"], true);
    assert_eq!(commands(&outcome), ["P1 grep -q good a: completed"; 2]);
    assert_eq!(git(outcome.case(), &["show", "HEAD:a"]), "good\nformatted\n");
    is_clean(outcome.case());
    // A hook that changes nothing costs nothing.
    let outcome = run(hooked("grep -q good a", "true"), allowed(json!({"commit": true})));
    outcome.completed();
    assert_eq!(commands(&outcome), ["P1 grep -q good a: completed"]);
    is_clean(outcome.case());
}

#[test]
fn a_phase_whose_commit_fails_its_commands_is_reopened() {
    let once = "if ! test -e .git/hooked; then touch .git/hooked; echo bad >a; git add a; fi";
    let outcome = run(hooked("grep -q good a", once), allowed(json!({"commit": true})));
    assert_eq!(outcome.completed()["workflow"]["complete"], true);
    let wanted = ["P1 passed 1", "P1 verifying 1", "P1 reopened 0", "P1 started 1", "P1 verifying 1", "P1 passed 1"];
    assert_eq!(states(&outcome)[2..], wanted);
    assert!(prompts(&outcome)[1].contains("\n# Verification failed\n"), "{}", prompts(&outcome)[1]);
    assert_eq!(git(outcome.case(), &["show", "HEAD:a"]), "good\n");
    is_clean(outcome.case());
    let always = "echo bad >a; git add a";
    let outcome = run(hooked("grep -q good a", always), allowed(json!({"commit": true})));
    let failed = outcome.failed("verification_failed");
    assert_eq!((&failed["workflow"]["complete"], &failed["detail"]["attempt"]), (&json!(false), &json!(0)));
    assert!(read(&outcome.case().work().join(PLAN)).contains("- [ ] T1.1"));
}

/// The commit holds the state that the commands judged, whoever changes a file before it.
#[test]
fn work_that_changed_after_its_commands_passed_is_verified_again() {
    let text = plan(&[phase(1, &["grep -q good a"], "\n- Manual: It is good.\n")]);
    let mut session = authored(project(&text, "echo good >a; echo $N >>n").git()).spawn();
    let mut start = allowed(json!({"commit": true}));
    start["interactive"] = json!(true);
    session.start(start);
    let question = session.until("run.question");
    fs::write(session.case.work().join("a"), "evil\n").unwrap();
    session.answer(&question, json!(true));
    let question = session.until("run.question");
    session.answer(&question, json!(true));
    let outcome = session.finish();
    outcome.completed();
    let ran = ["completed", "failed", "failed", "completed"].map(|state| format!("P1 grep -q good a: {state}"));
    assert_eq!(commands(&outcome), ran);
    assert!(states(&outcome).contains(&"P1 reopened 0".to_owned()), "{:?}", states(&outcome));
    assert_eq!(git(outcome.case(), &["show", "HEAD:a"]), "good\n");
    is_clean(outcome.case());
}

/// Then the commands cannot judge the commit.
#[test]
fn a_hook_that_commits_other_content_than_the_files_have_is_named() {
    let hook = "printf bad >.git/other; git update-index --add --cacheinfo \
                100644,$(git hash-object -w .git/other),a";
    let outcome = run(hooked("grep -q good a", hook), allowed(json!({"commit": true})));
    let failed = outcome.failed("commit_failed");
    assert_eq!(failed["detail"]["agent_message"], "a\n", "{failed}");
    assert_eq!(failed["workflow"]["complete"], false);
}

#[test]
fn a_hook_that_rewrites_a_protected_test_reopens_the_phase() {
    let text = plan(&[phase(1, &["sh tests/run.sh"], "\n### Protect\n\n- tests/\n")]);
    let case = authored(project(&text, "echo good >a").file("work/tests/run.sh", "grep -q good a\n").git());
    write_hook(&case, "echo exit 0 >tests/run.sh");
    let outcome = run(case, allowed(json!({"commit": true, "attempts": 1})));
    let failed = outcome.failed("verification_failed");
    assert!(failed["message"].as_str().unwrap().contains("protected files changed"), "{failed}");
    assert_eq!(failed["workflow"]["complete"], false);
}
