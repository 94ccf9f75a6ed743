//! `fallback` in a workflow: the next agent takes over the attempt or the draft, with what is there.

use crate::sessions::fallback::{beside, log_of};
use crate::sessions::limits::limit;
use crate::support::agent::{Script, bash};
use crate::support::{Case, run};
use crate::workflows::implement::{PLAN, allowed, phase, plan, report, states};
use crate::workflows::spec::{GOOD, write};
use serde_json::{Value, json};

const DRAFT: &str = ".spektacular/specs/login.draft.md";

fn with_second(mut start: Value) -> Value {
    start["fallback"] = json!(["second"]);
    start
}

#[test]
fn the_attempt_goes_on_with_another_agent_and_the_work_stays() {
    let worked = Script::bare().tool("toolu_1", "Bash", &bash("touch a"), "(done)").body();
    let first = Script::new().sh("touch a").sh(&worked).sh(&limit(1000));
    let second =
        Script::new().sh("case $(cat \"$D/stdin\") in *'Implement Phase 2'*) touch c;; *) touch b;; esac").done("Done");
    let text = plan(&[phase(1, &["test -e a && test -e b"], ""), phase(2, &["test -e c"], "")]);
    let case = Case::with(first).subcommand("implement").file(&format!("work/{PLAN}"), &text).git();
    let outcome = run(beside(case, &[("second", &second)]), with_second(allowed(json!({}))));
    outcome.completed();
    let all = ["P1 started 1", "P1 verifying 1", "P1 passed 1", "P2 started 1", "P2 verifying 1", "P2 passed 1"];
    assert_eq!(states(&outcome), all);
    let agents: Vec<&str> = outcome.progress("phase").iter().map(|frame| frame.text("agent")).collect();
    // Each baseline comes before the attempt.
    assert_eq!(agents, ["claude", "claude", "second", "second", "second", "second", "second", "second"]);
    let phases = report(&outcome);
    assert_eq!((&phases[0]["agent"], &phases[0]["attempts"]), (&json!("second"), &json!(1)));
    assert_eq!(outcome.log().starts(), 1, "the agent that failed does not get the second phase");
    let log = log_of(&outcome, "second");
    let prompts = log.prompts();
    assert_eq!(prompts.len(), 2);
    assert!(prompts[0].contains("# Implement Phase 1: Part 1"), "{}", prompts[0]);
    let end = prompts[0].split_once("\n# Taken over\n").unwrap().1;
    assert!(end.contains("Another agent, claude, began this") && end.contains("- a (created)"), "{end}");
    assert!(!prompts[1].contains("Taken over"));
}

/// The model that took over stays, although its agent has the name of the one that failed.
#[test]
fn another_model_of_the_same_agent_takes_over_for_the_rest_of_the_run() {
    let busy = format!("case \"$*\" in *small*) ;; *)\n{};;\nesac", limit(1000));
    let work = "case $(cat \"$D/stdin\") in *'Implement Phase 2'*) touch b;; *) touch a;; esac";
    let text = plan(&[phase(1, &["test -e a"], ""), phase(2, &["test -e b"], "")]);
    let case = Case::with(Script::new().sh(&busy).sh(work).done("Done")).subcommand("implement");
    let case = case.file(&format!("work/{PLAN}"), &text).git();
    let mut start = allowed(json!({}));
    start["fallback"] = json!(["claude:small"]);
    let outcome = run(case, start);
    outcome.completed();
    assert_eq!(outcome.warnings("agent_replaced").len(), 1);
    assert_eq!(outcome.log().starts(), 3, "the model that failed does not get the second phase");
}

#[test]
fn a_further_turn_is_taken_over_with_the_whole_prompt() {
    let first = format!("if [ -e \"$D/turn\" ]; then\n{}fi\ntouch \"$D/turn\" x", limit(1000));
    let second = Script::new().sh("touch a").done("Done");
    let text = plan(&[phase(1, &["test -e a"], "")]);
    let case = Case::with(Script::new().sh(&first).done("Done")).subcommand("implement");
    let case = case.file(&format!("work/{PLAN}"), &text).git();
    let outcome = run(beside(case, &[("second", &second)]), with_second(allowed(json!({}))));
    outcome.completed();
    let expected = ["P1 started 1", "P1 verifying 1", "P1 failed 1", "P1 started 2", "P1 verifying 2", "P1 passed 2"];
    assert_eq!(states(&outcome), expected);
    let prompt = &log_of(&outcome, "second").prompts()[0];
    for line in ["# Implement Phase 1: Part 1", "# Verification failed", "Attempt 2 of 3", "# Taken over"] {
        assert!(prompt.lines().any(|it| it == line), "{line}: {prompt}");
    }
}

#[test]
fn a_draft_is_taken_over() {
    let first = Script::new().sh(&write(DRAFT, "# Half")).sh(&limit(1000));
    let second = Script::new().sh(&format!("cp {DRAFT} \"$D/found\"")).sh(&write(DRAFT, GOOD)).done("Done");
    let case = beside(Case::with(first).subcommand("spec").git(), &[("second", &second)]);
    let start = json!({"prompt": "Log in", "interactive": false, "workflow": {"name": "login"}});
    let outcome = run(case, with_second(start));
    outcome.completed();
    let log = log_of(&outcome, "second");
    assert_eq!(log.text("found"), "# Half");
    let prompt = &log.prompts()[0];
    assert!(prompt.starts_with("# Create a specification") && prompt.contains("\n# Taken over\n"), "{prompt}");
    let stored = outcome.case().work().join(".spektacular/local/sessions");
    let names: Vec<String> =
        std::fs::read_dir(stored).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, ["spec.login.second"]);
}

#[test]
fn a_command_that_is_not_found_does_not_change_the_agent() {
    let text = plan(&[phase(1, &["no-such-program-at-all"], "")]);
    let case = Case::with(Script::hello()).subcommand("implement").file(&format!("work/{PLAN}"), &text).git();
    let outcome = run(beside(case, &[("second", &Script::hello())]), with_second(allowed(json!({}))));
    outcome.failed("verification_failed");
    assert!(outcome.warnings("agent_replaced").is_empty());
}
