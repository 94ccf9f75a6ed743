//! Tests of structured results: the schema, Claude Code's own mode, and agents that cannot correct a result. The suite of
//! real agents and `every_agent` cover the other agents.

use crate::support::agent::{Script, error_result, success};
use crate::support::{Case, run};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({"type": "object", "properties": {"otters": {"type": "integer"}}, "required": ["otters"]})
}

/// The result line of a turn with this structured output.
fn structured(output: Value) -> Value {
    let mut line = success("done");
    line["structured_output"] = output;
    line
}

#[test]
fn what_is_not_a_schema_is_refused_before_an_agent_starts() {
    for (schema, named) in [
        (json!({"type": "rare-otter"}), "whose `type` names JSON types"),
        (json!({"properties": {"rare-otter": 1}}), "in which each schema is an object or a boolean"),
        (json!({"$ref": "#/$defs/rare-otter"}), "whose $ref names a schema in it"),
        (json!({"$ref": "#"}), "in which no schema refers to itself for the same value"),
        (json!([]), "an object"),
    ] {
        let outcome = run(Case::with(Script::hello()), json!({"output_schema": schema}));
        let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("run.start: `output_schema` must be ") && message.contains(named), "{message}");
        assert!(!message.contains("rare-otter") && !outcome.log().ran(), "{message}");
    }
}

#[test]
fn claude_checks_the_schema_itself_and_then_so_do_we() {
    // The mode of its own gives up after three attempts.
    let script = Script::new().out(&structured(json!({"otters": "many"}))).sh("prompt");
    let outcome =
        run(Case::with(script.out(&structured(json!({"otters": 7}))).sh("listen")), json!({"output_schema": schema()}));
    assert_eq!(outcome.completed()["structured_output"], json!({"otters": 7}));
    let log = outcome.log();
    assert!(log.argv().iter().any(|arg| arg.starts_with("--json-schema=")), "{:?}", log.argv());
    assert_eq!(log.env("MAX_STRUCTURED_OUTPUT_RETRIES").as_deref(), Some("3"));
    assert!(log.prompts()[1].contains("- /otters: must be of the type integer (type)\n"), "{:?}", log.prompts());
    let error = "Failed to provide valid structured output after 3 attempts — last StructuredOutput error: Output does not \
                 match required schema: /otters: must be integer, root: must have required property 'name'";
    let failed = error_result(json!({"subtype": "error_max_structured_output_retries", "errors": [error]}));
    let outcome = run(Case::with(Script::new().out(&failed).sh("listen")), json!({"output_schema": schema()}));
    let violations = json!([{"path": "/otters", "text": "must be integer"},
        {"path": "", "text": "must have required property 'name'"}]);
    assert_eq!(outcome.failed("result_invalid")["detail"]["violations"], violations);
}

#[test]
fn a_schema_that_allows_no_object_is_told_in_the_prompt() {
    let schema = json!({"type": "array", "items": {"type": "string", "maxLength": 20}});
    let mut answer = success("[\"hunter2-Zq7731\"]");
    answer["structured_output"] = Value::Null;
    let case = Case::with(Script::new().out(&answer).sh("listen"));
    let outcome = run(case, json!({"output_schema": schema, "secrets": ["hunter2-Zq7731"]}));
    assert_eq!(outcome.completed()["structured_output"], json!(["[redacted]"]));
    assert!(
        outcome.log().prompts()[0].contains(
            r#"that fits this JSON Schema:
{"items":{"maxLength":20,"type":"string"},"type":"array"}"#
        ),
        "{:?}",
        outcome.log().prompts()
    );
    assert!(!outcome.log().argv().iter().any(|arg| arg.starts_with("--json-schema")));
}

#[test]
fn an_agent_that_takes_no_further_turn_fails_at_once() {
    let outcome =
        run(Case::with(Script::hello()), json!({"agent": "demo", "interactive": false, "output_schema": schema()}));
    assert_eq!(outcome.failed("result_invalid")["detail"]["violations"][0]["path"], "");
}

#[test]
fn the_names_in_violations_are_redacted_and_their_number_is_limited() {
    let wrong: Value =
        (0..30).map(|n| (format!("hunter2-Zq7731-{n}"), json!(n))).collect::<serde_json::Map<_, _>>().into();
    let error = structured(wrong);
    let again = |script: Script| script.out(&error).sh("prompt");
    let script = again(again(Script::new())).out(&error).sh("listen");
    let payload = json!({"output_schema": {"additionalProperties": {"type": "string"}}, "secrets": ["hunter2-Zq7731"]});
    let outcome = run(Case::with(script), payload);
    let violations = &outcome.failed("result_invalid")["detail"]["violations"];
    assert_eq!(violations.as_array().unwrap().len(), 20);
    assert_eq!(violations[0], json!({"path": "/[redacted]-0", "text": "must be of the type string (type)"}));
}

#[test]
fn a_person_gets_the_result_alone_on_stdout() {
    let schema = schema().to_string();
    let args = ["--output-schema", schema.as_str(), "Count"];
    let output = structured(json!({"otters": 7, "names": ["a b"]}));
    let script = || Script::new().say("msg_1", "I count.").say("msg_2", "Seven otters.").out(&output).sh("listen");
    // The exit code, stdout and stderr.
    let told = |script: Script, args: &[&str]| {
        let done = Case::with(script).cli(args);
        let [stdout, stderr] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (done.status.code(), stdout, stderr)
    };
    let line = "{\"names\":[\"a b\"],\"otters\":7}\n".to_owned();
    let (code, stdout, stderr) = told(script(), &args);
    assert_eq!((code, &stdout), (Some(0), &line));
    assert!(stderr.contains("I count.\nSeven otters.\n"), "{stderr}");
    assert_eq!(told(script(), &[&["--quiet"], &args[..]].concat()), (Some(0), line, String::new()));
    let bad = |script: Script| script.out(&structured(json!({}))).sh("prompt");
    let script = bad(bad(Script::new())).out(&structured(json!({"otters": "x"}))).sh("listen");
    let (code, stdout, stderr) = told(script, &args);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("\n  /otters: must be of the type integer (type)\n"), "{stderr}");
}
