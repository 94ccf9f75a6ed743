//! Structured results: a good one, and each kind of a bad one. The agents give results in different ways, and the client
//! sees no difference.

use serde_json::{Value, json};

use crate::agents::Agent;
use crate::client::{Run, run};
use crate::lab::Lab;

rows!(old: a_result_that_fits a_wrong_result);
rows!(ours: a_result_that_the_agent_corrects a_result_as_text a_list);
rows!(ours: an_incomplete_result a_missing_result);
rows!(ours: a_result_under_limits);

/// A run that must have a number of otters.
fn counted(agent: Agent, scenario: &str) -> Run {
    limited(agent, scenario, json!({}))
}

fn limited(agent: Agent, scenario: &str, mut payload: Value) -> Run {
    payload["interactive"] = json!(false);
    payload["output_schema"] = json!({"type": "object", "properties": {"otters": {"type": "integer"}},
        "required": ["otters"], "additionalProperties": false});
    run(Lab::new(agent, scenario), payload, Vec::new())
}

#[track_caller]
fn gives_42(run: &Run) {
    let payload = run.outcome.completed();
    assert_eq!(payload["structured_output"], json!({"otters": 42}));
    assert_eq!(payload["stop_reason"], "end_turn");
    assert_eq!(payload["denied"]["count"], 0);
    // The result is no work of the agent's.
    assert!(run.tools().is_empty(), "{:?}", run.tools());
}

fn a_result_that_fits(agent: Agent) {
    gives_42(&counted(agent, "result"));
}

fn a_result_that_the_agent_corrects(agent: Agent) {
    gives_42(&counted(agent, "result_mended"));
}

/// Every agent may give its result as text, here in its second turn. Claude Code reminds the model before.
fn a_result_as_text(agent: Agent) {
    gives_42(&counted(agent, "result_text"));
}

/// No tool takes a list as its input.
fn a_list(agent: Agent) {
    let payload = json!({"output_schema": {"type": "array", "items": {"type": "string"}}});
    let run = run(Lab::new(agent, "result_list"), payload, Vec::new());
    assert_eq!(run.outcome.completed()["structured_output"], json!(["a", "b"]));
    assert!(run.stub().last_heard().contains("is not one JSON text"), "the model does not hear why");
}

/// The run fails after three results. Returns the violation.
#[track_caller]
fn fails(agent: Agent, scenario: &str) -> Value {
    let run = counted(agent, scenario);
    let failed = run.outcome.failed("result_invalid");
    assert!(run.stub().conversation().len() <= 6, "the model was asked too often");
    let violations = failed["detail"]["violations"].as_array().unwrap();
    assert_eq!(violations.len(), 1, "{failed}");
    violations[0].clone()
}

fn a_wrong_result(agent: Agent) {
    let violation = fails(agent, "result_wrong");
    assert_eq!(violation["path"], "/otters");
    assert!(violation["text"].as_str().unwrap().contains("integer"), "{violation}");
}

fn an_incomplete_result(agent: Agent) {
    let violation = fails(agent, "result_incomplete");
    assert_eq!(violation["path"], "");
    assert!(violation["text"].as_str().unwrap().contains("otters"), "{violation}");
}

fn a_missing_result(agent: Agent) {
    let violation = fails(agent, "result_missing");
    assert_eq!(violation, json!({"path": "", "text": "is missing: the answer is not one JSON text"}));
}

/// The tool for the result is no tool of the lists, and needs no permission.
fn a_result_under_limits(agent: Agent) {
    gives_42(&limited(agent, "result", json!({"permissions": "read-only"})));
    gives_42(&limited(agent, "result", json!({"allowed_tools": [agent.ways().reader], "max_tool_calls": 1})));
}
