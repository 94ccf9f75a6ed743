//! Questions and permissions of real agents.

use serde_json::{Value, json};

use crate::client::{Client, Rule, Run, declined, denial, permission, rule, run};
use crate::lab::{Agent, Lab};

fn ask(agent: Agent, scenario: &str, rules: Vec<Rule>) -> Run {
    run(Lab::new(agent, scenario), json!({}), rules)
}

/// The options' values.
fn options(question: &Value) -> Vec<&str> {
    let options = question["payload"]["options"].as_array().expect("options");
    options.iter().map(|option| option["value"].as_str().expect("value")).collect()
}

fn a_permission_is_given(agent: Agent) {
    let run = ask(agent, "permission", permission("allow_once"));
    run.completed("That was it.");
    assert!(run.made("asked.txt"));
    assert_eq!(run.outcome.resolutions(), ["answered"]);
    assert_eq!(run.tools(), [("execute", "completed")]);
    assert_eq!(run.artifacts(), [("asked.txt", "created")], "made by a shell command, found by comparison");
    let question = run.questions()[0];
    assert_eq!(question["payload"]["subject"]["detail"], "touch asked.txt");
    assert_eq!(options(question), ["allow_once", "allow_always", "deny"]);
    assert_eq!(run.outcome.progress("question_resolved")[0].text("value"), "allow_once");
    let states = run.outcome.progress("status");
    assert!(states.iter().any(|f| f.text("status") == "waiting_for_input"));
}

#[test]
fn a_permission_given_once() {
    a_permission_is_given(Agent::Claude);
}

#[test]
fn a_permission_given_once_on_the_old_version() {
    a_permission_is_given(Agent::OldClaude);
}

fn a_permission_is_denied(agent: Agent) {
    let run = ask(agent, "permission", denial("Not on a Friday."));
    run.completed("That was it.");
    assert!(!run.made("asked.txt"));
    assert_eq!(run.tools(), [("execute", "denied")]);
    assert!(run.stub().tool_results()[0].contains("Not on a Friday."), "the model reads why");
    assert_eq!(run.outcome.progress("question_resolved")[0].text("value"), "deny");
}

#[test]
fn a_permission_denied_with_a_message() {
    a_permission_is_denied(Agent::Claude);
}

#[test]
fn a_permission_denied_with_a_message_on_the_old_version() {
    a_permission_is_denied(Agent::OldClaude);
}

#[test]
fn a_permission_given_for_the_session_is_asked_once_and_not_kept() {
    let run = ask(Agent::Claude, "permission_twice", permission("allow_always"));
    run.completed("Touched twice.");
    assert_eq!(run.questions().len(), 1);
    assert_eq!(run.tools(), [("execute", "completed"), ("execute", "completed")]);
    assert!(!run.made(".claude/settings.local.json"), "a rule for the session was written into the project");
    let run = ask(Agent::Claude, "permission_twice", permission("allow_once"));
    assert_eq!(run.questions().len(), 2, "else the scenario proves nothing");
}

#[test]
fn headless_permissions_go_by_the_policy() {
    for (policy, state) in [("allow", "completed"), ("deny", "denied"), ("ask", "denied")] {
        let payload = json!({"interactive": false, "permissions": {"execute": policy, "*": "deny"}});
        let run = run(Lab::new(Agent::Claude, "permission"), payload, Vec::new());
        run.completed("That was it.");
        assert_eq!(run.tools(), [("execute", state)], "{policy}");
        assert_eq!(run.made("asked.txt"), policy == "allow");
        let resolved = run.outcome.progress("question_resolved");
        assert_eq!(resolved.len(), 1, "{policy}");
        assert_eq!(resolved[0].text("resolution"), if policy == "ask" { "headless" } else { "policy" });
    }
}

#[test]
fn a_headless_question_goes_back_to_the_agent() {
    let run = run(Lab::new(Agent::Claude, "ask_single"), json!({"interactive": false}), Vec::new());
    run.completed("So be it.");
    assert_eq!(run.outcome.resolutions(), ["headless"]);
    let result = &run.stub().tool_results()[0];
    assert!(result.contains("No user is present"), "{result}");
}

fn one_question(agent: Agent) {
    let run = ask(agent, "ask_single", vec![rule("clarification", "Storage", json!("SQLite"))]);
    run.completed("So be it.");
    let question = run.questions()[0];
    assert_eq!(question.text("text"), "Where shall the data live?");
    assert_eq!(question.text("header"), "Storage");
    assert_eq!(question["payload"]["kind"], "select");
    assert_eq!(options(question), ["Postgres", "SQLite"]);
    assert_eq!(question["payload"]["options"][1]["description"], "To choose SQLite.");
    assert_eq!(question["payload"]["allow_other"], true);
    assert_eq!(question["payload"]["multiple"], false);
    let result = &run.stub().tool_results()[0];
    assert!(result.contains("SQLite") && !result.contains("Postgres"), "{result}");
}

#[test]
fn one_question_with_one_answer() {
    one_question(Agent::Claude);
}

#[test]
fn one_question_with_one_answer_on_the_old_version() {
    one_question(Agent::OldClaude);
}

#[test]
fn one_question_with_several_answers() {
    let run = ask(Agent::Claude, "ask_multi", vec![rule("clarification", "Features", json!(["Login", "Export"]))]);
    run.completed("So be it.");
    assert_eq!(run.questions()[0]["payload"]["multiple"], true);
    let result = &run.stub().tool_results()[0];
    assert!(result.contains("Login, Export") && !result.contains("Search"), "{result}");
}

#[test]
fn several_questions_are_a_group() {
    let rules = vec![
        // The number of an option, a list with a free text in it, and a free text alone.
        rule("clarification", "Storage", json!(1)),
        rule("clarification", "Features", json!(["search", "A coffee machine"])),
        rule("clarification", "Release", json!("When the moon is full")),
    ];
    let run = ask(Agent::Claude, "ask_several", rules);
    run.completed("So be it all.");
    let questions = run.questions();
    assert_eq!(questions.len(), 3);
    assert!(questions.iter().all(|q| q["payload"]["group_size"] == 3));
    assert!(questions.iter().all(|q| q["payload"]["group_id"] == questions[0]["payload"]["group_id"]));
    let result = &run.stub().tool_results()[0];
    for answer in ["Postgres", "Search, A coffee machine", "When the moon is full"] {
        assert!(result.contains(answer), "{answer} is not in: {result}");
    }
}

#[test]
fn a_declined_question_goes_back_to_the_agent() {
    let run = ask(Agent::Claude, "ask_single", declined("clarification"));
    run.completed("So be it.");
    assert_eq!(run.outcome.resolutions(), ["declined"]);
    let result = &run.stub().tool_results()[0];
    assert!(result.contains("declined"), "{result}");
}

#[test]
fn a_question_that_nobody_answers_in_time_goes_back_to_the_agent() {
    let lab = Lab::new(Agent::Claude, "ask_single");
    let payload = json!({"question_timeout_s": 0.5, "on_question_timeout": "continue"});
    let mut client = Client::start(lab, payload, Vec::new());
    client.session.until("run.question");
    let run = client.finish();
    run.completed("So be it.");
    assert_eq!(run.outcome.resolutions(), ["timeout"]);
    assert!(!run.stub().tool_results()[0].contains("Postgres"), "an answer was invented");
}

#[test]
fn a_permission_that_nobody_can_give_is_denied() {
    let mut client = Client::start(Lab::new(Agent::Claude, "permission"), json!({}), Vec::new());
    client.session.until("run.question");
    client.session.close_stdin();
    let run = client.finish();
    run.completed("That was it.");
    assert_eq!(run.outcome.resolutions(), ["input_closed"]);
    assert_eq!(run.tools(), [("execute", "denied")]);
    assert!(!run.made("asked.txt"));
}

#[test]
fn a_question_in_the_text_is_asked_after_the_turn() {
    let run = ask(Agent::Claude, "marker", vec![rule("clarification", "Way", json!("Left"))]);
    assert_eq!(run.completed("On I go.")["usage"]["input_tokens"], 200, "of both turns");
    assert_eq!(run.questions().len(), 1);
    assert_eq!(run.questions()[0].text("text"), "Which way?");
    assert!(run.stub().last_heard().contains("Left"), "{}", run.stub().last_heard());
    run.outcome.never_shows("QUESTION");
}

#[test]
fn the_end_of_a_plan_is_a_permission() {
    let run = ask(Agent::Claude, "plan", permission("allow_once"));
    run.completed("That is the plan.");
    let questions = run.questions();
    assert_eq!(questions.len(), 1, "the end of the plan, not its beginning");
    assert_eq!(questions[0]["payload"]["subject"]["category"], "mode");
    assert_eq!(options(questions[0]), ["allow_once", "deny"]);
    assert!(run.tools().iter().all(|tool| *tool == ("mode", "completed")), "{:?}", run.tools());
}

#[test]
fn a_plan_that_is_denied_is_planned_on() {
    let run = ask(Agent::Claude, "plan", denial("Two files, please."));
    run.completed("That is the plan.");
    let results = run.stub().tool_results();
    assert!(results.iter().any(|result| result.contains("Two files, please.")), "{results:?}");
}
