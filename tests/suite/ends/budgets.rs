//! Limits of a run: counted by what the agent reports, kept by the agent, or refused before it starts.

use crate::support;

use serde_json::{Value, json};
use std::fs;
use support::agent::{SESSION, Script};
use support::{Case, Outcome, run};

/// The run stopped its agent because of this field.
#[track_caller]
fn reached(outcome: &Outcome, field: &str) {
    let failed = outcome.failed("limit_reached");
    assert_eq!(failed["detail"]["limit"], field, "{failed}");
    assert!(failed["message"].as_str().unwrap().contains(field), "{failed}");
}

/// Three reads, one after the other.
fn three_reads() -> Script {
    let read = |script: Script, at: u32| {
        script.tool(&format!("toolu_{at}"), "Read", &json!({"file_path": format!("{at}.txt")}), "text")
    };
    (1..=3).fold(Script::new(), read).done("Read.")
}

fn event(event: &Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null, "session_id": SESSION})
}

/// The events that begin and end a streamed response, with its tokens.
fn response(script: Script, input: u64, output: u64) -> Script {
    let usage = json!({"input_tokens": input, "cache_read_input_tokens": 10, "output_tokens": 1});
    let script = script.out(&event(&json!({"type": "message_start", "message": {"id": "msg", "usage": usage}})));
    script.out(&event(&json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": output}})))
}

#[test]
fn one_tool_call_too_many_stops_the_agent() {
    let outcome = run(Case::with(three_reads()), json!({"max_tool_calls": 2}));
    reached(&outcome, "max_tool_calls");
    let began = outcome.progress("tool").into_iter().filter(|frame| frame.text("state") == "started").count();
    assert_eq!(began, 3, "the call that passes the limit is shown, and ends with the run");
    run(Case::with(three_reads()), json!({"max_tool_calls": 3})).completed();
}

#[test]
fn tokens_count_before_the_turn_ends() {
    let script = || {
        let script = response(Script::new(), 40, 50).tool("toolu_1", "Read", &json!({"file_path": "a"}), "text");
        response(script, 40, 60).sh("if [ -n \"$HANG\" ]; then listen; fi").done("Read.")
    };
    // 40 + 10 cached + 50, and 40 + 10 + 60.
    reached(&run(Case::with(script()).env("HANG", "1"), json!({"max_tokens": 209})), "max_tokens");
    let outcome = run(Case::with(script()), json!({"max_tokens": 210}));
    outcome.completed();
    assert!(outcome.log().argv().contains(&"--include-partial-messages".to_owned()));
}

#[test]
fn an_excluded_tool_that_did_its_work_stops_the_agent() {
    for (field, tools) in [("allowed_tools", json!(["Glob"])), ("disallowed_tools", json!(["Read"]))] {
        let mut payload = json!({});
        payload[field] = tools;
        reached(&run(Case::with(three_reads()), payload), field);
    }
    // The agent itself refused the call, so the limit was kept.
    let refused = Script::new().tool_use("toolu_1", "Write", &json!({"file_path": "a"}));
    let refused = refused.out(&json!({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result",
        "tool_use_id": "toolu_1", "is_error": true, "content": "<tool_use_error>Error: No such tool available: Write</tool_use_error>"}]}}));
    run(Case::with(refused.done("Sorry.")), json!({"allowed_tools": ["Glob"]})).completed();
}

#[test]
fn a_limit_that_nobody_keeps_is_refused_before_the_agent_starts() {
    let case = || {
        let case = Case::new();
        fs::create_dir_all(case.path("home/.config/spektacular")).unwrap();
        let entry = json!({"driver": "lines", "command": "sh", "args": ["-c", "echo hi >started; echo done"]});
        let config = json!({"agent": "cmd", "agents": {"cmd": entry}});
        fs::write(case.path("home/.config/spektacular/config.json"), config.to_string()).unwrap();
        case
    };
    for (field, value, instead) in [
        ("max_turns", json!(3), "`timeout_s`"),
        ("max_tool_calls", json!(3), "`timeout_s`"),
        ("max_tokens", json!(3), "`timeout_s`"),
        ("max_cost_usd", json!(1.5), "`timeout_s`"),
        ("allowed_tools", json!(["x"]), "another agent"),
        ("disallowed_tools", json!(["x"]), "another agent"),
        ("mcp_servers", json!([{"name": "x", "command": "y"}]), "the agent's own configuration"),
    ] {
        let mut payload = json!({});
        payload[field] = value;
        let outcome = run(case(), payload.clone());
        let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
        for part in [&format!("`{field}`"), "the agent cmd", instead, "`on_unsupported`"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(!outcome.case().path("work/started").exists(), "{field}: the agent started");
        payload["on_unsupported"] = json!("warn");
        let outcome = run(case(), payload);
        outcome.completed();
        assert!(
            outcome.warnings("unsupported_option").iter().any(|frame| frame.text("text").contains(field)),
            "{field}"
        );
    }
    let codex = Case::new().run(&["adhoc", "--dry-run", "-a", "codex", "--max-cost-usd", "1"]);
    assert!(codex.refused(2).contains("use --max-tokens"), "{}", codex.err);
}
