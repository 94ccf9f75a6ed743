//! Tests of protected paths: no change of them passes, whoever makes it and in whatever run.

use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

use crate::support::agent::Script;
use crate::support::{Case, run};
use crate::workflows::commits::authored;
use crate::workflows::implement::{PLAN, allowed, commands, phase, plan, project, report, states};

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

/// Something that escaped from the agent could do the same while the command runs.
#[test]
fn a_protected_file_that_changed_and_was_restored_during_a_command_has_changed() {
    let swap = "mv tests/run.sh was; echo exit 0 >tests/run.sh; sh tests/run.sh && mv was tests/run.sh";
    let in_place = "cp -p tests/run.sh was; echo exit 0 >tests/run.sh; sh tests/run.sh && cat was >tests/run.sh; \
                    touch -r was tests/run.sh";
    for command in [swap, in_place, "mv tests was; mkdir tests; mv tests gone; mv was tests; test ! -e wrong"] {
        let case = project(&plan(&[phase(1, &[command], PROTECT)]), "echo x >made").git();
        let outcome = run(case.file("work/tests/run.sh", "exit 1\n"), allowed(json!({"attempts": 1})));
        let failed = outcome.failed("verification_failed");
        assert!(failed["message"].as_str().unwrap().contains("its command changed protected files"), "{failed}");
        // So it is in the final check.
        let done = plan(&[phase(1, &[command], PROTECT)]).replace("- [ ]", "- [x]");
        let case = project(&done, "echo x >made").git();
        let outcome = run(case.file("work/tests/run.sh", "exit 1\n"), allowed(json!({"attempts": 1})));
        outcome.failed("verification_failed");
        assert_eq!(states(&outcome)[0], "P1 reopened 0");
    }
}

/// The state line proves that there was a record: a phase whose record is gone does not take changed files for the
/// original.
#[test]
fn a_phase_whose_record_is_gone_does_not_continue() {
    let text = plan(&[phase(1, &["sh tests/run.sh"], PROTECT)]);
    let agent = "echo exit 0 >tests/run.sh; rm -r \"$HOME/.local/state/spektacular/protected\"";
    let case = authored(project(&text, agent).file("work/tests/run.sh", "exit 1\n").git());
    assert_eq!(again(&case).code, Some(1));
    let start = allowed(json!({"attempts": 1, "commit": true, "allow_dirty": true}));
    let did = case.run(&["implement", "--allow-verify", "--commit", "--allow-dirty", "greeting"]);
    assert!(did.code == Some(2) && did.err.contains("remove the state line below the heading of P1"), "{did:?}");
    let outcome = run(case, start);
    let failed = outcome.failed("invalid_request");
    assert_eq!((&failed["detail"]["reason"], outcome.of_type("run.artifact").len()), (&json!("invalid"), 0));
    // A record that was damaged counts as gone, and so does that of a later phase.
    let text = plan(&[phase(1, &["true"], ""), phase(2, &["sh tests/run.sh"], PROTECT)]);
    let begun = "Part 2\n<!-- spektacular: failed attempts=1 at=2026-02-20T10:00:00.000Z -->\n";
    let case = project(&text.replace("Part 2\n", begun), "echo x >made").git();
    let outcome = run(case.file("work/tests/run.sh", "exit 0\n"), allowed(json!({})));
    assert_eq!(outcome.failed("invalid_request")["detail"]["reason"], "invalid");
}

/// A change that an agent makes as it leaves belongs to its attempt, whether git sees it or not.
#[test]
fn what_the_agent_does_as_it_leaves_is_seen_before_the_commands_run() {
    // As the file was: its size and its time.
    let swap = "cp -p tests/run.sh was; echo exit 0 >tests/run.sh; touch -r was tests/run.sh; rm -f was good";
    let work = format!("leave() {{ {swap}; exit 0; }}; touch good");
    let script =
        || Script::new().sh(&work).tool("toolu_1", "Write", &json!({"file_path": "good"}), "written").done("Done");
    let text = plan(&[phase(1, &["sh tests/run.sh"], PROTECT)]);
    let test = "test -e good\n";
    let case = || Case::with(script()).subcommand("implement").file(&format!("work/{PLAN}"), &text);
    let ignored = || case().file("work/.gitignore", "tests/\ngood\n").git().file("work/tests/run.sh", test);
    for (how, case, commits) in [
        ("outside git", case().file("work/tests/run.sh", test), false),
        ("tracked", case().file("work/tests/run.sh", test).git(), false),
        ("untracked", case().git().file("work/tests/run.sh", test), false),
        ("ignored", ignored(), false),
        ("committed", authored(case().file("work/tests/run.sh", test).git()), true),
    ] {
        let outcome = run(case, allowed(json!({"attempts": 2, "commit": commits})));
        let failed = outcome.failed("verification_failed");
        assert!(failed["message"].as_str().unwrap().contains("protected files changed"), "{how}: {failed}");
        let ran: Vec<String> = commands(&outcome).into_iter().filter(|command| command.starts_with("P1")).collect();
        assert!(ran.is_empty(), "{how}: {ran:?}");
    }
}

/// The work itself, too: what the commands judge is what is committed.
#[test]
fn work_that_the_agent_takes_back_as_it_leaves_is_not_committed() {
    let text = plan(&[phase(1, &["grep -q good a"], "")]);
    let script = Script::new().sh("leave() { echo evil >a; exit 0; }; echo good >a").done("Done");
    let case = Case::with(script).subcommand("implement").file(&format!("work/{PLAN}"), &text);
    let outcome = run(authored(case.git()), allowed(json!({"attempts": 2, "commit": true})));
    outcome.failed("verification_failed");
    assert_eq!(report(&outcome)[0]["commit"], serde_json::Value::Null);
}
