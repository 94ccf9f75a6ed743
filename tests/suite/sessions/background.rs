//! Tests of the agent's own life: work that outlives its turn, and turns that it begins by itself.

use crate::support::agent::{Script, init, quote, tool_result};
use crate::support::{Case, Frame, Session};
use serde_json::{Value, json};

/// The running tasks, as Claude Code lists them.
fn tasks(names: &[&str]) -> Value {
    let task = |name: &&str| json!({"task_id": name, "task_type": "local_bash", "description": name});
    let tasks: Vec<Value> = names.iter().map(task).collect();
    json!({"type": "system", "subtype": "background_tasks_changed", "tasks": tasks})
}

fn told_over(name: &str) -> Value {
    json!({"type": "system", "subtype": "task_notification", "task_id": name, "status": "completed"})
}

fn state(state: &str) -> Value {
    json!({"type": "system", "subtype": "session_state_changed", "state": state})
}

fn lifecycle(state: &str, uuid: &str) -> String {
    let line = json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state});
    format!("out {}", quote(&line.to_string()).replace("UUID", "'\"$uuid\"'"))
}

/// Leaves a task behind its first turn.
fn leaves(name: &str) -> Script {
    Script::new().out(&tasks(&[name])).say("msg_1", "One").result("One").out(&state("idle"))
}

/// The end of a task, and the turn that follows.
fn reports(script: Script, name: &str) -> Script {
    let ended = script.out(&told_over(name)).out(&tasks(&[])).out(&state("running"));
    ended.out(&init()).say("msg_2", "Two").result("Two").out(&state("idle"))
}

fn statuses(frames: &[Frame]) -> Vec<&str> {
    frames.iter().filter(|frame| frame.is_progress("status")).map(|frame| frame.text("status")).collect()
}

fn turns(frames: &[Frame]) -> Vec<(&str, &Value, &str)> {
    let turns = frames.iter().filter(|frame| frame.is_progress("turn"));
    turns.map(|turn| (turn.text("origin"), &turn.payload()["prompt_id"], turn.text("final_text"))).collect()
}

#[track_caller]
fn begin(script: Script, mut payload: Value) -> Session {
    let mut session = Case::with(script).spawn();
    payload["prompt"] = json!("go");
    session.start(payload);
    session
}

#[test]
fn a_run_waits_for_work_in_the_background_and_for_the_turn_that_follows() {
    let session = begin(reports(leaves("build"), "build").sh(r#"listen "$@""#), json!({}));
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "Two");
    assert_eq!(statuses(&outcome.frames), ["starting", "running", "waiting_for_agent", "running"]);
    assert!(outcome.warnings("background_stopped").is_empty());
    assert!(!outcome.log().argv().iter().any(|arg| arg.contains("ScheduleWakeup")), "{:?}", outcome.log().argv());
}

#[test]
fn work_that_the_agent_has_reported_within_its_turn_needs_no_further_one() {
    let script = Script::new().out(&tasks(&["build"])).out(&told_over("build")).out(&tasks(&[]));
    let script = script.say("msg_1", "One").result("One").out(&state("idle"));
    let outcome = begin(script.sh(r#"listen "$@""#), json!({})).finish();
    assert_eq!(outcome.completed()["text"], "One");
    assert_eq!(statuses(&outcome.frames), ["starting", "running", "waiting_for_agent"]);
    assert!(outcome.warnings("background_stopped").is_empty());
}

#[test]
fn a_scheduled_turn_is_waited_for() {
    let script = Script::new().tool_use("toolu_1", "ScheduleWakeup", &json!({"delaySeconds": 60}));
    let set = json!({"scheduledFor": 5, "clampedDelaySeconds": 60, "wasClamped": false});
    let result = tool_result("toolu_1", "set", set);
    let fired = json!({
        "type": "command_lifecycle", "command_uuid": "w", "state": "started", "wakeup_source": "loop_wakeup",
        "scheduled_for": 5
    });
    let script = script.out(&result).say("msg_1", "One").result("One").out(&state("idle")).out(&fired);
    let script = script.out(&init()).say("msg_2", "Two").result("Two").sh(r#"listen "$@""#);
    let outcome = begin(script, json!({})).finish();
    assert_eq!(outcome.completed()["text"], "Two");
}

#[test]
fn work_that_ends_with_the_run_is_named() {
    let endless = leaves("dev server").sh(r#"listen "$@""#);
    let mut session = begin(endless.clone(), json!({}));
    session.until_status("waiting_for_agent");
    session.send("run.cancel", json!({}));
    let outcome = session.finish();
    outcome.cancelled();
    let [warning] = &outcome.warnings("background_stopped")[..] else { panic!("not one warning") };
    assert!(warning.text("text").ends_with(": dev server"), "{}", warning.text("text"));

    let outcome = begin(endless.clone(), json!({"background": "refuse"})).finish();
    assert_eq!(outcome.completed()["text"], "One");
    assert_eq!(outcome.warnings("background_stopped").len(), 1);
    for tool in ["Monitor", "ScheduleWakeup", "CronCreate", "Workflow"] {
        assert!(outcome.log().argv().contains(&format!("--disallowedTools={tool}")), "{tool}");
    }
    assert_eq!(outcome.log().env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS").as_deref(), Some("1"));

    let outcome = begin(endless, json!({"timeout_s": 0.5})).finish();
    outcome.failed("timeout");
}

#[test]
fn a_turn_that_the_agent_begins_is_a_turn_of_the_conversation() {
    // The agent's own turn begins once a file of the test's is there.
    let script = leaves("build").sh(r#"while [ ! -e "$D/go" ]; do sleep 0.02; done"#);
    let script = reports(script, "build").sh("prompt").out(&init()).say("msg_3", "Three").done("Three");
    let mut session = begin(script, json!({"conversation": true}));
    session.until_status("waiting_for_prompt");
    std::fs::write(session.log().path("go"), "").unwrap();
    session.until_where("the agent's turn", |frame| frame.is_progress("turn") && frame["payload"]["turn"] == 2);
    session.send("run.input", json!({"prompt": "And now?"}));
    session.send("run.input", json!({"end": true}));
    let outcome = session.finish();
    let null = Value::Null;
    let third = json!("p_1");
    let expected = [("prompt", &null, "One"), ("agent", &null, "Two"), ("prompt", &third, "Three")];
    assert_eq!(turns(&outcome.frames), expected);
    assert_eq!(outcome.completed()["turns"], 3);
}

#[test]
fn a_prompt_that_meets_a_turn_of_the_agents_gets_a_turn_of_its_own() {
    let mut first = init();
    first["capabilities"] = json!(["msg_lifecycle_v1", "interrupt_cancel_queued_v1"]);
    let uuid = r#"uuid=${line#*'"uuid":"'}; uuid=${uuid%%'"'*}"#;
    let script = Script::bare().sh("prompt").out(&first).out(&tasks(&["build"])).say("msg_1", "One").result("One");
    // The prompt is on its way when the agent begins a turn by itself.
    let script = reports(script.sh("prompt").sh(uuid), "build").sh(&lifecycle("started", "UUID"));
    let script = script.out(&init()).say("msg_3", "Three").done("Three");
    let mut session = begin(script, json!({"conversation": true}));
    session.until_status("waiting_for_prompt");
    session.send("run.input", json!({"prompt": "And now?"}));
    session.until_where("the prompt's turn", |frame| frame.is_progress("turn") && frame["payload"]["turn"] == 3);
    session.send("run.input", json!({"end": true}));
    let outcome = session.finish();
    let (null, third) = (Value::Null, json!("p_1"));
    let expected = [("prompt", &null, "One"), ("agent", &null, "Two"), ("prompt", &third, "Three")];
    assert_eq!(turns(&outcome.frames), expected);
}
