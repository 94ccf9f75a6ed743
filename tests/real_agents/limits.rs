//! Limits and the policy `read-only`: each agent keeps them, or the run does not start.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::agents::Agent;
use crate::client::{Run, run};
use crate::install::search_program;
use crate::lab::Lab;

rows!(ours: tool_calls_are_counted turns_are_counted tokens_are_counted cost_is_limited);
rows!(a_disallowed_tool_does_not_run a_tool_that_is_not_allowed_does_not_run a_tool_that_is_allowed_runs);
rows!(read_only_changes_nothing read_only_reads_and_searches);
rows!(of a_cost_without_a_price: opencode OpenCode);

fn allowed(agent: Agent, scenario: &str, mut limit: serde_json::Value) -> Run {
    limit["permissions"] = json!("allow");
    limit["timeout_s"] = json!(60);
    run(Lab::new(agent, scenario), limit, Vec::new())
}

/// The model calls a tool again and again, and the limit ends that after this many commands at most. An agent on which
/// the limit cannot hold is not started.
#[track_caller]
fn holds(agent: Agent, field: &str, value: serde_json::Value, commands: usize) {
    let mut limit = json!({});
    limit[field] = value;
    let run = allowed(agent, "loop", limit);
    if agent.ways().refuses.contains(&field) {
        let failed = run.outcome.failed("invalid_request");
        assert!(failed["message"].as_str().unwrap().contains(field), "{failed}");
        assert!(run.stub().conversation().is_empty() && !run.made("loop.txt"), "the agent started");
        return;
    }
    let failed = run.outcome.failed("limit_reached");
    assert_eq!(failed["detail"]["limit"], field, "{failed}");
    let made = std::fs::read_to_string(run.outcome.case().work().join("loop.txt")).unwrap_or_default();
    assert!(made.lines().count() <= commands, "{} commands ran", made.lines().count());
}

fn tool_calls_are_counted(agent: Agent) {
    // The third call stops the agent, and may already run.
    holds(agent, "max_tool_calls", json!(2), 3);
}

fn turns_are_counted(agent: Agent) {
    holds(agent, "max_turns", json!(2), 2);
}

fn tokens_are_counted(agent: Agent) {
    // Each response takes 110.
    holds(agent, "max_tokens", json!(250), 3);
}

fn cost_is_limited(agent: Agent) {
    holds(agent, "max_cost_usd", json!(0.000_001), 1);
}

/// A model without a price would cost nothing, however long it works.
fn a_cost_without_a_price(agent: Agent) {
    let run = allowed(agent, "loop", json!({"max_cost_usd": 1, "model": "stub/blind-model"}));
    let message = run.outcome.failed("invalid_request")["message"].to_string();
    assert!(message.contains("max_cost_usd") && message.contains("price"), "{message}");
    assert!(run.stub().conversation().is_empty() && !run.made("loop.txt"), "the model was asked");
}

#[track_caller]
fn does_not_run(agent: Agent, limit: serde_json::Value) {
    let run = allowed(agent, "permission", limit);
    assert!(!run.made("asked.txt"), "the tool ran");
    if run.outcome.terminal().kind() == "run.failed" {
        run.outcome.failed("limit_reached");
    } else {
        // Gemini joins the texts around a call that it refuses by itself.
        assert!(run.outcome.completed()["text"].as_str().unwrap().ends_with("That was it."));
    }
}

fn a_disallowed_tool_does_not_run(agent: Agent) {
    does_not_run(agent, json!({"disallowed_tools": [agent.ways().shell]}));
}

fn a_tool_that_is_not_allowed_does_not_run(agent: Agent) {
    does_not_run(agent, json!({"allowed_tools": [agent.ways().reader]}));
}

/// A list does not hinder the tools that it names.
fn a_tool_that_is_allowed_runs(agent: Agent) {
    let run = allowed(agent, "shell_ok", json!({"allowed_tools": [agent.ways().shell]}));
    run.completed("It spoke.");
    let ended = run.outcome.progress("tool");
    assert_eq!(ended.last().unwrap().text("name"), agent.ways().shell);
}

/// Reads and searches need no user.
fn read_only_reads_and_searches(agent: Agent) {
    for policy in policies() {
        let lab = Lab::new(agent, "reads");
        // OpenCode searches by a program that it otherwise downloads.
        symlink(search_program(), lab.case.path("bin/rg")).unwrap();
        let case =
            lab.case.file("work/greeting.py", "A_WORD_OF_THE_CODE = 1\n").file("work/inner/more.py", "# a wren\n");
        let lab = Lab { case, ..lab };
        let run = run(lab, json!({"permissions": policy, "interactive": false}), Vec::new());
        let denied = &run.completed("I looked.")["denied"]["count"];
        assert_eq!(*denied, 0);
        assert!(run.tools().iter().all(|(_, state)| *state == "completed"), "{:?}", run.tools());
        let results = run.stub().tool_results().join("\n");
        assert!(results.contains("A_WORD_OF_THE_CODE") && results.contains("inner/more.py"), "{results}");
    }
}

/// The ways to say that a run only reads.
fn policies() -> [serde_json::Value; 2] {
    [json!("read-only"), json!({"read": "allow", "search": "allow", "*": "deny"})]
}

fn read_only_changes_nothing(agent: Agent) {
    for policy in policies() {
        let lab = Lab::new(agent, "tricks");
        let before = std::fs::read(lab.case.work().join("old.txt")).unwrap();
        let run = run(lab, json!({"permissions": policy}), Vec::new());
        run.completed("None of it worked.");
        assert_eq!(run.files(), [".git", "old.txt"], "something changed");
        let old = std::fs::read(run.outcome.case().work().join("old.txt")).unwrap();
        assert_eq!(old, before, "old.txt changed");
        assert_eq!(run.questions().len(), 0);
    }
}
