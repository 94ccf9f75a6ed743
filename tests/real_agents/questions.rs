//! Questions of real agents.

use serde_json::json;

use crate::agents::Agent;
use crate::client::{Client, Rule, Run, declined, denial, permission, rule, run};
use crate::lab::Lab;
use crate::support::{Frame, options};

// Gemini CLI and OpenCode have no tool of their own for questions here.
rows!(of question_single: claude Claude, claude_old OldClaude, codex Codex);
rows!(of question_several: claude Claude, codex Codex);
rows!(of question_declined: claude Claude, codex Codex);
rows!(of question_headless: claude Claude, codex Codex);
rows!(of question_timeout: claude Claude, codex Codex);
// Codex's question has one answer.
rows!(of question_multiple: claude Claude);
rows!(old: question_of_every_kind);
rows!(question_in_the_text);
rows!(of plan_allowed: claude Claude);
rows!(of plan_denied: claude Claude);

fn ask(agent: Agent, scenario: &str, rules: Vec<Rule>) -> Run {
    run(Lab::new(agent, scenario), json!({}), rules)
}

/// Options with descriptions, and a free text.
fn question_single(agent: Agent) {
    let run = ask(agent, "ask_single", vec![rule("clarification", "Storage", json!("SQLite"))]);
    run.completed("So be it.");
    let question = run.questions()[0];
    assert_eq!(question.text("text"), "Where shall the data live?");
    assert_eq!(question.text("header"), "Storage");
    assert_eq!(question["payload"]["kind"], "select");
    assert_eq!(options(&question["payload"]), ["Postgres", "SQLite"]);
    assert_eq!(question["payload"]["options"][1]["description"], "To choose SQLite.");
    assert_eq!(question["payload"]["allow_other"], true);
    assert_eq!(question["payload"]["multiple"], false);
    let result = &run.stub().tool_results()[0];
    assert!(result.contains("SQLite") && !result.contains("Postgres"), "{result}");
}

/// Several answers to one question, one of them a free text.
fn question_multiple(agent: Agent) {
    let answers = json!(["login", "Export", "A coffee machine"]);
    let run = ask(agent, "ask_multi", vec![rule("clarification", "Features", answers)]);
    run.completed("So be it.");
    assert_eq!(run.questions()[0]["payload"]["multiple"], true);
    let result = &run.stub().tool_results()[0];
    assert!(result.contains("Login, Export, A coffee machine") && !result.contains("Search"), "{result}");
}

/// Several questions of one call are a group.
fn question_several(agent: Agent) {
    let rules = vec![
        // An option by its number, an option in another case, and a free text.
        rule("clarification", "Storage", json!(1)),
        rule("clarification", "Features", json!("search")),
        rule("clarification", "Release", json!("When the moon is full")),
    ];
    let run = ask(agent, "ask_several", rules);
    run.completed("So be it all.");
    let questions = run.questions();
    assert_eq!(questions.len(), 3);
    assert!(questions.iter().all(|q| q["payload"]["group_size"] == 3));
    assert!(questions.iter().all(|q| q["payload"]["group_id"] == questions[0]["payload"]["group_id"]));
    let result = &run.stub().tool_results()[0];
    for answer in ["Postgres", "Search", "When the moon is full"] {
        assert!(result.contains(answer), "{answer} is not in: {result}");
    }
}

/// Our own tool asks questions of all kinds, and using it needs no permission.
fn question_of_every_kind(agent: Agent) {
    const KEY: &str = "moon-over-4-hills";
    let rules = vec![
        // The first answer breaks the model's validation rule.
        rule("clarification", "required form", json!("lighthouse")),
        rule("clarification", "Keep", json!("no")),
        rule("clarification", "Storage", json!(2)),
        rule("clarification", "Features", json!(["login", "Export"])),
        rule("clarification", "Name", json!("LIGHTHOUSE")),
        rule("input", "Key", json!(KEY)),
        rule("input", "File", json!("old.txt")),
    ];
    let run = ask(agent, "ask_by_tool", rules);
    run.completed("So be it all.");
    let (again, questions): (Vec<&Frame>, Vec<&Frame>) =
        run.questions().into_iter().partition(|question| question["payload"]["attempt"] == 2);
    assert_eq!(again.len(), 1, "the rule of the model was not kept");
    assert_eq!(questions[2]["payload"]["validation"], json!({"min_selected": 2}));
    assert_eq!(questions[5]["payload"]["validation"], json!({"must_exist": true, "path_type": "file"}));
    assert_eq!(questions[5]["payload"]["default"], "old.txt");
    let kinds: Vec<&str> = questions.iter().map(|q| q["payload"]["kind"].as_str().unwrap_or_default()).collect();
    assert_eq!(kinds, ["confirm", "select", "select", "text", "secret", "file_path"]);
    assert_eq!(questions[2]["payload"]["multiple"], true);
    assert!(questions.iter().all(|q| q["payload"]["group_size"] == 6));
    let result = &run.stub().tool_results()[0];
    for answer in ["false", "SQLite", "Login", "Export", "lighthouse", KEY, "old.txt"] {
        assert!(result.contains(answer), "{answer} is not in: {result}");
    }
    assert!(!result.contains("Postgres") && !result.contains("Search"), "{result}");
    run.outcome.never_shows(KEY);
}

/// An unanswered question returns to the agent, and the model reads the reason.
#[track_caller]
fn goes_back(run: &Run, resolution: &str, why: &str) {
    run.completed("So be it.");
    assert_eq!(run.outcome.resolutions(), [resolution]);
    let result = &run.stub().tool_results()[0];
    assert!(result.contains(why), "{result}");
    assert!(!result.contains("Postgres"), "an answer was invented");
}

fn question_declined(agent: Agent) {
    let run = ask(agent, "ask_single", declined("clarification"));
    goes_back(&run, "declined", "declined");
}

fn question_headless(agent: Agent) {
    let run = run(Lab::new(agent, "ask_single"), json!({"interactive": false}), Vec::new());
    goes_back(&run, "headless", "No user is present");
}

fn question_timeout(agent: Agent) {
    let payload = json!({"question_timeout_s": 0.5, "on_question_timeout": "continue"});
    let mut client = Client::start(Lab::new(agent, "ask_single"), payload, Vec::new());
    client.session.until("run.question");
    goes_back(&client.finish(), "timeout", "declined");
}

/// A marker in the agent's text asks a question, and the answer starts another turn.
fn question_in_the_text(agent: Agent) {
    let run = ask(agent, "marker", vec![rule("clarification", "Way", json!("UnansweredItem"))]);
    assert_eq!(run.completed("On I go.")["usage"]["input_tokens"], 200, "of both turns");
    assert_eq!(run.questions().len(), 1);
    assert_eq!(run.questions()[0].text("text"), "Which way?");
    assert!(run.stub().last_heard().contains("UnansweredItem"), "{}", run.stub().last_heard());
    run.outcome.never_shows("QUESTION");
}

/// The end of a plan is a permission.
fn plan_allowed(agent: Agent) {
    let run = ask(agent, "plan", permission("allow_once"));
    run.completed("That is the plan.");
    let questions = run.questions();
    assert_eq!(questions.len(), 1, "the end of the plan, not its beginning");
    assert_eq!(questions[0]["payload"]["subject"]["category"], "mode");
    assert_eq!(options(&questions[0]["payload"]), ["allow_once", "deny"]);
    assert!(run.tools().iter().all(|tool| *tool == ("mode", "completed")), "{:?}", run.tools());
}

fn plan_denied(agent: Agent) {
    let run = ask(agent, "plan", denial("Two files, please."));
    run.completed("That is the plan.");
    let results = run.stub().tool_results();
    assert!(results.iter().any(|result| result.contains("Two files, please.")), "{results:?}");
}
