//! The messages that an author of an orchestrator gets to a misspelled or wrong message.

use crate::support::agent::{Script, question};
use crate::support::{Case, Outcome, Session};
use serde_json::{Value, json};

/// The texts of the warnings with this code.
fn texts(outcome: &Outcome, code: &str) -> Vec<String> {
    outcome.warnings(code).iter().map(|warning| warning.text("text").to_owned()).collect()
}

/// A run that has asked this question, and the question's id.
fn asked(case: Case) -> (Session, Value) {
    let mut session = case.spawn();
    session.start(json!({}));
    let id = session.until("run.question").text("question_id").to_owned();
    (session, json!(id))
}

fn asks(multiple: bool) -> Case {
    let questions = json!({"questions": [question("Which?", multiple)]});
    Case::with(Script::new().ask("req-1", "toolu_1", "AskUserQuestion", questions).done("ok"))
}

/// A first message with a misspelled type begins no run, so nothing may be said before the input ends or a run.start
/// comes.
#[test]
fn a_misspelt_type_is_named_with_the_one_that_was_meant() {
    let hint = "Ignored a message of the unknown type run.strat (did you mean run.start?)";
    let mut session = Case::with(Script::hello()).spawn();
    session.send("run.strat", json!({"prompt": "Go"}));
    session.close_stdin();
    let outcome = session.finish();
    let message = outcome.failed("no_start")["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with(hint), "{message}");
    assert!(outcome.stderr.contains(&format!("warning: {hint}")), "{}", outcome.stderr);

    let mut session = Case::with(Script::hello()).spawn();
    session.send("run.strat", json!({"prompt": "Go"}));
    session.cancel();
    let outcome = session.finish();
    outcome.cancelled();
    assert!(outcome.stderr.contains(hint), "{}", outcome.stderr);

    let mut session = Case::with(Script::hello()).spawn();
    session.send("run.strat", json!({"prompt": "Go"}));
    session.send("weather", json!({}));
    session.start(json!({}));
    let outcome = session.finish();
    outcome.completed();
    let other =
        "Ignored a message of the unknown type weather (the types are run.start, run.input or run.cancel)".to_owned();
    assert_eq!((texts(&outcome, "unknown_type"), &*outcome.stderr), (vec![hint.to_owned(), other], ""));
}

/// Extra fields of the envelope are the sender's own, unless one stands where a known one is missing.
#[test]
fn a_misspelt_field_of_the_envelope_is_named() {
    let start = |field: &str| {
        let mut session = Case::with(Script::hello()).spawn();
        let line = format!(r#"{{"v":"1","type":"run.start",{field},"payload":{{"prompt":"Go","agent":"claude"}}}}"#);
        session.send_line(&line);
        let outcome = session.finish();
        outcome.completed();
        texts(&outcome, "unknown_field")
    };
    assert_eq!(start(r#""runid":"r""#), ["Ignored an unknown field of run.start: runid (did you mean run_id?)"]);
    assert_eq!(start(r#""run_id":"r","runid":"r""#), [""; 0]);
    assert_eq!(start(r#""x":1,"trace":{},"ids":[]"#), [""; 0]);
}

#[test]
fn a_misspelt_limit_is_refused_and_another_unknown_field_is_not() {
    let run = |fields: Value| {
        let mut session = Case::with(Script::hello()).spawn();
        session.start(fields);
        session.finish()
    };
    for (name, meant) in [
        ("max_turn", "max_turns"),
        ("timeout", "timeout_s"),
        ("budget", "max_cost_usd"),
        ("maxToolCalls", "max_tool_calls"),
    ] {
        let outcome = run(json!({"prompt": "Go", name: 7}));
        let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("no field `{name}`")), "{message}");
        assert!(message.ends_with(&format!("did you mean `{meant}`?")), "{message}");
        run(json!({"prompt": "Go", name: null})).completed();
    }
    run(json!({"prompt": "Go", "modle": "m", "trace": 7})).completed();
}

#[test]
fn a_command_that_does_not_use_a_known_field_says_so() {
    let warned = |fields: Value| {
        let mut session = Case::with(Script::hello()).spawn();
        session.start(fields);
        let outcome = session.finish();
        outcome.completed();
        texts(&outcome, "unknown_field")
    };
    let workflow = json!({"phases": ["a"]});
    assert_eq!(
        warned(json!({"workflow": workflow})),
        ["Ignored the field workflow of run.start: only spec, plan and implement use it"]
    );
    assert_eq!(
        warned(json!({"workflow": workflow, "modle": "m"})),
        [
            "Ignored an unknown field of run.start: modle (did you mean model?); and the field workflow, which only spec, \
          plan and implement use"
        ]
    );
    assert_eq!(warned(json!({"workflow": null})), [""; 0]);
}

#[test]
fn a_misspelt_field_of_an_answer_is_named() {
    let (mut session, id) = asked(asks(false));
    session.send("run.input", json!({"question_id": id, "vlaue": "Auth"}));
    session.send("run.input", json!({"quesion_id": id, "value": "Auth"}));
    session.send("run.input", json!({"promt": "And now?"}));
    session.send("run.input", json!({"question_id": id, "value_from": {"evn": "HOME"}}));
    session.send("run.input", json!({"question_id": id, "value": "Auth", "note": "mine"}));
    let outcome = session.finish();
    outcome.completed();
    let one = "An answer was ignored: give exactly one of `value`, `value_from` and `declined: true`. Ignored an unknown \
               field of run.input:";
    let no_id = "An answer was ignored: `question_id` must be a string. Ignored an unknown field of run.input:";
    assert_eq!(
        texts(&outcome, "invalid_answer"),
        [
            format!("{one} vlaue (did you mean value?)"),
            format!("{no_id} quesion_id (did you mean question_id?)"),
            format!("{no_id} promt (did you mean prompt?)"),
            format!("{one} value_from.evn (did you mean env?)"),
        ]
    );
}

/// The errors of a question after these bad answers.
fn errors(case: Case, bad: &[Value]) -> Vec<String> {
    let (mut session, id) = asked(case);
    let mut errors = Vec::new();
    for answer in bad {
        let mut payload = answer.clone();
        payload["question_id"] = id.clone();
        session.send("run.input", payload);
        errors.push(session.until("run.question").text("error").to_owned());
    }
    session.cancel();
    session.finish().cancelled();
    errors
}

#[test]
fn a_bad_answer_to_a_multiple_select_is_told_that_a_list_is_wanted() {
    let bad = [json!({"value": 7}), json!({"value": [1, false]}), json!({"value": {"a": 1}})];
    for error in errors(asks(true), &bad) {
        assert!(error.starts_with("Answer with a list of the options' values, labels or numbers"), "{error}");
        assert!(error.ends_with(", such as [1, 2]."), "{error}");
    }
}

#[test]
fn the_error_of_value_from_names_the_source_at_fault() {
    let bad = [json!({"value_from": {"env": "NOT_SET_ANYWHERE"}}), json!({"value_from": {"file": "not-there.txt"}})];
    let errors = errors(asks(false), &bad);
    assert!(errors[0].contains("value_from.env") && errors[0].contains("not set"), "{errors:?}");
    assert!(errors[1].contains("value_from.file") && errors[1].contains("Cannot read"), "{errors:?}");
}
