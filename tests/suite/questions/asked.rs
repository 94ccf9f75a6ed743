//! Tests of questions and answers: the agent's questions, the accepted answers, and the replies to the agent.

use crate::support;

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use support::agent::{Script, bash, can_use, question};
use support::{Case, Outcome, Session, options};

fn begin(script: Script, payload: Value) -> Session {
    let mut session = Case::with(script).spawn();
    session.start(payload);
    session
}

/// Runs the script, answers its first question with this value, and lets it end.
fn answered(script: Script, value: &Value) -> Outcome {
    let mut session = begin(script, json!({}));
    let question = session.until("run.question");
    session.answer(&question, value.clone());
    let outcome = session.finish();
    outcome.completed();
    outcome
}

fn features(multiple: bool) -> Script {
    Script::asks_user(json!([question("Which features?", multiple)]))
}

/// The answer that the agent received to a question of AskUserQuestion.
#[track_caller]
fn told(outcome: &Outcome, question: &str) -> String {
    let answer = outcome.log().answer();
    assert_eq!(answer["behavior"], "allow", "{answer}");
    answer["updatedInput"]["answers"][question].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn a_permission_has_its_options_and_its_subject() {
    let mut session = begin(Script::asks_bash(), json!({}));
    let asked = session.until("run.question");
    let payload = asked.payload();
    assert_eq!(payload["purpose"], "permission");
    assert_eq!(payload["attempt"], 1);
    assert_eq!(payload["required"], true);
    assert_eq!(
        options(asked.payload()).into_iter().collect::<BTreeSet<_>>(),
        ["allow_always", "allow_once", "deny"].into()
    );
    assert_eq!(payload["subject"]["category"], "execute");
    assert!(payload["subject"]["detail"].to_string().contains("touch a.txt"), "{payload}");
    assert!(payload["timeout_s"].as_f64().unwrap() <= 300.0);
    session.answer(&asked, json!("deny"));
    session.finish().completed();
}

#[test]
fn allow_once_lets_the_tool_run_with_its_own_input_and_nothing_more() {
    let outcome = answered(Script::asks_bash(), &json!("allow_once"));
    let (request, answer) = outcome.log().answers().remove(0);
    assert_eq!(request, "req-1");
    assert_eq!(answer["behavior"], "allow");
    assert_eq!(answer["updatedInput"], bash("touch a.txt"));
    assert!(answer["updatedPermissions"].as_array().is_none_or(Vec::is_empty), "{answer}");
    let resolved = outcome.progress("question_resolved")[0].clone();
    let payload = resolved.payload();
    assert_eq!((&payload["resolution"], &payload["used_default"]), (&json!("answered"), &json!(false)));
    assert_eq!(payload["value"], "allow_once");
    assert_eq!(payload["subject"]["category"], "execute");
    assert_eq!(resolved["reply_to"], "m1");
}

/// The agent is told only about one call and asks again. The run answers by itself, for this command and no other.
#[test]
fn allow_always_is_kept_by_the_run_and_changes_nothing_of_the_agents() {
    let ask = |script: Script, number: usize, command: &str| {
        script.ask(&format!("req-{number}"), &format!("toolu_{number}"), "Bash", bash(command))
    };
    let script = ask(ask(ask(Script::new(), 1, "make test"), 2, "make test"), 3, "make test; rm -r src");
    let mut session = begin(script.say("m", "ok").done("ok"), json!({}));
    let asked = session.until("run.question");
    session.answer(&asked, json!("allow_always"));
    let second = session.until_progress("question_resolved");
    assert_eq!((second.text("resolution"), second.text("value")), ("answered", "allow_always"));
    let third = session.until("run.question");
    assert_eq!(third["payload"]["subject"]["detail"], "make test; rm -r src");
    session.answer(&third, json!("deny"));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.resolutions(), ["answered", "policy", "answered"]);
    let answers = outcome.log().answers();
    let behaviors: Vec<&str> = answers.iter().map(|(_, answer)| answer["behavior"].as_str().unwrap()).collect();
    assert_eq!(behaviors, ["allow", "allow", "deny"]);
    assert!(answers.iter().all(|(_, answer)| answer.get("updatedPermissions").is_none()), "{answers:?}");
}

#[test]
fn allow_always_does_not_depend_on_suggestions_of_the_agent() {
    let mut request = can_use("req-1", "toolu_1", "Bash", &bash("ls"));
    request["request"].as_object_mut().unwrap().remove("permission_suggestions");
    let mut session = begin(Script::new().out(&request).sh("answer").say("m", "ok").done("ok"), json!({}));
    let asked = session.until("run.question");
    assert_eq!(options(asked.payload()), ["allow_once", "allow_always", "deny"]);
    session.answer(&asked, json!("allow_once"));
    session.finish().completed();
}

#[test]
fn a_denial_carries_its_message_to_the_agent_and_the_run_continues() {
    let mut session = begin(Script::asks_bash(), json!({}));
    let asked = session.until("run.question");
    let id = asked.text("question_id");
    session.send("run.input", json!({"question_id": id, "value": "deny", "message": "use mktemp instead"}));
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "All done.");
    let answer = outcome.log().answer();
    assert_eq!(answer["behavior"], "deny");
    assert!(answer["message"].as_str().unwrap().contains("use mktemp instead"), "{answer}");
    assert_ne!(answer["interrupt"], true, "the agent goes on");
}

#[test]
fn a_select_takes_values_labels_and_numbers() {
    let rows = [
        (json!("Search"), "Search"),
        (json!("search"), "Search"),
        (json!("EXPORT"), "Export"),
        (json!("1"), "Auth"),
        (json!("3"), "Export"),
        (json!(2), "Search"),
        (json!("None of these, please"), "None of these, please"),
        (json!("7"), "7"),
    ];
    for (value, expected) in rows {
        assert_eq!(told(&answered(features(false), &value), "Which features?"), expected, "{value}");
    }
}

#[test]
fn a_multiple_select_takes_a_list_of_these_or_one() {
    let rows = [
        (json!(["Auth", "Export"]), "Auth, Export"),
        (json!([1, "export"]), "Auth, Export"),
        (json!("Search"), "Search"),
        (json!(2), "Search"),
        (json!(["Auth", "and my own"]), "Auth, and my own"),
    ];
    for (value, expected) in rows {
        assert_eq!(told(&answered(features(true), &value), "Which features?"), expected, "{value}");
    }
}

#[test]
fn the_agents_question_is_a_clarification_with_its_options() {
    let mut session = begin(features(true), json!({}));
    let asked = session.until("run.question");
    let payload = asked.payload();
    assert_eq!((&payload["purpose"], &payload["kind"]), (&json!("clarification"), &json!("select")));
    assert_eq!((&payload["text"], &payload["header"]), (&json!("Which features?"), &json!("Features")));
    assert_eq!((&payload["multiple"], &payload["allow_other"]), (&json!(true), &json!(true)));
    assert_eq!(options(asked.payload()), ["Auth", "Search", "Export"]);
    assert_eq!(payload["options"][0], json!({"value": "Auth", "label": "Auth", "description": "Login"}));
    assert_eq!(payload.get("default").filter(|d| !d.is_null()), None);
    session.answer(&asked, json!(["Auth"]));
    let outcome = session.finish();
    let resolved = outcome.progress("question_resolved")[0].clone();
    assert_eq!(resolved["payload"]["value"], json!(["Auth"]));
    outcome.completed();
}

#[test]
fn a_bad_answer_repeats_the_question_with_the_error_and_the_attempt() {
    let bad = [json!("maybe"), json!(9), json!(null), json!(["allow_once", "deny"])];
    let mut session = begin(Script::asks_bash(), json!({}));
    let asked = session.until("run.question");
    for (number, value) in bad.iter().enumerate() {
        let id = session.answer(&asked, value.clone());
        let again = session.until("run.question");
        assert_eq!(again.text("question_id"), asked.text("question_id"));
        assert_eq!(again["payload"]["attempt"], number + 2, "{value}");
        assert_eq!(again["reply_to"], json!(id));
        assert!(!again.text("error").is_empty());
        for field in ["kind", "text", "options", "default", "subject", "purpose"] {
            assert_eq!(again["payload"][field], asked["payload"][field], "{field}");
        }
    }
    session.answer(&asked, json!("allow_once"));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.resolutions(), ["answered"]);
    assert_eq!(outcome.log().answer()["behavior"], "allow");
}

#[test]
fn five_bad_answers_count_as_declined() {
    let mut session = begin(Script::asks_bash(), json!({}));
    let asked = session.until("run.question");
    for _ in 0..5 {
        session.answer(&asked, json!("maybe"));
    }
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.of_type("run.question").len(), 5, "asked once and repeated four times");
    assert_eq!(outcome.resolutions(), ["declined"]);
    assert_eq!(outcome.log().answer()["behavior"], "deny");
}

#[test]
fn the_questions_of_a_group_share_an_id_and_go_back_in_one_answer() {
    let script = Script::asks_user(json!([question("First?", false), question("Second?", true)]));
    let mut session = begin(script, json!({}));
    let first = session.until("run.question");
    let second = session.until("run.question");
    assert!(!first.text("group_id").is_empty());
    assert_eq!(first.text("group_id"), second.text("group_id"));
    assert_eq!((&first["payload"]["group_size"], &second["payload"]["group_size"]), (&json!(2), &json!(2)));
    assert_ne!(first.text("question_id"), second.text("question_id"));
    // A letter, twelve random hexadecimal digits, and a number.
    for (id, begins) in [(first.text("question_id"), "q_"), (first.text("group_id"), "g_")] {
        let (random, number) = id.strip_prefix(begins).and_then(|rest| rest.split_once('_')).unwrap();
        let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        assert!(random.len() == 12 && random.chars().all(hex) && number == "1", "{id}");
    }
    session.answer(&second, json!(["Search"]));
    session.until_progress("question_resolved");
    assert!(session.log().answers().is_empty(), "it goes on only when all of the group are resolved");
    session.answer(&first, json!("Auth"));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!((told(&outcome, "First?"), told(&outcome, "Second?")), ("Auth".to_owned(), "Search".to_owned()));
}

#[test]
fn the_agent_learns_of_a_declined_question_and_the_run_continues() {
    for (script, shown) in [(Script::asks_bash(), "permission"), (features(false), "clarification")] {
        let mut session = begin(script, json!({}));
        let asked = session.until("run.question");
        session.send("run.input", json!({"question_id": asked.text("question_id"), "declined": true}));
        let outcome = session.finish();
        outcome.completed();
        assert_eq!(outcome.resolutions(), ["declined"], "{shown}");
        let answer = outcome.log().answer();
        assert_eq!(answer["behavior"], "deny", "{shown}: {answer}");
        assert!(!answer["message"].as_str().unwrap().is_empty(), "{shown}: {answer}");
    }
}

#[test]
fn a_declined_question_of_a_group_leaves_the_others_answered() {
    let script = Script::asks_user(json!([question("First?", false), question("Second?", false)]));
    let mut session = begin(script, json!({}));
    let first = session.until("run.question");
    let second = session.until("run.question");
    session.send("run.input", json!({"question_id": first.text("question_id"), "declined": true}));
    session.answer(&second, json!("Search"));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.resolutions(), ["declined", "answered"]);
    assert_eq!(told(&outcome, "Second?"), "Search");
    assert!(!["Auth", "Search", "Export"].contains(&told(&outcome, "First?").as_str()), "answered by invention");
}

#[test]
fn an_answer_can_come_from_the_environment_or_a_file() {
    let case = Case::with(features(false)).env("ANSWER_HERE", "from-the-environment");
    fs::write(case.path("work/answer.txt"), "from-the-file\n\n").unwrap();
    let home = case.path("home");
    let mut session = case.spawn();
    // The file is searched in the process's own folder, not in the agent's.
    session.start(json!({"cwd": home}));
    let asked = session.until("run.question");
    let id = asked.text("question_id");
    for missing in [json!({"env": "NOT_SET_ANYWHERE"}), json!({"file": "no-such-file"})] {
        session.send("run.input", json!({"question_id": id, "value_from": missing}));
        let again = session.until("run.question");
        assert_eq!(again.text("question_id"), id, "an unreadable value is a bad answer");
    }
    session.send("run.input", json!({"question_id": id, "value_from": {"file": "answer.txt"}}));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(told(&outcome, "Which features?"), "from-the-file\n", "one trailing newline is dropped");

    let mut session = Case::with(features(false)).env("ANSWER_HERE", "from-the-environment").spawn();
    session.start(json!({}));
    let asked = session.until("run.question");
    let from = json!({"question_id": asked.text("question_id"), "value_from": {"env": "ANSWER_HERE"}});
    session.send("run.input", from);
    assert_eq!(told(&session.finish(), "Which features?"), "from-the-environment");
}

#[test]
fn exactly_one_of_value_declined_and_value_from_must_be_there() {
    let mut session = begin(Script::asks_bash(), json!({}));
    let asked = session.until("run.question");
    for fields in [
        json!({}),
        json!({"message": "only a message"}),
        json!({"value": "deny", "declined": true}),
        json!({"value": "deny", "value_from": {"env": "HOME"}}),
        json!({"declined": true, "value_from": {"env": "HOME"}}),
        json!({"value": "deny", "declined": true, "value_from": {"env": "HOME"}}),
    ] {
        let mut payload = fields.clone();
        payload["question_id"] = json!(asked.text("question_id"));
        let id = session.send("run.input", payload);
        let frame = session.until_where("a warning or a question", |f| {
            f.is_progress("warning") || f.kind() == "run.question" || f.is_progress("question_resolved")
        });
        assert_eq!((frame.text("code"), &frame["reply_to"]), ("invalid_answer", &json!(id)), "{fields}");
    }
    session.answer(&asked, json!("allow_once"));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.of_type("run.question").len(), 1, "the question was not touched");
}

#[test]
fn an_answer_to_an_unknown_or_resolved_question_is_ignored_with_a_warning() {
    let script = Script::asks_bash();
    let script = Script::new().ask("req-0", "toolu_0", "Bash", bash("true")).sh(&script.steps_after_init());
    let mut session = begin(script, json!({}));
    let first = session.until("run.question");
    let unknown = session.send("run.input", json!({"question_id": "q_never_asked", "value": "deny"}));
    assert_eq!(session.until_warning("unknown_question")["reply_to"], json!(unknown));
    session.answer(&first, json!("deny"));
    let second = session.until("run.question");
    let late = session.answer(&first, json!("allow_once"));
    assert_eq!(session.until_warning("unknown_question")["reply_to"], json!(late));
    session.answer(&second, json!("deny"));
    let outcome = session.finish();
    outcome.completed();
    let behaviors: Vec<Value> = outcome.log().answers().iter().map(|(_, a)| a["behavior"].clone()).collect();
    assert_eq!(behaviors, ["deny", "deny"]);
}

#[test]
fn a_question_that_the_agent_withdraws_is_resolved_withdrawn() {
    let script = Script::new()
        .out(&can_use("req-1", "toolu_1", "Bash", &bash("touch a.txt")))
        .sh(r#"while ! [ -e "$D/go" ]; do sleep 0.02; done"#)
        .out(&json!({"type": "control_cancel_request", "request_id": "req-1"}))
        .sh(r#"while ! [ -e "$D/end" ]; do sleep 0.02; done"#)
        .say("msg_1", "ok")
        .done("ok");
    let mut session = begin(script, json!({}));
    let asked = session.until("run.question");
    fs::write(session.log().path("go"), "").unwrap();
    assert_eq!(session.until_progress("question_resolved").text("resolution"), "withdrawn");
    session.answer(&asked, json!("allow_once"));
    session.until_warning("unknown_question");
    fs::write(session.log().path("end"), "").unwrap();
    let outcome = session.finish();
    outcome.completed();
    assert!(outcome.log().answers().iter().all(|(_, a)| a["behavior"] != "allow"));
}

#[test]
fn two_questions_may_be_open_at_once_and_answered_in_any_order() {
    let fetch = |n: u8| json!({"url": format!("https://example.org/{n}"), "prompt": "read"});
    let script = Script::new()
        .out(&can_use("req-1", "toolu_1", "WebFetch", &fetch(1)))
        .out(&can_use("req-2", "toolu_2", "WebFetch", &fetch(2)))
        .sh("answer\nanswer")
        .say("msg_1", "ok")
        .done("ok");
    let mut session = begin(script, json!({}));
    let first = session.until("run.question");
    let second = session.until("run.question");
    assert_eq!(first["payload"]["subject"]["category"], "fetch");
    session.answer(&second, json!("allow_once"));
    session.until_progress("question_resolved");
    session.answer(&first, json!("deny"));
    let outcome = session.finish();
    outcome.completed();
    let answers = outcome.log().answers();
    let got: Vec<(&str, &Value)> = answers.iter().map(|(r, a)| (r.as_str(), &a["behavior"])).collect();
    assert_eq!(got, [("req-2", &json!("allow")), ("req-1", &json!("deny"))]);
}

#[test]
fn question_ids_are_unique_across_runs() {
    let ids: BTreeSet<String> = (0..3)
        .map(|_| answered(Script::asks_bash(), &json!("deny")))
        .map(|o| o.of_type("run.question")[0].text("question_id").to_owned())
        .collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
}

#[test]
fn leaving_the_plan_mode_is_a_permission_of_category_mode() {
    let mut session = begin(Script::asks("ExitPlanMode", json!({"plan": "# Plan\n1. do it"})), json!({}));
    let asked = session.until("run.question");
    assert_eq!(asked["payload"]["subject"]["category"], "mode");
    assert_eq!(options(asked.payload()).into_iter().collect::<BTreeSet<_>>(), ["allow_once", "deny"].into());
    assert!(asked.text("text").contains("1. do it"), "the text is the plan");
    let id = asked.text("question_id");
    session.send("run.input", json!({"question_id": id, "value": "deny", "message": "plan the tests too"}));
    let outcome = session.finish();
    outcome.completed();
    let answer = outcome.log().answer();
    assert_eq!(answer["behavior"], "deny");
    assert!(answer["message"].as_str().unwrap().contains("plan the tests too"));
}

#[test]
fn an_unknown_request_of_the_agent_is_answered_with_an_error() {
    let request = json!({"type": "control_request", "request_id": "req-9", "request": {"subtype": "hook_callback"}});
    let script = Script::new().out(&request).sh("answer").say("msg_1", "ok").done("ok");
    let outcome = support::run(Case::with(script), json!({}));
    outcome.completed();
    let responses: Vec<Value> =
        outcome.log().received().into_iter().filter(|l| l["type"] == "control_response").collect();
    assert_eq!(responses[0]["response"]["subtype"], "error");
    assert_eq!(responses[0]["response"]["request_id"], "req-9");
}
