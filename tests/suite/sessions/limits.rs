//! Tests of the wait for a provider's limit: the run holds no process, and the same turn goes on in the same session.

use crate::support::agent::{SESSION, Script, bash, error_result, init, quote};
use crate::support::{Case, Session, run};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A limit of the account that ends after so many seconds.
pub(crate) fn limit(seconds: i32) -> String {
    let failed = error_result(json!({"api_error_status": 429, "result": "API Error: rate limited", "num_turns": 1}));
    let event = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s}}\n"#;
    format!("printf '{event}' $(($(date +%s) + {seconds}))\nout {}\nlisten\n", quote(&failed.to_string()))
}

/// Does `before` and reaches the limit in its first process, and does `then` in the second.
fn limited(before: Script, seconds: i32, then: Script) -> Script {
    let first = before.sh(&limit(seconds)).body();
    Script::new().sh(&format!("if [ \"$(wc -l <\"$D/pids\")\" -eq 1 ]; then\n{first}fi")).sh(&then.body())
}

fn simple(seconds: i32) -> Script {
    limited(Script::bare(), seconds, Script::bare().say("msg_1", "Done").done("Done"))
}

#[track_caller]
fn begin(script: Script, mut payload: Value) -> Session {
    let mut session = Case::with(script).spawn();
    payload["on_rate_limit"] = json!("wait");
    session.start(payload);
    session
}

/// Waits until the run waits for the limit and holds no process of the agent.
#[track_caller]
fn wait_alone(session: &mut Session) {
    let status = session.until_status("waiting_for_limit");
    assert!(status.text("until").ends_with('Z'));
    let agent = session.log().pid();
    session.wait_until("the agent is gone", || session.processes().iter().all(|(pid, _)| *pid != agent));
}

#[test]
fn a_limit_that_ends_is_waited_for_without_a_process() {
    let outcome = begin(simple(2), json!({})).finish();
    assert_eq!(outcome.completed()["text"], "Done");
    let all: Vec<&str> = outcome.progress("status").iter().map(|frame| frame.text("status")).collect();
    assert_eq!(all, ["starting", "running", "waiting_for_limit", "running"]);
    let log = outcome.log();
    assert_eq!(log.prompts(), ["go", "go"], "nothing was done, so the prompt comes again");
    assert!(log.argv().contains(&format!("--resume={SESSION}")), "{:?}", log.argv());
}

#[test]
fn a_limit_that_is_over_when_its_failure_arrives_is_not_waited_for() {
    let outcome = begin(simple(-1), json!({})).finish();
    assert_eq!(outcome.completed()["text"], "Done");
    assert_eq!(outcome.log().prompts(), ["go", "go"]);
}

#[test]
fn an_agent_that_has_worked_goes_on_where_it_stopped() {
    let worked = Script::bare().tool("toolu_1", "Bash", &bash("touch a.txt"), "(done)");
    let script = limited(worked, 1, Script::bare().say("msg_1", "Done").done("Done"));
    let outcome = begin(script, json!({})).finish();
    assert_eq!(outcome.completed()["text"], "Done");
    let prompts = outcome.log().prompts();
    assert_eq!((prompts.len(), prompts[0].as_str()), (2, "go"));
    assert!(prompts[1].contains("Go on with the task where you stopped"), "{prompts:?}");
}

#[test]
fn by_default_a_limit_fails_the_run_and_names_its_end() {
    let mut session = Case::with(simple(1000)).spawn();
    session.start(json!({}));
    let outcome = session.finish();
    assert!(outcome.failed("rate_limited")["detail"]["retry_at"].is_string());
}

/// Some agents and providers only say how long a limit lasts.
#[test]
fn a_limit_whose_length_is_in_the_agents_words_is_waited_for_so_long() {
    let failed = error_result(json!({"api_error_status": 429, "result": "API Error: 429 Please try again in 2s.",
        "num_turns": 1}));
    let first = format!("if [ \"$(wc -l <\"$D/pids\")\" -eq 1 ]; then\nout {}\nlisten\nfi", quote(&failed.to_string()));
    let script = || Script::new().sh(&first).say("msg_1", "Done").done("Done");
    let outcome = begin(script(), json!({})).finish();
    assert_eq!(outcome.completed()["text"], "Done");
    assert_eq!(outcome.log().starts(), 2);
    let mut session = Case::with(script()).spawn();
    session.start(json!({}));
    let outcome = session.finish();
    assert!(outcome.failed("rate_limited")["detail"]["retry_at"].is_string());
}

/// The demo agent resumes no session. In its first turn nothing is lost, so the turn begins again in a new one.
#[test]
fn the_first_turn_of_an_agent_without_sessions_begins_again() {
    let payload = json!({"agent": "demo:error-429", "on_rate_limit": "wait", "max_wait_s": 0.2});
    let outcome = run(Case::new(), payload);
    let failed = outcome.failed("rate_limited");
    assert_eq!(failed["retryable"], json!(true));
    assert!(failed["message"].as_str().unwrap().contains("max_wait_s"), "{failed}");
    let waits = outcome.progress("status").iter().filter(|one| one.text("status") == "waiting_for_limit").count();
    assert_eq!(waits, 1);
}

#[test]
fn a_limit_that_ends_too_late_fails_the_run_at_once() {
    let outcome = begin(simple(1000), json!({"max_wait_s": 100})).finish();
    let failed = outcome.failed("rate_limited");
    assert!(failed["message"].as_str().unwrap().contains("max_wait_s"), "{failed}");
    assert!(failed["detail"]["retry_at"].is_string(), "{failed}");
    assert_eq!(outcome.log().prompts(), ["go"]);
}

#[test]
fn a_cancel_a_signal_and_a_time_limit_end_the_wait() {
    let mut session = begin(simple(1000), json!({}));
    wait_alone(&mut session);
    session.cancel();
    session.finish().cancelled();

    let mut session = begin(simple(1000), json!({}));
    wait_alone(&mut session);
    session.signal(Signal::TERM);
    session.finish().cancelled();

    let mut session = begin(simple(1000), json!({"timeout_s": 3}));
    session.until_status("waiting_for_limit");
    let outcome = session.finish();
    assert_eq!(outcome.failed("timeout")["detail"]["limit"], "timeout_s");
}

#[test]
fn in_a_conversation_prompts_wait_and_a_cancelled_turn_ends_the_wait() {
    let mut session = begin(simple(1000), json!({"conversation": true}));
    wait_alone(&mut session);
    session.send("run.cancel", json!({"scope": "turn"}));
    let turn = session.until_progress("turn");
    assert_eq!(turn.text("outcome"), "cancelled");
    session.send("run.input", json!({"prompt": "And now?"}));
    let turn = session.until_progress("turn");
    assert_eq!((turn.text("outcome"), turn.text("final_text")), ("completed", "Done"));
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!(outcome.completed()["turns"], 2);

    let mut session = begin(simple(2), json!({"conversation": true}));
    session.until_status("waiting_for_limit");
    session.send("run.input", json!({"prompt": "And now?"}));
    let queued = session.until_progress("prompt");
    assert_eq!(queued.text("state"), "queued");
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!(outcome.completed()["turns"], 2);
    assert_eq!(outcome.log().prompts(), ["go", "go", "And now?"]);
}

#[test]
fn an_agent_that_does_not_leave_is_ended_before_the_wait() {
    let stays = format!("{}\n", limit(1).replace("\nlisten\n", "\ntrap '' TERM\nwhile :; do sleep 1; done\n"));
    let first = format!("if [ \"$(wc -l <\"$D/pids\")\" -eq 1 ]; then\n{stays}fi");
    let script = Script::bare().sh("prompt").out(&init()).sh(&first).say("msg_1", "Done").done("Done");
    let outcome = begin(script, json!({})).finish();
    assert_eq!(outcome.completed()["text"], "Done");
}
