//! Tests every way to stop a run: run.cancel, signals, deadlines, the end of stdin. Some agents resist.

use crate::length::by_length;
use crate::support;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use support::agent::{Script, bash, can_use, init};
use support::{Case, Outcome, Session, slack, start_line};

/// The maximum time from the first stop to the exit of the program.
const STOP: Duration = Duration::from_secs(4);

/// An agent that talks and then listens.
fn talker() -> Script {
    Script::new().say("msg_1", "working on it").sh("listen")
}

/// An agent that ignores the interrupt, the end of stdin and SIGTERM.
fn stubborn() -> Script {
    Script::bare()
        .sh("trap '' TERM INT HUP\naborted() { :; }\nleave() { while :; do sleep 1; done; }")
        .sh(&format!("prompt\nout {}", support::agent::quote(&init().to_string())))
        .say("msg_1", "working on it")
        .sh("listen")
}

fn working(script: Script, payload: Value) -> Session {
    let mut session = Case::with(script).spawn();
    session.start(payload);
    session.until_text("working on it");
    session
}

#[track_caller]
fn assert_cancelled(outcome: &Outcome, source: &str) {
    assert_eq!(outcome.cancelled()["source"], source);
    assert_eq!(outcome.exit_code, Some(0));
}

#[test]
fn a_cancel_before_the_start_ends_at_once() {
    let mut session = Case::with(Script::hello()).spawn();
    session
        .send_line(r#"{"v":"1","id":"c","type":"run.cancel","run_id":"r-9","payload":{"reason":"changed my mind"}}"#);
    let outcome = session.finish();
    assert_cancelled(&outcome, "orchestrator");
    assert_eq!(outcome.frames.len(), 1);
    assert_eq!(outcome.terminal()["payload"]["reason"], "changed my mind");
    assert_eq!(outcome.terminal()["reply_to"], "c");
    assert_eq!(outcome.terminal()["run_id"], "r-9");
    assert!(!outcome.log().ran());
}

#[test]
fn a_cancel_without_reason_or_payload_is_a_cancel() {
    for line in [r#"{"v":"1","type":"run.cancel"}"#, r#"{"v":"1","type":"run.cancel","payload":{}}"#] {
        let mut session = working(talker(), json!({}));
        session.send_line(line);
        assert_cancelled(&session.finish(), "orchestrator");
    }
}

#[test]
fn a_cancel_while_the_agent_works_uses_the_agents_own_interrupt() {
    let mut session = working(talker(), json!({}));
    let id = session.cancel();
    assert_eq!(session.until_status("cancelling")["reply_to"], json!(id));
    let outcome = session.finish();
    assert_cancelled(&outcome, "orchestrator");
    assert_eq!(outcome.terminal()["payload"]["reason"], "enough");
    assert!(outcome.log().noted("interrupt"), "its own interrupt comes first");
}

#[test]
fn a_cancel_withdraws_the_open_question_at_once() {
    let mut session = Case::with(Script::asks_bash()).spawn();
    session.start(json!({}));
    let asked = session.until("run.question");
    session.cancel();
    let resolved = session.until_progress("question_resolved");
    assert_eq!(resolved.text("resolution"), "withdrawn");
    assert_eq!(resolved.text("question_id"), asked.text("question_id"));
    let outcome = session.finish();
    assert_cancelled(&outcome, "orchestrator");
    assert!(outcome.log().answers().iter().all(|(_, a)| a["behavior"] != "allow"));
}

#[test]
fn after_a_cancel_no_question_is_asked() {
    let ask = can_use("req-1", "toolu_1", "Bash", &bash("touch a.txt")).to_string();
    let script = Script::new()
        .sh(&format!("aborted() {{ accept; out {}; out \"$ABORTED\"; listen; }}", support::agent::quote(&ask)))
        .say("msg_1", "working on it")
        .sh("listen");
    let mut session = working(script, json!({}));
    session.cancel();
    let outcome = session.finish();
    assert_cancelled(&outcome, "orchestrator");
    assert!(outcome.of_type("run.question").is_empty());
}

#[test]
fn a_cancel_after_the_result_only_hurries_the_end() {
    // The end of the session proves that the agent's result was read.
    let script = Script::new()
        .say("msg_1", "ok")
        .sh("leave() { note told_to_go; trap '' TERM; while :; do sleep 1; done; }")
        .done("ok");
    let mut session = Case::with(script).spawn();
    session.start(json!({}));
    session.until_text("ok");
    session.wait_note("told_to_go");
    session.cancel();
    let cancelled = Instant::now();
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "ok");
    assert!(outcome.ended - cancelled < STOP + slack());
}

#[test]
fn a_second_cancel_changes_nothing() {
    let mut session = working(talker(), json!({}));
    session.cancel();
    session.send("run.cancel", json!({"reason": "again"}));
    let outcome = session.finish();
    assert_cancelled(&outcome, "orchestrator");
    assert_eq!(outcome.terminal()["payload"]["reason"], "enough");
}

#[test]
fn an_agent_that_ignores_everything_is_killed_within_the_ladder() {
    let mut session = working(stubborn(), json!({}));
    let asked = Instant::now();
    session.cancel();
    let outcome = session.finish();
    assert_cancelled(&outcome, "orchestrator");
    assert!(outcome.ended - asked < STOP + slack(), "{:?}", outcome.ended - asked);
}

#[test]
fn an_agent_that_ignores_its_interrupt_is_stopped_by_sigterm() {
    let script = Script::new().sh("aborted() { :; }\nleave() { while :; do sleep 1; done; }");
    let mut session = working(script.say("msg_1", "working on it").sh("listen"), json!({}));
    let asked = Instant::now();
    session.cancel();
    let outcome = session.finish();
    assert_cancelled(&outcome, "orchestrator");
    assert!(outcome.ended - asked < STOP + slack());
    assert_eq!(outcome.terminal()["payload"]["agent_exit"]["signal"], 15);
}

#[test]
fn a_cancel_of_an_agent_that_never_says_anything_ends_the_run() {
    let mut session = Case::with(Script::bare().sh("trap '' TERM; while :; do sleep 1; done")).spawn();
    session.start(json!({}));
    session.until("run.started");
    session.wait_until("the agent", || session.log().ran());
    session.cancel();
    assert_cancelled(&session.finish(), "orchestrator");
}

#[test]
fn a_signal_cancels_the_run() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut session = working(talker(), json!({}));
        session.signal(signal);
        session.until_status("cancelling");
        assert_cancelled(&session.finish(), "signal");
    }
}

#[test]
fn a_signal_before_the_start_cancels_too() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let session = Case::with(Script::hello()).spawn();
        session.wait_until("the handler", || support::procs::handles(session.pid(), signal));
        session.signal(signal);
        let outcome = session.finish();
        assert_cancelled(&outcome, "signal");
        assert_eq!(outcome.frames.len(), 1);
    }
}

/// A supervisor such as Kubernetes reads the exit code alone, and must not take a stopped run for a success.
#[test]
fn with_signal_exit_a_signal_decides_the_exit_code() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut session = Case::with(talker()).args(&["--signal-exit"]).spawn();
        session.start(json!({}));
        session.until_text("working on it");
        session.signal(signal);
        let outcome = session.finish();
        assert_eq!(outcome.cancelled()["source"], "signal");
        assert_eq!(outcome.exit_code, Some(code));
    }
    let mut session = Case::with(talker()).args(&["--signal-exit"]).spawn();
    session.start(json!({}));
    session.until_text("working on it");
    session.cancel();
    assert_cancelled(&session.finish(), "orchestrator");
}

#[test]
fn a_signal_with_an_open_question_withdraws_it() {
    let mut session = Case::with(Script::asks_bash()).spawn();
    session.start(json!({}));
    session.until("run.question");
    session.signal(Signal::TERM);
    let outcome = session.finish();
    assert_cancelled(&outcome, "signal");
    assert_eq!(outcome.resolutions(), ["withdrawn"]);
}

/// An orchestrator that gives up sends a signal and closes the pipe at once.
#[test]
fn a_signal_counts_before_the_end_of_stdin_that_follows_it() {
    for _ in 0..5 {
        let mut session = Case::with(Script::asks_user(json!([support::agent::question("Which?", false)]))).spawn();
        session.start(json!({}));
        session.until("run.question");
        session.signal(Signal::TERM);
        session.close_stdin();
        let outcome = session.finish();
        assert_cancelled(&outcome, "signal");
        assert_eq!(outcome.resolutions(), ["withdrawn"]);
    }
}

#[test]
fn a_second_signal_skips_to_the_kill() {
    let mut session = working(stubborn(), json!({}));
    session.signal(Signal::TERM);
    session.until_status("cancelling");
    let second = Instant::now();
    session.signal(Signal::INT);
    let outcome = session.finish();
    assert_cancelled(&outcome, "signal");
    assert!(outcome.ended - second < Duration::from_millis(800) + slack(), "{:?}", outcome.ended - second);
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "signals ignored at the start (`nohup`, `&`)")]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let case = Case::with(Script::asks_bash()).shell(r#"trap '' HUP; exec "$@""#);
    let mut session = case.spawn();
    session.start(json!({}));
    let asked = session.until("run.question");
    session.signal(Signal::HUP);
    session.send("run.dance", json!({}));
    session.until_warning("unknown_type");
    session.answer(&asked, json!("deny"));
    session.finish().completed();
}

#[test]
fn the_time_limit_of_the_run_ends_it() {
    let mut session = Case::with(talker()).spawn();
    session.start(json!({"timeout_s": 0.6}));
    session.until("run.started");
    let outcome = session.finish();
    assert_eq!(outcome.failed("timeout")["detail"], json!({"limit": "timeout_s", "value": 0.6}));
    assert_eq!(outcome.exit_code, Some(5));
    let took = outcome.took();
    assert!(took >= Duration::from_millis(550) && took < Duration::from_millis(600) + STOP, "{took:?}");
}

#[test]
fn the_time_limit_counts_while_a_question_is_open_too() {
    let mut session = Case::with(Script::asks_bash()).spawn();
    session.start(json!({"timeout_s": 0.6, "question_timeout_s": 100}));
    let asked = session.until("run.question");
    assert!(asked["payload"]["timeout_s"].as_f64().unwrap() <= 0.6, "{}", asked.raw);
    let outcome = session.finish();
    outcome.failed("timeout");
    assert_eq!(outcome.resolutions(), ["withdrawn"]);
}

#[test]
fn an_agent_without_any_output_is_a_start_timeout() {
    let mut session = Case::with(Script::bare().sh("while recv; do :; done")).spawn();
    session.start(json!({"start_timeout_s": 0.5}));
    let outcome = session.finish();
    assert_eq!(outcome.failed("start_timeout")["detail"], json!({"limit": "start_timeout_s", "value": 0.5}));
    assert_eq!(outcome.exit_code, Some(5));
}

/// The agent talks, but does not answer the request for its session.
#[test]
fn an_agent_that_does_not_open_its_session_is_a_start_timeout() {
    let script = r#"read -r line; echo '{"id":1,"result":{"userAgent":"codex/0.169.0 (x)"}}'
        while read -r line; do case $line in *account/read*) echo '{"id":2,"result":{"account":{}}}' ;; esac; done"#;
    let config = json!({"agents": {"mine": {"driver": "codex", "command": "sh", "args": ["-c", script]}}});
    let case = Case::new().file("home/.config/spektacular/config.json", &config.to_string());
    let mut session = case.spawn();
    session.start(json!({"agent": "mine", "session_id": "t-1", "start_timeout_s": 1}));
    let outcome = session.finish();
    let message = outcome.failed("start_timeout")["message"].as_str().unwrap();
    assert!(message.starts_with("The agent was not ready within start_timeout_s"), "{message}");
}

#[test]
fn an_agent_that_falls_silent_is_an_idle_timeout() {
    // Whether the agent's text or the limit comes first does not matter.
    let mut session = Case::with(talker()).spawn();
    session.start(json!({"idle_timeout_s": 0.5}));
    let outcome = session.finish();
    assert_eq!(outcome.failed("idle_timeout")["detail"], json!({"limit": "idle_timeout_s", "value": 0.5}));
}

#[test]
fn an_idle_timeout_of_zero_means_no_limit() {
    let mut session = working(talker(), json!({"idle_timeout_s": 0, "heartbeat_s": 0.2}));
    session.until_progress("heartbeat");
    session.until_progress("heartbeat");
    session.cancel();
    assert_cancelled(&session.finish(), "orchestrator");
}

#[test]
fn the_end_of_stdin_cancels_if_the_flag_is_set() {
    let mut session = Case::with(talker()).args(&["--on-eof", "cancel"]).spawn();
    session.start(json!({}));
    session.until_text("working on it");
    session.close_stdin();
    session.finish().cancelled();
}

#[test]
fn a_cancel_that_races_with_the_result_gives_one_end() {
    for round in 0..by_length(20, 200) {
        let mut session = Case::with(Script::hello()).spawn();
        session.send_line(&start_line(r#"{"prompt":"hi"}"#));
        for _ in 0..round % 5 {
            session.next_frame();
        }
        session.cancel();
        let outcome = session.finish();
        assert!(matches!(outcome.terminal().kind(), "run.completed" | "run.cancelled"), "{}", outcome.terminal().raw);
    }
}

#[test]
fn an_agent_that_dies_of_its_interrupt_was_cancelled() {
    let script = Script::new().sh("aborted() { kill -KILL $$; }").say("msg_1", "working on it").sh("listen");
    let mut session = working(script, json!({}));
    session.cancel();
    let outcome = session.finish();
    assert_cancelled(&outcome, "orchestrator");
    assert_eq!(outcome.terminal()["payload"]["agent_exit"]["signal"], 9);
}
