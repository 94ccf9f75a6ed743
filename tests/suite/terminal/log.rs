//! Tests of the log of a run without a viewer, as a CI system keeps it.

use serde_json::{Value, json};
use std::fs::File;
use std::process::Stdio;

use super::codex::Codex;
use super::edits::failed;
use super::without_times;
use crate::support::Case;
use crate::support::agent::{SESSION, Script, assistant, bash, question};
use crate::support::read;

/// The stderr of a run without a terminal.
#[track_caller]
fn logged(script: Script, args: &[&str]) -> String {
    let done = Case::with(script).cli(args);
    let log = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(0), "{log}");
    log
}

#[test]
fn a_log_begins_with_the_circumstances_and_ends_with_the_session() {
    let log = logged(Script::hello(), &["--permissions", "read=allow,*=deny", "go"]);
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].starts_with("agent Claude Code, permissions read=allow,*=deny, in /"), "{log}");
    assert!(lines[1].starts_with("version ") && lines[1].contains(", model claude-"), "{log}");
    assert!(lines.last().unwrap().starts_with("session 5f0c1a52-"), "{log}");
    assert_eq!(logged(Script::hello(), &["--quiet", "go"]), "");
}

#[test]
fn each_line_of_a_log_begins_with_the_id_of_the_run_if_asked_for() {
    let script = Script::new().sh("echo 'from the agent' >&2").say("msg_1", "ok").done("ok");
    let log = logged(script, &["--log-id", "--mirror-stderr", "go"]);
    let id = log.split_once("] ").unwrap().0;
    assert!(id.starts_with("[run_") && log.contains(&format!("{id}] from the agent\n")), "{log}");
    assert!(log.lines().count() > 3 && log.lines().all(|line| line.starts_with(id)), "{log}");
}

#[test]
fn a_secret_that_an_invisible_character_splits_stays_split_in_the_line_of_a_policy() {
    let script = Script::new().ask("r1", "c1", "Bash", bash("a=hunte\u{feff}r2-hunter2-77")).done("It is there.");
    let log = logged(script, &["--verbose", "--permissions", "execute=allow", "--secret", "hunter2-hunter2-77", "go"]);
    assert!(log.contains("Allowed by policy: "), "{log}");
    assert!(!log.replace('\u{feff}', "").contains("hunter2-hunter2-77"), "{log}");
}

#[test]
fn a_question_answered_in_advance_is_one_line_without_a_prompt() {
    let script = || Script::asks_user(json!([question("Which features?", true)]));
    let log = logged(script(), &["--answer", "Features=Auth,Export", "go"]);
    assert!(log.contains("\nFeatures: Auth, Export (--answer)\n") && !log.contains("> "), "{log}");
    // A number means an option, which is shown by its label.
    let log = logged(script(), &["--answer", "Features=2", "go"]);
    assert!(log.contains("\nFeatures: Search (--answer)\n"), "{log}");
}

#[test]
fn an_answer_in_advance_that_does_not_fit_leaves_the_question_to_the_person() {
    let codex = Codex::new().asks("confirm", "Sure?", json!({})).says("Thank you.");
    let case = Case::new().program("codex", &codex);
    let mut person = case.at_terminal(&["adhoc", "--agent", "codex", "--answer", "confirm=perhaps", "go"]);
    person.answers("Sure?", "y");
    let (code, seen) = person.ends();
    assert!(code == 0 && !seen.contains("--answer"), "{code}: {seen}");
}

#[test]
fn a_secret_given_in_advance_is_dots() {
    let codex = Codex::new().asks("secret", "What key?", json!({})).says("Thank you.");
    let case = Case::new().program("codex", &codex);
    let done = case.cli(&["--agent", "codex", "--answer", "secret=tr0ub4dor&3", "go"]);
    let log = String::from_utf8(done.stderr).unwrap();
    assert!(log.contains("What key? •••••• (--answer)\n") && !log.contains("tr0ub4dor"), "{log}");
}

#[test]
fn a_silent_run_sends_heartbeats() {
    let waits =
        "until [ \"$(grep -c 'still running: Run cargo test (' \"$D/../stderr\")\" -ge 2 ]; do sleep 0.02; done";
    let script =
        Script::new().tool_use("c1", "Bash", &bash("cargo test")).sh(waits).tool_result("c1", "").done("Done.");
    let case = Case::with(script).stdout_to("stdout").stderr_to("stderr");
    let mut person = case.at_terminal(&["adhoc", "--heartbeat", "0.2", "go"]);
    assert_eq!(person.ends().0, 0, "{}", person.file("stderr"));
}

#[test]
fn a_merged_log_has_nothing_behind_an_unfinished_text() {
    let event = |event: Value| json!({"type": "stream_event", "event": event, "session_id": SESSION, "parent_tool_use_id": null});
    let waits = "until grep -A 1 'I am about' \"$D/../merged\" | grep -q 'still running'; do sleep 0.02; done";
    let script = Script::new()
        .out(&event(json!({"type": "message_start", "message": {"id": "msg_1"}})))
        .out(&event(json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "I am about "}})))
        .sh(waits)
        .out(&assistant("msg_1", json!({"type": "text", "text": "I am about to start."})))
        .done("I am about to start.");
    let case = Case::with(script);
    let merged = File::create(case.path("merged")).unwrap();
    let mut command = case.other("work", &["adhoc", "--heartbeat", "0.2", "go"]);
    command.stdin(Stdio::null()).stdout(merged.try_clone().unwrap()).stderr(merged);
    assert!(command.status().unwrap().success());
    let log = read(&case.path("merged"));
    assert!(log.contains("I am about \nstill running: "), "{log}");
}

#[test]
fn a_failed_tool_shows_the_end_of_its_output() {
    let failed = failed("c1", "Exit code 3\nfirst\n\nlast but one\nthe last\n");
    let script = Script::new().tool_use("c1", "Bash", &bash("cargo test")).out(&failed).done("Done.");
    let log = without_times(&logged(script, &["go"]));
    assert!(log.contains("* Run cargo test: failed (exit 3)\n    last but one\n    the last\n"), "{log}");
    assert!(!log.contains("first"), "{log}");
}
