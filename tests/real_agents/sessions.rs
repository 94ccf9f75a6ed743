//! What run.start says, as it reaches real agents: prompts, sessions, budgets, structured results; and sub-agents.

use serde_json::json;

use crate::client::{permission, run};
use crate::lab::{Agent, Lab};

#[test]
fn a_prompt_is_neither_a_command_nor_a_file() {
    let secret = "the content of a file";
    for prompt in ["/compact this", "Look at @note.txt now"] {
        let lab = Lab::new(Agent::Claude, "hello");
        std::fs::write(lab.case.work().join("note.txt"), secret).expect("note");
        let run = run(lab, json!({"prompt": prompt}), Vec::new());
        run.completed("Good day from the model.");
        let heard = run.stub().last_heard();
        assert!(heard.contains(prompt), "{prompt} is not in: {heard}");
        assert!(!heard.contains(secret), "the file went to the model");
    }
}

#[test]
fn a_model_and_a_system_prompt_reach_the_model() {
    let payload = json!({"model": "claude-haiku-4-5", "system_prompt": "Speak like a heron.", "effort": "low"});
    let run = run(Lab::new(Agent::Claude, "hello"), payload, Vec::new());
    run.completed("Good day from the model.");
    let request = &run.stub().conversation()[0];
    assert!(
        request["model"].as_str().is_some_and(|model| model.starts_with("claude-haiku-4-5")),
        "{}",
        request["model"]
    );
    assert!(request["system"].to_string().contains("Speak like a heron."));
    assert_eq!(run.outcome.progress("session")[0].text("model"), "claude-haiku-4-5");
}

#[test]
fn tools_that_are_not_allowed_are_not_offered() {
    let payload = json!({"disallowed_tools": ["Bash", "AskUserQuestion"]});
    let run = run(Lab::new(Agent::Claude, "hello"), payload, Vec::new());
    let request = &run.stub().conversation()[0];
    let tools = request["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"Read"), "{names:?}");
    assert!(!names.contains(&"Bash") && !names.contains(&"AskUserQuestion"), "{names:?}");
}

fn a_session_goes_on(agent: Agent) {
    let first = run(Lab::new(agent, "resume"), json!({"prompt": "Say a word."}), Vec::new());
    let session = first.completed("The word is heron.")["session_id"].clone();
    let payload = json!({"prompt": "Which word?", "session_id": session});
    let second = run(first.again(agent), payload, Vec::new());
    assert_eq!(second.completed("I said heron.")["session_id"], session);
    let (before, now) = (&first.outcome.completed()["usage"], &second.outcome.completed()["usage"]);
    assert_eq!(now["input_tokens"], before["input_tokens"]);
    // The agent may count on from the earlier run: then the cost of this one is not known.
    let cost = &now["cost_usd"];
    assert!(cost.is_null() || *cost == before["cost_usd"], "{cost} is not the cost of this run");
    let heard = second.stub().last_heard();
    for part in ["Say a word.", "The word is heron.", "Which word?"] {
        assert!(heard.contains(part), "{part} is not in: {heard}");
    }
}

#[test]
fn a_session_goes_on_in_a_second_run() {
    a_session_goes_on(Agent::Claude);
}

#[test]
fn a_session_goes_on_in_a_second_run_of_the_old_version() {
    a_session_goes_on(Agent::OldClaude);
}

#[test]
fn a_session_that_does_not_exist() {
    let payload = json!({"session_id": "01234567-89ab-4def-8123-456789abcdef"});
    let run = run(Lab::new(Agent::Claude, "hello"), payload, Vec::new());
    run.outcome.failed("session_not_found");
    assert!(run.stub().conversation().is_empty(), "the model was asked all the same");
}

#[test]
fn a_structured_result() {
    let schema = json!({"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]});
    let run = run(Lab::new(Agent::Claude, "structured"), json!({"output_schema": schema}), Vec::new());
    let payload = run.outcome.completed();
    assert_eq!(payload["structured_output"], json!({"answer": 42}));
    assert_eq!(payload["stop_reason"], "end_turn");
}

#[test]
fn a_budget_of_turns_that_is_used_up() {
    let payload = json!({"max_turns": 2});
    let run = run(Lab::new(Agent::Claude, "turns"), payload, permission("allow_once"));
    let payload = run.outcome.failed("limit_reached");
    assert_eq!(payload["retryable"], false);
}

#[test]
fn the_work_of_a_sub_agent_names_its_call() {
    let run = run(Lab::new(Agent::Claude, "sub_agent"), json!({}), permission("allow_once"));
    run.completed("There is nothing.");
    let tools = run.outcome.progress("tool");
    let agent = tools.iter().find(|f| f.text("category") == "agent").expect("the sub-agent's call");
    let call = agent.text("call_id");
    let texts = run.outcome.progress("text");
    let scout = texts.iter().find(|f| f.text("text") == "The scout saw nothing.").expect("the sub-agent's text");
    assert_eq!(scout.text("parent_call_id"), call);
    let own = texts.iter().find(|f| f.text("text") == "There is nothing.").expect("the agent's own text");
    assert_eq!(own.text("parent_call_id"), "");
    let shell = tools.iter().find(|f| f.text("category") == "execute").expect("the sub-agent's tool");
    assert_eq!(shell.text("parent_call_id"), call);
    assert_eq!(run.tools(), [("execute", "completed"), ("agent", "completed")]);
}

#[test]
fn the_usage_counts_the_work_of_a_sub_agent() {
    let run = run(Lab::new(Agent::Claude, "sub_agent"), json!({}), permission("allow_once"));
    let usage = run.completed("There is nothing.")["usage"].clone();
    assert_eq!(run.stub().conversation().len(), 4, "two requests of each");
    assert_eq!(usage["input_tokens"], 400);
    assert_eq!(usage["output_tokens"], 40);
}
