//! Tests of protected paths: no change of them passes, whoever makes it and in whatever run.

use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

use crate::support::agent::Script;
use crate::support::{Case, run};
use crate::workflow_implement::{PLAN, allowed, phase, plan, project, report};

const PROTECT: &str = "\n### Protect\n\n- tests/\n";

/// A run of one attempt from the command line.
fn again(case: &Case) -> crate::support::case::Did {
    case.run(&["implement", "--allow-verify", "--attempts", "1", "greeting"])
}

#[test]
fn a_command_that_rewrites_a_protected_test_fails_the_phase() {
    let text = plan(&[phase(1, &["make -s", "sh tests/run.sh"], "\n### Protect\n\n- tests/\n")]);
    let case = project(&text, "printf 'all:\n\t@echo exit 0 >tests/run.sh\n' >Makefile").git();
    let case = case.file("work/tests/run.sh", "exit 1\n");
    let outcome = run(case, allowed(json!({"attempts": 1})));
    let failed = outcome.failed("verification_failed");
    assert_eq!((&failed["detail"]["command"], &failed["workflow"]["complete"]), (&json!("make -s"), &json!(false)));
    assert!(failed["message"].as_str().unwrap().contains("its command changed protected files"), "{failed}");
}

#[test]
fn a_protected_link_protects_what_it_leads_to() {
    let text = plan(&[phase(1, &["sh tests/run.sh"], "\n### Protect\n\n- tests/\n")]);
    let case = project(&text, "echo exit 0 >real/run.sh").git().file("work/real/run.sh", "exit 1\n");
    symlink("real", case.work().join("tests")).unwrap();
    let outcome = run(case, allowed(json!({"attempts": 1})));
    let failed = outcome.failed("verification_failed");
    assert!(failed["message"].as_str().unwrap().contains("protected files changed"), "{failed}");
}

/// A second run does not take a changed file for the original.
#[test]
fn a_protected_file_that_changed_in_an_earlier_run_has_still_changed() {
    let text = plan(&[phase(1, &["sh tests/run.sh"], "\n### Protect\n\n- tests/\n")]);
    let case = project(&text, "echo exit 0 >tests/run.sh").git().file("work/tests/run.sh", "exit 1\n");
    let changed = |code: Option<i32>, err: &str| code == Some(1) && err.contains("protected files changed");
    let first = again(&case);
    assert!(changed(first.code, &first.err), "{}", first.err);
    let second = again(&case);
    assert!(changed(second.code, &second.err), "{}", second.err);
    assert!(second.err.contains("remove the state line"), "{}", second.err);
    // A person accepts the file.
    let plan = case.work().join(PLAN);
    let kept: Vec<String> = fs::read_to_string(&plan)
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with("<!--"))
        .map(str::to_owned)
        .collect();
    fs::write(&plan, kept.join("\n")).unwrap();
    assert_eq!(again(&case).code, Some(0));
}

/// The final check reopens the phase whose command changed the test. The changed test does not become the original.
#[test]
fn a_reopened_phase_keeps_what_it_began_with() {
    let text = plan(&[phase(1, &["sh check.sh"], PROTECT), phase(2, &["true"], "")]);
    let agent = "case $P in
        *'# Implement Phase 2'*) echo 'echo exit 0 >tests/run.sh; sh tests/run.sh' >check.sh;;
        *'# Verification failed'*) echo more >>made;;
        *) echo exit 0 >check.sh; echo x >made;; esac";
    let case = project(&text, agent).git().file("work/tests/run.sh", "exit 1\n");
    let outcome = run(case, allowed(json!({"attempts": 2})));
    let failed = outcome.failed("verification_failed");
    assert!(failed["message"].as_str().unwrap().contains("protected files changed"), "{failed}");
    assert_eq!(report(&outcome)[0]["state"], "failed");
    // Nor does it in a later run.
    let later = again(outcome.case());
    assert!(later.code == Some(1) && later.err.contains("protected files changed"), "{later:?}");
}

#[test]
fn a_new_entry_does_not_make_the_old_ones_forget() {
    let text = plan(&[phase(1, &["sh tests/run.sh"], PROTECT)]);
    let case = project(&text, "echo exit 0 >tests/run.sh").git().file("work/tests/run.sh", "exit 1\n");
    assert_eq!(again(&case).code, Some(1));
    let file = case.work().join(PLAN);
    let more = fs::read_to_string(&file).unwrap().replace("- tests/\n", "- Makefile\n- tests/\n");
    fs::write(&file, more).unwrap();
    let did = again(&case);
    assert!(did.code == Some(1) && did.err.contains("protected files changed"), "{did:?}");
}

/// A passed phase that a person opens again begins with the files as they are then.
#[test]
fn a_passed_phase_forgets_what_it_began_with() {
    let text = plan(&[phase(1, &["sh tests/run.sh"], PROTECT)]);
    let case = project(&text, "echo more >>made").git().file("work/tests/run.sh", "exit 0\n");
    assert_eq!(again(&case).code, Some(0));
    fs::write(case.work().join("tests/run.sh"), "test -e made\n").unwrap();
    let file = case.work().join(PLAN);
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("- [x]", "- [ ]")).unwrap();
    let did = again(&case);
    assert_eq!(did.code, Some(0), "{did:?}");
}

#[test]
fn a_state_that_cannot_be_stored_is_a_warning() {
    let text = plan(&[phase(1, &["true"], PROTECT)]);
    let case = project(&text, "echo x >made").git().file("work/tests/run.sh", "exit 1\n");
    let case = case.file("home/state", "a file");
    let state = case.path("home/state").display().to_string();
    let did = again(&case.env("XDG_STATE_HOME", &state));
    assert!(did.code == Some(0) && did.err.contains("could not be stored"), "{did:?}");
}

#[test]
fn an_edit_of_what_a_protected_link_leads_to_is_denied() {
    let edit = json!({"file_path": "real/run.sh", "content": "exit 0"});
    let script = Script::new().ask("req-1", "toolu_1", "Write", edit).tool_result("toolu_1", "denied").done("Done");
    let text = plan(&[phase(1, &["sh tests/run.sh"], PROTECT)]);
    let case = Case::with(script).subcommand("implement").file(&format!("work/{PLAN}"), &text);
    let case = case.git().file("work/real/run.sh", "exit 1\n");
    symlink("real", case.work().join("tests")).unwrap();
    let mut start = allowed(json!({"attempts": 1}));
    start["permissions"] = json!("allow");
    let outcome = run(case, start);
    outcome.failed("verification_failed");
    let resolved = outcome.progress("question_resolved");
    let edits = resolved.iter().map(|frame| frame.payload()).filter(|one| one["subject"]["category"] == "edit");
    assert_eq!(edits.map(|one| &one["value"]).collect::<Vec<_>>(), ["deny"]);
}

#[test]
fn a_link_on_the_way_to_a_protected_file_counts() {
    let text = plan(&[phase(1, &["sh tests/run.sh"], PROTECT)]);
    let case = project(&text, "ln -sfn tests/good.sh way").git();
    let case = case.file("work/tests/good.sh", "exit 0\n").file("work/tests/bad.sh", "exit 1\n");
    symlink("tests/bad.sh", case.work().join("way")).unwrap();
    symlink("../way", case.work().join("tests/run.sh")).unwrap();
    let did = again(&case);
    assert!(did.code == Some(1) && did.err.contains("protected files changed"), "{did:?}");
}
