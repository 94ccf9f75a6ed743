//! The program with real coding agents, each against a model that is a script on loopback: no account, no key, no
//! network but for the installation by npm. Only the agent is real here that the black-box tests imitate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)] // helpers outside of #[test] functions

mod client;
mod lab;
mod questions;
mod scenario;
mod sessions;
mod stops;
mod stub;
#[path = "../support/mod.rs"]
mod support;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use client::{Run, permission, run};
use lab::{Agent, Lab};
use serde_json::{Value, json};

/// Runs a test whose outcome hangs on time a second time if it fails, and says so: the agent, its tools and the
/// machine are not ours, and a moment without a processor is no mistake of the program's. A mistake that is always
/// there fails twice.
pub(crate) fn twice(name: &str, test: impl Fn()) {
    let Err(cause) = catch_unwind(AssertUnwindSafe(&test)) else { return };
    let text = cause.downcast_ref::<String>().map(String::as_str).or(cause.downcast_ref::<&str>().copied());
    // Not by eprintln, which shows nothing when the second try is good.
    let why = text.unwrap_or("a panic without a text");
    writeln!(std::io::stderr(), "{name} failed and is tried again: {why}").expect("stderr");
    test();
}

/// A run that asks nothing and needs no permission.
fn plain(agent: Agent, scenario: &str, payload: Value) -> Run {
    run(Lab::new(agent, scenario), payload, Vec::new())
}

fn says_hello(agent: Agent) {
    let run = plain(agent, "hello", json!({}));
    let payload = run.completed("Good day from the model.");
    assert_eq!(payload["stop_reason"], "end_turn");
    assert_eq!(payload["usage"]["input_tokens"], 150, "the cached ones are included");
    assert_eq!(payload["usage"]["cached_input_tokens"], 30);
    assert_eq!(payload["usage"]["output_tokens"], 7);
    assert!(payload["usage"]["cost_usd"].is_number());
    assert_eq!(payload["agent_exit"], json!({"code": 0, "signal": null}));
    assert_eq!(run.messages("text"), ["Good day from the model."]);
    let session = run.outcome.progress("session");
    assert_eq!(session.len(), 1);
    assert_eq!(session[0].text("agent_version"), agent.version());
    assert_eq!(session[0]["payload"]["session_id"], payload["session_id"]);
    assert!(run.outcome.progress("warning").is_empty());
    assert!(run.stub().last_heard().contains("go\n"), "the prompt went to the model");
    assert!(run.artifacts().is_empty());
}

#[test]
fn hello() {
    says_hello(Agent::Claude);
}

#[test]
fn hello_from_the_old_version() {
    says_hello(Agent::OldClaude);
}

#[test]
fn a_message_in_two_pieces_is_one_frame() {
    let run = plain(Agent::Claude, "two_chunks", json!({}));
    run.completed("Good day in two pieces.");
    let texts = run.outcome.progress("text");
    assert_eq!(texts.len(), 1);
    assert_eq!(texts[0]["payload"]["done"], true);
    assert_eq!(texts[0].text("text"), "Good day in two pieces.");
}

#[test]
fn a_message_in_two_pieces_comes_in_pieces_when_asked() {
    let run = plain(Agent::Claude, "two_chunks", json!({"progress": "full"}));
    run.completed("Good day in two pieces.");
    let pieces = run.outcome.progress("text");
    assert!(pieces.len() >= 2, "one piece only");
    assert_eq!(pieces[0].text("text"), "Good day ");
    assert_eq!(pieces[0]["payload"]["done"], false);
    assert_eq!(run.messages("text"), ["Good day in two pieces."]);
}

#[test]
fn reasoning_is_told_apart_from_text() {
    let run = plain(Agent::Claude, "think", json!({"progress": "full"}));
    run.completed("Good day, on reflection.");
    assert_eq!(run.messages("reasoning"), ["A greeting is due."]);
    assert_eq!(run.messages("text"), ["Good day, on reflection."]);
    let run = plain(Agent::Claude, "think", json!({}));
    assert!(run.outcome.progress("reasoning").is_empty(), "only with progress full");
}

#[test]
fn a_shell_command_that_succeeds() {
    let run = plain(Agent::Claude, "shell_ok", json!({"progress": "full"}));
    run.completed("It spoke.");
    assert_eq!(run.tools(), [("execute", "completed")]);
    let tools = run.outcome.progress("tool");
    assert_eq!(tools[0].text("state"), "started");
    assert!(tools[1].text("output").contains("the shell speaks"));
    assert_eq!(run.messages("text"), ["Let me see.", "It spoke."]);
    assert!(run.stub().tool_results()[0].contains("the shell speaks"));
}

#[test]
fn a_shell_command_that_fails_does_not_fail_the_run() {
    let run = run(Lab::new(Agent::Claude, "shell_fail"), json!({}), permission("allow_once"));
    run.completed("It ended with 3.");
    assert_eq!(run.tools(), [("execute", "failed")]);
    assert!(run.stub().tool_results()[0].contains("no further"));
}

#[test]
fn a_written_file_is_an_artifact() {
    let run = run(Lab::new(Agent::Claude, "write_file"), json!({}), permission("allow_once"));
    run.completed("The report is written.");
    assert_eq!(run.artifacts(), [("notes/report.md", "created")]);
    assert_eq!(run.tools(), [("edit", "completed")]);
    let artifact = run.outcome.of_type("run.artifact")[0];
    assert_eq!(artifact["payload"]["size_bytes"], "# Report\n\nNothing to report.\n".len());
    let question = run.questions()[0];
    assert_eq!(question["payload"]["subject"]["category"], "edit");
    assert_eq!(question["payload"]["subject"]["locations"][0]["path"], "notes/report.md");
}

#[test]
fn two_tools_of_one_answer() {
    let run = run(Lab::new(Agent::Claude, "two_tools"), json!({}), permission("allow_once"));
    run.completed("Both are there.");
    let mut tools = run.tools();
    tools.sort_unstable();
    assert_eq!(tools, [("edit", "completed"), ("execute", "completed")]);
    let mut artifacts = run.artifacts();
    artifacts.sort_unstable();
    assert_eq!(artifacts, [("one.txt", "created"), ("two.txt", "created")]);
    assert_eq!(run.questions().len(), 2);
}

#[test]
fn a_lot_of_output() {
    let rules = permission("allow_once");
    let run = run(Lab::new(Agent::Claude, "big_output"), json!({"progress": "full"}), rules);
    run.completed("A lot of numbers.");
    assert_eq!(run.tools(), [("execute", "completed")]);
    let tools = run.outcome.progress("tool");
    let output = tools.last().expect("tool").text("output");
    assert!(output.starts_with("1\n2\n3\n") || output.contains("\n1\n2\n3\n"), "{}", &output[..200]);
    assert!(output.len() <= 64 * 1024, "{} bytes of output", output.len());
}

#[test]
fn a_refused_key_fails_at_once() {
    let run = plain(Agent::Claude, "key_refused", json!({}));
    run.outcome.failed("auth_required");
    // The agent by itself would try for three minutes.
    assert!(run.outcome.took().as_secs() < 10, "it took {:?}", run.outcome.took());
}

#[test]
fn a_rate_limit_that_passes_is_a_warning() {
    let run = plain(Agent::Claude, "busy_once", json!({}));
    run.completed("Now I have time.");
    assert_eq!(run.outcome.warnings("agent_retrying").len(), 1);
    let states = run.outcome.progress("status");
    assert!(states.iter().any(|f| f.text("status") == "retrying"));
}

#[test]
fn a_provider_that_fails_for_good() {
    let lab = Lab::new(Agent::Claude, "broken").env("CLAUDE_CODE_MAX_RETRIES", "1");
    let run = run(lab, json!({}), Vec::new());
    let payload = run.outcome.failed("provider_unavailable");
    assert_eq!(payload["retryable"], true);
    assert_eq!(payload["detail"]["http_status"], 500);
    let address = run.stub().url();
    run.outcome.never_shows(address.trim_start_matches("http://"));
}
