//! Tests of lists beyond their limits: the first elements count, and a warning names the rest.

use crate::support;

use serde_json::{Value, json};
use support::agent::Script;
use support::{Case, Outcome, run};

/// The text of the only warning about elements beyond a limit.
#[track_caller]
fn warning(outcome: &Outcome) -> &str {
    let warnings = outcome.warnings("agent_output_unparsed");
    assert_eq!(warnings.len(), 1);
    warnings[0].text("text")
}

fn options(count: usize) -> Vec<Value> {
    (0..count).map(|n| json!({"label": format!("Option {n}"), "description": "d"})).collect()
}

#[test]
fn options_beyond_the_limit_are_dropped_with_a_warning() {
    let asked = json!([{"question": "Which?", "header": "H", "multiSelect": false, "options": options(5_000)}]);
    let mut session = Case::with(Script::asks_user(asked)).spawn();
    session.start(json!({"max_frame_bytes": 1 << 20}));
    let question = session.until("run.question");
    let shown = question["payload"]["options"].as_array().unwrap();
    assert_eq!((shown.len(), shown[999]["value"].as_str()), (1000, Some("Option 999")));
    session.answer(&question, json!("Option 999"));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(warning(&outcome), "Dropped 4000 options of the question \"Which?\": the limit is 1000");
}

#[test]
fn questions_beyond_the_limit_are_dropped_with_a_warning() {
    let asked: Vec<Value> = (0..6_000).map(|n| json!({"question": format!("Question {n}?")})).collect();
    let outcome = run(Case::with(Script::asks_user(json!(asked))), json!({"interactive": false}));
    outcome.completed();
    assert_eq!(outcome.resolutions().len(), 100);
    assert_eq!(warning(&outcome), "Dropped 5900 questions of one request: the limit is 100");
}

#[test]
fn entries_of_a_plan_beyond_the_limit_are_dropped_with_a_warning() {
    let todos: Vec<Value> = (0..1500).map(|n| json!({"content": format!("Step {n}"), "status": "pending"})).collect();
    let script = Script::new().tool("t", "TodoWrite", &json!({ "todos": todos }), "ok").done("ok");
    let outcome = run(Case::with(script), json!({}));
    outcome.completed();
    let plans = outcome.progress("plan");
    assert_eq!(plans[0].payload()["entries"].as_array().unwrap().len(), 1000);
    assert_eq!(warning(&outcome), "Dropped 500 entries of the plan: the limit is 1000");
}

#[test]
fn questions_in_markers_beyond_the_limit_of_a_turn_are_dropped_with_a_warning() {
    let marker = r#"<!--QUESTION:{"questions":[{"question":"Which?"}]}-->"#;
    let outcome = run(
        Case::with(Script::new().say("msg_1", &marker.repeat(101)).result("ok").sh("prompt").done("ok")),
        json!({"interactive": false}),
    );
    outcome.completed();
    assert_eq!(outcome.resolutions().len(), 100);
    assert_eq!(warning(&outcome), "Dropped 1 question of one request: the limit is 100");
}
