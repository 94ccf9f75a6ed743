//! Tests of decisions without an answer: how a run counts and reports them, and how they fail it.

use crate::support;

use serde_json::{Value, json};
use support::agent::{Script, bash, question};
use support::{Case, Outcome, Session, run};

fn begin(script: Script, payload: Value) -> Session {
    let mut session = Case::with(script).spawn();
    session.start(payload);
    session
}

/// An agent that asks two questions and requests permission for two commands.
fn asks_all() -> Script {
    let questions = json!({"questions": [question("Which one?", false), question("Which others?", true)]});
    Script::new()
        .ask("req-1", "toolu_1", "AskUserQuestion", questions)
        .ask("req-2", "toolu_2", "Bash", bash("make"))
        .ask("req-3", "toolu_3", "Write", json!({"file_path": "a.txt", "content": "x"}))
        .say("msg_1", "ok")
        .done("ok")
}

fn none() -> Value {
    json!({"count": 0, "first": []})
}

fn tallies(outcome: &Outcome) -> [Value; 2] {
    let payload = outcome.completed();
    [payload["denied"].clone(), payload["unanswered"].clone()]
}

#[test]
fn a_headless_run_reports_denied_permissions_and_unasked_questions() {
    let outcome = run(Case::with(asks_all()), json!({"interactive": false}));
    let denied = json!({"count": 2, "first": [
        {"category": "execute", "text": "Run make"}, {"category": "edit", "text": "Write a.txt"}]});
    let unanswered = json!({"count": 2, "first": [
        {"category": "select", "text": "Which one?"}, {"category": "select", "text": "Which others?"}]});
    assert_eq!(tallies(&outcome), [denied, unanswered]);
}

#[test]
fn a_timeout_and_the_end_of_stdin_count_too() {
    let one = json!({"count": 1, "first": [{"category": "execute", "text": "Run touch a.txt"}]});
    let mut late = begin(Script::asks_bash(), json!({"question_timeout_s": 0.1}));
    late.until("run.question");
    assert_eq!(tallies(&late.finish()), [one.clone(), none()]);
    let mut closed = begin(Script::asks_bash(), json!({}));
    closed.close_stdin();
    assert_eq!(tallies(&closed.finish()), [one, none()]);
    let ask = Script::asks_user(json!([question("Which one?", false)]));
    let mut late = begin(ask, json!({"question_timeout_s": 0.1, "on_question_timeout": "continue"}));
    late.until("run.question");
    let unanswered = json!({"count": 1, "first": [{"category": "select", "text": "Which one?"}]});
    assert_eq!(tallies(&late.finish()), [none(), unanswered]);
}

/// A decision by a policy or a person. The run completes, whatever the decision was.
#[test]
fn a_deliberate_denial_does_not_count() {
    let payload = json!({"interactive": false, "permissions": "deny", "fail_on_denied": true});
    assert_eq!(tallies(&run(Case::with(Script::asks_bash()), payload)), [none(), none()]);
    for input in [json!({"value": "deny"}), json!({"declined": true})] {
        let mut session = begin(Script::asks_bash(), json!({"fail_on_denied": true}));
        let asked = session.until("run.question");
        let mut payload = input;
        payload["question_id"] = asked["payload"]["question_id"].clone();
        session.send("run.input", payload);
        assert_eq!(tallies(&session.finish()), [none(), none()]);
    }
}

#[test]
fn a_run_with_an_unanswered_permission_fails_if_fail_on_denied_is_set() {
    let outcome = run(Case::with(asks_all()), json!({"interactive": false, "fail_on_denied": true}));
    let failed = outcome.failed("denied");
    assert_eq!(outcome.exit_code, Some(6));
    let message = failed["message"].as_str().unwrap();
    assert!(message.starts_with("2 permissions were denied") && message.contains("`permissions`"), "{message}");
    assert_eq!((&failed["retryable"], &failed["detail"]), (&json!(false), &Value::Null));
    assert!(outcome.warnings("empty_result").is_empty());

    let args = ["--headless", "--fail-on-denied"];
    let outcome = run(Case::with(Script::asks_bash()).args(&args), json!({}));
    assert!(outcome.failed("denied")["message"].as_str().unwrap().starts_with("A permission was denied"));
    let outcome = run(Case::with(Script::asks_bash()).args(&args), json!({"fail_on_denied": false}));
    assert_eq!(outcome.completed()["denied"]["count"], 1, "run.start goes before the flag");
}

/// A question does not count as a permission, and a run with another outcome keeps that outcome.
#[test]
fn only_a_denied_permission_in_a_run_that_would_complete_fails_it() {
    let payload = json!({"interactive": false, "fail_on_denied": true});
    let ask = Script::asks_user(json!([question("Which one?", false)]));
    assert_eq!(run(Case::with(ask), payload.clone()).completed()["unanswered"]["count"], 1);
    let script = Script::new().ask("req-1", "toolu_1", "Bash", bash("make")).sh("RC=3; leave");
    run(Case::with(script), payload).failed("agent_exited");
}

#[test]
fn the_count_is_exact_and_the_list_is_limited() {
    let script = (0..25).fold(Script::new(), |script, number| {
        let command = bash(&format!("make target-{number}"));
        script.ask(&format!("req-{number}"), &format!("toolu_{number}"), "Bash", command)
    });
    let outcome = run(Case::with(script.say("msg_1", "ok").done("ok")), json!({"interactive": false}));
    let denied = &outcome.completed()["denied"];
    assert_eq!(denied["count"], 25);
    let first = denied["first"].as_array().unwrap();
    assert_eq!((first.len(), &first[19]["text"]), (20, &json!("Run make target-19")));
}

#[test]
fn the_list_hides_secrets() {
    let key = "correct-horse-battery";
    let questions = json!({"questions": [question(&format!("Is {key} right?"), false)]});
    let script = Script::new()
        .ask("req-1", "toolu_1", "AskUserQuestion", questions)
        .ask("req-2", "toolu_2", "Bash", bash(&format!("login {key}")))
        .say("msg_1", "ok")
        .done("ok");
    let outcome = run(Case::with(script), json!({"interactive": false, "secrets": [key]}));
    let payload = outcome.completed();
    assert_eq!(payload["denied"]["first"][0]["text"], "Run login [redacted]");
    assert_eq!(payload["unanswered"]["first"][0]["text"], "Is [redacted] right?");
    outcome.never_shows(key);
}

#[test]
fn a_person_gets_a_line_for_each_skipped_question_and_one_for_the_denials() {
    let case = Case::with(asks_all());
    let told = |args: &[&str]| {
        let done = case.cli(args);
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, lines) = told(&["go"]);
    assert_eq!(code, Some(0));
    for line in [
        "Not asked (no terminal): Which one? (Auth, Search, Export)\n",
        "Not asked (no terminal): Which others? (Auth, Search, Export)\n",
        "2 permissions denied (no terminal). Allow with --yes or --permissions\n",
    ] {
        assert_eq!(lines.matches(line).count(), 1, "{line}: {lines}");
    }
    let (code, lines) = told(&["--fail-on-denied", "go"]);
    assert_eq!(code, Some(6));
    assert!(lines.contains("spektacular: denied: 2 permissions were denied because nobody answered"), "{lines}");
    assert!(lines.contains("--fail-on-denied is set") && lines.contains("with --permissions"), "{lines}");
    let (code, lines) = told(&["--quiet", "go"]);
    assert_eq!((code, lines.as_str()), (Some(0), ""));
    let (_, lines) = told(&["--yes", "go"]);
    assert!(!lines.contains("denied"), "{lines}");
}
