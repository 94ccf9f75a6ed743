//! The agent's process stays between two attempts of a workflow, suspended, if nothing but the agent runs.

use super::workflow_implement::{PLAN, allowed, commands, phase, plan, states};
use crate::support::agent::Script;
use crate::support::{Case, Outcome, read, run};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The agent is suspended. Its script has written its pid.
const SUSPENDED: &str = "grep -q '^State:.T' \"/proc/$(cat pid.txt)/status\"";

/// A fake of Claude Code that does this in its first turn, and that in the later ones. It stays after each turn.
fn agent(first: &str, later: &str) -> Script {
    Script::new().sh(&format!("if [ -e begun ]; then {later}; else touch begun; {first}; fi")).done("Done")
}

/// A project with this plan.
fn project(plan: &str, script: Script) -> Case {
    Case::with(script).subcommand("implement").file(&format!("work/{PLAN}"), plan).git()
}

fn one(commands: &[&str]) -> String {
    plan(&[phase(1, commands, "")])
}

#[track_caller]
fn passes_in_two_attempts(outcome: &Outcome, processes: usize) {
    outcome.completed();
    let wanted = ["P1 started 1", "P1 verifying 1", "P1 failed 1", "P1 started 2", "P1 verifying 2", "P1 passed 2"];
    assert_eq!(states(outcome), wanted);
    assert_eq!(outcome.log().starts(), processes, "processes of the agent");
    let prompts = outcome.log().prompts();
    assert!(prompts.len() == 2 && prompts[1].starts_with("# Verification failed\n\nAttempt 2 of 3\n"), "{prompts:?}");
}

#[test]
fn a_retry_is_a_further_turn_of_the_same_process() {
    // The sums that a process reports cover all of its turns.
    let sum = r#"T=$(cat "$D/sum" 2>/dev/null || echo 0); T=$((T + 25)); echo $T >"$D/sum""#;
    let work = agent("touch a", "touch good").body();
    let script = Script::bare().sh(sum).sh(&work.replace("0.25", r#"'"0.$T"'"#));
    let outcome = run(project(&one(&["test -e good"]), script), allowed(json!({})));
    passes_in_two_attempts(&outcome, 1);
    let argv = outcome.log().argv();
    assert!(!argv.iter().any(|arg| arg.starts_with("--resume")), "{argv:?}");
    let end = outcome.completed();
    assert_eq!(end["agent_exit"], json!({"code": 0, "signal": null}));
    assert_eq!(end["usage"]["cost_usd"], 0.5);
    assert!(end["session_id"].is_string(), "{end}");
    assert!(outcome.log().noted("end_session"), "the agent was not told to leave");
    assert!(outcome.progress("warning").is_empty());
    let files: Vec<&Value> = outcome.of_type("run.artifact").iter().map(|f| &f.payload()["path"]).collect();
    assert_eq!(files, ["a", "begun", "good"]);
}

#[test]
fn nothing_of_the_agent_runs_while_the_commands_do() {
    let script = agent("echo $$ >pid.txt", "touch good");
    let outcome = run(project(&one(&[SUSPENDED, "test -e good"]), script), allowed(json!({})));
    passes_in_two_attempts(&outcome, 1);
    let ran = commands(&outcome);
    assert!(ran[0].ends_with(": completed") && ran[1].ends_with(": failed"), "{ran:?}");
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn what_a_tool_left_running_ends_with_the_turn_and_so_does_the_agent() {
    // Agents run their tools in sessions of their own.
    let leaves = "setsid sleep 600 >/dev/null 2>&1 & echo $! >tool.txt; touch a";
    let gone = "test ! -e \"/proc/$(cat tool.txt)\"";
    let script = agent(leaves, "touch good");
    let outcome = run(project(&one(&[gone, "test -e good"]), script), allowed(json!({})));
    passes_in_two_attempts(&outcome, 2);
    assert_eq!(outcome.warnings("leaked_process").len(), 1);
    assert!(commands(&outcome)[0].ends_with(": completed"), "{:?}", commands(&outcome));
}

/// OpenCode runs git beside itself when it reports the end of a turn.
#[test]
fn what_ends_soon_after_the_turn_does_not_end_the_agent() {
    let script = agent("setsid sleep 0.3 >/dev/null 2>&1 & touch a", "touch good");
    let outcome = run(project(&one(&["test -e good"]), script), allowed(json!({})));
    passes_in_two_attempts(&outcome, 1);
    assert!(outcome.progress("warning").is_empty());
}

#[test]
fn a_process_that_was_killed_while_it_rested_is_replaced() {
    let kill = "kill -9 \"$(cat pid.txt)\" 2>/dev/null; test -e good";
    let script = agent("echo $$ >pid.txt", "touch good");
    let outcome = run(project(&one(&[kill]), script), allowed(json!({})));
    passes_in_two_attempts(&outcome, 2);
    assert!(outcome.log().argv().iter().any(|arg| arg.starts_with("--resume=")), "{:?}", outcome.log().argv());
}

#[test]
fn files_that_change_when_the_agent_exits_are_verified_too() {
    let breaks = "leave() { rm -f good; exit 0; }";
    let script = agent(&format!("{breaks}; touch good"), "touch good");
    let outcome = run(project(&one(&["test -e good"]), script), allowed(json!({})));
    outcome.completed();
    let wanted = [
        "P1 started 1",
        "P1 verifying 1",
        "P1 verifying 1",
        "P1 failed 1",
        "P1 started 2",
        "P1 verifying 2",
        "P1 passed 2",
    ];
    assert_eq!((states(&outcome).as_slice(), outcome.log().starts()), (&wanted.map(str::to_owned)[..], 2));
    let ran = ["completed", "failed", "completed"].map(|state| format!("P1 test -e good: {state}"));
    assert_eq!(commands(&outcome), ran);
}

#[test]
fn a_stop_during_a_command_ends_the_agent_that_rests() {
    let script = agent("echo $$ >pid.txt", "true");
    let mut session = project(&one(&["touch began; sleep 600"]), script).spawn();
    session.start(allowed(json!({})));
    let (began, pid) = (session.case.work().join("began"), session.case.work().join("pid.txt"));
    session.wait_until("the command", || began.exists());
    session.signal(Signal::INT);
    let outcome = session.finish();
    assert_eq!(outcome.cancelled()["agent_exit"], json!({"code": null, "signal": 9}));
    let pid = read(&pid);
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "the agent is alive");
}

#[test]
fn each_attempt_has_a_recording_although_the_process_is_the_same() {
    let case = project(&one(&["test -e good"]), agent("touch a", "touch good"));
    let record = case.path("tmp/run.jsonl").display().to_string();
    let outcome = run(case.args(&["--record", &record]), allowed(json!({})));
    passes_in_two_attempts(&outcome, 1);
    let recorded = |name: &str| read(&outcome.case().path(name));
    let (one, two) = (recorded("tmp/run.jsonl"), recorded("tmp/run-2.jsonl"));
    assert!(one.contains("# Implement Phase 1") && !one.contains("# Verification failed"), "{one}");
    assert!(two.contains("# Verification failed") && !two.contains("# Implement Phase 1"), "{two}");
    assert_eq!(one.lines().next(), two.lines().next(), "the header");
    assert!(two.contains("end_session") && two.contains("\"exit\":0"), "{two}");
    assert!(!outcome.case().path("tmp/run-3.jsonl").exists());
}

#[test]
fn a_prompt_that_must_not_be_raw_gets_another_process() {
    let bad = "printf '# X\\n' >.spektacular/specs/login.draft.md";
    let script = Script::new().sh(bad).done("Done");
    let payload = json!({"prompt": "Log in", "workflow": {"name": "login", "skill": "spec", "attempts": 2}});
    let outcome = run(Case::with(script).subcommand("spec"), payload);
    outcome.failed("result_invalid");
    assert_eq!((outcome.log().prompts().len(), outcome.log().starts()), (2, 2));
}
