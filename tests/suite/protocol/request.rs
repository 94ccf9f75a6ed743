//! Tests of the fields of run.start: refusals, defaults, and their effect on the agent.

use crate::support;

use serde_json::{Map, Value, json};
use spektacular::protocol::request::Options;
use support::agent::{SESSION, Script, init};
use support::{Case, Outcome, RUN, run};

/// A part of every refused value, which no output may contain.
const BAD: &str = "zq-bad-7731";

fn start_with(payload: Value) -> Outcome {
    run(Case::with(Script::hello()), payload)
}

/// run.start fields with values that are of the wrong type or out of range.
fn refused() -> Vec<(&'static str, Value)> {
    let mut rows = Vec::new();
    let strings =
        ["prompt", "agent", "model", "effort", "mode", "system_prompt", "cwd", "session_id", "completion_marker"];
    rows.extend(strings.map(|f| (f, json!(-7731))));
    rows.extend(strings.map(|f| (f, json!([BAD]))));
    let bools = ["interactive", "question_markers", "raw_prompt", "fail_on_denied"];
    rows.extend(bools.map(|f| (f, json!(BAD))));
    rows.extend(bools.map(|f| (f, json!(-7731))));
    let lists = ["add_dirs", "allowed_tools", "disallowed_tools", "env_allow", "secrets", "agent_args"];
    rows.extend(lists.map(|f| (f, json!(BAD))));
    rows.extend(lists.map(|f| (f, json!([-7731]))));
    rows.extend(lists.map(|f| (f, json!({"0": BAD}))));
    let numbers = [
        "timeout_s",
        "start_timeout_s",
        "idle_timeout_s",
        "question_timeout_s",
        "tool_timeout_s",
        "max_turns",
        "max_cost_usd",
        "heartbeat_s",
        "max_frame_bytes",
    ];
    rows.extend(numbers.map(|f| (f, json!(BAD))));
    rows.extend(numbers.map(|f| (f, json!(-7731))));
    rows.extend(numbers.map(|f| (f, json!(true))));
    rows.extend([
        ("prompt", json!("")),
        ("agent", json!("")),
        ("agent", json!(BAD)),
        ("cwd", json!(format!("/nonexistent/{BAD}"))),
        ("cwd", json!("/etc/hostname")),
        ("permissions", json!(BAD)),
        ("permissions", json!(-7731)),
        ("permissions", json!({"read": BAD})),
        ("secrets", json!([BAD.repeat(6000)])),
        ("secrets", json!(vec![BAD.repeat(5000); 5])),
        ("secrets", json!([format!("{BAD}\n").repeat(1001)])),
        ("secrets", json!((0..1001).map(|n| format!("{BAD}-{n}")).collect::<Vec<_>>())),
        ("permissions", json!([BAD])),
        ("timeout_s", json!(0)),
        ("question_timeout_s", json!(0)),
        ("on_question_timeout", json!(BAD)),
        ("on_question_timeout", json!(-7731)),
        ("background", json!(BAD)),
        ("progress", json!(BAD)),
        ("progress", json!(-7731)),
        ("max_frame_bytes", json!(16 * 1024 - 1)),
        ("max_frame_bytes", json!(64 * 1024 * 1024 + 1)),
        ("mcp_servers", json!(BAD)),
        ("mcp_servers", json!([BAD])),
        ("env", json!([BAD])),
        ("env", json!({"NAME": -7731})),
        ("env", json!({"1NAME": BAD})),
        ("env", json!({"NA=ME": BAD})),
        ("env", json!({"": BAD})),
        ("env", json!({"NAME": format!("{BAD}\0")})),
        ("env", json!({"NAME": BAD.repeat(14_000)})),
        ("env_allow", json!(["NA=ME"])),
        ("secrets", json!([""])),
        ("agent_args", json!([format!("{BAD}\0")])),
        ("agent_args", json!([BAD.repeat(14_000)])),
        ("effort", json!(BAD.repeat(14_000))),
        ("output_schema", json!(BAD)),
        ("metadata", json!(BAD)),
        ("metadata", json!([BAD])),
        ("metadata", json!({"x": BAD.repeat(6_000)})),
    ]);
    rows
}

#[test]
fn a_field_of_the_wrong_type_or_range_is_refused_by_name_and_its_value_is_not_shown() {
    for (field, value) in refused() {
        let mut payload = json!({"prompt": "hi"});
        payload[field] = value.clone();
        let shown: String = format!("{field}: {value}").chars().take(80).collect();
        let outcome = start_with(payload);
        let terminal = outcome.terminal();
        assert_eq!((terminal.kind(), terminal.text("code")), ("run.failed", "invalid_request"), "{shown}");
        assert!(terminal.text("message").contains(field), "{shown}: {}", terminal.text("message"));
        assert_eq!(outcome.frames.len(), 1, "{shown}");
        assert_eq!(terminal["reply_to"], "start", "{shown}");
        assert_eq!(terminal["run_id"], RUN, "{shown}");
        assert!(!outcome.log().ran(), "{shown}: the agent was started");
        outcome.never_shows(BAD);
        outcome.never_shows("7731");
    }
}

#[test]
fn of_several_wrong_fields_the_one_is_named_that_is_checked_first() {
    let of_text = |run_id: &str, payload: &str| {
        let mut session = Case::with(Script::hello()).spawn();
        session.send_line(&format!(r#"{{"v":"1","type":"run.start","run_id":"{run_id}","payload":{payload}}}"#));
        let outcome = session.finish();
        let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
        message.split('`').nth(1).unwrap_or_else(|| panic!("no field in {message}")).to_owned()
    };
    let named = |run_id: &str, payload: Value| of_text(run_id, &payload.to_string());
    let long = "x".repeat(200_000);
    let mut wrong = json!({"cwd": "/nowhere/at/all", "agent": "nobody", "max_turns": 0, "timeout_s": -1,
        "effort": long});
    assert_eq!(named("a b", wrong.clone()), "run_id");
    // Among fields with a wrong type or range, the order in the message counts. They precede all other checks.
    assert_eq!(of_text("a", r#"{"agent":"nobody","timeout_s":-1,"max_turns":0}"#), "timeout_s");
    assert_eq!(of_text("a", r#"{"max_turns":0,"agent":"nobody","timeout_s":-1}"#), "max_turns");
    let fields = wrong.as_object_mut().unwrap();
    fields.remove("max_turns");
    fields.remove("timeout_s");
    for (field, good) in [("prompt", json!("hi")), ("agent", json!("claude")), ("cwd", json!("."))] {
        assert_eq!(named("a", wrong.clone()), field);
        wrong[field] = good;
    }
    assert_eq!(named("a", wrong), "effort");
}

#[test]
fn a_start_without_a_prompt_is_refused() {
    for line in [
        r#"{"v":"1","id":"start","type":"run.start","payload":{"agent":"claude"}}"#,
        r#"{"v":"1","id":"start","type":"run.start","payload":{}}"#,
        r#"{"v":"1","id":"start","type":"run.start"}"#,
    ] {
        let mut session = Case::with(Script::hello()).spawn();
        session.send_line(line);
        let outcome = session.finish();
        let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("prompt"), "{line}: {message}");
    }
}

#[test]
fn an_unknown_agent_is_answered_with_the_known_ones() {
    let outcome = start_with(json!({"agent": "nobody"}));
    let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
    let known: Vec<&str> = message.split("one of: ").nth(1).unwrap().split('.').next().unwrap().split(", ").collect();
    assert!(known.contains(&"claude") && known.len() > 4, "{message}");
    assert!(known.is_sorted(), "{message}");
}

#[test]
fn a_run_id_that_is_not_valid_is_refused_by_name() {
    for id in ["", "not valid", "ä", &"x".repeat(129), "a/b"] {
        let mut session = Case::with(Script::hello()).spawn();
        session.send_line(
            &json!({"v": "1", "id": "a", "type": "run.start", "run_id": id, "payload": {"prompt": "hi"}}).to_string(),
        );
        let outcome = session.finish();
        let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("run_id"), "{id:?}: {message}");
        assert!(outcome.frames[0]["run_id"].as_str().unwrap().starts_with("run_"));
    }
}

#[test]
fn run_ids_up_to_128_characters_are_used() {
    for id in ["a", "A.b_c:d-1", &"x".repeat(128)] {
        let mut session = Case::with(Script::hello()).spawn();
        session
            .send_line(&json!({"v": "1", "type": "run.start", "run_id": id, "payload": {"prompt": "hi"}}).to_string());
        let outcome = session.finish();
        outcome.completed();
        assert_eq!(outcome.frames[0]["run_id"], id);
    }
}

/// Whether two values are equal. 60 equals 60.0.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

#[track_caller]
fn assert_config(outcome: &Outcome, expected: &Map<String, Value>) {
    let config = &outcome.frames[0]["payload"]["config"];
    for (field, value) in expected {
        assert!(same(&config[field], value), "{field} is {} in place of {value}", config[field]);
    }
    let kept = ["prompt", "system_prompt", "output_schema", "env", "secrets", "mcp_servers", "metadata"];
    for field in kept {
        assert_eq!(config.get(field), None, "{field} must not be shown");
    }
}

#[test]
fn run_started_shows_the_defaults() {
    let outcome = start_with(json!({"system_prompt": "s", "env": {"A": "b"}, "secrets": ["a-long-secret"]}));
    outcome.completed();
    let expected = json!({
        "agent": "claude", "interactive": true, "permissions": "ask", "start_timeout_s": 60, "idle_timeout_s": 600,
        "question_timeout_s": 300, "on_question_timeout": "fail", "background": "wait", "progress": "normal", "heartbeat_s": 30,
        "max_frame_bytes": 262_144, "completion_marker": "<promise>COMPLETE</promise>", "question_markers": true,
        "raw_prompt": false, "fail_on_denied": false
    });
    assert_config(&outcome, expected.as_object().unwrap());
    // Every resolved field is shown, with null if it has no value.
    let config = &outcome.frames[0]["payload"]["config"];
    assert!(config["timeout_s"].is_null() && config["session_id"].is_null() && config["model"].is_null());
}

#[test]
fn run_started_shows_the_resolved_run_start() {
    let expected = json!({
        "agent": "claude", "model": "opus", "mode": "owl", "session_id": SESSION, "interactive": false,
        "permissions": {"read": "allow", "edit": "ask", "*": "deny"}, "allowed_tools": ["Read"],
        "disallowed_tools": ["WebFetch"], "timeout_s": 90.5, "start_timeout_s": 20, "idle_timeout_s": 0,
        "question_timeout_s": 0.5, "on_question_timeout": "continue", "background": "refuse", "progress": "full", "heartbeat_s": 0,
        "max_frame_bytes": 16384, "env_allow": ["HOME", "X_*"], "agent_args": ["--debug-file=x"],
        "completion_marker": "DONE", "question_markers": false, "raw_prompt": true, "fail_on_denied": true
    });
    let outcome = start_with(expected.clone());
    outcome.completed();
    assert_config(&outcome, expected.as_object().unwrap());
}

#[test]
fn the_ends_of_the_ranges_are_accepted() {
    for payload in [
        json!({"timeout_s": 1.5}),
        json!({"timeout_s": 1e308}),
        json!({"heartbeat_s": 0}),
        json!({"idle_timeout_s": 0}),
        json!({"max_frame_bytes": 16 * 1024}),
        json!({"max_frame_bytes": 64 * 1024 * 1024}),
        json!({"metadata": {"x": "y".repeat(60_000)}}),
        json!({"permissions": {}}),
        json!({"secrets": []}),
        json!({"env": {}}),
    ] {
        start_with(payload).completed();
    }
}

#[test]
fn model_tools_and_arguments_reach_the_agents_command_line() {
    let outcome = start_with(json!({
        "model": "a-model", "allowed_tools": ["Read", "Bash"], "disallowed_tools": ["WebFetch", "Bash(rm *)"],
        "agent_args": ["--odd-flag", "a value"], "system_prompt": "be brief", "add_dirs": ["/tmp"]
    }));
    outcome.completed();
    let argv = outcome.log().argv();
    let joined = argv.join("\n");
    for word in ["a-model", "--tools=Read,Bash", "--disallowedTools=Bash(rm *)", "WebFetch", "be brief", "/tmp"] {
        assert!(joined.contains(word), "{word} in {argv:?}");
    }
    assert!(argv.ends_with(&["--odd-flag".to_owned(), "a value".to_owned()]), "{argv:?}");
    assert!(outcome.warnings("unsupported_option").is_empty());
}

#[test]
fn an_unsupported_option_is_a_warning_and_never_dropped_silently() {
    let rows = [
        ("effort", json!("rare-effort"), "rare-effort"),
        ("mode", json!("rare-mode"), "--agent=rare-mode"),
        ("max_turns", json!(7731), "7731"),
        ("max_cost_usd", json!(77.31), "77.31"),
        ("mcp_servers", json!([{"name": "rare-server", "command": "/bin/true", "args": [], "env": {}}]), "rare-server"),
    ];
    for (field, value, word) in rows {
        let mut payload = json!({});
        payload[field] = value;
        let outcome = start_with(payload);
        outcome.completed();
        let log = outcome.log();
        let files: String = log.argv().iter().map(|a| support::read(a.as_ref())).collect();
        let reached = [log.argv().join(" "), log.text("stdin"), log.text("environ"), files].concat().contains(word);
        let warned = outcome.warnings("unsupported_option").iter().any(|f| f.text("text").contains(field));
        assert!(reached != warned, "{field}: reached the agent: {reached}, warned: {warned}");
    }
}

/// Claude Code itself silently continues with an unknown name.
#[test]
fn a_mode_that_the_agent_does_not_have_fails_the_run_and_names_those_it_has() {
    let mut session = init();
    session["agents"] = json!(["general", "owl", "odd name"]);
    let script = || Script::bare().sh("prompt").out(&session).say("msg_1", "Hello").done("Hello");
    run(Case::with(script()), json!({"mode": "owl"})).completed();
    let outcome = run(Case::with(script()), json!({"mode": "heron"}));
    let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "The agent does not have this mode: check `mode`. Its modes are: general, owl.");
}

#[test]
fn a_bad_flag_ends_in_a_frame_too() {
    for args in [&["--no-such-flag"][..], &["--on-eof", BAD][..]] {
        let mut session = Case::with(Script::hello()).args(args).spawn();
        session.close_stdin();
        let outcome = session.finish();
        outcome.failed("usage");
        assert_eq!(outcome.frames.len(), 1);
    }
}

#[test]
fn the_environment_of_the_agent_is_that_of_its_driver() {
    let outcome = run(Case::with(Script::hello()).env("CLAUDECODE", "1"), json!({}));
    outcome.completed();
    assert_eq!(outcome.log().env("CLAUDECODE"), None, "an agent inside an agent");
}

/// The text of the one warning about unknown fields.
#[track_caller]
fn unknown_fields(outcome: &Outcome) -> String {
    let found = outcome.warnings("unknown_field");
    assert_eq!(found.len(), 1, "{}", outcome.stdout);
    assert_eq!(found[0]["reply_to"], "start");
    found[0].text("text").to_owned()
}

#[test]
fn unknown_fields_are_ignored_with_one_warning_that_names_them() {
    let outcome = start_with(json!({"modle": BAD, "efort": BAD, "zzz": {"model": BAD}, "session-id": BAD}));
    outcome.completed();
    let wanted = "Ignored 4 unknown fields of run.start: efort (did you mean effort?), modle (did you mean model?), \
                  session-id (did you mean session_id?), zzz";
    assert_eq!(unknown_fields(&outcome), wanted);
    assert_eq!(outcome.frames[0].kind(), "run.started");
    outcome.never_shows(BAD);
    assert_eq!(outcome.stderr, "");

    let outcome = start_with(json!({"promt": 1}));
    assert_eq!(unknown_fields(&outcome), "Ignored an unknown field of run.start: promt (did you mean prompt?)");
    assert!(start_with(json!({})).warnings("unknown_field").is_empty());
}

#[test]
fn an_unknown_field_is_named_whatever_its_characters_and_length() {
    let long = "x".repeat(64);
    for (field, shown) in [
        ("session-id".to_owned(), "session-id (did you mean session_id?)".to_owned()),
        ("session.id".to_owned(), "session.id (did you mean session_id?)".to_owned()),
        ("a b/\u{202e}\n\u{1b}é".to_owned(), "a?b?????".to_owned()),
        (String::new(), "\"\"".to_owned()),
        (format!("{long}yz"), long.clone()),
        ("é".repeat(70), "?".repeat(64)),
    ] {
        let outcome = start_with(json!({field.as_str(): BAD}));
        outcome.completed();
        assert_eq!(unknown_fields(&outcome), format!("Ignored an unknown field of run.start: {shown}"), "{field:?}");
        outcome.never_shows(BAD);
    }
}

#[test]
fn unknown_fields_elsewhere_are_ignored_silently() {
    let mut session = Case::with(Script::hello()).spawn();
    session.send_line(
        r#"{"v":"1","id":"start","type":"run.start","extra":1,"payload":{"prompt":"hi","mcp_servers":[{"name":"a","command":"b","extra":1}]}}"#,
    );
    session.send_line(r#"{"v":"1","type":"run.cancel","extra":1,"payload":{"raeson":"x"}}"#);
    assert!(session.finish().warnings("unknown_field").is_empty());
}

#[test]
fn an_unknown_field_of_a_refused_start_is_reported_on_stderr() {
    let outcome = start_with(json!({"modle": BAD, "timeout_s": -1}));
    outcome.failed("invalid_request");
    assert_eq!(outcome.frames.len(), 1);
    let line = "spektacular: warning: Ignored an unknown field of run.start: modle (did you mean model?)\n";
    assert!(outcome.stderr.starts_with(line), "{}", outcome.stderr);
    outcome.never_shows(BAD);
}

#[test]
fn a_secret_that_is_a_fields_name_is_hidden() {
    let token = format!("ghp_{}", "Ab1".repeat(12));
    let outcome = start_with(json!({token.as_str(): 1}));
    assert_eq!(unknown_fields(&outcome), "Ignored an unknown field of run.start: [redacted]");
    outcome.never_shows(&token);
    // Neither the cut nor the replacement of a character may hide a secret from the search for secrets.
    let (long, odd) = (format!("zq{}", "Ab1-".repeat(20)), "pass word 77!");
    let outcome = start_with(json!({long.as_str(): 1, odd: 1, "secrets": [long, odd]}));
    assert_eq!(unknown_fields(&outcome), "Ignored 2 unknown fields of run.start: [redacted], [redacted]");
}

#[test]
fn very_many_unknown_fields_cost_little_and_are_counted() {
    let fields: String = (0..300_000).map(|n| format!("\"unknown_{n}\":1,")).collect();
    let mut session = Case::with(Script::hello()).spawn();
    session.send_line(&support::start_line(&format!("{{{fields}\"prompt\":\"hi\",\"max_frame_bytes\":16384}}")));
    let outcome = session.finish();
    outcome.completed();
    let text = unknown_fields(&outcome);
    assert!(text.starts_with("Ignored 300000 unknown fields of run.start: unknown_0, "), "{text}");
    assert!(text.ends_with(", and 299950 more") && text.len() < 8000, "{}", text.len());
    let frame = outcome.warnings("unknown_field")[0].payload().clone();
    assert_eq!(frame.get("truncated"), None, "the warning fits the smallest frame");
}

#[test]
fn null_is_the_same_as_an_absent_field() {
    let all: Map<String, Value> = Options::NAMES.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
    let mut payload = Value::Object(all);
    payload["prompt"] = json!("hi");
    let (null, absent) = (start_with(payload), start_with(json!({})));
    null.completed();
    // The two agents work in folders of their own.
    let config = |outcome: &Outcome| {
        let mut config = outcome.frames[0]["payload"]["config"].clone();
        config["cwd"].take();
        config
    };
    assert_eq!(config(&null), config(&absent));
    assert_eq!(null.frames[0]["payload"]["metadata"], json!({}));
    assert!(null.progress("warning").is_empty());
    let servers = json!([{"name": "a", "command": "/bin/true", "args": null, "env": null}]);
    start_with(json!({"mcp_servers": servers})).completed();

    let message = start_with(json!({"prompt": null})).failed("invalid_request")["message"].clone();
    assert_eq!(message, "run.start: `prompt` must be a non-empty string.");
    for payload in [r#"{"prompt":"hi","model":null,"model":"x"}"#, r#"{"prompt":"hi","model":null,"model":null}"#] {
        let mut session = Case::with(Script::hello()).spawn();
        session.send_line(&support::start_line(payload));
        session.finish().failed("invalid_message");
    }
    // Neither a flag nor a file overrides it.
    let outcome = run(Case::with(Script::hello()).args(&["--model", "m"]), json!({"model": null}));
    assert_eq!(outcome.frames[0]["payload"]["config"]["model"], "m");
}

#[test]
fn servers_by_name_are_accepted_only_from_a_person() {
    let outcome = start_with(json!({"mcp_servers": {"mcpServers": {"a": {"command": "x"}}}}));
    let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`mcp_servers` must be a list"), "{message}");
}

#[test]
fn a_key_that_is_not_text_is_ignored_like_an_unknown_one() {
    let mut session = Case::with(Script::asks_bash()).spawn();
    let start =
        r#"{"v":"1","\ud800":1,"id":"start","type":"run.start","run_id":"run-under-test","\udfff\ud800":{"\ud800":1},"#;
    session.send_line(&format!(r#"{start}"payload":{{"prompt":"go","\ud800":[],"metadata":{{"\udc00":1}}}}}}"#));
    let question = session.until("run.question");
    let id = question["payload"]["question_id"].as_str().unwrap().to_owned();
    session.send_line(&format!(
        r#"{{"v":"1","type":"run.input","\ud800x":0,"payload":{{"question_id":"{id}","value":"deny","\ud8":1}}}}"#
    ));
    session.until_warning("malformed_message");
    session.send_line(&format!(
        r#"{{"v":"1","type":"run.input","\ud800x":0,"payload":{{"question_id":"{id}","value":"deny","\ud800":1}}}}"#
    ));
    session.finish().completed();
}

#[test]
fn the_secrets_of_a_servers_environment_have_a_limit() {
    let many: Map<String, Value> =
        (0..40).map(|n| (format!("KEY_{n}"), json!(format!("{n}-{}", "abcdefghi\n".repeat(30))))).collect();
    let server = |n: usize| json!({"name": format!("s{n}"), "command": "x", "env": many});
    for (field, value) in [("mcp_servers", json!([server(1), server(2)])), ("env", json!(many))] {
        let outcome = run(Case::with(Script::hello()), json!({field: value}));
        let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(field) && message.contains("1000 lines"), "{message}");
    }
    let plain: Map<String, Value> = (0..40).map(|n| (format!("V_{n}"), json!("a\n".repeat(300)))).collect();
    run(Case::with(Script::hello()), json!({ "env": plain })).completed();
}
