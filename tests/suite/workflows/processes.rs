//! The processes of an agent with several turns in a workflow. Between two attempts of `implement` there is none: nothing
//! of the agent runs while its work is judged. Between two drafts its process stays, suspended, if nothing else runs.

use crate::ends::processes::{NO_CGROUP, has_unshare};
use crate::support::agent::Script;
use crate::support::{Case, Outcome, read, run};
use crate::workflows::implement::{PLAN, allowed, commands, phase, plan, states};
use crate::workflows::spec::{GOOD, write};
use serde_json::{Value, json};

/// The sums that a process reports cover all turns of the session.
const SUM: &str = r#"T=$(cat "$D/sum" 2>/dev/null || echo 0); T=$((T + 25)); echo $T >"$D/sum""#;

/// A fake of Claude Code that does this in its first turn, and that in the later ones. It stays after each turn.
fn agent(first: &str, later: &str) -> Script {
    let turns = format!("if [ -e begun ]; then {later}; else touch begun; {first}; fi");
    let work = Script::new().sh(&turns).done("Done").body();
    Script::bare().sh(SUM).sh(&work.replace("0.25", r#"'"0.$T"'"#))
}

/// A project with a plan of one phase.
fn project(commands: &[&str], script: Script) -> Case {
    let text = plan(&[phase(1, commands, "")]);
    Case::with(script).subcommand("implement").file(&format!("work/{PLAN}"), &text).git()
}

#[track_caller]
fn passes_in_two_attempts(outcome: &Outcome) {
    outcome.completed();
    let wanted = ["P1 started 1", "P1 verifying 1", "P1 failed 1", "P1 started 2", "P1 verifying 2", "P1 passed 2"];
    assert_eq!(states(outcome), wanted);
    assert_eq!(outcome.log().starts(), 2, "processes of the agent");
    let prompts = outcome.log().prompts();
    assert!(prompts.len() == 2 && prompts[1].starts_with("# Verification failed\n\nAttempt 2 of 3\n"), "{prompts:?}");
}

/// The recordings of both turns, made of the file's name in `tmp`.
#[track_caller]
fn recordings(outcome: &Outcome) -> (String, String) {
    let recorded = |name: &str| read(&outcome.case().path(name));
    assert!(!outcome.case().path("tmp/run-3.jsonl").exists());
    (recorded("tmp/run.jsonl"), recorded("tmp/run-2.jsonl"))
}

fn recorded(case: Case) -> Case {
    let record = case.path("tmp/run.jsonl").display().to_string();
    case.args(&["--record", &record])
}

#[test]
fn a_retry_resumes_the_session_in_a_process_of_its_own() {
    let case = recorded(project(&["test -e good"], agent("touch a", "touch good")));
    let outcome = run(case, allowed(json!({})));
    passes_in_two_attempts(&outcome);
    let argv = outcome.log().argv();
    assert!(argv.iter().any(|arg| arg.starts_with("--resume=")), "{argv:?}");
    let end = outcome.completed();
    assert_eq!(end["agent_exit"], json!({"code": 0, "signal": null}));
    assert_eq!(end["usage"]["cost_usd"], 0.5);
    assert!(end["session_id"].is_string(), "{end}");
    assert!(outcome.progress("warning").is_empty());
    let files: Vec<&Value> = outcome.of_type("run.artifact").iter().map(|f| &f.payload()["path"]).collect();
    assert_eq!(files, ["a", "begun", "good"]);
    let (one, two) = recordings(&outcome);
    assert!(one.contains("# Implement Phase 1") && !one.contains("# Verification failed"), "{one}");
    assert!(two.contains("# Verification failed") && !two.contains("# Implement Phase 1"), "{two}");
    assert!(one.contains("\"exit\":0") && two.contains("\"exit\":0"), "{two}");
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn nothing_of_the_agent_exists_while_the_commands_run() {
    // Agents run their tools in sessions of their own.
    let leaves = "echo $$ >agent.txt; setsid sleep 600 >/dev/null 2>&1 & echo $! >tool.txt; touch a";
    let gone = |file: &str| format!("test ! -e \"/proc/$(cat {file})\"");
    let (agent_is_gone, tool_is_gone) = (gone("agent.txt"), gone("tool.txt"));
    let script = agent(leaves, "touch good");
    let outcome = run(project(&[&agent_is_gone, &tool_is_gone, "test -e good"], script), allowed(json!({})));
    passes_in_two_attempts(&outcome);
    assert_eq!(outcome.warnings("leaked_process").len(), 1);
    let ran = commands(&outcome);
    assert!(ran[0].ends_with(": completed") && ran[1].ends_with(": completed"), "{ran:?}");
}

#[test]
fn files_that_change_when_the_agent_exits_are_verified_too() {
    let script = agent("leave() { rm -f good; exit 0; }; touch good", "touch good");
    let outcome = run(project(&["test -e good"], script), allowed(json!({})));
    passes_in_two_attempts(&outcome);
    // A command that fails runs once more.
    assert_eq!(commands(&outcome), ["failed", "failed", "completed"].map(|state| format!("P1 test -e good: {state}")));
}

const DRAFT: &str = ".spektacular/specs/login.draft.md";

/// A specification whose first draft breaks a rule. `beside`: what the agent does besides in its first turn.
fn drafted(beside: &str, start: Value) -> Outcome {
    drafted_by(beside, start, |case| case)
}

fn drafted_by(beside: &str, start: Value, with: impl FnOnce(Case) -> Case) -> Outcome {
    let script = agent(&format!("{beside}; printf '# X\\n' >{DRAFT}"), &write(DRAFT, GOOD));
    let mut payload = json!({"prompt": "Log in", "workflow": {"name": "login"}});
    payload.as_object_mut().unwrap().extend(start.as_object().unwrap().clone());
    run(with(recorded(Case::with(script).subcommand("spec"))), payload)
}

#[track_caller]
fn takes_two_drafts(outcome: &Outcome, processes: usize) {
    outcome.completed();
    assert_eq!((outcome.log().prompts().len(), outcome.log().starts()), (2, processes));
}

#[test]
fn a_second_draft_is_a_further_turn_of_the_same_process() {
    let outcome = drafted("true", json!({}));
    takes_two_drafts(&outcome, 1);
    let end = outcome.completed();
    assert_eq!((&end["agent_exit"], &end["usage"]["cost_usd"]), (&json!({"code": 0, "signal": null}), &json!(0.5)));
    assert!(outcome.log().noted("end_session"), "the agent was not told to leave");
    let (one, two) = recordings(&outcome);
    assert!(one.contains("# Create a specification") && !one.contains("# Continue"), "{one}");
    assert!(two.contains("# Continue") && !two.contains("# Create a specification"), "{two}");
    assert_eq!(one.lines().next(), two.lines().next(), "the header");
    assert!(two.contains("end_session") && two.contains("\"exit\":0"), "{two}");
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn what_a_tool_left_running_ends_with_the_turn_and_so_does_the_agent() {
    ends_with_the_turn("sleep 600", |case| case);
}

/// Such as a process in the middle of exec.
#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn a_process_without_an_environment_ends_with_the_turn_too() {
    if has_unshare("a_process_without_an_environment_ends_with_the_turn_too") {
        ends_with_the_turn("env -i sleep 600", |case| case.shell(NO_CGROUP));
    }
}

#[track_caller]
fn ends_with_the_turn(command: &str, with: impl FnOnce(Case) -> Case) {
    // The turn ends once the process has left the group of the agent.
    let leaves =
        format!("(setsid sh -c 'touch left; exec {command}' >/dev/null 2>&1 &); until test -e left; do :; done");
    let outcome = drafted_by(&leaves, json!({}), with);
    takes_two_drafts(&outcome, 2);
    assert_eq!(outcome.warnings("leaked_process").len(), 1);
}

/// OpenCode runs git beside itself when it reports the end of a turn.
#[test]
fn what_ends_soon_after_the_turn_does_not_end_the_agent() {
    let outcome = drafted("setsid sleep 0.3 >/dev/null 2>&1 & true", json!({}));
    takes_two_drafts(&outcome, 1);
    assert!(outcome.warnings("leaked_process").is_empty());
}

#[test]
fn a_run_that_ends_while_the_agent_rests_ends_the_agent() {
    let outcome = drafted("echo $$ >pid.txt", json!({"max_cost_usd": 0.25}));
    let failed = outcome.failed("limit_reached");
    assert_eq!(failed["agent_exit"], json!({"code": null, "signal": 9}));
    let pid = read(&outcome.case().work().join("pid.txt"));
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "the agent is alive");
}

#[test]
fn a_prompt_that_must_not_be_raw_gets_another_process() {
    let bad = format!("printf '# X\\n' >{DRAFT}");
    let script = Script::new().sh(&bad).done("Done");
    let payload = json!({"prompt": "Log in", "workflow": {"name": "login", "skill": "spec", "attempts": 2}});
    let outcome = run(Case::with(script).subcommand("spec"), payload);
    outcome.failed("result_invalid");
    assert_eq!((outcome.log().prompts().len(), outcome.log().starts()), (2, 2));
}
