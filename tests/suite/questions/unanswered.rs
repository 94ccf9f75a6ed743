//! Tests without a user: timeouts, the end of stdin, headless runs, policies, and question markers.

use crate::support;

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::agent::{Script, bash, question};
use support::{Case, Frame, Outcome, Session, in_time, run};

fn begin(script: Script, payload: Value) -> Session {
    let mut session = Case::with(script).spawn();
    session.start(payload);
    session
}

fn asks_user() -> Script {
    Script::asks_user(json!([question("Which?", false)]))
}

fn resolved(outcome: &Outcome) -> Vec<(String, bool)> {
    let frames = outcome.progress("question_resolved");
    frames.iter().map(|f| (f.text("resolution").to_owned(), f["payload"]["used_default"] == true)).collect()
}

#[test]
fn after_the_timeout_the_default_is_used() {
    // The agent asks only when the test allows it.
    let waits = Script::new().sh(r#"while ! [ -e "$D/go" ]; do sleep 0.02; done"#);
    let mut session = begin(waits.sh(&Script::asks_bash().steps_after_init()), json!({"question_timeout_s": 0.3}));
    session.until_progress("session");
    let before = Instant::now();
    fs::write(session.log().path("go"), "").unwrap();
    let asked = session.until("run.question");
    assert!(asked["payload"]["timeout_s"].as_f64().unwrap() <= 0.3);
    let frame = session.until_progress("question_resolved");
    assert!(frame.at - before >= Duration::from_millis(300), "{:?}", frame.at - before);
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(resolved(&outcome), [("timeout".to_owned(), true)]);
    assert_eq!(outcome.log().answer()["behavior"], "deny");
}

#[test]
fn after_the_timeout_a_required_question_without_default_fails_the_run() {
    let mut session = begin(asks_user(), json!({"question_timeout_s": 0.3}));
    session.until("run.question");
    let outcome = session.finish();
    outcome.failed("question_timeout");
    assert_eq!(outcome.exit_code, Some(5));
    assert_eq!(resolved(&outcome), [("timeout".to_owned(), false)]);
}

#[test]
fn after_a_timeout_with_continue_the_agent_learns_of_it_and_continues() {
    let mut session = begin(asks_user(), json!({"question_timeout_s": 0.3, "on_question_timeout": "continue"}));
    session.until("run.question");
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(resolved(&outcome), [("timeout".to_owned(), false)]);
    let answer = outcome.log().answer();
    assert_eq!(answer["behavior"], "deny");
    assert!(!answer["message"].as_str().unwrap().is_empty());
}

#[test]
fn a_bad_answer_does_not_restart_the_clock() {
    let mut session = begin(Script::asks_bash(), json!({"question_timeout_s": 100, "heartbeat_s": 0.2}));
    let asked = session.until("run.question");
    session.until_progress("heartbeat");
    session.until_progress("heartbeat");
    session.answer(&asked, json!("maybe"));
    let again = session.until("run.question");
    let left = |question: &Frame| question["payload"]["timeout_s"].as_f64().unwrap();
    assert!(left(&again) <= left(&asked) - 0.39, "{}", again.raw);
    session.answer(&asked, json!("deny"));
    session.finish().completed();
}

#[test]
fn a_question_never_has_more_time_than_the_run() {
    let mut session = begin(Script::asks_bash(), json!({"timeout_s": 80}));
    let asked = session.until("run.question");
    assert!(asked["payload"]["timeout_s"].as_f64().unwrap() <= 80.0, "{}", asked.raw);
    session.answer(&asked, json!("deny"));
    session.finish().completed();
}

#[test]
fn a_group_shares_one_clock_that_each_answer_restarts() {
    let script = Script::asks_user(json!([question("First?", false), question("Second?", false)]));
    // Doubles the time until the answer is in time.
    let mut seconds = 0.4;
    in_time(|| {
        seconds *= 2.0;
        let payload = json!({"question_timeout_s": seconds, "on_question_timeout": "continue", "heartbeat_s": 0.25});
        let mut session = begin(script.clone(), payload);
        let first = session.until("run.question");
        let second = session.until("run.question");
        let beat = |f: &Frame| f.is_progress("heartbeat") || f.is_progress("question_resolved");
        session.until_where("a heartbeat", beat);
        session.until_where("a heartbeat", beat);
        let before = Instant::now();
        session.answer(&first, json!("Auth"));
        let outcome = session.finish();
        outcome.completed();
        if outcome.resolutions() != ["answered", "timeout"] {
            return Err(format!("{:?} after {seconds} s", outcome.resolutions()));
        }
        let timeout = outcome.progress("question_resolved")[1];
        assert_eq!(timeout.text("question_id"), second.text("question_id"));
        let after = timeout.at - before;
        assert!(after >= Duration::from_secs_f64(seconds), "{after:?}: the clock was not restarted");
        Ok(())
    });
}

#[test]
fn at_the_end_of_stdin_an_open_question_takes_its_default() {
    let mut session = begin(Script::asks_bash(), json!({}));
    session.until("run.question");
    session.close_stdin();
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(resolved(&outcome), [("input_closed".to_owned(), true)]);
    assert_eq!(outcome.log().answer()["behavior"], "deny");
}

#[test]
fn at_the_end_of_stdin_a_later_question_takes_its_default() {
    let mut session = begin(Script::asks_bash(), json!({}));
    session.close_stdin();
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(resolved(&outcome), [("input_closed".to_owned(), true)]);
}

#[test]
fn at_the_end_of_stdin_a_required_question_fails_the_run() {
    for early in [true, false] {
        let mut session = begin(asks_user(), json!({}));
        if !early {
            session.until("run.question");
        }
        session.close_stdin();
        let outcome = session.finish();
        outcome.failed("input_closed");
        assert_eq!(outcome.exit_code, Some(6));
        assert_eq!(resolved(&outcome), [("input_closed".to_owned(), false)], "stdin closed early: {early}");
    }
}

#[test]
fn answers_sent_before_the_end_of_stdin_count() {
    let mut session = begin(Script::asks_bash(), json!({}));
    let asked = session.until("run.question");
    session.answer(&asked, json!("allow_once"));
    session.close_stdin();
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(resolved(&outcome), [("answered".to_owned(), false)]);
}

#[test]
fn a_headless_run_denies_permissions_and_never_asks() {
    let outcome = run(Case::with(Script::asks_bash()), json!({"interactive": false}));
    outcome.completed();
    assert!(outcome.of_type("run.question").is_empty());
    assert_eq!(outcome.resolutions(), ["headless"]);
    assert_eq!(outcome.log().answer()["behavior"], "deny");
}

#[test]
fn a_headless_run_tells_the_agent_that_no_user_is_present() {
    let outcome = run(Case::with(asks_user()), json!({"interactive": false}));
    outcome.completed();
    assert_eq!(outcome.resolutions(), ["headless"]);
    let answer = outcome.log().answer();
    assert_eq!(answer["behavior"], "deny");
    let message = answer["message"].as_str().unwrap().to_lowercase();
    assert!(message.contains("no user") && message.contains("judg"), "{message}");
}

#[test]
fn permissions_decide_by_category() {
    let rows = [
        (json!("allow"), "Bash", "allow"),
        (json!("deny"), "Bash", "deny"),
        (json!({"execute": "allow", "*": "deny"}), "Bash", "allow"),
        (json!({"execute": "allow", "*": "deny"}), "Write", "deny"),
        (json!({"edit": "allow", "*": "deny"}), "Write", "allow"),
        (json!({"read": "deny", "*": "allow"}), "Read", "deny"),
        (json!({"fetch": "allow", "*": "deny"}), "WebFetch", "allow"),
        (json!({"mcp": "allow", "*": "deny"}), "mcp__server__tool", "allow"),
    ];
    for (permissions, tool, behavior) in rows {
        for interactive in [true, false] {
            let script = Script::asks(tool, json!({"file_path": "x", "command": "x", "url": "https://example.org"}));
            let outcome = run(Case::with(script), json!({"permissions": permissions, "interactive": interactive}));
            outcome.completed();
            let shown = format!("{permissions} {tool}");
            assert!(outcome.of_type("run.question").is_empty(), "{shown}");
            assert_eq!(outcome.log().answer()["behavior"], behavior, "{shown}");
            let resolution = outcome.progress("question_resolved")[0].clone();
            assert!(matches!(resolution.text("resolution"), "policy" | "headless"), "{shown}");
            assert!(!resolution.text("question_id").is_empty(), "it has an id of its own");
            assert_eq!(resolution.text("value"), if behavior == "allow" { "allow_once" } else { "deny" }, "{shown}");
            assert!(resolution["payload"]["subject"].is_object(), "{shown}");
        }
    }
}

#[test]
fn the_rest_of_a_policy_is_asked() {
    for permissions in [json!({"read": "allow", "edit": "deny", "*": "ask"}), json!({"execute": "ask", "*": "deny"})] {
        let mut session = begin(Script::asks_bash(), json!({"permissions": permissions}));
        let asked = session.until("run.question");
        session.answer(&asked, json!("allow_once"));
        session.finish().completed();
    }
}

#[test]
fn a_policy_answers_permissions_only() {
    let mut session = begin(asks_user(), json!({"permissions": "allow"}));
    let asked = session.until("run.question");
    assert_eq!(asked["payload"]["purpose"], "clarification");
    session.answer(&asked, json!("Auth"));
    session.finish().completed();
}

#[test]
fn policy_resolutions_have_ids_of_their_own() {
    let script = Script::new()
        .ask("req-1", "toolu_1", "Bash", bash("one"))
        .ask("req-2", "toolu_2", "Bash", bash("two"))
        .say("msg_1", "ok")
        .done("ok");
    let outcome = run(Case::with(script), json!({"permissions": "allow"}));
    outcome.completed();
    let ids: Vec<&str> = outcome.progress("question_resolved").iter().map(|f| f.text("question_id")).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
}

/// An agent whose first message has a marker, and which repeats its second prompt.
fn marked(text: &str) -> Script {
    Script::new().say("msg_1", text).result(text).sh("prompt").say("msg_2", "Thanks").done("Thanks")
}

const MARKED: &str = r#"Before. <!--QUESTION:{"questions":[{"question":"Which one?","header":"Pick","options":[{"label":"Red"},{"label":"Blue"}]},{"question":"Why?"}]}--> After."#;

#[test]
fn a_question_marker_is_cut_from_the_text_asked_and_answered_in_a_further_turn() {
    let mut session = begin(marked(MARKED), json!({}));
    let first = session.until("run.question");
    let second = session.until("run.question");
    assert_eq!((first.text("kind"), first.text("text")), ("select", "Which one?"));
    assert_eq!(first["payload"]["allow_other"], true);
    assert_eq!((second.text("kind"), second.text("text")), ("text", "Why?"));
    session.answer(&first, json!("blue"));
    session.answer(&second, json!("it is calmer"));
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "Thanks");
    assert!(!outcome.said().contains("QUESTION:"), "{}", outcome.said());
    assert!(outcome.said().contains("Before.") && outcome.said().contains("After."), "{}", outcome.said());
    let prompts = outcome.log().prompts();
    assert_eq!(prompts.len(), 2);
    assert!(prompts[1].contains("Blue") && prompts[1].contains("it is calmer"), "{}", prompts[1]);
}

#[test]
fn question_markers_without_end_reach_a_limit() {
    let body = Script::bare().say("msg_1", MARKED).result(MARKED).sh("prompt").body();
    let script = Script::new().sh(&format!("while :; do\n{body}\ndone"));
    let mut session = begin(script, json!({}));
    loop {
        let frame = session.next_frame();
        if frame.is_terminal() {
            break;
        } else if frame.kind() == "run.question" {
            session.answer(&frame, json!("Red"));
        }
    }
    let outcome = session.finish();
    outcome.failed("limit_reached");
    assert_eq!(outcome.log().prompts().len(), 21, "twenty further turns");
}

#[test]
fn a_question_marker_in_a_headless_run_says_that_no_user_is_present() {
    let outcome = run(Case::with(marked(MARKED)), json!({"interactive": false}));
    assert_eq!(outcome.completed()["text"], "Thanks");
    let prompts = outcome.log().prompts();
    assert_eq!(prompts.len(), 2);
    assert!(prompts[1].to_lowercase().contains("no user"), "{}", prompts[1]);
}

#[test]
fn a_default_in_a_question_marker_is_used_in_a_headless_run() {
    let question = json!({"questions": [{"question": "Which name?", "default": "spec"}, {"question": "Why?"}]});
    let outcome = run(Case::with(marked(&format!("<!--QUESTION:{question}-->"))), json!({"interactive": false}));
    assert_eq!(outcome.completed()["text"], "Thanks");
    assert_eq!(resolved(&outcome), [("headless".to_owned(), true), ("headless".to_owned(), false)]);
    let prompts = outcome.log().prompts();
    let told = &prompts[1];
    assert!(told.contains("No user is present") && told.contains("Which name?\nspec\n"), "{told}");
}

#[test]
fn an_invalid_marker_stays_text() {
    let fenced = format!("Look:\n```\n{MARKED}\n```\n");
    let rows = [
        (json!({"question_markers": false}), MARKED),
        (json!({}), fenced.as_str()),
        (json!({}), r#"a <!--QUESTION:{"questions":[{"question":}]}--> b"#),
        (json!({}), "a <!--QUESTION:{"),
    ];
    for (payload, text) in rows {
        let outcome = run(Case::with(Script::new().say("msg_1", text).done(text)), payload);
        assert_eq!(outcome.completed()["text"], text);
        assert_eq!(outcome.said(), text);
    }
}

#[test]
fn a_question_marker_across_pieces_is_cut_too() {
    let pieces: Vec<&str> = MARKED.split_inclusive('"').collect();
    let script =
        Script::new().say_pieces("msg_1", &pieces).result(MARKED).sh("prompt").say("msg_2", "Thanks").done("Thanks");
    let mut session = begin(script, json!({"progress": "full"}));
    let first = session.until("run.question");
    let second = session.until("run.question");
    session.answer(&first, json!(1));
    session.answer(&second, json!("so"));
    let outcome = session.finish();
    outcome.completed();
    assert!(!outcome.said().contains("QUESTION"), "{}", outcome.said());
}
